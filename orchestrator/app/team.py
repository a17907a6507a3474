"""Binds personas, workspace and runner to one running story: the body that the engine executes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from orchestrator.core.calls.exchange import StoryBrief
from orchestrator.core.calls.wire import WIRE_SCHEMAS
from orchestrator.core.ports import Step, SuiteRunner, Workspace
from orchestrator.core.secrets import Masks
from orchestrator.core.sprint import StoryOutcome
from orchestrator.personas.alex import Alex
from orchestrator.personas.jordan import Jordan
from orchestrator.personas.mike import Mike
from orchestrator.personas.reviewer import Reviewer
from orchestrator.personas.session import Desk
from orchestrator.prompts.context import render_story
from orchestrator.prompts.render import PromptLibrary, load_prompts
from orchestrator.settings import Environment, Policies, Settings, packaged
from orchestrator.story.context import SCANS_AT_ONCE, Stage
from orchestrator.story.older_tests import OlderTests
from orchestrator.story.project_map import in_part
from orchestrator.story.story import run_story

StoryBody = Callable[[Step, dict[str, Any]], Awaitable[StoryOutcome]]


NO_KEY = Masks()
"""Also masks secrets, under names that reveal as much as a hash."""


def prompt_library(settings: Settings, environment: Environment) -> PromptLibrary:
    """Returns the packaged prompts with the configured folder's files in place of single ones. Raises ConfigError."""
    override: Path | None = None
    if settings.prompts.dir is not None:
        override = environment.base_dir / settings.prompts.dir
    return PromptLibrary(load_prompts(packaged("system_prompts"), override))


@cache
def schema_texts() -> Mapping[str, str]:
    """Schema name → compact JSON text, as prompts show it."""
    return {name: json.dumps(model.model_json_schema(), ensure_ascii=False) for name, model in WIRE_SCHEMAS.items()}


def story_body(
    library: PromptLibrary,
    workspace: Workspace,
    runner: SuiteRunner,
    masks: Masks = NO_KEY,
    older: OlderTests | None = None,
) -> StoryBody:
    """Returns the engine's body for a story; its payload is `story_payload`'s. All share `older`."""
    # The tests of one base are the same for every story.
    older = OlderTests() if older is None else older
    schemas, scans = schema_texts(), asyncio.Semaphore(SCANS_AT_ONCE)

    async def body(step: Step, payload: dict[str, Any]) -> StoryOutcome:
        brief = StoryBrief.model_validate(payload["brief"])
        policies = read_policies(json.dumps(payload["policies"]))
        payload.clear()  # the frames below hold it while the story waits for a person
        story = brief.story.id

        async def look(paths: Sequence[str]) -> Mapping[str, str]:
            return await step.step("look", lambda _step_id: workspace.read(story, paths), dict[str, str])

        about = render_story(brief.story)

        def parts(path: str, text: str) -> str:
            return in_part(path, text, about)

        desk = Desk(
            step=step,
            library=library,
            policies=policies,
            story=story,
            schemas=schemas,
            masks=masks,
            look=look,
            in_part=parts,
        )
        return await run_story(
            Stage(
                brief=brief,
                policies=policies,
                step=step,
                architect=Mike(desk, brief),
                developer=Alex(desk, brief),
                tester=Jordan(desk, brief),
                reviewers=tuple(Reviewer(desk, brief, name) for name in policies.review.names),
                workspace=workspace,
                runner=runner,
                older=older,
                scans=scans,
            )
        )

    return body


@lru_cache(maxsize=32)
def read_policies(text: str) -> Policies:
    """Returns the policies in a payload; read once, because those of a sprint's stories are equal."""
    return Policies.model_validate_json(text)


def story_payload(brief: StoryBrief, policies: Policies) -> dict[str, Any]:
    """Returns the frozen input of a story's workflow."""
    return {
        "sprint": brief.sprint,
        "story": brief.story.id,
        "brief": brief.model_dump(mode="json", exclude_defaults=True),
        "policies": policies.model_dump(mode="json"),
    }
