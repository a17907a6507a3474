"""Of the documentation as a site: files outside of docs/ are named, where the repository's pages link to them."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Part of MkDocs: returns the page's text, with such links as their words alone."""
    folder = posixpath.dirname(page.file.src_uri)

    def shown(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        return link[1] if target.startswith("..") and "://" not in link[2] else link[0]

    return LINK.sub(shown, markdown)
