"""No loop exceeds its budget: calls counted for every kind of failure, in every nesting, against the dry run's formula.

Everything is real but git, processes and the engine: personas, loops, journal and transport policy.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app.team import story_body, story_payload
from orchestrator.core.action_plan import ActionPlan, Read
from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, StopReason, StoryBrief, TurnKey
from orchestrator.core.command import Gate, GateAnswer
from orchestrator.core.delivery import REPLIES, MergedStory, Sides
from orchestrator.core.errors import PermanentProviderError, TransientProviderError
from orchestrator.core.sprint import StoryOutcome, StoryStatus, TaskStatus
from orchestrator.core.story import Story
from orchestrator.core.suite import TestReport
from orchestrator.engine.turns import TurnTaker
from orchestrator.settings import Policies, Settings
from orchestrator.storage.reply_journal import WorkflowJournal
from tests.answers.action_plan_text import render_plan
from tests.effort import examples, is_quick
from tests.prompts.packaged import packaged_library
from tests.simulated import MemorySink, SimulatedRunner, SimulatedStep, report
from tests.story.test_story import Moving
from tests.support import APPROVED, breakdown, delivery, reviewed, suite, suite_text, task, task_id

A = "US-1"
KEY = TurnKey(persona="x", story=A, purpose=Purpose.SUITE)
LIBRARY = packaged_library()
Answer = Reply | Exception | str | dict[str, Any]
Say = Callable[[Prompt, int], Answer]
"""(what is asked, how often its key had a reply) → what comes."""
PARTS = {
    "reading": (Purpose.PLAN_EXTRACT,),
    "plans": (Purpose.BREAKDOWN, Purpose.BREAKDOWN_MISSING),
    "builds": (Purpose.DELIVERY, Purpose.CONTINUATION),
    "reviews": (Purpose.REVIEW,),
    "suites": (Purpose.SUITE,),
    "analyses": (Purpose.ANALYSIS,),
    "single": (Purpose.AMENDMENT, Purpose.MERGE),
}


def most_calls(settings: Settings) -> dict[str, int]:
    """Returns a story's calls by purpose when every loop uses its whole budget, ignoring the story's cap."""
    request, attempts = settings.provider.max_attempts, settings.test.max_attempts
    repair, looks = settings.answer.repair_requests, settings.look.max_per_turn
    answer = (1 + settings.answer.max_attempts + repair + looks) * request
    delivery = (settings.build.max_attempts + repair + looks) * request
    review = len(settings.review.names) * (REPLIES + looks) * request
    policies, tasks = Policies.of(settings), settings.plan.expected_tasks
    sent_back = policies.most_reviews - 1 if review else 0
    return {
        "reading": 0,
        "plans": policies.plan.max_iterations * answer,
        "builds": tasks * (attempts + sent_back) * delivery,
        "reviews": tasks * policies.most_reviews * review,
        "suites": min(attempts + 1, 3) * answer,
        "analyses": (attempts - 1) * answer,
        "single": (settings.amendment.max_per_story + 1) * (1 + looks) * request,
    }


class Saying:
    """A provider that says what a function says, and counts."""

    name = "saying"

    def __init__(self, say: Say) -> None:
        self._say = say
        self._replies: Counter[tuple[str, str | None, str]] = Counter()
        self._broken = ""
        self.calls: Counter[str] = Counter()
        """By purpose, of the requests that ended; a repair counts to what it repairs."""

    @property
    def total(self) -> int:
        return sum(self.calls.values())

    def parts(self) -> dict[str, int]:
        """By the names of the formula."""
        return {name: sum(self.calls[one] for one in mine) for name, mine in PARTS.items()}

    async def complete(self, prompt: Prompt) -> Reply:
        purpose = prompt.key.purpose
        self._broken = self._broken if purpose is Purpose.REPAIR else purpose
        self.calls[self._broken] += 1
        key = (prompt.key.persona, prompt.key.task, purpose)
        said = self._say(prompt, self._replies[key])
        if isinstance(said, Exception):
            raise said
        self._replies[key] += 1
        if isinstance(said, Reply):
            return said.model_copy(update={"key": prompt.key, "turn": prompt.turn})
        text = said if isinstance(said, str) else json.dumps(said)
        return Reply(key=prompt.key, turn=prompt.turn, text=text)


class Turns(SimulatedStep):
    """The simulated step with the engine's own turns: transport policy, journal, the story's budget."""

    def __init__(
        self,
        provider: Saying,
        sink: MemorySink,
        turns: TurnTaker,
        journal: WorkflowJournal,
        person: Callable[[Gate], GateAnswer] | None,
    ) -> None:
        super().__init__(provider, sink, sprint="sprint", story=A, person=person)
        self._taker, self._journal, self._asked = turns, journal, 0

    async def turn(self, prompt: Prompt) -> Reply:
        self._asked += 1
        self.prompts.append(prompt)
        return await self._taker.take(self._journal, self._asked, prompt)


def settings(**sections: dict[str, Any]) -> Settings:
    """Small budgets, no waiting, a cap that nobody comes to."""
    small: dict[str, dict[str, Any]] = {
        "provider": {"max_attempts": 2, "wait_initial_s": 0, "wait_max_s": 0},
        "plan": {"max_iterations": 2, "expected_tasks": 1},
        "review": {"max_iterations": 2},
        "amendment": {"max_per_story": 1},
        "budget": {"calls_per_story": 100_000},
    }
    return Settings.model_validate(
        {name: {**small.get(name, {}), **sections.get(name, {})} for name in {**small, **sections}}
    )


class Beside(Moving):
    """Another story was merged meanwhile."""

    async def sides(self, story_id: str, onto: str) -> Sides:
        """See the port."""
        other = MergedStory(story="US-0", subjects=("Change old.py",))
        return (await super().sides(story_id, onto)).model_copy(update={"merged": (other,)})


class Stand:
    """One story's whole surroundings."""

    def __init__(
        self,
        folder: Path,
        chosen: Settings,
        say: Say,
        *,
        person: Callable[[Gate], GateAnswer] | None = None,
        **runs: Any,
    ) -> None:
        self.chosen, self.provider, self.sink = chosen, Saying(say), MemorySink()
        self.workspace = Beside(base_files={"old.py": "OLD = 1\n"})
        self.runner = SimulatedRunner(**runs)
        self._folder, self._person = folder, person

    async def _step(self) -> Turns:
        journal = await asyncio.to_thread(WorkflowJournal, self._folder / "replies")
        turns = TurnTaker(self.provider, self.chosen, asyncio.Semaphore(8))
        return Turns(self.provider, self.sink, turns, journal, self._person)

    async def run(self) -> StoryOutcome:
        story = Story(id=A, title="A value", acceptance_criteria=("it works",))
        brief = StoryBrief(story=story, sprint="sprint")
        body = story_body(LIBRARY, self.workspace, self.runner)
        return await body(await self._step(), story_payload(brief, Policies.of(self.chosen)))

    async def ended(self) -> str:
        """Run; the story's status as a word."""
        return (await self.run()).status.value

    def assert_within(self) -> None:
        """No part of the story took more than its part of the formula."""
        most, made = most_calls(self.chosen), self.provider.parts()
        assert {name: (made[name], most[name]) for name in PARTS if made[name] > most[name]} == {}
        assert sum(made.values()) == self.provider.total


