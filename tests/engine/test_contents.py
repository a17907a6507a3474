"""What a model may answer in place of an answer, through every provider: content, paid once, journalled, sent back.

Each situation is played to a persona's loop over the scripted team and over both services on loopback, with the
engine's turns and a journal on disk between them.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app.team import schema_texts
from orchestrator.checks.suite import read_analysis
from orchestrator.core.calls.exchange import Prompt, Purpose, Reply
from orchestrator.core.calls.wire import AnalysisAnswer
from orchestrator.core.errors import ProviderError, SchemaValidationError
from orchestrator.core.finding import Finding
from orchestrator.core.ports import Provider
from orchestrator.engine.turns import TurnTaker
from orchestrator.files.process import SystemClock
from orchestrator.personas.ask import Asked, ask
from orchestrator.personas.request import Request
from orchestrator.personas.session import Desk
from orchestrator.prompts.render import PROMPT_SLOTS
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.openai import OpenAIProvider
from orchestrator.providers.scripted import CallLog, ScriptedProvider
from orchestrator.settings import Policies, Settings
from orchestrator.storage.reply_journal import WorkflowJournal
from tests.personas.desks import LIBRARY, STORY, script_of
from tests.providers.http_server import Answer, completion, message, model_server
from tests.simulated import MemorySink, SimulatedStep

GOOD = json.dumps({"failure_analysis": [{"file": "a.py", "issue": "wrong sum", "fix": "add them"}]})
BEGUN = '{"failure_analysis": [{"file": "a.py", "issue": "wrong sum", "fi'
EMPTY = json.dumps({"failure_analysis": []})
SORRY = "I am not able to help with that." + " Sorry." * 100
CALL = {"type": "tool_use", "id": "t1", "name": "answer", "input": {"failure_analysis": []}}
THOUGHT = {"type": "thinking", "thinking": GOOD, "signature": ""}
DECLINED = {"type": "refusal", "category": "cyber", "explanation": SORRY}
REPLIES = 3


@dataclass(frozen=True, kw_only=True)
class Content:
    """A situation: the text and the stop reason it comes to, how the services say it, and what becomes of it."""

    text: str = ""
    stop: str = "end_turn"
    claude: dict[str, Any]
    gpt: dict[str, Any]
    """Of the message; `finish_reason`, `usage` and `choices` stand beside it."""
    why: str
    """Code of the first finding."""
    codes: Sequence[str]
    """Of the findings behind the first one."""
    repairs: int = 0


def text_part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


CONTENTS: dict[str, Content] = {
    "nothing": Content(claude={"content": []}, gpt={"content": ""}, why="answer.refused", codes=["answer.none"]),
    "blanks": Content(
        text=" \n", claude={"content": text_part(" \n")}, gpt={"content": " \n"},
        why="answer.refused", codes=["answer.none"],
    ),
    "null": Content(
        claude={"content": None}, gpt={"choices": None}, why="answer.refused", codes=["answer.none"], stop="unheard_of"
    ),
    "no text in a text": Content(
        claude={"content": [*text_part(None), None, 7]}, gpt={"content": [*text_part(None), None, 7]},  # type: ignore[arg-type]
        why="answer.refused", codes=["answer.none"],
    ),
    "declined": Content(
        stop="refusal", claude={"content": []}, gpt={"content": None, "finish_reason": "content_filter"},
        why="answer.refused", codes=["answer.declined"],
    ),
    "declined in words": Content(
        text=SORRY, stop="refusal", claude={"content": [], "stop_details": DECLINED}, gpt={"refusal": SORRY},
        why="answer.refused", codes=["answer.declined"],
    ),
    "declined as text": Content(
        text=SORRY, claude={"content": text_part(SORRY)}, gpt={"content": text_part(SORRY)},
        why="answer.refused", codes=["answer.none"], repairs=1,
    ),
    "filtered inside": Content(
        text=BEGUN, stop="refusal",
        claude={"content": text_part(BEGUN)}, gpt={"content": BEGUN, "finish_reason": "content_filter"},
        why="answer.truncated", codes=["analysis.shape", "answer.truncated"],
    ),
    "a call of a tool": Content(
        stop="tool_use", claude={"content": [CALL]}, gpt={"content": None, "tool_calls": [{}]},
        why="answer.refused", codes=["answer.tool_call"],
    ),
    "words before a call": Content(
        text="Let me look.", stop="tool_use",
        claude={"content": [*text_part("Let me look."), CALL]}, gpt={"content": "Let me look."},
        why="answer.refused", codes=["answer.tool_call"],
    ),
    "all room spent on thinking": Content(
        stop="max_tokens", claude={"content": [THOUGHT]}, gpt={"content": None, "reasoning_content": GOOD},
        why="answer.truncated", codes=["answer.none", "answer.truncated"],
    ),
    "another shape than asked for": Content(
        text=EMPTY, claude={"content": text_part(EMPTY)}, gpt={"content": EMPTY},
        why="answer.invalid", codes=["analysis.shape"],
    ),
    "a stop nobody knows": Content(
        text="hm", stop="unheard_of", claude={"content": text_part("hm"), "stop_reason": ["x"]},
        gpt={"content": "hm", "finish_reason": 7}, why="answer.refused", codes=["answer.none"], repairs=1,
    ),
}  # fmt: skip
CHAT = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


def claude(case: Content) -> Answer:
    return Answer(body={**message(stop=case.stop), **case.claude})


def gpt(case: Content) -> Answer:
    body = completion(stop=case.gpt.get("finish_reason", CHAT.get(case.stop, case.stop)))
    body["choices"][0]["message"] = {"role": "assistant", **case.gpt}
    return Answer(body={**body, **({"choices": None} if "choices" in case.gpt else {})})


@dataclass
class Stand:
    """A provider with its call log, and the number of requests it really got."""

    provider: Provider
    log: Path
    requests: Callable[[], int]

    async def paid(self) -> int:
        """Lines of the call log."""
        there = await asyncio.to_thread(self.log.exists)
        return len((await asyncio.to_thread(self.log.read_text)).splitlines()) if there else 0


Opened = Callable[[Path, Sequence[Content]], AbstractAsyncContextManager[Stand]]
"""(folder, what is answered in order, the last forever) → a stand."""


def real(kind: type[ModelProvider], said: Callable[[Content], Answer], fine: Answer) -> Opened:
    @asynccontextmanager
    async def opened(folder: Path, cases: Sequence[Content]) -> AsyncIterator[Stand]:
        log = CallLog(folder / "calls.jsonl", SystemClock())
        with model_server(*map(said, cases), fine) as server:
            access = ModelAccess(model="m", api_key="sk-1", base_url=server.url, timeout_s=20, max_output_tokens=9)
            provider = await asyncio.to_thread(kind, access, price={}.get, on_paid=log.write)
            yield Stand(provider, folder / "calls.jsonl", lambda: len(server.asked))
            await provider.close()

    return opened


class Counted(ScriptedProvider):
    """Counts what it is asked."""

    requests = 0

    async def complete(self, prompt: Prompt) -> Reply:
        self.requests += 1
        return await super().complete(prompt)


@asynccontextmanager
async def scripted(folder: Path, cases: Sequence[Content]) -> AsyncIterator[Stand]:
    said = [{"text": case.text, "stop_reason": case.stop} for case in cases]
    analyses, repaired = list(said), []
    if cases[0].repairs:
        repaired.append(analyses.pop(1))
    entries = [
        *({"persona": "jordan", "purpose": "analysis", **one} for one in (*analyses, {"text": GOOD})),
        *({"persona": "jordan", "purpose": "repair", **one} for one in repaired),
    ]
    provider = Counted(script_of(entries), CallLog(folder / "calls.jsonl", SystemClock()))
    yield Stand(provider, folder / "calls.jsonl", lambda: provider.requests)


every = pytest.mark.parametrize(
    "opened",
    [
        scripted,
        real(AnthropicProvider, claude, Answer(body=message(GOOD))),
        real(OpenAIProvider, gpt, Answer(body=completion(GOOD))),
    ],
    ids=["scripted", "anthropic", "openai"],
)


@dataclass
class TakenStep:
    """The turns of the engine below a persona: steps counted, calls journalled."""

    turns: TurnTaker
    journal: WorkflowJournal
    steps: int = 0
    sink: MemorySink = field(default_factory=MemorySink)

    def bind(self, provider: Provider) -> SimulatedStep:
        step = SimulatedStep(provider, self.sink, story=STORY)
        step.turn = self.turn  # type: ignore[method-assign]
        return step

    async def turn(self, prompt: Prompt) -> Reply:
        self.steps += 1
        return await self.turns.take(self.journal, self.steps, prompt)


async def analysed(stand: Stand, folder: Path) -> tuple[Asked[Any], TakenStep]:
    """The loop of an analysis from its first step on, with whatever the journal in `folder` holds."""
    settings = Settings.model_validate({"provider": {"wait_initial_s": 0, "wait_max_s": 0, "max_attempts": 4}})
    journal = await asyncio.to_thread(WorkflowJournal, folder / "journal")
    taken = TakenStep(TurnTaker(stand.provider, settings, asyncio.Semaphore(2)), journal)
    desk = Desk(
        step=taken.bind(stand.provider), library=LIBRARY, policies=Policies(), story=STORY, schemas=schema_texts()
    )
    request = Request(
        persona="jordan",
        purpose=Purpose.ANALYSIS,
        prompt="tester/analysis",
        answer=AnalysisAnswer,
        schema_name="analysis",
        replies=REPLIES,
        slots=dict.fromkeys(PROMPT_SLOTS["tester/analysis"] - {"schema", "feedback"}, "s"),
    )

    def read(value: Any) -> tuple[Any, Sequence[Finding]]:
        instructions, findings = read_analysis(value)
        return instructions or None, findings

    return await ask(desk, request, read=read), taken


@every
@pytest.mark.parametrize("name", CONTENTS)
async def test_content_is_sent_back_within_the_answer_budget_and_never_retried(
    opened: Opened, name: str, tmp_path: Path
) -> None:
    case = CONTENTS[name]
    calls = REPLIES + case.repairs
    async with opened(tmp_path, [case] * calls) as stand:
        with pytest.raises(SchemaValidationError) as caught:
            await analysed(stand, tmp_path)
        error = caught.value
        assert error.findings[0].code == case.why
        assert not isinstance(error, ProviderError)
        assert (error.provider_name, error.original_message) == (stand.provider.name, case.text[:500])
        assert str(error) == error.message
        assert f"asked {REPLIES} times for the analysis" in error.message
        assert [finding.code for finding in error.findings[1:]] == case.codes
        journal = await asyncio.to_thread(WorkflowJournal, tmp_path / "journal")
        assert (stand.requests(), await stand.paid(), journal.spent.calls) == (calls, calls, calls)
        replies = [journal.reply(step) for step in range(1, calls + 1)]
        assert all(reply is not None and reply.paid and not reply.failed_calls for reply in replies)
        with pytest.raises(SchemaValidationError) as again:
            await analysed(stand, tmp_path)
        assert vars(again.value) == vars(error)
        assert stand.requests() == calls, "what is journalled is asked for no more"
