"""The analyst: a repository and what one stage asks → findings as tasks."""

from collections.abc import Sequence
from typing import Any

from orchestrator.answers import Status
from orchestrator.checks.analysis import read_stage, storable
from orchestrator.core.analysis import StagePrompt, StageReading, StageResult, StageStatus
from orchestrator.core.calls.exchange import Purpose
from orchestrator.core.calls.wire import StageAnswer
from orchestrator.core.errors import OrchestratorError, ProviderError
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Where, blocking, critical, major
from orchestrator.core.value import counted
from orchestrator.personas.ask import Asked, ask
from orchestrator.personas.request import Heard
from orchestrator.personas.session import Desk
from orchestrator.prompts.budget import cap, fence

NAME = "analyst"
CONTRACT = "notes/stage_contract"
MAX_TOLD = 50
"""Limit on the findings of one stage that are listed individually."""
MAX_PROSE = 20_000
"""Characters of an answer without a value that are kept as a summary."""


class Analyst:
    """Bound to one stage of an analysis; `prd` and `codebase` are the same text for all of them."""

    def __init__(self, desk: Desk, prd: str, codebase: str) -> None:
        self._desk = desk
        self._shared = {"prd": prd, "codebase": codebase}

    async def stage(self, prompt: StagePrompt, history: str) -> StageResult:
        """Asks one stage. Never raises for what a provider or a model does: that is a result, too."""
        await self._desk.step.emit("stage_started", f"{prompt.name} begins", persona=NAME, history=bool(history))
        heard: list[Heard] = []

        def read(value: Any) -> tuple[StageReading | None, Sequence[Finding]]:
            return read_stage(value, prompt.id)

        async def keep(
            reading: StageReading | None, said: Heard, _left: int
        ) -> tuple[StageReading | None, Sequence[Finding], int]:
            heard.append(said)
            return reading, _cut(said), 0

        told = fence(self._desk.schemas["stage"], "json")
        slots = {
            **self._shared,
            "prompt": prompt.text.strip(),
            "history": history,
            "contract": self._desk.library.note(CONTRACT, schema=told),
        }
        request = self._desk.request(
            NAME, Purpose.STAGE, StageAnswer, slots, shows_schema=False, filled_with=prompt.version
        )
        try:
            result = _answered(prompt, await ask(self._desk, request, read=read, complete=keep))
        except OrchestratorError as error:
            result = _without_value(prompt, heard, error)
        await self._tell(result)
        return result

    async def _tell(self, result: StageResult) -> None:
        for finding in result.findings[:MAX_TOLD]:
            if not finding.severity.blocks:
                await self._desk.step.emit(
                    "task_normalised",
                    finding.message,
                    level=Level.WARN,
                    persona=NAME,
                    findings=[finding.model_dump(mode="json")],
                )
        how = {
            StageStatus.ANSWERED: counted(len(result.tasks), "task"),
            StageStatus.PROSE: "no JSON in any answer: its text is the summary, and it gives no task",
        }
        level = Level.WARN if result.findings else Level.INFO
        await self._desk.step.emit(
            "stage_finished",
            f"{result.name}: {how.get(result.status) or blocking(result.findings)[0].message}",
            level=Level.ERROR if result.failed else level,
            persona=NAME,
            result=result.model_dump(mode="json"),
        )


def _cut(heard: Heard) -> list[Finding]:
    """Refuses what was cut off; its whole tasks count when nothing better comes."""
    if not heard.cut_off:
        return []
    return [major("answer.truncated", "the answer was cut off", fix="answer again, whole and shorter")]


def _answered(prompt: StagePrompt, asked: Asked[StageReading]) -> StageResult:
    """Returns the stage's result; a refused answer without a task is a failure, whatever its summary."""
    reading = asked.value
    return StageResult(
        id=prompt.id,
        goal=prompt.goal,
        status=StageStatus.ANSWERED if asked.accepted or reading.tasks else StageStatus.FAILED,
        summary=reading.summary,
        recommendations=reading.recommendations,
        tasks=reading.tasks,
        findings=asked.findings,
    )


def _without_value(prompt: StagePrompt, heard: Sequence[Heard], error: OrchestratorError) -> StageResult:
    """Takes the last prose that came as the summary; without any the stage has failed."""
    prose = next((one.reply.text for one in reversed(heard) if _is_prose(one)), "")
    stop = isinstance(error, ProviderError) and error.concerns_all
    if not prose:
        told = _failed(prompt.id, error)
        return StageResult(id=prompt.id, goal=prompt.goal, status=StageStatus.FAILED, findings=(told,), stop=stop)
    message = f"{prompt.id}: no answer held JSON; the text of the last one is the summary, and no task is made of it"
    fix = "read the summary; another model, or a prompt that asks for tasks, may give some"
    return StageResult(
        id=prompt.id,
        goal=prompt.goal,
        status=StageStatus.PROSE,
        summary=cap(storable(prose).strip(), MAX_PROSE),
        findings=(major("stage.prose", message, where=Where(task=prompt.id), fix=fix),),
        stop=stop,
    )


def _is_prose(heard: Heard) -> bool:
    """Returns whether the text speaks to people: no refusal, nothing cut off, and no JSON that could not be read."""
    text = heard.reply.text.strip()
    is_json = text.removeprefix("```json").lstrip().startswith(("{", "["))
    partial = heard.broken_off or heard.cut_off or is_json
    return bool(text) and heard.extraction.status is Status.REFUSED and not partial


def _failed(stage: str, error: OrchestratorError) -> Finding:
    fix = "remove the cause; the same command then asks this stage again"
    return critical("stage.failed", f"{stage}: {error.message}", where=Where(task=stage), fix=fix)