def red(number: int, names: Sequence[str] = ("test_us_1",)) -> TestReport:
    return report(failed=names, message=f"us_1.py: assert {'x' * number} == 1")


GOOD_FILE = {"us_1.py": "def value():\n    return 1\n"}


def good(prompt: Prompt, _number: int) -> Answer:
    """Every answer right at once."""
    purpose, task = prompt.key.purpose, prompt.key.task or task_id(A, 1)
    answers: dict[Purpose, Answer] = {
        Purpose.BREAKDOWN: breakdown(A, ["us_1.py"]),
        Purpose.DELIVERY: delivery(A, int(task[-2:]), GOOD_FILE),
        Purpose.SUITE: suite(A, suite_text(A)),
        Purpose.REVIEW: APPROVED,
        Purpose.ANALYSIS: {"failure_analysis": [{"file": "us_1.py", "function": "", "issue": "wrong", "fix": "mend"}]},
    }
    return answers.get(purpose, "no")


def cut(text: str) -> Reply:
    return Reply(key=KEY, turn=1, text=text, stop_reason=StopReason.MAX_TOKENS)


KINDS: dict[str, Answer] = {
    "rate limit": TransientProviderError("busy", kind="rate_limit"),
    "connection": TransientProviderError("gone", kind="connection"),
    "bad request": PermanentProviderError("no", kind="bad_request"),
    "auth": PermanentProviderError("no", kind="auth"),
    "refusal": Reply(key=KEY, turn=1, text="", stop_reason=StopReason.REFUSAL),
    "refusal in words": Reply(key=KEY, turn=1, text="I will not.", stop_reason=StopReason.REFUSAL),
    "tool call": Reply(key=KEY, turn=1, text="", stop_reason=StopReason.TOOL_USE),
    "empty": "",
    "prose": "I will think about it",
    "broken json": '{"story_id": "US-1", "tasks": [{"task_id": }',
    "cut": cut('{"story_id": "US-1", "tasks": [{"task_id": "T-US'),
    "cut plan": cut("## Action Plan\n\n### [ ] CREATE"),
    "wrong structure": {"colour": "red"},
    "list": "[1, 2, 3]",
}

