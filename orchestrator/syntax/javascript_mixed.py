"""The programs in files that hold JavaScript between other things: pages and single-file components."""

import re

MIXED = (".vue", ".svelte", ".astro")
"""JavaScript between other things, which no grammar here knows."""
_BLOCK = re.compile(r"<script\b(?P<head>[^>]*)>(?P<code>.*?)(</script\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_FRONT = re.compile(r"\A\s*---[^\n]*\n(?P<code>.*?)^---", re.MULTILINE | re.DOTALL)
_SOURCE = re.compile(r"""\bsrc\s*=\s*["']?(?P<address>[^"'\s>]+)""", re.IGNORECASE)


def scripts(text: str, path: str) -> str:
    """The text with all that is no program turned into blanks, so that lines stay; a script's `src` is an import.

    A file that is none of these is its own program.
    """
    if not path.lower().endswith(MIXED):
        return text
    kept: list[tuple[int, str]] = []
    start = 0
    front = _FRONT.match(text) if path.lower().endswith(".astro") else None
    if front:
        kept.append((front.start("code"), front["code"]))
        start = front.end()
    for block in _BLOCK.finditer(text, start):
        address = _SOURCE.search(block["head"])
        told = f"import {address['address']!r};" if address else ""
        if len(told) <= block.start("code") - block.start() and "\n" not in block["head"] and told:
            kept.append((block.start(), told))
        if "json" not in block["head"].lower():
            kept.append((block.start("code"), block["code"]))
    pieces, at = [], 0
    for place, code in kept:
        pieces += [_blank(text[at:place]), code, "\n" if code.endswith("\n") is False else ""]
        at = place + len(code)
    return "".join(pieces)


def _blank(text: str) -> str:
    return "\n" * text.count("\n")
