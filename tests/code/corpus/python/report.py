#!/usr/bin/env python3
"""Prints what was sold last week, by shelf."""

import argparse
import csv
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sale:
    shelf: str
    cents: int

    @property
    def euros(self) -> float:
        return self.cents / 100


def read(path: Path) -> list[Sale]:
    with path.open(newline="", encoding="utf-8") as handle:
        return [Sale(row["shelf"], int(row["cents"])) for row in csv.DictReader(handle)]


def totals(sales: list[Sale]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for sale in sales:
        match sale.cents:
            case 0:
                continue
            case cents if cents < 0:
                print(f"refund: {sale.shelf!r} {sale.euros:.2f}", file=sys.stderr)
            case _:
                counted[sale.shelf] += sale.cents
    return counted


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a CSV file")
    options = parser.parse_args(argv)
    for shelf, cents in totals(read(options.file)).most_common():
        print(f"{shelf:<20} {cents / 100:>10.2f} €")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