TRANSIENT, PERMANENT = ("rate limit", "connection"), ("bad request", "auth")
REPAIRABLE = ("prose", "broken json", "wrong structure", "list")
"""What a repair is asked for; nothing is to be repaired where nothing came, or where it was cut or broken off."""


NOT_MERGED: dict[str, Any] = {"wholes": [red(9), report(passed=["test_older"])]}
"""The merged tree is red, and its base is not."""
UNNOTICED: dict[str, Any] = {"hollows": [report(passed=["test_us_1"])] * 2}
"""The suite passes with functions that return nothing as well, and so does the one that is asked for then."""


def plans(*tasks: Any, **fields: Any) -> Say:
    return lambda prompt, n: breakdown(A, *tasks, **fields) if prompt.key.purpose == "breakdown" else good(prompt, n)


def deliveries(text: str | None = None, **files: str) -> Say:
    found = text or delivery(A, 1, {**GOOD_FILE, **{f"{name}.py": content for name, content in files.items()}})
    return lambda prompt, n: found if prompt.key.purpose == "delivery" else good(prompt, n)


def reviews(text: str) -> Say:
    return lambda prompt, n: text if prompt.key.purpose == "review" else good(prompt, n)


def cut_each_time(prompt: Prompt, number: int) -> Answer:
    """One whole file of two, in the delivery and in each of its continuations; the first task of three."""
    if prompt.key.purpose in {"breakdown", "breakdown_missing"}:
        whole = json.dumps(breakdown(A, ["us_1.py", "two.py"], ["three.py"], ["four.py"]))
        return cut(whole[: whole.index("Work 2")])
    if prompt.key.purpose in {"delivery", "continuation"}:
        whole = json.dumps(delivery(A, 1, {**GOOD_FILE, "two.py": "TWO = 2\n"}))
        return cut(whole[: whole.index("TWO")])
    return good(prompt, number)


def other_file_each_time(prompt: Prompt, number: int) -> Answer:
    """Grants what is asked for, whereupon something else is wanted."""
    if prompt.key.purpose is Purpose.DELIVERY:
        return delivery(A, 1, {**GOOD_FILE, f"more_{min(number, 1)}.py": "X = 1\n"})
    if prompt.key.purpose is Purpose.AMENDMENT:
        return {"files": ["more_0.py"], "dependencies": [], "reason": "fine"}
    return reviewed("No", "[us_1.py:1] wrong") if prompt.key.purpose is Purpose.REVIEW else good(prompt, number)


def suite_at_fault(prompt: Prompt, number: int) -> Answer:
    if prompt.key.purpose is Purpose.SUITE:
        return suite(A, f"{suite_text(A)}\n\nN = {number}\n")
    if prompt.key.purpose is Purpose.ANALYSIS:
        return {"failure_analysis": [], "suite_fault": {"reason": "it wants too much"}}
    return good(prompt, number)


def suite_without_tests(prompt: Prompt, number: int) -> Answer:
    empty = suite(A, "VALUE = 1\n")
    return empty if prompt.key.purpose is Purpose.SUITE else good(prompt, number)


WAYS: tuple[Say, ...] = (
    good,
    plans(["us_1.py", "tests/x_test.py"]),
    plans({"task_id": "T-US-1-01", "description": "x", "files_to_create": ["us_1.py"], "dependencies": [],
           "command_to_run": "pip install leftpad"}),
    plans(["us_1.py"], task_count=9),
    plans(task(A, 1, ["us_1.py"], "make it")),
    cut_each_time,
    deliveries(evil="X = 1\n"),
    other_file_each_time,
    deliveries(render_plan(ActionPlan(title="x", rationale="x", actions=(Read(resource="old.py"),)))),
    reviews(reviewed("No", "[us_1.py:1] bad")),
    reviews(reviewed("With fixes 1-1", "[us_1.py:1] x")),
    reviews("Looks good, approved"),
    reviews(reviewed("Yes | No | With fixes 1-N")),
    suite_at_fault,
    suite_without_tests,
)  # fmt: skip


