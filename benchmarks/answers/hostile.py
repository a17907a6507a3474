"""Texts that make a careless reader quadratic, deep or dead, in any size."""

import json
from collections.abc import Callable

from benchmarks.answers import content


def _delivery(size: int) -> str:
    texts = list(content.samples().values())
    files, length = [], 0
    while length < size:
        text = texts[len(files) % len(texts)]
        files.append({"path": f"src/part{len(files)}.txt", "content": text})
        length += len(text) + 40
    return json.dumps({"story_id": "US-001", "files": files}, indent=1)


def _filled(before: str, part: str, after: str = "") -> Callable[[int], str]:
    return lambda size: before + part * (size // len(part)) + after


FILE = '{"story_id": "US-001", "files": [{"path": "a.js", "content": '
HOSTILE: dict[str, Callable[[int], str]] = {
    "valid": _delivery,
    "valid, in prose and a fence": lambda size: f"As {{agreed}}:\n```json\n{_delivery(size)}\n```\nDone.",
    "last brace missing": lambda size: _delivery(size)[:-1],
    "opening braces": _filled("", "{"),
    "opening brackets": _filled("", "["),
    "quotes": _filled("", '"'),
    "escaped quotes": _filled("", '\\"'),
    "backquotes": _filled("", "`"),
    "objects in objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "lists in lists": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "keys without values": _filled("", '{"a"'),
    "an endless list": _filled('{"files": [', '"a",'),
    "quotes in code": _filled(FILE + '"', 'say "no", or: "x" \\n', '"}]}'),
    "fences": _filled("", "```json\n"),
    "prose": _filled("", 'it isn\'t "here", nor (there) '),
    "comments": _filled("{", "/* x */ // y\n"),
    "many small answers": _filled("", '{"files": []}\n'),
    "open tags": _filled("", "<think>{"),
}
