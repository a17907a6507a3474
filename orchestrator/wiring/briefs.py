"""What each story's personas are told."""

import asyncio
from typing import Any

from orchestrator.adapters.project_texts import ProjectTexts
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.stages import GivenPlan, StoryBrief
from orchestrator.domain.story import Story
from orchestrator.prompts.record import render_record
from orchestrator.settings import Environment, Policies, Settings
from orchestrator.sprint.relevance import Neighbours
from orchestrator.wiring.record_keeper import RecordKeeper
from orchestrator.wiring.sprints import Chosen
from orchestrator.wiring.team import story_payload

RECORD_SHARE = 4
"""The architecture record may take this part of `prompts.context_tokens`."""


class Briefs:
    """What each story's personas are told, read once when the story starts."""

    def __init__(self, chosen: Chosen, settings: Settings, environment: Environment, policies: Policies) -> None:
        rows = {story.id: story for story in chosen.content.stories}
        self._sprint, self._replans = chosen.record.sprint, chosen.record.replans
        # What the others are told by; whole rows would make every workflow's input as large as the backlog.
        self._others = {
            story: Story(id=row.id, title=row.title, acceptance_criteria=row.acceptance_criteria)
            for story in chosen.record.story_ids
            if (row := rows.get(story)) is not None
        }
        self._neighbours = Neighbours(tuple(self._others), chosen.record.needs)
        self._keeper = RecordKeeper(environment, StateFolder(environment.home), chosen.record)
        self._record_tokens = settings.prompts.context_tokens // RECORD_SHARE
        self._texts = ProjectTexts(environment.base_dir, settings.project.vision, settings.project.wireframes)
        self._policies = policies
        self.plans: dict[str, GivenPlan] = {}
        """What people brought, once it was read."""

    async def payload(self, story: Story) -> dict[str, Any]:
        """The frozen input of the story's workflow."""
        return story_payload(await asyncio.to_thread(self.of, story), self._policies)

    def of(self, story: Story) -> StoryBrief:
        """The brief of one story, with the architecture record as it is now. Blocks."""
        vision, vision_findings = self._texts.vision()
        wireframe, wireframe_findings = self._texts.wireframe(story.wireframe_ref)
        record = self._keeper.current()
        return StoryBrief(
            story=story,
            sprint=self._sprint,
            sprint_stories=tuple(self._others[other] for other in self._neighbours.of(story.id)),
            vision=vision,
            wireframe=wireframe,
            record=render_record(record, self._record_tokens),
            tech_stack=record.tech_stack,
            plan=self.plans.get(story.id),
            replan=self._replans.get(story.id),
            findings=(*vision_findings, *wireframe_findings),
        )
