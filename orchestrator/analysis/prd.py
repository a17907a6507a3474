"""How a PRD begins, in its own words: nothing is summed up that nobody wrote (pure)."""

import re

MAX_SUMMARY = 700
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_SKIPPED = re.compile(r"^\s*(```|~~~|---|\*\*\*|___|\||!\[|<)")


def prd_summary(prd: str) -> str:
    """The first heading and the first paragraphs behind it, as many as fit; the last one is cut at a sentence."""
    title = ""
    paragraphs: list[list[str]] = [[]]
    fenced = False
    for line in prd.strip().splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        heading = _HEADING.match(line)
        if heading is not None and not fenced:
            title = title or heading[1]
            paragraphs.append([])
        elif fenced or _SKIPPED.match(line) or not line.strip():
            paragraphs.append([])
        else:
            paragraphs[-1].append(line.strip())
    text = "\n\n".join(" ".join(part) for part in paragraphs if part)
    whole = f"{title}: {text}" if title and text else title or text
    return whole if len(whole) <= MAX_SUMMARY else _cut(whole)


def _cut(text: str) -> str:
    """At the end of a sentence where there is one, else of a word."""
    short = text[:MAX_SUMMARY]
    end = max(short.rfind(mark) for mark in (". ", ".\n", "? ", "! "))
    return short[: end + 1] if end > MAX_SUMMARY // 3 else f"{short.rsplit(' ', 1)[0]} …"
