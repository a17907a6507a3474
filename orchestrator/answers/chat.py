"""What a chat leaves around an answer: words that announce it, marks behind it."""

import re

FINAL = re.compile(
    r"\b(?:final|answer|output|response|result)\b[^\n{}]{0,60}[:.]\**\s*(?:(?:```|~~~)\w*\s*\n)?(?=[{\[])",
    re.IGNORECASE,
)
"""Words that announce the answer itself."""
_TAIL = re.compile(
    r"(?=\s*+[<\[`~(….ot])"  # no other character begins a mark: most places are told at once
    r"(?:\s*(?:<\|[\w ]{1,40}\|>|</s>|\[/?INST\]|```|~~~|</?(?!think|reason|thought|scratch|reflect)[a-z_]{2,20}>"
    r"|(?:…|\.{3})?\s*[\[(]?\b(?:output )?truncated\b.{0,40}"
    r"|\n\s*[\[(][A-Za-z][^\])\n\"{}]{2,80}[\])]))+\s*\Z",
    re.IGNORECASE,
)
"""What is left of a chat's own marks behind a text."""
_LAST = (">", "]", ")", "`", "~")
"""What a mark ends with that has not the word `truncated` in it."""


def without_tail(text: str) -> str:
    """The text without a chat's own marks behind it."""
    last = text.rstrip()[-60:]
    if last.endswith("}") or not (last.endswith(_LAST) or "truncated" in last.lower()):
        return text
    tail = _TAIL.search(text, max(0, len(text) - 200))
    return text if tail is None or "{" in tail.group() else text[: tail.start()]
