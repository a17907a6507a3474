"""A desk whose team is scripted in the test."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orchestrator.app.team import schema_texts
from orchestrator.core.calls.exchange import Prompt, Reply, ScriptEntry, StopReason, StoryBrief
from orchestrator.core.contract import Surface
from orchestrator.core.story import Story
from orchestrator.personas.session import Desk
from orchestrator.providers.scripted import Script, ScriptedProvider
from orchestrator.settings import Policies
from tests.prompts.packaged import packaged_library
from tests.simulated import MemorySink, SimulatedStep

STORY = "US-1"
SURFACE = Surface(commit="", files=("app.py",))

LIBRARY = packaged_library()


@dataclass
class Bench:
    """A desk with everything that went over it."""

    desk: Desk
    step: SimulatedStep
    sink: MemorySink

    @property
    def asked(self) -> list[str]:
        """`purpose turn` of every prompt, in order."""
        return [f"{prompt.key.purpose} {prompt.turn}" for prompt in self.step.prompts]

    def segment(self, number: int, name: str) -> str:
        """Text of a segment of the prompt with this place; "" when it has none."""
        return "\n".join(s.text for s in self.step.prompts[number].segments if s.name == name)


def script_of(entries: Iterable[dict[str, Any]]) -> Script:
    """A script, with turns counted per key where none is given."""
    script: Script = {}
    for fields in entries:
        entry = ScriptEntry.model_validate({"story": STORY, **fields})
        while entry.lookup in script:
            entry = entry.model_copy(update={"turn": entry.turn + 1})
        script[entry.lookup] = entry
    return script


def bench(
    *entries: dict[str, Any], policies: Policies | None = None, step: type[SimulatedStep] = SimulatedStep
) -> Bench:
    """A desk of US-1 whose replies are `entries`."""
    sink = MemorySink()
    steps = step(ScriptedProvider(script_of(entries)), sink, story=STORY)
    desk = Desk(step=steps, library=LIBRARY, policies=policies or Policies(), story=STORY, schemas=schema_texts())
    return Bench(desk=desk, step=steps, sink=sink)


class Babbler:
    """`ports.Provider` that says the given replies one after the other, the last one forever, whatever is asked."""

    name = "babbler"

    def __init__(self, *replies: tuple[str, StopReason]) -> None:
        self._replies = list(replies)

    async def complete(self, prompt: Prompt) -> Reply:
        """See the port."""
        text, stop = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return Reply(key=prompt.key, turn=prompt.turn, text=text, stop_reason=stop, provider=self.name)


def babble(*replies: tuple[str, StopReason], policies: Policies) -> Bench:
    """A desk of US-1 whose model talks without being asked."""
    sink = MemorySink()
    step = SimulatedStep(Babbler(*replies), sink, story=STORY)
    desk = Desk(step=step, library=LIBRARY, policies=policies, story=STORY, schemas=schema_texts())
    return Bench(desk=desk, step=step, sink=sink)


def brief(**fields: Any) -> StoryBrief:
    """US-1."""
    story = Story(id=STORY, title="Prices", acceptance_criteria=("A price is shown",), **fields)
    return StoryBrief(story=story, sprint="SP-001", vision="Shops need prices.")
