"""Writes docs/figures.md: what the product costs and finds, one section per benchmark that was run."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Result

PAGE = Path(__file__).parents[1] / "docs" / "figures.md"
HEAD = """# Figures

Written by `make bench ARGS="… --docs"`, which replaces the sections of the benchmarks that were run; do not edit. Each
section names its machine. Processor time is user and system time; other work on the machine makes it larger.
"""


def write_figures(results: Sequence[Result], facts: Mapping[str, str], page: Path = PAGE) -> None:
    """Replaces the sections of these results in the page and keeps those of other benchmarks, in alphabetical order."""
    kept = page.read_text(encoding="utf-8") if page.is_file() else ""
    sections = {part.partition("\n")[0].strip(): part for part in re.split(r"(?m)^## ", kept)[1:]}
    measured = ", ".join(f"{name} {value}" for name, value in facts.items())
    for result in results:
        rows = [f"| {figure.name} | {figure} |" for figure in result.figures]
        told = [result.name, "", f"{result.about}. Measured on: {measured}.", "", "| | |", "| --- | ---: |", *rows, ""]
        sections[result.name] = "\n".join([*told, *(f"{note}\n" for note in result.notes)])
    text = "\n".join([HEAD, *(f"## {sections[name].strip()}\n" for name in sorted(sections))])
    page.write_text(text, encoding="utf-8")
