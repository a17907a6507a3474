"""What each story's personas are told.

The product's texts that personas are given: vision and wireframes; what is missing is a finding.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.app.sprints import Chosen, RecordKeeper
from orchestrator.app.team import story_payload
from orchestrator.core.exchange import GivenPlan, StoryBrief
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.story import Story
from orchestrator.prompts.feedback import render_record
from orchestrator.settings import Environment, Policies, Settings
from orchestrator.storage.state_folder import StateFolder

WIREFRAME_SUFFIXES = (".md", ".html", ".txt", ".svg")
MAX_BYTES = 60_000
MAX_STORIES = 40
"""Other stories that a story's architect is told of: more would make every story's input grow with the sprint."""


class ProjectTexts:
    """Reads below `base` what the configuration names."""

    def __init__(self, base: Path, vision: str | None, wireframes: str | None) -> None:
        self._vision = base / vision if vision else None
        self._wireframes = base / wireframes if wireframes else None

    def vision(self) -> tuple[str, list[Finding]]:
        """The vision's text, and a finding when the configured file cannot be read."""
        if self._vision is None:
            return "", []
        text = _read(self._vision)
        if text is None:
            return "", [
                _missing("vision.missing", f"the vision file {self._vision.name} cannot be read", "project.vision")
            ]
        return text, []

    def wireframe(self, reference: str) -> tuple[str, list[Finding]]:
        """The wireframe a story refers to by its stem, and a finding when there is none."""
        stem = reference.strip()
        if not stem or self._wireframes is None:
            return "", []
        if "/" in stem or "\\" in stem or stem.startswith("."):
            return "", [_missing("wireframe.reference", f"`{stem}` is no file stem", "Wireframe_Ref")]
        for suffix in WIREFRAME_SUFFIXES:
            text = _read(self._wireframes / f"{stem}{suffix}")
            if text is not None:
                return text, []
        return "", [_missing("wireframe.missing", f"there is no wireframe `{stem}`", "Wireframe_Ref")]


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None


def _missing(code: str, message: str, field: str) -> Finding:
    return minor(code, message, where=Where(field=field), fix="add the file or correct the name")


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
        self._needs = chosen.record.needs
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
            sprint_stories=tuple(self._others[other] for other in nearest(story.id, [*self._others], self._needs)),
            vision=vision,
            wireframe=wireframe,
            record=render_record(record, self._record_tokens),
            tech_stack=record.tech_stack,
            plan=self.plans.get(story.id),
            replan=self._replans.get(story.id),
            findings=(*vision_findings, *wireframe_findings),
        )


def nearest(
    story: str, order: Sequence[str], needs: Mapping[str, Sequence[str]], limit: int = MAX_STORIES
) -> tuple[str, ...]:
    """Returns at most `limit` other stories of `order`, the backlog's: those that `story` needs, those that need it
    (nearest first), then its neighbours in the backlog, nearest first."""
    place = {name: number for number, name in enumerate(order)}

    def away(other: str) -> tuple[int, int]:
        return abs(place[other] - place[story]), place[other]

    waiting = sorted((other for other in order if story in needs.get(other, ())), key=away)
    ranked = dict.fromkeys((*needs.get(story, ()), *waiting, *sorted(order, key=away)))
    return tuple(other for other in ranked if other != story and other in place)[:limit]
