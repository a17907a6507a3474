"""The table of events is what the code emits; whole runs are held against it in tests.support.play."""

import ast
from datetime import UTC, datetime

from orchestrator.core.command import KEYS
from orchestrator.core.event import Event
from tests.events_tool import EMITTERS, MEANS, PACKAGE, TABLE, all_told, documented, table, untrue

DECISIONS = {
    *("answer_accepted", "answer_sent_back", "answer_given_up", "answer_healed", "answer_refused", "files_shown"),
    *("plan_judged", "plan_mended", "conflict_detected", "gate_opened", "gate_settled", "task_finished"),
    *("command_finished", "contract_amended", "amendment_refused", "tests_finished", "failure_analysed"),
    *("diff_checked", "review_judged", "story_merged", "merge_refused", "call_retried", "turn_failed"),
}


def test_the_table_is_generated_from_the_code() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "run: make events"
    assert set(MEANS) == set(documented()), "what is emitted is explained, and nothing else is"


def test_every_place_that_emits_is_read() -> None:
    """Those that hand on an event, or what their caller says, are the only ones without a name."""
    read = {told.place for told in all_told()}
    silent = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") not in EMITTERS:
                continue
            if f"{path.relative_to(PACKAGE.parent)}:{call.lineno}" not in read:
                silent.append(f"{path.relative_to(PACKAGE)}: {ast.unparse(call.args[0])}"[:60])
    made_elsewhere = (": begun_event(", ": _event(", ": Event(", ": settled_event(", ": given_event(")
    handed_on = [
        one
        for one in silent
        if one.endswith((": event", ": event(waits=waits)", ": name", ": ''", ": request"))
        or any(made in one for made in made_elsewhere)
    ]
    assert silent == handed_on


def test_each_decision_tells_the_same_keys() -> None:
    assert {name for name, keys in documented().items() if keys >= set(KEYS)} >= DECISIONS


def test_what_the_table_does_not_say_is_noticed() -> None:
    def event(name: str, **data: object) -> Event:
        return Event(id="1", time=datetime.now(UTC), name=name, message="", sprint="S", data=data)

    good = dict(zip(KEYS, ("merge", "merged", [], 1, 0), strict=True))
    assert untrue([event("story_merged", commit="x", **good)]) == []
    assert untrue([event("story_merged", commit="x", **{**good, "stage": "sea"})]) == ["story_merged: sea merged 1 0"]
    assert untrue([event("new_thing"), event("story_merged", colour="red", **good)]) == [
        "new_thing is in no table", "story_merged tells colour, the table does not",
    ]  # fmt: skip
    assert len(untrue([event("plan_judged")])) == len(KEYS) + 1
