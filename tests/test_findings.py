"""Every finding says what to do, and every code stands in the catalogue."""

from typing import get_args

from orchestrator.core.calls.exchange import ErrorKind
from tests.findings_tool import CATALOGUE, CODE, DYNAMIC, PACKAGE, Site, all_sites, catalogue, literals

SHARED = {
    "answer.truncated": {"answers", "personas"},
    "breakdown.conflict": {"checks", "sprint", "story"},
    **{f"contract.{kind}": {"contract", "story"} for kind in ("ci", "dependency", "file", "import", "other_task")},
    "contract.unreadable": {"contract", "code"},
    "delivery.syntax": {"checks", "code"},
    **{f"provider.{kind}": {"engine", "story"} for kind in get_args(ErrorKind)},
    "story.workspaceerror": {"engine", "story"},
}
"""Codes that more than one room raises or reads, each with one meaning."""


def lacking(site: Site) -> str | None:
    """Returns what a finding lacks where it is built."""
    module = site.place.partition(":")[0].removeprefix(f"{PACKAGE.name}/")
    if module == "core/finding.py":
        return None
    if not site.codes and module not in DYNAMIC:
        return "its code is not written where it is built: see DYNAMIC"
    if not all(CODE.fullmatch(code) for code in site.codes):
        return f"a code is no code: {site.codes}"
    return None if site.message and site.fix else "a message or what to do"


def test_every_finding_has_a_code_a_message_and_a_fix() -> None:
    assert {site.place: lacking(site) for site in all_sites() if lacking(site)} == {}


def test_the_catalogue_is_generated_from_the_code() -> None:
    assert CATALOGUE.read_text(encoding="utf-8") == catalogue(), "run: make findings"


def test_every_code_that_is_written_anywhere_is_documented_once() -> None:
    text = catalogue()
    headings = [line for line in text.splitlines() if line.startswith("### ")]
    assert len(headings) == len(set(headings))
    for code in literals():
        assert f"### `{code}`" in text, f"{code} is in no entry"
    for entry in text.split("\n### ")[1:]:
        assert "- says: " in entry or "- means: " in entry, entry
        assert "- to do: " in entry, entry


def test_no_code_means_two_things_in_two_rooms() -> None:
    raised: dict[str, set[str]] = {}
    for site in all_sites():
        for code in site.codes:
            raised.setdefault(code, set()).add(site.place.split("/")[1])
    assert {code: rooms for code, rooms in raised.items() if len(rooms) > 1 and SHARED.get(code) != rooms} == {}
