"""`python -m benchmarks [NAME …]`: each benchmark in a process of its own, a table at the end."""

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks import (
    backlog,
    cli,
    demo,
    engine,
    environments,
    merge,
    pages,
    prompts,
    recall,
    refusals,
    sandbox,
    stories,
)
from benchmarks.measure import Result, machine

OFFLINE = ("engine", "git", "backlog", "cli", "demo", "merge", "prompts", "sandbox")
NAMES = (*OFFLINE, "environments", "refusals", "recall")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; none: all that need nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers into FILE")
    parser.add_argument("--docs", action="store_true", help="also write their sections of docs/figures.md")
    parser.add_argument("--stories", type=int, metavar="N", help="stories of engine, git, backlog and cli")
    parser.add_argument("--latency-ms", type=int, default=2000, metavar="MS", help="engine: what a call takes")
    parser.add_argument("--turns", type=int, default=50, metavar="N", help="engine: calls at once")
    parser.add_argument("--database", metavar="URL", help="engine: a Postgres for it")
    options = parser.parse_args()
    # `refusals CORPUS=DIR`: a make variable's list of arguments reads best that way.
    options.given = dict(name.split("=", 1) for name in options.names if "=" in name)
    options.names = [name for name in options.names if "=" not in name]
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(NAMES)}")
    return options


def _benchmarks(options: argparse.Namespace) -> dict[str, Callable[[], Result]]:
    size = {} if options.stories is None else {"stories": options.stories}
    load = engine.Load(**size, latency_ms=options.latency_ms, turns=options.turns, database=options.database)
    return {
        "engine": partial(engine.run, load),
        "git": partial(stories.run, **size),
        "backlog": partial(backlog.run, **size),
        "cli": partial(cli.run, **size),
        "demo": demo.run,
        "merge": partial(merge.run, merge.Crowd()),
        "prompts": partial(prompts.run, options.given),
        "sandbox": sandbox.run,
        "environments": environments.run,
        "refusals": partial(refusals.run, options.given),
        "recall": partial(recall.run, options.given),
    }


def _apart(work: Callable[[], Result]) -> Result:
    """In a fresh process, so that memory and processor time are the benchmark's own."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work).result()


def _print(result: Result) -> None:
    print(f"\n{result.name}: {result.about}")
    width = max(len(figure.name) for figure in result.figures)
    for figure in result.figures:
        print(f"  {figure.name:<{width}}  {figure!s:>14}")
    print("\n".join(result.notes))


def main() -> None:
    """Run what was named, in the order of the table."""
    options = _options()
    facts = machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    wanted = options.names or OFFLINE
    results = []
    for name, work in _benchmarks(options).items():
        if name in wanted:
            results.append(_apart(work))
            _print(results[-1])
    if options.docs:
        pages.write_figures(results, facts)
    if options.json is not None:
        numbers = {"machine": facts, "results": [result.as_json() for result in results]}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
