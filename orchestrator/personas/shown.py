"""What a developer has before its eyes while one task is delivered: the context of its action plans."""

from orchestrator.checks.action_plan import PlanWorld
from orchestrator.domain.action_plan import ActionPlan, Edit, Prune, is_url
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.stages import TaskBrief
from orchestrator.personas.secrecy import Secrecy
from orchestrator.ports import Look
from orchestrator.prompts import context


class Shown:
    """The texts shown in full: the task's files, and what was asked for with READ, without what was PRUNEd."""

    def __init__(self, brief: TaskBrief, look: Look, room_tokens: int, secrecy: Secrecy) -> None:
        self._brief, self._look, self._room, self._secrecy = brief, look, room_tokens, secrecy
        self._texts = dict(brief.modified_files)
        self._asked: dict[str, str] = {}
        self._notes: list[str] = []

    @property
    def slots(self) -> dict[str, str]:
        """The prompt's slots that hold what is shown."""
        asked = [context.render_files(self._asked, self._room), *self._notes]
        return {
            "modified_files": context.render_files(self._texts),
            "shown_files": "\n\n".join(part for part in asked if part),
        }

    def world(self, kept: Delivery | None = None) -> PlanWorld:
        """What a plan is held against: texts as its author read them, without secrets; `kept` is what came whole of a
        delivery that was cut off."""
        texts, context_of = self.as_they_are(kept), {*self._texts, *self._asked}
        paths = {*self._brief.files, *texts}
        if kept is not None:
            context_of |= set(kept.paths)
            paths = {*paths, *kept.paths} - set(kept.removed)
        masked = {path: self._secrecy.masks.masked(text).text for path, text in texts.items()}
        return PlanWorld(paths=frozenset(paths), texts=masked, context=frozenset(context_of))

    def as_they_are(self, kept: Delivery | None = None) -> dict[str, str]:
        """The same texts with their secrets."""
        came = {str(change.path): change.content for change in kept.files} if kept is not None else {}
        return {**self._brief.modified_files, **self._texts, **self._asked, **came}

    async def follow(self, plan: ActionPlan) -> tuple[str, ...]:
        """Show what a plan asks for, and files it would change unread; take away what it prunes; the paths shown."""
        for action in plan.actions:
            if isinstance(action, Prune):
                self._asked.pop(action.resource, None)
                self._texts.pop(action.resource, None)
        # What the plan itself creates cannot be shown.
        unread = (one.path for one in plan.actions if isinstance(one, Edit) and one.path in self._brief.files)
        there = {*self._texts, *self._asked}
        wanted = [one for one in dict.fromkeys((*plan.reads, *unread)) if one not in there]
        files = [one for one in wanted if not is_url(one)]
        found = await self._look(files) if files else {}
        again = [f"`{one}` is shown in full already." for one in plan.reads if one in there]
        self._notes = [note for note in (*again, *(self._put(one, found.get(one)) for one in wanted)) if note]
        return tuple(one for one in wanted if one in self._asked)

    def _put(self, resource: str, text: str | None) -> str:
        """Show one text; why it is not shown, or ""."""
        if is_url(resource):
            return f"`{resource}` is not shown: pages are not fetched here."
        if text is None:
            return f"`{resource}` is not shown: it is no text file of the repository."
        if sum(map(context.tokens, self._asked.values())) + context.tokens(text) > self._room // 2:
            return f"`{resource}` is not shown: there is no room for it; PRUNE what you do not need."
        self._asked[resource] = text
        return ""
