"""Stages side by side: who waits for whom, and when no further one begins."""

import asyncio
from collections.abc import Sequence

import pytest

from orchestrator.analysis.stages import run_stages
from orchestrator.core.analysis import StagePrompt, StageResult, StageStatus


class Model:
    """Answers when it is told to; notes what was asked and how much of it at once."""

    def __init__(self, *fails: str, stops: str = "") -> None:
        self.fails, self.stops = fails, stops
        self.begun: list[str] = []
        self.told: dict[str, list[str]] = {}
        self.now = self.most = 0

    async def ask(self, prompt: StagePrompt, earlier: Sequence[StageResult]) -> StageResult:
        self.begun.append(prompt.id)
        self.told[prompt.id] = [result.id for result in earlier]
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        failed = prompt.id in self.fails or "*" in self.fails
        status = StageStatus.FAILED if failed else StageStatus.ANSWERED
        return StageResult(id=prompt.id, status=status, stop=prompt.id == self.stops)


def prompts(names: str, asking: str = "") -> list[StagePrompt]:
    return [StagePrompt(id=name, text=name, history=name in asking) for name in names]


def run(model: Model, stages: list[StagePrompt], *, at_once: int = 8, stop_after: int = 3) -> str:
    """A letter per stage, in order: a answered, f failed, n not begun."""
    results = asyncio.run(run_stages(stages, model.ask, at_once=at_once, stop_after=stop_after))
    assert [result.id for result in results] == [stage.id for stage in stages]
    return "".join(result.status.value[0] for result in results)


def test_one_goes_ahead_and_the_others_follow_at_once() -> None:
    model = Model()
    assert run(model, prompts("abcdef")) == "aaaaaa"
    assert model.most == 5


def test_never_more_than_allowed_at_once() -> None:
    model = Model()
    run(model, prompts("abcdefgh"), at_once=2)
    assert model.most == 2


def test_a_stage_that_asks_for_findings_waits_for_all_before_it() -> None:
    model = Model()
    run(model, prompts("abcde", asking="ce"))
    assert (model.told["a"], model.told["b"], model.told["d"]) == ([], [], [])
    assert (model.told["c"], model.told["e"]) == (["a", "b"], ["a", "b", "c", "d"])
    assert model.begun.index("d") < model.begun.index("c")


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_a_model_that_always_fails_is_asked_three_times(at_once: int) -> None:
    model = Model("*")
    assert run(model, prompts("abcdefgh"), at_once=at_once) == "fffnnnnn"
    assert model.begun == ["a", "b", "c"]


def test_failures_in_a_row_are_counted_not_all() -> None:
    assert run(Model("a", "b", "d", "e", "g"), prompts("abcdefgh"), at_once=1) == "ffaffafa"
    assert run(Model("b", "c", "d"), prompts("abcdef"), at_once=1) == "afffnn"
    assert run(Model("*"), prompts("abcde"), stop_after=0) == "fffff"
    assert run(Model("*"), prompts("abc"), stop_after=1) == "fnn"


def test_what_concerns_every_stage_stops_at_once_and_what_runs_ends() -> None:
    model = Model("b", stops="b")
    assert run(model, prompts("abcdefgh"), at_once=3) == "afaannnn"


def test_nothing_is_left_behind_when_it_is_cancelled() -> None:
    ended: list[str] = []

    async def ask(prompt: StagePrompt, _earlier: Sequence[StageResult]) -> StageResult:
        if prompt.id == "a":
            return StageResult(id="a", status=StageStatus.ANSWERED)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(prompt.id)
        raise AssertionError

    async def main() -> None:
        work = asyncio.create_task(run_stages(prompts("abc"), ask, at_once=3, stop_after=3))
        await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    assert sorted(ended) == ["b", "c"]
