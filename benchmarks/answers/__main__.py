"""`make bench-answers`: us and everything else that reads JSON out of a text, measured in one run."""

import argparse
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from benchmarks.answers import corpus, install, measure, svg, table
from benchmarks.answers.drive import Reader
from benchmarks.answers.peers import OURS, PEERS, Peer
from benchmarks.measure import machine

T = TypeVar("T")
FOLDER = install.ROOT / ".bench"
DOCS = install.ROOT / "docs"
AT_ONCE = 2
"""Readers of the corpus side by side; what is timed side by side runs alone."""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few cases and small texts; docs/ is left alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, metavar="N", help="texts of the corpus (2000; quick: 300)")
    parser.add_argument("--only", metavar="NAMES", help="readers by name, separated by semicolons")
    parser.add_argument("--budget", type=float, metavar="S", help="seconds a reader has for the corpus (60; quick: 8)")
    parser.add_argument(
        "--growth-to", type=int, metavar="BYTES", help="largest text of the growth table, up to 5000000"
    )
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="where answers.svg and answers.md go (docs/)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers into FILE")
    options = parser.parse_args()
    quick = options.quick
    options.cases = options.cases or (300 if quick else 2000)
    options.budget = options.budget or (8 if quick else 60)
    options.growth_to = options.growth_to or (160_000 if quick else 640_000)
    options.docs = options.docs or (FOLDER if quick or options.only else DOCS)
    return options


def _chosen(names: str | None) -> list[Peer]:
    wanted = None if names is None else {name.strip() for name in names.split(";")}
    return [peer for peer in PEERS if wanted is None or peer.name in wanted | {OURS.name}]


def _side_by_side(work: Callable[[Peer], T], peers: Iterable[Peer]) -> list[T]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            return list(pool.map(work, peers))
        except BaseException:
            # An interrupt, above all: nobody is to wait for readers that hang.
            pool.shutdown(wait=False, cancel_futures=True)
            Reader.stop_all()
            raise


def _corpus(
    peers: Iterable[Peer], cases: list[corpus.Case], bench: install.Bench, budget_s: float
) -> list[measure.Read]:
    def one(peer: Peer) -> measure.Read:
        read = measure.read_corpus(peer, cases, bench, budget_s)
        print(f"  {peer.name}: {read.missing or f'{read.cases} cases'}", flush=True)
        return read

    return _side_by_side(one, peers)


def _hostile(peers: Iterable[Peer], bench: install.Bench, size: int, limit_s: float) -> list[dict[str, str]]:
    def one(peer: Peer) -> dict[str, str]:
        said = measure.read_hostile(peer, bench, size, limit_s)
        print(f"  {peer.name}: {len(measure.slow(said))} of {len(said)} not survived", flush=True)
        return said

    return _side_by_side(one, peers)


def _run(options: argparse.Namespace) -> table.Report:
    bench = install.installed(FOLDER)
    cases = corpus.cases(options.seed, options.cases)
    peers = _chosen(options.only)
    print(f"reading {len(cases)} cases", flush=True)
    reads = _corpus(peers, cases, bench, options.budget)
    size, limit_s = (50_000, 1.0) if options.quick else (500_000, 5.0)
    print("hostile texts", flush=True)
    hostile = _hostile(peers, bench, size, limit_s)
    print("speed side by side", flush=True)
    races = measure.races(cases, bench, 30 if options.quick else 150)
    print("growth", flush=True)
    growth = measure.growth(bench, options.growth_to)
    return table.Report(
        facts=machine(),
        seed=options.seed,
        reads=reads,
        hostile={peer.name: said for peer, said in zip(peers, hostile, strict=True)},
        hostile_size=size,
        hostile_limit_s=limit_s,
        races=races,
        growth=growth,
    )


def _as_json(report: table.Report) -> str:
    numbers = {
        "machine": report.facts,
        "seed": report.seed,
        "readers": [measure.as_json(read) for read in report.reads],
        "hostile": report.hostile,
        "races": {name: race and asdict(race) for name, race in report.races.items()},
        "growth": [asdict(one) | {"factor": one.factor} for one in report.growth],
    }
    return json.dumps(numbers, indent=2) + "\n"


def main() -> None:
    """Measure, print, write."""
    options = _options()
    FOLDER.mkdir(exist_ok=True)
    report = _run(options)
    page = table.markdown(report)
    print("\n" + page)
    options.docs.mkdir(exist_ok=True)
    measured = report.measured()
    picture = svg.drawn(
        measured, ours=OURS.name, cases=max(read.cases for read in measured), missing=len(report.missing())
    )
    (options.docs / "answers.svg").write_text(picture, encoding="utf-8")
    (options.docs / "answers.md").write_text(page, encoding="utf-8")
    if options.json is not None:
        options.json.write_text(_as_json(report), encoding="utf-8")


if __name__ == "__main__":
    main()
