"""What a script asks for in itself: a block of metadata in its comments (PEP 723)."""

import re

from orchestrator.syntax.manifest_pyproject import read_pyproject

_BLOCK = re.compile(r"(?m)^# /// script[ \t]*$\n(?P<lines>(?:^#(?: .*)?$\n)+?)^# ///[ \t]*$")


def inline_requirements(text: str) -> tuple[str, ...]:
    """Packages that such a block names, and places it takes them from; one that cannot be read stands as its own text.

    Never raises.
    """
    match = _BLOCK.search(text.replace("\r\n", "\n"))
    if match is None:
        return ()
    lines = "\n".join(line[2:] for line in match["lines"].splitlines())
    try:
        # Its first keys are those of a project, its tables are written in full.
        found = read_pyproject(f"[project]\n{lines}\n", "")
    except (ValueError, RecursionError):
        return ("an unreadable `# /// script` block",)
    return tuple(sorted({*found.names, *found.pinned, *found.sources, *found.bad}))
