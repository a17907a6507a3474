"""A change as the text that reviewers read: a unified git diff of single files, the same for every git."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from orchestrator.adapters.mirror import Mirror

_INDEX = re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+(?: [0-7]+)?\n", re.MULTILINE)
_OPTIONS = (
    *("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers"),
)
_CONTEXT = 3
_LOOKED_AT = 8000
"""Bytes of a file in which git looks for a NUL before it takes it for text."""


async def patch(mirror: Mirror, since: str, head: str, paths: Sequence[str]) -> str:
    """The difference of `paths` between two commits; bytes that are no UTF-8 are shown as escapes.

    Lines that begin with `index` are left out. No attribute of the tree hides a file. Raises WorkspaceError for an
    unknown commit.
    """
    if not paths or since == head:
        return ""
    output = await mirror.git("diff-tree", *_OPTIONS, since, head, "--", *dict.fromkeys(paths))
    return _INDEX.sub("", output.stdout.decode("utf-8", "backslashreplace"))


def text_patch(path: str, old: str | None, new: str | None) -> str:
    """The same for one file of which both texts are known (None: absent); its hunks may be cut otherwise than git's."""
    if old == new:
        return ""
    head = [f"diff --git a/{path} b/{path}"]
    head += ["new file mode 100644"] if old is None else ["deleted file mode 100644"] if new is None else []
    before, after = "/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}"
    if any(b"\0" in (text or "").encode()[:_LOOKED_AT] for text in (old, new)):
        head.append(f"Binary files {before} and {after} differ")
    elif old or new:
        tab = "\t" if " " in path else ""
        head += [f"--- {before}{tab if old is not None else ''}", f"+++ {after}{tab if new is not None else ''}"]
        head += _hunks(_lines(old or ""), _lines(new or ""))
    return "".join(f"{line}\n" for line in head)


def _lines(text: str) -> list[str]:
    """Lines as git counts them: ended by line feeds alone; a last one without has its mark below."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_span(old_start, old_end)} +{_span(new_start, new_end)} @@"
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[i1:i2])
                continue
            yield from (f"-{line}" for line in old[i1:i2])
            yield from (f"+{line}" for line in new[j1:j2])


def _span(start: int, end: int) -> str:
    """Lines as a hunk's head counts them: from 1, and the line before where there are none."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"
