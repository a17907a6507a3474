"""The page of the documentation that tells what the product itself costs, with a picture of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.answers.svg import BAR, LEFT, ROW, STYLE, WIDTH, draw_rect, draw_text
from benchmarks.measure import Figure, Result

DOCS = Path(__file__).parents[1] / "docs"
NAMES = ("engine", "daemon", "cli", "merge", "providers", "board")
PER_CALL = "processor time per call"
TITLE = "Processor time per call of a model, in milliseconds"
HEAD = """# What it costs to run

Written by `make bench ARGS="engine daemon cli merge providers board --docs"`; do not edit. Bare dbos are the same calls
as steps of the durable engine's library alone, in processes before and after the other measurement. The SDKs' streams
are read without us, as they are offered and as plain JSON, which is what we read. Processor time is user and system
time; what others did on the machine meanwhile makes it larger. The board is the page of a sprint in a Chromium of the
same machine, shown by a daemon that runs nothing while another process records events.

![Processor time per call of a model](speed.svg)
"""


def write(results: Sequence[Result], facts: Mapping[str, str]) -> None:
    """Writes `docs/speed.md` and `docs/speed.svg` from the results of NAMES."""
    told = [HEAD, "Measured on: " + ", ".join(f"{name} {value}" for name, value in facts.items()) + ".\n"]
    for result in results:
        rows = [f"| {figure.name} | {figure} |" for figure in result.figures]
        told.append("\n".join([f"## {result.name}", "", f"{result.about}.", "", "| | |", "| --- | ---: |", *rows, ""]))
    (DOCS / "speed.md").write_text("\n".join(told), encoding="utf-8")
    bars = [
        (f"{result.name}: {figure.name.replace(PER_CALL, '').strip(' :,') or 'all of it'}", figure)
        for result in results
        for figure in result.figures
        if PER_CALL in figure.name
    ]
    (DOCS / "speed.svg").write_text(drawn(bars), encoding="utf-8")


def drawn(bars: Sequence[tuple[str, Figure]]) -> str:
    """Returns a bar per figure as SVG."""
    height, room = 60 + ROW * len(bars), WIDTH - LEFT - 120
    longest = max(figure.value for _, figure in bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<title>{TITLE}</title>",
        f"<style>{STYLE}\n</style>",
        draw_rect(0.5, 0.5, WIDTH - 1, height - 1, "page"),
        draw_text(20, 30, TITLE, "title"),
    ]
    for number, (name, figure) in enumerate(bars):
        y, kind = 48 + ROW * number, "refused" if "bare" in name else "exact"
        parts.append(draw_text(LEFT - 10, y + 13, name, "", "end"))
        parts.append(draw_rect(LEFT, y, room * figure.value / longest, BAR, kind))
        parts.append(draw_text(LEFT + room * figure.value / longest + 8, y + 13, f"{figure.value:.1f}"))
    return "\n".join([*parts, "</svg>"]) + "\n"
