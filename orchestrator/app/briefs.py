"""Briefs: the input of a story's personas when it starts, with the product's texts and the architecture record."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.app.sprints import Chosen
from orchestrator.app.team import story_payload
from orchestrator.checks.task_plan import why_followed
from orchestrator.core.calls.exchange import StoryBrief
from orchestrator.core.contract import ArchitectureRecord, Contribution
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.secrets import Masks
from orchestrator.core.story import Story
from orchestrator.personas.secrecy import row_findings
from orchestrator.prompts.feedback import render_record
from orchestrator.records.histories import open_log
from orchestrator.settings import Environment, Policies, Settings
from orchestrator.storage.event_store import PATIENCE_S
from orchestrator.storage.state_folder import StateFolder
from orchestrator.story.context import EVENT

WIREFRAME_SUFFIXES = (".md", ".html", ".txt", ".svg")
MAX_BYTES = 60_000
"""Of a vision or a wireframe; the rest is left out."""
MAX_STORIES = 40
"""Other stories that a story's architect sees: more would make every story's input grow with the sprint."""
RECORD_SHARE = 4
"""The architecture record may take this part of `prompts.context_tokens`."""


class Briefs:
    """Makes each story's brief, once when it starts."""

    def __init__(
        self,
        chosen: Chosen,
        settings: Settings,
        environment: Environment,
        policies: Policies,
        masks: Masks,
    ) -> None:
        self._masks = masks
        rows = {story.id: story for story in chosen.content.stories}
        self._record, self._environment, self._policies = chosen.record, environment, policies
        # Only excerpts of other rows: whole rows would make every workflow's input as large as the backlog.
        self._others = {
            story: Story(id=row.id, title=row.title, acceptance_criteria=row.acceptance_criteria)
            for story in chosen.record.story_ids
            if (row := rows.get(story)) is not None
        }
        self._needs = chosen.record.needs
        self._record_tokens = settings.prompts.context_tokens // RECORD_SHARE
        vision, wireframes = settings.project.vision, settings.project.wireframes
        self._vision = environment.base_dir / vision if vision else None
        self._wireframes = environment.base_dir / wireframes if wireframes else None
        # A reset story has a new workflow, so contributions of the earlier one no longer count.
        self._current = {story: f"{chosen.record.workflow_id(story)}:" for story in chosen.record.story_ids}
        self._read_up_to, self._parts = 0, list[Contribution]()

    async def payload(self, story: Story) -> dict[str, Any]:
        """Returns the frozen input of the story's workflow."""
        return story_payload(await asyncio.to_thread(self.of, story), self._policies)

    def of(self, story: Story) -> StoryBrief:
        """Returns the brief of one story, with the architecture record as it is now. Blocks."""
        vision, vision_findings = self._read_vision()
        wireframe, wireframe_findings = self._read_wireframe(story.wireframe_ref.strip())
        record = self._read_record()
        merged = {part.story for part in self._parts}  # the project and the record tell what those have built
        others = [other for other in self._others if other not in merged or other == story.id]
        plan = followed = self._record.plans.get(story.id)
        if plan is not None and why_followed(read_task_plan(plan.text).plan):
            followed, plan = plan.model_copy(update={"text": self._masks.masked(plan.text)}), None
        else:
            followed = None
        return StoryBrief(
            story=story,
            sprint=self._record.sprint,
            sprint_stories=tuple(self._others[other] for other in nearest(story.id, others, self._needs)),
            vision=vision,
            wireframe=wireframe,
            record=render_record(record, self._record_tokens),
            tech_stack=record.tech_stack,
            plan=plan,
            followed=followed,
            replan=self._record.replans.get(story.id),
            findings=(*vision_findings, *wireframe_findings, *row_findings(story)),
        )

    def _read_vision(self) -> tuple[str, list[Finding]]:
        text = read_product_text(self._vision) if self._vision is not None else ""
        if text is None and self._vision is not None:
            told = f"the vision file {self._vision.name} cannot be read"
            return "", [_missing("vision.missing", told, "project.vision")]
        return self._masks.masked(text or ""), []

    def _read_wireframe(self, stem: str) -> tuple[str, list[Finding]]:
        if not stem or self._wireframes is None:
            return "", []
        if "/" in stem or "\\" in stem or stem.startswith("."):
            return "", [_missing("wireframe.reference", f"`{stem}` is no file stem", "Wireframe_Ref")]
        for suffix in WIREFRAME_SUFFIXES:
            text = read_product_text(self._wireframes / f"{stem}{suffix}")
            if text is not None:
                return self._masks.masked(text), []
        return "", [_missing("wireframe.missing", f"there is no wireframe `{stem}`", "Wireframe_Ref")]

    def _read_record(self) -> ArchitectureRecord:
        """Reads the record, each event once. A restart of the database must not end a running sprint."""
        with open_log(self._environment, StateFolder.of(self._environment), patience_s=PATIENCE_S) as log:
            for seq, event in log.read(self._record.sprint, self._read_up_to) if log else ():
                self._read_up_to = seq
                if event.name == EVENT and event.id.startswith(self._current.get(event.story or "", "\0")):
                    self._parts.append(Contribution.model_validate(event.data["contribution"]))
        return ArchitectureRecord.of(self._parts)


def read_product_text(path: Path) -> str | None:
    """Returns the beginning of a vision or a wireframe; None where it cannot be read. Blocks."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None


def _missing(code: str, message: str, field: str) -> Finding:
    return minor(code, message, where=Where(field=field), fix="add the file or correct the name")


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
