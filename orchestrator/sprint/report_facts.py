"""What a story's events tell for its report: what was not right, and where the time went (pure)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from orchestrator.domain.decisions import Verdict
from orchestrator.domain.events import Event
from orchestrator.domain.outcome import Healing, PromptUsed, StageTime, TestRewritten
from orchestrator.sprint.path_texts import verdict_of
from orchestrator.sprint.routing import PlanRoute

REWRITTEN = frozenset({"older_test_rewritten", "suite_replaced"})
"""Events about a test file that got another text."""
HEALINGS = frozenset(
    {
        "answer_healed",
        "answer_repaired_by_model",
        "answer_repair_failed",
        "answer_truncated",
        "answer_refused",
        "answer_sent_back",
        "answer_given_up",
        "breakdown_completed",
        "breakdown_left_short",
        "delivery_completed",
        "delivery_left_short",
        "plan_mended",
        "failure_analysed",
        "merge_resolved",
        "merge_unresolved",
        "failure_repeated",
        "older_tests_failed",
        "suite_replaced",
        "review_diff_cut",
        "call_retried",
    }
)
"""Events about something that was not right and what was done about it; a plan to be revised and a change that is not
approved are such, too."""
_GOOD = {"plan_judged": PlanRoute.APPROVED, "review_judged": Verdict.APPROVED}
REST = "git, installs, merges, waits"
"""Everything that no recorded duration explains."""
_COMMAND, _TESTS = "commands", "running tests"
_OF_PURPOSE = {
    "breakdown": "planning",
    "breakdown_missing": "planning",
    "delivery": "building",
    "continuation": "building",
    "merge": "building",
    "review": "reviewing",
    "suite": "writing tests",
    "analysis": "analysing failures",
    "repair": "repairing answers",
}
STAGES = (*dict.fromkeys(_OF_PURPOSE.values()), _COMMAND, _TESTS, REST)
"""The stages of a story, in order."""


def healings(events: Iterable[Event]) -> tuple[Healing, ...]:
    """What was not right and how it went on, in order."""
    return tuple(
        Healing(event=event.name, message=event.message, task=event.task)
        for event in events
        if event.name in HEALINGS or (event.name in _GOOD and verdict_of(event) != _GOOD[event.name])
    )


def rewritten(events: Iterable[Event]) -> tuple[TestRewritten, ...]:
    """Test files that got another text, in order, with both versions."""
    fields = TestRewritten.model_fields
    told = (event.data for event in events if event.name in REWRITTEN)
    return tuple(TestRewritten.model_validate({name: data.get(name) or "" for name in fields}) for data in told)


def stage_times(events: Sequence[Event], duration_s: float) -> tuple[StageTime, ...]:
    """Every stage with its seconds, 0 where none were recorded; the rest is what is left of `duration_s`."""
    spent: Counter[str] = Counter()
    for event in events:
        stage = _stage(event)
        if stage is not None:
            spent[stage] += event.data.get("duration_ms") or 0
    seconds = {stage: spent[stage] / 1000 for stage in STAGES}
    seconds[REST] = max(0.0, duration_s - sum(seconds.values()))
    return tuple(StageTime(stage=stage, duration_s=round(seconds[stage], 3)) for stage in STAGES)


def prompts_used(events: Iterable[Event]) -> tuple[PromptUsed, ...]:
    """Every prompt that was sent, with its version, once each."""
    sent = (event.data for event in events if event.name == "turn_finished")
    used = dict.fromkeys((str(data["prompt"]), str(data["prompt_version"])) for data in sent if data.get("prompt"))
    return tuple(PromptUsed(name=name, version=version) for name, version in used)


def _stage(event: Event) -> str | None:
    if event.name == "turn_finished":
        return _OF_PURPOSE.get(str(event.data.get("purpose")))
    return {"command_finished": _COMMAND, "tests_finished": _TESTS, "older_tests_failed": _TESTS}.get(event.name)
