"""The prompts of three stories are those that were read and kept (`python -m tests.prompts.recorded` writes them)."""

import pytest

from orchestrator.core.calls.exchange import Prompt
from orchestrator.prompts.render import SHARED_SEGMENTS
from tests.prompts.recorded import FOLDER, STORIES, prompts_of, told

KEPT = {
    name: {path.name: path.read_text(encoding="utf-8") for path in sorted((FOLDER / name).glob("*.txt"))}
    for name in STORIES
}


def _shared(prompt: Prompt) -> list[str]:
    return [segment.text for segment in prompt.segments if segment.name in SHARED_SEGMENTS]


@pytest.mark.parametrize("name", sorted(STORIES))
async def test_the_prompts_of_a_story_are_as_recorded(name: str) -> None:
    assert told(await prompts_of(name)) == KEPT[name]


async def test_all_personas_of_a_story_begin_alike_and_a_task_sees_what_the_last_one_made() -> None:
    prompts = await prompts_of("shop")
    assert {prompt.key.persona for prompt in prompts} == {"mike", "alex", "reviewer", "jordan"}
    assert all(_shared(prompt) == _shared(prompts[0]) for prompt in prompts)
    assert all("amounts are cents (NFR-1)" in prompt.text for prompt in prompts)
    second = next(prompt.text for prompt in prompts if prompt.key.task == "T-US-7-02")
    assert "def discounted(cents: int, rate: float = RATE) -> int" in second
    assert "fastapi >=0.110,<1" in second
    assert second.count("class Item:") == 1
    pages = await prompts_of("pages")
    assert all(".table-row:hover" in prompt.text for prompt in pages)
