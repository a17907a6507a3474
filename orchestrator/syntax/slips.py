"""What models leave in a file that is in no language: code fences, merge markers, a diff, line ends spelled out.

Several languages take such text for something of theirs (a fence is a tagged template in JavaScript, a comment hides a
file whose line ends are two characters), so it is looked for before the parser is asked.
"""

import re
from collections.abc import Iterator

from orchestrator.syntax.problem import Problem, place

_FENCE = re.compile(r"\A\s*(```|~~~)[\w+#.-]*[ \t]*(?=\n)|(?<=\n)(```|~~~)[ \t]*\s*\Z")
_MARKERS = (re.compile(r"^<{7} ", re.M), re.compile(r"^={7}$", re.M), re.compile(r"^>{7} ", re.M))
_DIFF = re.compile(r"\A\s*(diff --git a/|--- \S[^\n]*\n\+\+\+ \S|@@ -\d+(,\d+)? \+\d+(,\d+)? @@)")
_SPELLED_OUT = re.compile(r"\A\s*(#|//|/\*|<|;).*?\\n.*?\\n.*?\\n")
_BETWEEN_TAGS = re.compile(r"[>}]\s*\\n|\\n\s*[<{]")
_FEWEST = 3
_QUOTES = re.compile(r"[\u201c\u201d\u2018\u2019\u201e]")
_ENTITY = re.compile(r"&(lt|gt|amp|quot|#39|apos);")
_PLUSES = 4
"""Fewest lines that make a diff out of leading plus signs."""


def slips(text: str, language: str) -> list[Problem]:
    """What stands in the text and is code in no language; [] when there is nothing of the kind."""
    return [problem for problem in (*_fences(text), *_merge(text), *_diff(text), *_line_ends(text, language))][:1]


def hint(line: str, language: str) -> str:
    """What in a line that does not parse is likely to be the cause; "" when nothing is."""
    if language not in {"HTML", "XML"} and (found := _ENTITY.search(line)):
        return f" (the line has the HTML entity `{found[0]}` where a character belongs)"
    if found := _QUOTES.search(line):
        return f" (the line has the typographic quote {found[0]})"
    return ""


def _fences(text: str) -> Iterator[Problem]:
    if ("```" in text or "~~~" in text) and (found := _FENCE.search(text)):
        at = found.start() + len(found[0]) - len(found[0].lstrip())
        line, column = place(text, at)
        fix = "Give the file's text alone, without the fence."
        yield Problem(line=line, column=column, message="a Markdown code fence stands in the file", fix=fix)


def _merge(text: str) -> Iterator[Problem]:
    if "<<<<<<< " not in text:
        return
    at = 0
    first = None
    for marker in _MARKERS:
        found = marker.search(text, at)
        if found is None:
            return
        first, at = first or found, found.end()
    if first is not None:
        fix = "Settle the conflict and leave the markers out."
        yield Problem(
            line=place(text, first.start())[0], column=1, message="a merge conflict is left in the file", fix=fix
        )


def _diff(text: str) -> Iterator[Problem]:
    added = text.count("\n+") + text.startswith("+")
    if _DIFF.match(text) or (added >= _PLUSES and added * 2 >= sum(1 for line in text.split("\n") if line.strip())):
        line = next((number for number, line in enumerate(text.split("\n"), 1) if line.strip()), 1)
        fix = "Give the whole file as it is to be, without + and - before its lines."
        yield Problem(line=line, column=1, message="this is a diff, not the file", fix=fix)


def _line_ends(text: str, language: str) -> Iterator[Problem]:
    if language.startswith("JSON") or "\n" in text.strip():
        return
    markup = language in {"HTML", "XML", "Vue", "Svelte", "Astro"}
    if len(_BETWEEN_TAGS.findall(text)) < _FEWEST if markup else not _SPELLED_OUT.match(text):
        return
    if not markup and re.match(r"\s*<", text):
        return
    column = text.index("\\n") + 1
    fix = "Write real line ends."
    yield Problem(line=1, column=column, message="line ends are written as the two characters \\n", fix=fix)
