"""Backlogs of people and their trackers: what a cell says, and what it does not."""

from orchestrator.core.story import IdIndex, Priority, parse_dependencies, priority_of
from tests.world.case import Case, table

IDS = IdIndex(["US-001", "US-002", "US-003", "US-004", "US-005", "NFR-001", "X-1", "BACK-427"])


def needs(name: str, given: str, ids: str = "", unknown: str = "", told: str = "", seen: str = "a CSV by hand") -> Case:
    return Case(name=name, given=given, right=(ids.split(), [unknown] if unknown else [], told), seen=seen)


@table(
    needs("two dots", "US-001..US-003", "US-001 US-002 US-003"),
    needs("the word to", "US-002 to US-004", "US-002 US-003 US-004"),
    needs("a hyphen between blanks", "US-004 - US-005", "US-004 US-005"),
    needs("a dash without blanks", "US-001\u2013US-003", "US-001 US-002 US-003", seen="a word processor"),
    needs("the number alone", "US-003 to 005, NFR-001", "US-003 US-004 US-005 NFR-001"),
    needs("an end that is no row", "US-003..US-009", "US-003 US-004 US-005", "US-009"),
    needs("a hyphen before words", "US-001 - the log-in", "US-001", told="US-001 - the log-in"),
    needs("arrows", "US-001 -> US-002", "US-001 US-002", seen="a backlog that a model wrote"),
    needs("a letter for a digit", "X-l", unknown="X-l"),
    needs("without its hyphen", "US003", unknown="US003"),
    needs("with a blank", "US 003", unknown="US 003"),
    needs("a letter too many", "USR-003", unknown="USR-003"),
    needs("the prefix of another tool", "task-427", unknown="task-427", seen="Backlog.md"),
    needs("not", "not US-003", told="not US-003"),
    needs("not beside one that counts", "US-001, not US-003", "US-001", told="not US-003"),
    needs("except", "US-001 (all except US-002)", "US-001", told="all except US-002"),
    needs("not before", "not before US-003", "US-003", told="not before US-003"),
    needs("no blocker", "no blocker", told="no blocker"),
    needs("a note in brackets", "US-001 (base); NFR-001", "US-001 NFR-001"),
    needs("words", "Log-in (US-001)", "US-001", told="Log-in"),
)
def test_a_dependency_cell_names_rows_or_is_told(case: Case) -> None:
    cell = parse_dependencies(case.given, IDS)
    assert ([*cell.ids], [*cell.unknown], "; ".join(cell.notes)) == case.right


@table(
    Case(name="not", given="Not urgent", right=None, seen="a CSV by hand"),
    Case(name="no", given="no blocker", right=None, seen="a CSV by hand"),
    Case(name="must not", given="Must not", right=None, seen="MoSCoW"),
    Case(name="none given", given="No priority", right=Priority.MEDIUM, seen="Linear"),
    Case(name="level and word", given="P0 - Critical", right=Priority.CRITICAL, seen="a backlog that a model wrote"),
    Case(name="should", given="Should have", right=Priority.HIGH, seen="MoSCoW"),
    Case(name="won't", given="Won\u2019t have", right=Priority.LOW, seen="MoSCoW"),
    Case(name="emoji", given="\U0001f534 High", right=Priority.HIGH, seen="Notion"),
    Case(name="higher than any", given="P10", right=None, seen="a CSV by hand"),
)
def test_a_priority_is_one_of_a_few_words_or_told(case: Case) -> None:
    assert priority_of(case.given) == case.right
