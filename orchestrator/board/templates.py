"""The board's templates, and how numbers, times and foreign texts are written in them."""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from orchestrator.board.diffs import draw_patch
from orchestrator.core.value import draw_controls
from orchestrator.reports.path import span

MOST_CHARS = 20_000
"""Of a foreign text on a page that shows other things, too."""


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("orchestrator.board"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_drawn,
    )
    environment.filters |= {"patch": draw_patch, "cut": cut, "money": money, "number": number, "seconds": seconds}
    environment.globals["version"] = _static_version()
    return environment


def _drawn(value: object) -> object:
    """Returns a text with its control characters as signs; what is HTML already holds none."""
    return draw_controls(value) if type(value) is str else value


def _static_version() -> str:
    """Returns a word that changes with the board's own files: browsers keep those for good."""
    told = hashlib.sha256()
    for one in sorted(files("orchestrator.board").joinpath("static").iterdir(), key=lambda one: one.name):
        told.update(one.read_bytes())
    return told.hexdigest()[:12]


def render(name: str, values: Mapping[str, Any]) -> str:
    """Returns a template with these values; every text is escaped."""
    # A model's text may hold half of a surrogate pair, which no page can.
    return _environment().get_template(name).render(values).encode("utf-8", "replace").decode()


def read_static(name: str) -> bytes | None:
    """Returns one of the board's own files; None for another name."""
    found = {one.name: one for one in files("orchestrator.board").joinpath("static").iterdir()}
    return found[name].read_bytes() if name in found else None


def cut(text: object, most: int = MOST_CHARS) -> str:
    """Returns the first `most` characters, and how many more there are."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]} … and {number(len(whole) - most)} more characters"


def money(usd: float | None) -> str:
    """Returns US dollars; a price that is not known says so."""
    return "price unknown" if usd is None else f"${usd:,.2f}"


def number(count: float) -> str:
    """Returns a whole number with commas."""
    return f"{count:,.0f}"


def seconds(duration_s: float) -> str:
    """Returns how long something lasted."""
    return span(timedelta(seconds=duration_s))