class Worst:
    """Uses every budget to its end and yet keeps the story going: the last chance of each loop is taken.

    Every request fails until its last attempt, every answer is a look until none is left, and nonsense until the last
    one; each plan is invalid, the first delivery needs an amendment, the last review approves, the last run of the
    tests is green, the merge is not.
    """

    def __init__(self, chosen: Settings) -> None:
        self._chosen = chosen
        self._failed: Counter[TurnKey] = Counter()
        self._held: Answer = ""

    def __call__(self, prompt: Prompt, number: int) -> Answer:
        key = prompt.key
        if self._failed[key] < (number + 1) * (self._chosen.provider.max_attempts - 1):
            self._failed[key] += 1
            return TransientProviderError("busy", kind="overloaded")
        if key.purpose is Purpose.REPAIR:
            return self._held
        replies = {
            Purpose.AMENDMENT: 1,
            Purpose.MERGE: 1,
            Purpose.REVIEW: REPLIES,
            Purpose.DELIVERY: self._chosen.build.max_attempts,
        }.get(key.purpose, 1 + self._chosen.answer.max_attempts)
        turn, at = divmod(number, self._chosen.look.max_per_turn + replies)
        if at < self._chosen.look.max_per_turn:
            return "READ part_1.py"
        number = turn * replies + at - self._chosen.look.max_per_turn
        if key.purpose is Purpose.REVIEW:
            return self._review(number)
        answer = self._answer(key, number // replies)
        if replies == 1 and self._chosen.answer.repair_requests and key.purpose not in PARTS["single"]:
            self._held = answer  # only a repair is left, so that one is right
            return "nothing of use"
        self._held = "nothing of use either"
        return answer if (number + 1) % replies == 0 else "nothing of use"

    def _answer(self, key: TurnKey, done: int) -> Answer:
        chosen = self._chosen
        files = [f"part_{number}.py" for number in range(1, chosen.plan.expected_tasks + 1)]
        last = chosen.review.max_iterations - 1 if chosen.review.enabled else 0
        if key.purpose is Purpose.BREAKDOWN:
            return breakdown(A, *([file, "tests/test_x.py"] for file in files))
        if key.purpose is Purpose.DELIVERY:
            task = int((key.task or "1")[-2:])
            more = {"extra.py": "EXTRA = 1\n"} if task == 1 else {}
            # From the last review on it is what was approved.
            return delivery(A, task, {files[task - 1]: f"def value():\n    return {min(done, last)}\n", **more})
        answers: dict[Purpose, Answer] = {
            Purpose.SUITE: suite(A, f"from part_1 import value\n\n\ndef test_us_1():\n    assert value() == {done}\n"),
            Purpose.ANALYSIS: {
                "failure_analysis": [{"file": file, "function": "", "issue": "wrong", "fix": "mend"} for file in files],
                "suite_fault": {"reason": "it wants too much"},
            },
            Purpose.AMENDMENT: {"files": ["extra.py"], "dependencies": [], "reason": "fine"},
        }
        return answers.get(key.purpose, "nothing of use")

    def _review(self, number: int) -> Answer:
        if number % 2 == 0:
            return "Looks good."
        most = self._chosen.review.max_iterations
        return APPROVED if number // 2 + 1 >= most else reviewed("No", "[part_1.py:1] wrong")


LARGE: list[dict[str, dict[str, Any]]] = [
    {},
    {
        "provider": {"max_attempts": 1},
        "plan": {"max_iterations": 3, "expected_tasks": 2},
        "review": {"max_iterations": 5},
    },
    {
        "provider": {"max_attempts": 2},
        "plan": {"expected_tasks": 2},
        "review": {"max_iterations": 3, "reviewers": ["a", "b"]},
    },
    {"review": {"enabled": False}},
    {"test": {"max_attempts": 1}},
    {"test": {"max_attempts": 2}, "answer": {"repair_requests": 0, "max_attempts": 0}},
    {"test": {"max_attempts": 3}, "build": {"max_attempts": 1}, "plan": {"max_iterations": 1}},
    {"answer": {"max_attempts": 0}, "build": {"max_attempts": 1}, "provider": {"max_attempts": 1}},
]


@pytest.mark.parametrize("sections", LARGE, ids=str)
async def test_the_maximum_of_the_dry_run_is_reached_by_the_worst_team_and_never_exceeded(
    tmp_path: Path, sections: dict[str, dict[str, Any]]
) -> None:
    chosen = settings(**sections)
    runs = [red(number) for number in range(chosen.test.max_attempts - 1)]
    stand = Stand(tmp_path, chosen, Worst(chosen), stories=runs, **NOT_MERGED, **UNNOTICED)
    assert await stand.ended() == "needs_attention"
    assert stand.provider.parts() == most_calls(chosen)


def any_kind(chosen: Settings, seed: int) -> Say:
    """Now this, now that, by chance; what is right a little more often, or no story would get anywhere."""
    chance, worst = random.Random(seed), Worst(chosen)

    def say(prompt: Prompt, number: int) -> Answer:
        drawn = chance.random()
        if drawn < 0.45:
            return good(prompt, number)
        if drawn < 0.7:
            return chance.choice(WAYS)(prompt, number)
        if drawn < 0.8:
            return worst(prompt, number)
        kind = chance.choice([*KINDS, *REPAIRABLE, *TRANSIENT])
        return KINDS["prose"] if kind in PERMANENT and chance.random() < 0.9 else KINDS[kind]

    return say


@pytest.mark.parametrize("seed", range(examples(40)))
async def test_no_part_of_a_story_exceeds_its_budget_whatever_comes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(-seed)
    chosen = settings(
        test={"max_attempts": chance.randint(1, 4)},
        review={"enabled": chance.random() < 0.8, "max_iterations": chance.randint(1, 3)},
        build={"max_attempts": chance.randint(1, 3)},
        plan={"max_iterations": chance.randint(1, 3), "expected_tasks": 3},
        budget={"calls_per_story": chance.choice([5, 20, 100_000])},
    )
    reports = [red(chance.randint(1, 3)) for _ in range(chance.randint(0, 3))]
    wholes = NOT_MERGED if chance.random() < 0.3 else {}
    stand = Stand(tmp_path, chosen, any_kind(chosen, seed), stories=reports, **wholes, **UNNOTICED)
    outcome = await stand.run()
    stand.assert_within()
    assert stand.provider.total <= chosen.budget.calls_per_story
    assert outcome.status.final
    if outcome.status is StoryStatus.DONE:
        assert {task.status for task in outcome.tasks} == {TaskStatus.DONE}
        assert outcome.tests.run == outcome.tests.passed > 0
        reviews = [task.reviews for task in outcome.tasks]
        assert not chosen.review.enabled or all(done and done[-1].approved for done in reviews)


async def test_the_budget_of_a_story_ends_it_wherever_it_is_and_says_so(tmp_path: Path) -> None:
    small = {
        "plan": {"max_iterations": 1},
        "answer": {"max_attempts": 0},
        "build": {"max_attempts": 1},
        "test": {"max_attempts": 2},
    }
    most = sum(most_calls(settings(**small)).values())
    whole = list[int]()
    caps = sorted({*range(1, most, 16 if is_quick() else 3), *range(most - 4, most + 1)})
    for cap in caps:
        chosen = settings(**small, budget={"calls_per_story": cap})
        stand = Stand(tmp_path / str(cap), chosen, Worst(chosen), stories=[red(1)], **NOT_MERGED, **UNNOTICED)
        outcome = await stand.run()
        assert stand.provider.total == cap
        told = [finding for finding in outcome.findings if finding.code == "budget.calls"]
        assert len(told) == (cap < most), outcome.findings
        assert not told or f"({cap})" in told[0].message
        whole += [cap] * (outcome.status is StoryStatus.NEEDS_ATTENTION)
        if outcome.status is StoryStatus.FAILED:
            assert outcome.commit, "what was done is on the branch"
    # The story itself is whole when only a stronger suite and its merge are not asked for any more.
    assert whole == [cap for cap in caps if cap >= most - 16]


async def test_a_story_that_its_budget_ends_tells_what_was_there(tmp_path: Path) -> None:
    chosen = settings(provider={"max_attempts": 1}, budget={"calls_per_story": 5})
    stand = Stand(tmp_path, chosen, good, stories=[red(1), red(2)])
    outcome = await stand.run()
    assert (outcome.status, outcome.attempts, outcome.tests.failed) == (StoryStatus.FAILED, 1, 1)
    assert [task.status for task in outcome.tasks] == [TaskStatus.DONE]
    assert [finding.code for finding in outcome.findings] == ["test.failed", "budget.calls"]
    assert "raise the budget" in outcome.findings[-1].fix
    assert set(await stand.workspace.files(A)) == {"old.py", "us_1.py", "tests/test_us_1.py"}
    assert (outcome.branch, stand.workspace.result) == ("orchestrator/sprint/US-1", {"old.py": "OLD = 1\n"})
