"""The programs in files that hold JavaScript between other things: pages and single-file components."""

import re

MIXED = (".vue", ".svelte", ".astro", ".mdx")
"""JavaScript between other things, which no grammar here knows."""
_BLOCK = re.compile(r"<script\b(?P<head>[^>]*)>(?P<code>.*?)(</script\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_FRONT = re.compile(r"\A\s*---[^\n]*\n(?P<code>.*?)^---", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>.*)$")
_MODULE_LINE = re.compile(r"(import|export)[\s{*\"']")
_SOURCE = re.compile(r"""\bsrc\s*=\s*["']?(?P<address>[^"'\s>]+)""", re.IGNORECASE)


def scripts(text: str, path: str) -> str:
    """The text with all that is no program turned into blanks, so that lines stay; a script's `src` is an import.

    A file that is none of these is its own program.
    """
    if not path.lower().endswith(MIXED):
        return text
    if path.lower().endswith(".mdx"):
        return _of_mdx(text)
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


def _of_mdx(text: str) -> str:
    """The paragraphs of MDX that begin with `import` or `export`, outside of code that is only shown."""
    kept: list[str] = []
    fence, inside, before = "", False, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark["mark"].startswith(fence) and not mark["rest"].strip() else fence
            line = ""
        elif mark:
            fence, line = mark["mark"], ""
        inside = bool(line.strip()) and (inside or (not before.strip() and _MODULE_LINE.match(line) is not None))
        kept.append(line if inside else "")
        before = line
    return "\n".join(kept)


def _blank(text: str) -> str:
    return "\n" * text.count("\n")
