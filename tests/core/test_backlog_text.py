import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.story import IdIndex, Priority, id_problem, is_yes, parse_dependencies, priority_of

INDEX = IdIndex(
    ["US-001", "US-002", "US-009", "US-1", "US-10", "NFR-001", "NFR-004", "UC_AUTH_01", "v1.2", "Ab-1", "aB-1"]
)


@pytest.mark.parametrize(
    ("text", "ids", "unknown", "none"),
    [
        ("", "", "", True),
        (" - ", "", "", True),
        ("N/A", "", "", True),
        ("n.a.", "", "", True),
        ("None (foundational)", "", "", True),
        ("No dependencies.", "", "", True),
        ("US-001 (employee lookup); US-009", "US-001 US-009", "", False),
        ("US-001, US-002", "US-001 US-002", "", False),
        ("US-009 (Authentication), NFR-004 (Role-Based Access), NFR-001", "US-009 NFR-004 NFR-001", "", False),
        ("after US-001 and US-002.", "US-001 US-002", "", False),
        ("US-001/US-002\nUS-001", "US-001 US-002", "", False),
        ("US-001..US-009", "US-001 US-1 US-002 US-009", "", False),
        ("US-10", "US-10", "", False),
        ("us-001", "US-001", "", False),
        ("US\u2011001 and US\u2013002", "US-001 US-002", "", False),
        ("uc_auth_01, v1.2", "UC_AUTH_01 v1.2", "", False),
        ("Ab-1", "Ab-1", "", False),
        ("AB-1", "", "AB-1", False),
        ("US-777", "", "US-777", False),
        ("us-778 and US-001", "US-001", "us-778", False),
        ("US-001a", "", "US-001a", False),
        ("UC_PAY_02", "", "UC_PAY_02", False),
        ("ISO-27001", "", "", False),
        ("Authentication", "", "", False),
        ("runs in us-east-1, US-based, within 2 weeks", "", "", False),
        ("TBD", "", "", False),
        ("nano-services", "", "", False),
    ],
)
def test_dependencies_as_people_write_them(text: str, ids: str, unknown: str, none: bool) -> None:
    cell = parse_dependencies(text, INDEX)
    assert (cell.ids, cell.unknown, cell.states_none) == (tuple(ids.split()), tuple(unknown.split()), none)


def test_bare_numbers_are_ids_only_among_numbers() -> None:
    index = IdIndex(["1", "2", "10"])
    assert parse_dependencies("1; 10, 7", index).ids == ("1", "10")
    assert parse_dependencies("1; 10, 7", index).unknown == ("7",)
    assert parse_dependencies("within 7 days", index).unknown == ()


@given(st.lists(st.from_regex(r"[A-Z]{2}-[0-9]{1,3}", fullmatch=True), unique=True, max_size=6), st.data())
def test_every_id_written_is_found_whole(ids: list[str], data: st.DataObject) -> None:
    written = data.draw(st.lists(st.sampled_from(ids), max_size=6)) if ids else []
    separators = st.sampled_from([", ", "; ", " and ", "\n", " (note), ", "/", " & "])
    text = "".join(identifier + data.draw(separators) for identifier in written)
    assert parse_dependencies(text, IdIndex(ids)).ids == tuple(dict.fromkeys(written))


@pytest.mark.parametrize(
    "identifier",
    ["", "a b", "a/b", "é", "x" * 65, ".a", "a.", "a..b", "a.lock", "result", "a@1", "a\n"],
)
def test_bad_ids(identifier: str) -> None:
    assert id_problem(identifier) is not None


@pytest.mark.parametrize("identifier", ["US-001", "a.b_c-D", "x" * 64, "results", "lock", "-1"])
def test_good_ids(identifier: str) -> None:
    assert id_problem(identifier) is None


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        ("", Priority.MEDIUM),
        ("High", Priority.HIGH),
        ("P0 - blocker", Priority.CRITICAL),
        (" must-have ", Priority.CRITICAL),
        ("priority: low", Priority.LOW),
        ("2", Priority.MEDIUM),
        ("won't have", Priority.LOW),
        ("whenever", None),
        ("!!", None),
    ],
)
def test_priority_words(text: str, priority: Priority | None) -> None:
    assert priority_of(text) == priority


def test_flags() -> None:
    assert [is_yes(text) for text in ("TRUE", " yes", "1", "", "no", "false", "0")] == [True] * 3 + [False] * 4
