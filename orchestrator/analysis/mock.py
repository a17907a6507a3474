"""Stand-ins for the answers of a model: each names a file of the repository and says that it is a mock."""

import json
from collections.abc import Sequence

from orchestrator.core.analysis import Packed, StagePrompt, TaskPriority
from orchestrator.core.calls.exchange import Purpose, ScriptEntry
from orchestrator.personas.analyst import NAME
from orchestrator.providers.scripted import Script

MOCK = "mock"


def mock_script(prompts: Sequence[StagePrompt], packed: Packed) -> Script:
    """Returns a script with one answer for each stage; none is paid for, and none claims a finding."""
    shown = (*packed.shown, *(one.path for one in packed.cut))
    entries = (_entry(prompt, shown, packed, number) for number, prompt in enumerate(prompts))
    return {entry.lookup: entry for entry in entries}


def _entry(prompt: StagePrompt, shown: Sequence[str], packed: Packed, number: int) -> ScriptEntry:
    # A file of the repository, another one for each stage: the plan then shows what a reference looks like.
    file = shown[number % len(shown)] if shown else ""
    told = f"the prompt shows {len(packed.shown)} of {len(packed.paths)} files whole, {len(packed.cut)} in part"
    task = {
        "title": f"Mock: {prompt.name}",
        "description": (
            f"No model was asked, and nothing was found. This entry shows where a task of the stage `{prompt.id}` "
            "stands in a plan and in a backlog, and how it refers to a file."
        ),
        "priority": TaskPriority.LOW,
        "file": file,
    }
    answer = {
        "summary": f"Mock answer: no model was asked; {told}.",
        "recommendations": ["Give the same command without --mock to have a model answer."],
        "tasks": [task],
    }
    return ScriptEntry(
        persona=NAME, story=prompt.id, purpose=Purpose.STAGE, text=json.dumps(answer), model=MOCK, paid=False
    )
