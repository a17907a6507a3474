"""A sprint as it was frozen at its first start."""

import hashlib
from datetime import datetime

from pydantic import Field

from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding
from orchestrator.domain.retention import Pruning

PLAN_READING = "+plan-"
"""In the id of a workflow in which a person's plan is read; no id of a sprint or story holds a plus sign."""


class Replan(Value):
    """A person's wish that a story is planned anew."""

    comment: str
    """What the architect is told."""
    overridden_conflict: str = ""
    """The four texts of the conflict that is overridden; empty when the story did not end in one."""


class BroughtPlan(Value):
    """A person's task plan as it was handed in."""

    path: str
    """The file, as it was named."""
    text: str


class SprintRecord(Value):
    """What a sprint was started with; only `generations` and `replans` change later, by `reset` and `replan`, and
    `plans` of stories that have not begun; in the end it may be `pruned`."""

    sprint: str
    backlog: str
    """Absolute path of the backlog."""
    repo: str
    """Absolute path of the user's repository."""
    base: str
    """Commit the sprint started from; empty for a repository without commits."""
    story_ids: tuple[str, ...]
    """The frozen selection, in backlog order."""
    titles: dict[str, str] = Field(default_factory=dict)
    """Story → its title when the sprint began; a story that had none, and one of an older record, is absent."""
    criteria: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Story → its acceptance criteria when the sprint began, for stories that have not begun; without any: absent."""
    needs: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Story → the stories of the selection it waits for, the foundation rule included."""
    closes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Story → rows that are marked completed with it and not run themselves."""
    done_ids: tuple[str, ...] = ()
    """Stories the backlog called completed when the sprint started."""
    requested: tuple[str, ...] = ()
    """What `--stories` named, if anything."""
    warnings: tuple[Finding, ...] = ()
    generations: dict[str, int] = Field(default_factory=dict)
    """Story → how often it was begun anew; absent means 1."""
    replans: dict[str, Replan] = Field(default_factory=dict)
    """Story → what a person said when the present generation was begun anew."""
    plans: dict[str, BroughtPlan] = Field(default_factory=dict)
    """Story → the plan that a person brought for it; frozen when the story begins."""
    cleared: bool = False
    """True after a reset of the whole sprint: the next start selects anew and keeps only the generations."""
    pruned: Pruning | None = None
    """Set once everything but record, report and result branch is given up: the sprint is over for good."""
    started_at: datetime
    executor: str = ""
    """Who works on it: the executor id of a daemon; empty: whoever gives the command `run`."""
    orders: tuple[str, ...] = ()
    """Ids of the orders that gave stories a new generation while the sprint was at work."""

    def workflow_id(self, story_id: str) -> str:
        """`<sprint>/<story>`, with `@N` behind it after resets."""
        generation = self.generations.get(story_id, 1)
        return f"{self.sprint}/{story_id}" + (f"@{generation}" if generation > 1 else "")

    def plan_workflow_id(self, story_id: str) -> str:
        """Of the workflow in which the story's plan is read: another text is read by another one."""
        text = self.plans[story_id].text
        return f"{self.workflow_id(story_id)}{PLAN_READING}{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def reset(self, story_ids: tuple[str, ...]) -> "SprintRecord":
        """The record with a new generation for these stories, and nothing that was said of the one before."""
        raised = {story: self.generations.get(story, 1) + 1 for story in story_ids}
        replans = {story: said for story, said in self.replans.items() if story not in story_ids}
        return self.model_copy(update={"generations": {**self.generations, **raised}, "replans": replans})

    def replan(self, story_ids: tuple[str, ...], story_id: str, said: Replan) -> "SprintRecord":
        """`reset`, and what a person said about one of them: that the architect plans it, whoever did before."""
        after = self.reset(story_ids)
        plans = {story: plan for story, plan in after.plans.items() if story != story_id}
        return after.model_copy(update={"replans": {**after.replans, story_id: said}, "plans": plans})
