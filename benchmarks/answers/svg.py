"""A bar per reader as an SVG that is readable on light and dark pages; no library, no font, no script."""

from collections.abc import Sequence
from html import escape

from benchmarks.answers.measure import Read
from benchmarks.answers.scoring import Outcome, percent

WIDTH = 900
LEFT = 218
RIGHT = 72
TOP = 96
ROW = 27
BAR = 17
BOTTOM = 40

LEGEND = {
    Outcome.EXACT: "exact",
    Outcome.PREFIX: "cut answer, unsaid",
    Outcome.REFUSED: "refused",
    Outcome.WRONG: "wrong",
    Outcome.SILENT: "wrong, and fits the schema",
}
STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de }
  text { font: 13px -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 } .soft { fill: #59636e; font-size: 12px } .ours { font-weight: 700 }
  .grid { stroke: #d0d7de } .inside { fill: #ffffff; font-size: 11px; font-weight: 600 }
  .exact { fill: #1a7f37 } .prefix { fill: #7fb685 } .refused { fill: #c4ccd4 }
  .wrong { fill: #e3873b } .silent { fill: #b3261e }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #30363d }
    .inside { fill: #ffffff } .exact { fill: #2b8a3e } .prefix { fill: #8fca97 } .refused { fill: #565f6a }
    .wrong { fill: #d9822b } .silent { fill: #da3633 }
  }"""
INSIDE = 6.0
"""Percent from which a part is wide enough for its number."""


def draw_text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def draw_rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    told = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height}" class="{kind}">{told}</rect>'


def _legend(y: float) -> list[str]:
    parts, x = [], float(LEFT)
    for what, words in LEGEND.items():
        parts += [draw_rect(x, y - 10, 11, 11, what), draw_text(x + 16, y, words, "soft")]
        x += 34 + 6.6 * len(words)
    return parts


def _bar(read: Read, y: float, *, ours: bool) -> list[str]:
    scale = (WIDTH - LEFT - RIGHT) / 100
    parts = [draw_text(LEFT - 10, y + 13, read.peer.name, "ours" if ours else "", "end")]
    x = float(LEFT)
    for what, words in LEGEND.items():
        share = percent(read.tally.total, what)
        if not share:
            continue
        parts.append(draw_rect(x, y, share * scale, BAR, what, f"{words}: {share:.1f} %"))
        if share >= INSIDE and what in (Outcome.EXACT, Outcome.SILENT):
            parts.append(draw_text(x + share * scale / 2, y + 12.5, f"{share:.0f}", "inside", "middle"))
        x += share * scale
    parts.append(
        draw_text(
            WIDTH - RIGHT + 8, y + 13, f"{percent(read.tally.total, Outcome.EXACT):.1f} %", "ours" if ours else ""
        )
    )
    return parts


def drawn(reads: Sequence[Read], *, ours: str, cases: int, missing: int = 0) -> str:
    """The picture of all that were measured, in the order given."""
    height = TOP + ROW * len(reads) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        "<title>What readers make of a model's broken answers</title>",
        f"<style>{STYLE}\n</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" class="page"/>',
        draw_text(20, 30, "What readers make of a model's broken answers", "title"),
        draw_text(20, 50, f"{cases} texts, every kind of fault equally often; share of texts in %, best first", "soft"),
        *_legend(76),
    ]
    scale = (WIDTH - LEFT - RIGHT) / 100
    bottom = TOP + ROW * len(reads)
    for tick in range(0, 101, 25):
        x = LEFT + tick * scale
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" class="grid"/>')
        parts.append(draw_text(x, bottom + 16, str(tick), "soft", "middle"))
    for number, read in enumerate(reads):
        parts += _bar(read, TOP + ROW * number, ours=read.peer.name == ours)
    if missing:
        parts.append(draw_text(20, height - 10, f"{missing} more could not be installed, see the table", "soft"))
    return "\n".join([*parts, "</svg>"]) + "\n"
