"""A place in a text as compilers show it: some lines with their numbers, and a mark under the column."""

from orchestrator.prompts.budget import fence

AROUND_LINES = 4
WIDTH = 160
"""Characters of a line that are shown; of the line itself those around the column."""


def render_excerpt(text: str, line: int, column: int) -> str:
    """The lines around a 1-based place, in a fence; a place behind the text is its end."""
    lines = text.split("\n")
    at = min(max(line, 1), len(lines))
    first, last = max(at - AROUND_LINES, 1), min(at + AROUND_LINES, len(lines))
    gutter = len(str(last))
    shown = []
    for number in range(first, last + 1):
        content = lines[number - 1].replace("\t", " ").rstrip("\r")
        start = max(0, min(column - 1 - WIDTH // 2, len(content) - WIDTH)) if number == at else 0
        head, tail = ("…" if start else ""), ("…" if start + WIDTH < len(content) else "")
        shown.append(f"{number:>{gutter}} | {head}{content[start : start + WIDTH]}{tail}")
        if number == at:
            place = min(column - 1, len(content)) - start + len(head)
            shown.append(f"{'':>{gutter}} | {' ' * place}^")
    return fence("\n".join(shown), "text")
