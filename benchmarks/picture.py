"""`make picture`: runs the demo and draws docs/demo.svg, what its terminal shows, as a picture that moves."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import timedelta
from html import escape
from pathlib import Path

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from orchestrator.cli.common import plain_line
from orchestrator.cli.live_table import LiveSprint
from orchestrator.core.calls.progress import CALL_PROGRESS
from orchestrator.core.event import Event, Level
from orchestrator.core.history import StoryHistory

COLUMNS, ROWS = 96, 16
FRAMES = 32
FRAME_S = 0.6
CHAR, LINE, MARGIN = 7.8, 18, 12
COLOURS = {"green": "#1a7f37", "cyan": "#0a6c86", "red": "#cf222e", "yellow": "#8a5a00", "magenta": "#8250df"}
"""A terminal's colours on white, readable (4.5:1)."""


def main() -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "orchestrator"]
        subprocess.run([*command, "demo", "--dir", name], check=True, capture_output=True)
        home = next(Path(name).rglob(".orchestrator"))
        told = subprocess.run(
            [*command, "logs", "--json"], check=True, capture_output=True, text=True, cwd=home.parent
        ).stdout
    target = Path(__file__).parent.parent / "docs/demo.svg"
    target.write_text(draw([read_event(line) for line in told.splitlines()]), encoding="utf-8")
    print(f"{target}: {target.stat().st_size // 1024} kB")


def read_event(line: str) -> Event:
    """Returns the event of a log line, as far as a terminal shows it."""
    told = json.loads(line)
    known = {name: told.get(name) for name in ("sprint", "story", "task", "persona")}
    data = {name: told[name] for name in ("status", "gate", "stages") if name in told}
    return Event(
        id=line[:40], time=told["timestamp"], level=Level(told["level"]), name=told["event"], message=told["message"],
        **known, data=data,
    )  # fmt: skip


def draw(events: Sequence[Event]) -> str:
    """Returns the SVG of a sprint: frames at equal steps of its time, the last one where nothing may move."""
    events = [event for event in events if event.sprint]
    stories = sorted({event.story for event in events if event.story})
    began, length = events[0].time, events[-1].time - events[0].time
    sprint = LiveSprint(events[0].sprint, {story: StoryHistory() for story in stories}, began=began)
    frames, lines, left = [], list[Text](), [*events]
    for number in range(1, FRAMES + 1):
        now = began + length * number / FRAMES
        while left and left[0].time <= now:
            event = left.pop(0)
            sprint.add(event)
            if event.name != CALL_PROGRESS:
                lines.append(Text(plain_line(event, COLUMNS - 24)))
        frames.append(_frame(sprint, lines, now - began))
    return _svg(frames)


def _frame(sprint: LiveSprint, lines: Sequence[Text], after: timedelta) -> list[list[Segment]]:
    console = Console(width=COLUMNS, height=ROWS, force_terminal=True, color_system="standard", highlight=False)
    table = sprint.table(sprint.began + after, after.total_seconds())
    below = console.render_lines(table, pad=False)
    above = console.render_lines(Text("\n").join(lines[-(ROWS - len(below)) :]), pad=False)
    return [*above, *below]


def _svg(frames: Sequence[Sequence[Sequence[Segment]]]) -> str:
    width, height = round(COLUMNS * CHAR + 2 * MARGIN), ROWS * LINE + 2 * MARGIN
    share = 100 / len(frames)
    rules = (
        f"text{{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#1b2330;white-space:pre}}"
        f".f{{opacity:0;animation:f {len(frames) * FRAME_S:g}s infinite}}"
        f"@keyframes f{{0%,{share:.2f}%{{opacity:1}}{share + 0.01:.2f}%,100%{{opacity:0}}}}"
        "@media (prefers-reduced-motion:reduce){.f{animation:none}.f:last-child{opacity:1}}"
    )
    rules += "".join(f".{name}{{fill:{colour}}}" for name, colour in COLOURS.items()) + ".bold{font-weight:700}"
    drawn = "".join(
        f'<g class="f" style="animation-delay:{number * FRAME_S:g}s">{"".join(_lines(frame))}</g>\n'
        for number, frame in enumerate(frames)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>The demo at a terminal: eight stories are planned, built, reviewed, tested and merged</title>"
        f"<style>{rules}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="#fff" stroke="#d3d8e0"/>\n{drawn}</svg>\n'
    )


def _lines(frame: Sequence[Sequence[Segment]]) -> Iterator[str]:
    for row, line in enumerate(frame):
        spans = "".join(_span(segment) for segment in line if segment.text.strip("\n"))
        if spans:
            yield f'<text x="{MARGIN}" y="{MARGIN + (row + 1) * LINE - 5}">{spans}</text>'


def _span(segment: Segment) -> str:
    style, text = segment.style, escape(segment.text)
    names = [style.color.name] if style and style.color and style.color.name in COLOURS else []
    names += ["bold"] if style and style.bold else []
    return f'<tspan class="{" ".join(names)}">{text}</tspan>' if names else text


if __name__ == "__main__":
    main()
