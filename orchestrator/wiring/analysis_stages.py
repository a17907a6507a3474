"""What an analysis asks through the engine: each stage and the triage as a workflow of its own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from orchestrator.domain.analysis import AnalysisRecord, StagePrompt, StageResult, TaskPriority, Triaged
from orchestrator.domain.base import Value
from orchestrator.domain.exchange import Purpose
from orchestrator.domain.masking import Masks
from orchestrator.engine.durable import DurableEngine
from orchestrator.personas.analyst import Analyst
from orchestrator.personas.desk import Desk
from orchestrator.ports import Step
from orchestrator.prompts.analysis import render_history
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Policies
from orchestrator.wiring.team import schema_texts

AnalysisBody = Callable[[Step, dict[str, Any]], Awaitable[Value]]
TRIAGE = "triage"
"""Stands where a stage's id stands, for the request that picks the stages."""


def analysis_body(
    library: PromptLibrary, prd: str, codebase: str, synonyms: Mapping[str, TaskPriority], masks: Masks
) -> AnalysisBody:
    """What the engine runs for each stage, and for triage; `prd` and `codebase` are what all prompts begin with."""
    schemas = schema_texts()

    async def body(step: Step, payload: dict[str, Any]) -> Value:
        policies = Policies.model_validate(payload["policies"])
        desk = Desk(step=step, library=library, policies=policies, story=payload["story"], schemas=schemas, masks=masks)
        analyst = Analyst(desk, prd, codebase)
        prompts = [StagePrompt.model_validate(prompt) for prompt in payload["prompts"]]
        if payload["purpose"] == Purpose.TRIAGE:
            return await analyst.triage(prompts)
        return await analyst.stage(prompts[0], payload["history"], contract=payload["contract"], synonyms=synonyms)

    return body


class Asked:
    """What is asked through the engine: once and for all per workflow."""

    def __init__(self, engine: DurableEngine, record: AnalysisRecord, policies: Policies) -> None:
        self._engine, self._record = engine, record
        self._policies = policies.model_dump(mode="json")

    async def stage(self, prompt: StagePrompt, earlier: Sequence[StageResult]) -> StageResult:
        """One stage; what it is told of earlier ones is frozen with it."""
        payload = self._payload(prompt.id, Purpose.STAGE, [prompt])
        payload |= {"history": render_history(earlier), "contract": self._record.contract}
        return StageResult.model_validate(await self._engine.run_analysis(self._record.workflow_id(prompt.id), payload))

    async def triage(self, offered: Sequence[StagePrompt]) -> Triaged:
        """The stages that a model picks."""
        payload = self._payload(TRIAGE, Purpose.TRIAGE, offered)
        return Triaged.model_validate(await self._engine.run_analysis(triage_id(self._record), payload))

    def _payload(self, story: str, purpose: Purpose, prompts: Sequence[StagePrompt]) -> dict[str, Any]:
        return {
            "sprint": self._record.analysis,
            "story": story,
            "purpose": str(purpose),
            "prompts": [prompt.model_dump(mode="json") for prompt in prompts],
            "policies": self._policies,
        }


def triage_id(record: AnalysisRecord) -> str:
    """No id of a prompt begins with a plus sign."""
    return f"{record.analysis}/+{TRIAGE}"
