"""The numbers as Markdown, for the terminal and for docs/answers.md."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.answers.corpus import FAULTS, NONE
from benchmarks.answers.install import wanted
from benchmarks.answers.measure import Growth, Race, Read, slow
from benchmarks.answers.scoring import Outcome, percent

FAMILIES = ("valid", "around", "tokens", "strings", "unfinished")
"""Faults are shown in this order."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything one run found."""

    facts: dict[str, str]
    seed: int
    reads: Sequence[Read]
    hostile: dict[str, dict[str, str]]
    """Peer → text → seconds or why there are none."""
    hostile_size: int
    hostile_limit_s: float
    races: dict[str, Race | None]
    growth: Sequence[Growth]

    def measured(self) -> list[Read]:
        """Those that ran, the most exact first."""
        return sorted((read for read in self.reads if not read.missing), key=lambda read: _share(read), reverse=True)

    def missing(self) -> list[Read]:
        """Those that could not be had."""
        return [read for read in self.reads if read.missing]


def _share(read: Read) -> float:
    return percent(read.tally.total, Outcome.EXACT)


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def main_table(report: Report) -> str:
    """A row per reader."""
    shares = ("exact %", "prefix %", "refused %", "wrong %", "silent %")
    head = ("reader", *shares, "valid MB/s", "faulty MB/s", "text given", "cases", "hostile texts not survived")
    rows = []
    for read in report.measured():
        shares = [f"{percent(read.tally.total, what):.1f}" for what in Outcome]
        speeds = [f"{read.valid_mb_s:.1f}", f"{read.faulty_mb_s:.2f}"]
        hostile = report.hostile.get(read.peer.name, {})
        failed = f"{len(slow(hostile))} of {len(hostile)}"
        rows.append((read.peer.name, *shares, *speeds, read.help, str(read.cases), failed))
    rows += [(read.peer.name, *(["–"] * 9), f"not measured: {read.missing}") for read in report.missing()]
    return _rows(head, rows)


def fault_table(report: Report) -> str:
    """A row per fault: exact, then wrong and silent together, for us and the best four others."""
    shown = report.measured()[:5]
    names = list(dict.fromkeys(name for read in shown for name in read.tally.faults))
    order = {name: at for at, name in enumerate(_fault_order())}
    rows = []
    for name in sorted(names, key=lambda name: order.get(name, len(order))):
        cells = []
        for read in shown:
            counts = read.tally.faults.get(name)
            lost = 0.0 if counts is None else percent(counts, Outcome.WRONG) + percent(counts, Outcome.SILENT)
            cells.append("–" if counts is None else f"{percent(counts, Outcome.EXACT):.0f} / {lost:.0f}")
        rows.append((name, *cells))
    together = [read.tally.families.get("together") for read in shown]
    if all(together):
        cells = [
            f"{percent(counts, Outcome.EXACT):.0f} / "
            f"{percent(counts, Outcome.WRONG) + percent(counts, Outcome.SILENT):.0f}"
            for counts in together
            if counts is not None
        ]
        rows.append(("two or three at once", *cells))
    return _rows(("fault", *(read.peer.name for read in shown)), rows)


def _fault_order() -> list[str]:
    return [*sorted(FAULTS, key=lambda name: FAMILIES.index(FAULTS[name].family)), NONE]


def speed_table(report: Report) -> str:
    """Both races, in words."""
    lines = []
    valid, faulty = report.races.get("valid"), report.races.get("faulty")
    if valid:
        lines.append(
            f"Valid texts with the contract checked: {valid.megabytes / valid.ours_s:.0f} MB/s, {valid.other} "
            f"{valid.megabytes / valid.other_s:.0f} MB/s: **{100 * valid.total_ratio:.0f} %** of it "
            f"({valid.texts} texts, {valid.megabytes:.1f} MB)."
        )
    if faulty:
        lines.append(
            f"Faulty texts: {faulty.megabytes / faulty.ours_s:.1f} MB/s, {faulty.other} "
            f"{faulty.megabytes / faulty.other_s:.2f} MB/s: **{faulty.total_ratio:.1f} times** as fast in all, "
            f"{faulty.median_ratio:.1f} times on the median text ({faulty.texts} texts)."
        )
    lines += [
        f"Not raced ({name}): the other reader is missing." for name, race in report.races.items() if race is None
    ]
    return "\n\n".join(lines)


def growth_table(report: Report) -> str:
    """A row per hostile text: our processor time at doubling sizes."""
    if not report.growth:
        return ""
    sizes = list(report.growth[0].seconds)
    head = ("text", *(f"{size / 1e6:.2f} MB" for size in sizes), "largest factor")
    rows = [
        (one.name, *(f"{one.seconds[size]:.3f} s" for size in sizes), f"{one.factor:.2f}" if one.factor else "–")
        for one in report.growth
    ]
    return _rows(head, rows)


def hostile_table(report: Report) -> str:
    """A row per reader: which hostile texts it did not survive."""
    rows = [(name, ", ".join(slow(said)) or "none") for name, said in report.hostile.items() if said]
    return _rows(("reader", "not survived"), rows).replace("---:", "---")


def markdown(report: Report) -> str:
    """The whole page."""
    cases = max((read.cases for read in report.measured()), default=0)
    pins = ", ".join(pin.replace("==", " ").replace("@", " ") for pin in wanted().values())
    facts = ", ".join(f"{name} {value}" for name, value in report.facts.items() if name in ("cores", "python"))
    parts = (
        "# Answers you can trust: the numbers",
        "Written by `make bench-answers`; do not edit. The words are defined in `benchmarks/answers/scoring.py`.",
        "![Outcomes per reader](answers.svg)",
        f"{cases} texts of seed {report.seed}, each fault alone equally often and a quarter with two or three at once: "
        "how often a reader is right says how many *kinds* of fault it knows, not how often they happen. Everybody is "
        "given the text as it is and cut to its outermost braces, and the better of both counts (us: as it is); the "
        "answer is looked for inside lists, wrappers and encoded strings.",
        "**exact**: the whole answer, or the whole items of a cut one and the word that it was cut. **prefix**: right "
        "items of a cut answer, unsaid or not all. **refused**: nothing, so one would ask again. **wrong**: another "
        "object. **silent**: another object that fits the contract's schema.",
        main_table(report),
        "## By fault: exact / wrong or silent, in %",
        fault_table(report),
        "## Speed, side by side, best of seven",
        speed_table(report),
        f"## Hostile texts of {report.hostile_size / 1e6:.2f} MB, at most {report.hostile_limit_s:.0f} s each",
        hostile_table(report),
        "## Growth of our processor time, best of five",
        growth_table(report),
        "## Versions",
        f"{pins}; {facts}.",
    )
    return "\n\n".join(part for part in parts if part) + "\n"
