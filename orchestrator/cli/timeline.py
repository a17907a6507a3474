"""A story's path drawn as a timeline for a terminal: a line per step; `show` prints it."""

from collections.abc import Sequence
from datetime import timedelta

from rich.console import Console
from rich.text import Text

from orchestrator.domain.redaction import redact
from orchestrator.domain.words import printable
from orchestrator.sprint.path import PathStep
from orchestrator.sprint.path_texts import Mark, span

LONG = timedelta(minutes=1)
"""A gap between two lines that is worth telling."""
MARKS = {
    Mark.BEGIN: ("○", "o", ""),
    Mark.GOOD: ("✓", "+", "green"),
    Mark.AGAIN: ("↻", "~", "yellow"),
    Mark.WAIT: ("?", "?", "magenta"),
    Mark.BAD: ("✗", "x", "red"),
    Mark.NOW: ("▸", ">", "cyan"),
}
"""Mark → its sign, the sign where only ASCII can be printed, its colour."""
_ASCII = str.maketrans({"→": "->", "…": "...", "└": "-"})


def draw(story: str, steps: Sequence[PathStep]) -> None:
    """Print the drawing on stdout, in colours on a terminal, with signs that its encoding has."""
    console = Console(highlight=False, soft_wrap=True)
    begun = f", begun {steps[0].time:%Y-%m-%d %H:%M:%S} UTC" if steps else ""
    console.print(Text(f"Path of {story}{begun}:"))
    for line in lines(steps, ascii_only=not (console.encoding or "").lower().startswith("utf")):
        console.print(line)
    console.print()


def lines(steps: Sequence[PathStep], *, ascii_only: bool) -> list[Text]:
    """The drawing: clock time (UTC), gap, mark, what happened; a loop within a step is indented before it."""
    if not steps:
        return [Text("  has not begun")]
    days = steps[0].time.date() != steps[-1].time.date()
    clock = "%m-%d %H:%M:%S" if days else "%H:%M:%S"
    drawn, before = [], steps[0].time
    for step in steps:
        gap = f"+{span(step.time - before)}" if step.time - before >= LONG else ""
        drawn.append(_line(step, f"{step.time:{clock}}", gap, ascii_only))
        before = step.time
    return drawn


def _line(step: PathStep, clock: str, gap: str, ascii_only: bool) -> Text:
    sign, plain, colour = MARKS[step.mark]
    notes = f" [{', '.join(step.notes)}]" if step.notes else ""
    told = printable(redact(f"{step.text}{notes}"), keep="")
    indent = "  " if step.inner else ""
    if ascii_only:
        sign, told = plain, told.translate(_ASCII).encode("ascii", "backslashreplace").decode()
    return Text.assemble(
        (f"  {clock} {gap:>9} ", "dim"), indent, (sign, colour), " ", (told, "dim" if step.inner else "")
    )
