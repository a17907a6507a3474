"""Alex, the developer: task → files. What an action plan asked to see is shown with the next request."""

from collections.abc import Sequence
from dataclasses import replace
from posixpath import basename, splitext
from typing import Any

from orchestrator.answers import Extraction, extract
from orchestrator.answers.action_plan import cut_in, plan_in
from orchestrator.answers.action_plan_actions import CutAction
from orchestrator.answers.json.shape import join
from orchestrator.answers.whole_files import Wanted, is_whole_files
from orchestrator.checks.action_plan import apply_plan, read_plan_delivery
from orchestrator.checks.action_plan_files import PlanWorld, with_line_ends
from orchestrator.checks.delivery import read_delivery
from orchestrator.checks.whole_files import check_parts, fits, own_actions, own_files
from orchestrator.core.action_plan import ActionPlan, Edit, Execute, Prune, Read, Verb
from orchestrator.core.calls.exchange import Delivered, MergeBrief, Purpose, StopReason, StoryBrief, TaskBrief
from orchestrator.core.calls.wire import DeliveryAnswer
from orchestrator.core.command import Verdict
from orchestrator.core.delivery import Delivery
from orchestrator.core.errors import SchemaValidationError
from orchestrator.core.finding import Finding, Where, blocking, major
from orchestrator.core.ports import JudgeDelivery, Look
from orchestrator.core.value import squeezed
from orchestrator.personas.ask import Complete, Looked, ask
from orchestrator.personas.ask import Look as LookAtPlan
from orchestrator.personas.request import Heard, Request
from orchestrator.personas.secrecy import OwnFiles
from orchestrator.personas.session import Desk, account
from orchestrator.personas.shown import Shown
from orchestrator.prompts import context, merging
from orchestrator.prompts.budget import as_data, cap_middle, fence, tokens
from orchestrator.prompts.feedback import render_comments, render_feedback, render_refused
from orchestrator.settings import WireFormat

WHOLE_TOKENS = 8_000
"""A longer file is changed by edits alone: whole it would take most of an answer (`provider.max_output_tokens`)."""


class TaskShown(Shown):
    """The texts shown in full: the task's files, and what was asked for with READ, without what was PRUNEd."""

    def __init__(self, desk: Desk, brief: TaskBrief, look: Look, *, merges: bool = False) -> None:
        """With `merges` the request shows the task's files by itself, long ones in part (`prompts.merging`)."""
        super().__init__(
            brief.modified_files, look, desk.policies.context_tokens, looks=desk.policies.looks, in_part=False
        )
        self._brief, self._secrecy, self._merges = brief, desk.secrecy, merges

    @property
    def slots(self) -> dict[str, str]:
        """Returns the prompt's slots that hold what is shown."""
        own = {} if self._merges else {"modified_files": context.render_files(self._texts, parts=self._parts)}
        return {**super().slots, **own}

    @property
    def whole(self) -> dict[str, str]:
        """Returns the slots for an answer of whole files: nothing of the task's files is left out."""
        return {} if self._merges else {"modified_files": context.render_files(self._texts)}

    @property
    def in_full(self) -> set[str]:
        """Returns the same without the long files that are shown in part."""
        parts = {path for path, text in self._texts.items() if self._merges and not merging.is_short(text)}
        return {*self._texts} - parts - {*self._brief.parts} | {*self._asked}

    @property
    def _parts(self) -> dict[str, str]:
        """What is shown of the task's long files, without those that were asked for since."""
        asked = "This file stands whole under the files that you asked to see."
        return {path: asked if path in self._asked else part for path, part in self._brief.parts.items()}

    def world(self, kept: Delivery | None = None) -> PlanWorld:
        """What a plan is held against: texts as its author read them, without secrets; `kept` is what came whole of a
        delivery that was cut off."""
        texts, context_of = self.as_they_are(kept), {*self._texts, *self._asked}
        paths = {*self._brief.files, *texts}
        if kept is not None:
            context_of |= set(kept.paths)
            paths = {*paths, *kept.paths} - set(kept.removed)
        masked = {path: self._secrecy.masks.masked(text) for path, text in texts.items()}
        return PlanWorld(paths=frozenset(paths), texts=masked, context=frozenset(context_of))

    def as_they_are(self, kept: Delivery | None = None) -> dict[str, str]:
        """Returns the same texts with their secrets."""
        came = {str(change.path): change.content for change in kept.files} if kept is not None else {}
        return {**self._brief.modified_files, **self._texts, **self._asked, **came}

    async def follow(self, plan: ActionPlan) -> tuple[str, ...]:
        """Show what a plan asks for, and files it would change unread; take away what it prunes; the paths shown."""
        # What the plan itself creates cannot be shown.
        unread = [one.path for one in plan.actions if isinstance(one, Edit) and one.path in self._brief.files]
        unread = [path for path in unread if path in plan.prunes or path not in {*self._texts, *self._asked}]
        return await self.show((*plan.addresses, *unread), plan.prunes)


NAME = "alex"
UNSAFE_PATH = "delivery.unsafe_path"
MAX_OUTPUT = 12_000
"""Characters of a red tree's output that are shown."""


class Alex:
    """`ports.Developer` of one running story."""

    def __init__(self, desk: Desk, brief: StoryBrief) -> None:
        self._desk = desk
        self._brief = brief
        self._asked_for: dict[str, tuple[str, ...]] = {}
        """Task → the files that were asked for in its last delivery."""

    async def deliver(self, brief: TaskBrief, judge: JudgeDelivery, look: Look) -> Delivered:
        """See ports.Developer: `build.max_attempts` replies, continuations and replies that only READ included."""
        shown, task = TaskShown(self._desk, brief, look), brief.task.task_id
        # A task that comes back needs the same files.
        if known := self._asked_for.get(task):
            await shown.show([path for path in known if path not in shown.in_full], ())
        build = _Build(self._desk, self._brief, brief, shown, OwnFiles(self._desk.secrecy))
        request = replace(
            build.request(Purpose.DELIVERY, self._desk.policies.build.max_attempts),
            feedback=render_refused(brief.refused),
        )
        delivered = await self._asked(build, request, judge, build.complete, build.look)
        self._asked_for[task] = shown.asked
        return delivered

    async def merge(self, brief: MergeBrief, judge: JudgeDelivery, look: Look) -> Delivered:
        """See ports.Developer: one reply besides looks, without a repair."""
        shown = TaskShown(self._desk, brief.work, look, merges=True)
        own = OwnFiles(self._desk.secrecy, {one.path: one.texts for one in brief.conflicts})
        build = _Build(self._desk, self._brief, brief.work, shown, own, sorts=False)
        parts = self._desk.policies.may_plan(NAME)
        # Only a plan can change a part of a file.
        long = parts and not all(map(merging.is_short, brief.work.modified_files.values()))
        sides = _sides(brief, self._desk.policies.context_tokens, parts=parts)
        request = replace(
            build.request(Purpose.MERGE, 1, "plan" if long else None, **sides),
            feedback=render_feedback(brief.said, None),
            may_repair=False,
        )
        delivered = await self._asked(build, request, judge, _whole)
        return delivered.model_copy(update={"by": NAME})

    async def _asked(
        self,
        build: "_Build",
        request: Request,
        judge: JudgeDelivery,
        complete: Complete[Delivery],
        look: LookAtPlan | None = None,
    ) -> Delivered:
        try:
            asked = await ask(self._desk, request, read=build.read, judge=judge, complete=complete, look=look)
        except SchemaValidationError as error:
            return Delivered(delivery=None, accepted=False, findings=error.findings)
        return Delivered(delivery=asked.value, accepted=asked.accepted, findings=asked.findings)


def _sides(brief: MergeBrief, budget: int, *, parts: bool) -> dict[str, str]:
    """Returns the slots that only a merge has, and the files; with `parts` long ones are shown in parts."""
    files = brief.work.modified_files
    return {
        "modified_files": merging.render_tree(files, brief.conflicts, brief.red, budget, parts=parts),
        "merged_stories": merging.render_merged(brief.merged),
        "conflicts": merging.render_conflicts(brief.conflicts, files, budget, parts=parts),
        "red": brief.red and fence(cap_middle(brief.red, MAX_OUTPUT)),
        "result_diff": brief.result_diff and fence(cap_middle(brief.result_diff, budget), "diff"),
        "story_diff": brief.story_diff and fence(cap_middle(brief.story_diff, budget), "diff"),
    }


async def _whole(delivery: Delivery | None, heard: Heard, left: int) -> tuple[Delivery | None, Sequence[Finding], int]:
    """Refuses a cut-off resolution, because its missing end is unknown."""
    if not heard.cut_off and not (heard.stopped_early and heard.is_plan):
        return delivery, [], 0
    return delivery, [major("answer.truncated", "the answer was cut off", fix="answer again, whole and shorter")], 0


class _Build:
    """One task's delivery, from the first request on."""

    def __init__(
        self, desk: Desk, story: StoryBrief, brief: TaskBrief, shown: TaskShown, own: OwnFiles, *, sorts: bool = True
    ) -> None:
        self._sorts = sorts  # a merge is one reply, and is taken or not
        self._desk, self._story, self._brief, self._shown, self._own = desk, story, brief, shown, own
        self._ids = (story.story.id, brief.task.task_id)
        said = (f"{one.issue} {one.fix}" for one in brief.instructions)
        told = (story.story.title, *story.story.acceptance_criteria, brief.task.description, *said)
        self._about = "\n".join((*told, *map(_stem, brief.task.files_to_create)))

    def read(self, value: Any, kept: Delivery | None = None) -> tuple[Delivery | None, Sequence[Finding]]:
        """Returns the delivery in an answer of either form; a plan is held against what is shown."""
        plan = plan_in(value)
        natural, task = self._sorts, self._brief.task.files_to_create
        left_out: Sequence[Finding] = ()
        if plan is None:
            delivery, said = read_delivery(value, *self._ids)
            delivery = with_line_ends(delivery, self._shown.as_they_are(kept))
        else:
            plan, left_out = own_actions(plan, task, self._brief.files) if natural else (plan, ())
            world = self._shown.world(kept)
            delivery, said = read_plan_delivery(plan, world, *self._ids)
        if natural and delivery is not None and plan is None:
            delivery, left_out = own_files(delivery, task, self._brief.files)
            said = [one for one in said if one.code != UNSAFE_PATH or "`<" not in one.message]  # the example's `<path>`
        if is_whole_files(value) and delivery is not None:
            said = [*said, *self._parts(delivery, kept)]
        whole, masked = self._own.delivery(delivery, self._shown.as_they_are(kept))
        return whole, [*said, *left_out, *masked]

    def _parts(self, delivery: Delivery, kept: Delivery | None) -> Sequence[Finding]:
        """Returns findings on files of which a text that promised nothing shows a part, or which nobody was shown."""
        texts = self._shown.as_they_are(kept)
        return check_parts(delivery, texts, {*self._brief.files, *texts}, self._about)

    async def look(self, heard: Heard, asked: Request) -> Looked | None:
        """Puts what a plan asks to be shown into the next request."""
        plan = plan_in(heard.extraction.value)
        if plan is None:
            return None
        only = bool(plan.actions) and all(isinstance(action, Read | Prune) for action in plan.actions)
        if only and not apply_plan(plan, self._shown.world()).valid:
            return None
        shown = await self._shown.follow(plan)
        if not (shown or plan.reads or plan.prunes):
            return None
        await self._desk.emit(
            asked,
            "files_shown",
            f"{NAME} is shown {', '.join(shown) or 'nothing more'}",
            files=list(shown),
            pruned=list(plan.prunes),
            only=only,
            **asked.decided(Verdict.SHOWN),
        )
        return Looked(self._shown.slots, only)

    async def complete(
        self, delivery: Delivery | None, heard: Heard, left: int
    ) -> tuple[Delivery | None, Sequence[Finding], int]:
        """Keeps the whole files of a cut delivery, and asks for the rest once."""
        if not (heard.cut_off or heard.stopped_inside):
            return delivery, [], 0
        missing, unsure = self._missing(delivery, heard)
        if not missing and not unsure:
            return delivery, [], 0
        if delivery is None and heard.endless:
            return None, [], 0
        if left < 1:
            return delivery, [_cut_off([*missing, *unsure])], 0
        if _fits_nowhere(delivery, heard):
            return delivery, [self._too_long(heard, missing)], 0
        request = self._continuation(delivery, heard, [*missing, *unsure], left - 1)
        more = await self._desk.hear(request)
        completed, findings, used = self._merged(delivery, heard, more)
        still = [path for path in missing if completed is None or path not in completed.paths]
        came = [path for path in missing if path not in still]
        await self._desk.emit(
            request,
            "delivery_completed" if came else "delivery_left_short",
            f"{NAME} was asked for what is missing only: {', '.join(came) or 'none'} came",
            **account(more.reply, used),
            **request.decided(Verdict.COMPLETED if came else Verdict.LEFT_SHORT, findings),
        )
        left_out = [*still, *(unsure if completed is delivery else [])]
        if _fits_nowhere(None, more) and still and not came:
            return completed, [*findings, self._too_long(more, still)], 1
        return completed, [*findings, *([_cut_off(left_out)] if left_out else [])], 1

    def _too_long(self, heard: Heard, missing: Sequence[str]) -> Finding:
        """Returns the finding on a file for which a whole answer was not enough."""
        cut = cut_in(heard.extraction.value)
        path = next(filter(None, (cut.path if cut else "", *missing)), "")
        used = heard.reply.usage.output
        spent = f"{used} tokens" if used else f"{len(heard.reply.text)} characters"
        split = (
            f"Change `{path}` by edits of the lines that differ, never whole."
            if path in self._brief.modified_files
            else "Write it shorter, or put a part of it into a module of its own beside it and import that: deliver "
            "both, the architect is asked whether the new one may be."
        )
        return major(
            "delivery.too_long",
            f"{f'`{path}`' if path else 'the file'} fits into no answer: it was not whole after {spent}, all that an "
            "answer may have (provider.max_output_tokens)",
            where=Where(file=path or None),
            fix=split,
        )

    def _missing(self, delivery: Delivery | None, heard: Heard) -> tuple[list[str], list[str]]:
        """Returns the task's files that did not come, and unknown parts after the end of a cut-off plan.

        A plan leaves alone what need not change, so files that are there may have come behind its end; so may the
        rest of the action it ends in.
        """
        there = {*delivery.paths, *delivery.removed} if delivery else set[str]()
        missing = [path for path in self._brief.task.files_to_create if path not in there]
        if not heard.is_plan:
            return missing, []
        cut = cut_in(heard.extraction.value)
        broken = cut.path if cut is not None and cut.verb in {Verb.CREATE, Verb.EDIT} else ""
        unsure = [path for path in missing if path in self._brief.modified_files and path != broken]
        missing = [path for path in missing if path not in unsure]
        if cut is not None and broken not in missing and cut.verb not in {Verb.READ, Verb.PRUNE}:
            unsure.append(_action(cut))
        return missing, unsure

    def _merged(
        self, delivery: Delivery | None, heard: Heard, more: Heard
    ) -> tuple[Delivery | None, list[Finding], Extraction]:
        """Joins a continuation: what was missing, everything again, or the text from where it broke off.

        Returns the extraction that was used too. What is cut again keeps the files that are whole. What a joined text
        seems to repeat may be a coincidence, so it is read with it and without; what is whole goes before what is not.
        """
        texts = dict.fromkeys((join(heard.reply.text, more.reply.text), heard.reply.text + more.reply.text))
        joined = [(extract(text, DeliveryAnswer), None) for text in texts]
        tried = [(more.extraction, delivery), (more.extraction, None), *joined]
        # A text from the middle of a plan may show later files whole.
        for extraction, kept in sorted(tried, key=lambda one: (not one[0].complete, is_whole_files(one[0].value))):
            found, findings = self.read(extraction.value, kept) if extraction.value is not None else (None, [])
            if found is not None and not blocking(findings):
                return _together(delivery, found), list(findings), extraction
        return delivery, [], more.extraction

    def _continuation(self, delivery: Delivery | None, heard: Heard, missing: Sequence[str], left: int) -> Request:
        received: dict[str, str] = {change.path: change.content for change in delivery.files} if delivery else {}
        came_as = heard.form if heard.extraction.value is not None and not heard.is_plan else None
        replies = self._desk.policies.build.max_attempts
        asked = self.request(
            Purpose.CONTINUATION,
            replies,
            came_as,
            whole_files=context.render_files(received, self._desk.policies.context_tokens) or "Nothing came whole.",
            missing_files=context.render_paths(missing),
        )
        return replace(asked, attempt=replies - left)

    def request(self, purpose: Purpose, replies: int, form: WireFormat | None = None, **more: str) -> Request:
        """Returns what is sent, in the form that this persona is asked in unless another is given."""
        # Asked where the usual model does not get it right.
        stronger = bool(self._brief.repeated) and NAME in self._desk.policies.stronger
        asked = self._desk.request(
            NAME,
            purpose,
            DeliveryAnswer,
            {**self._slots(), **more},
            schema_name="delivery",
            replies=replies,
            task=self._brief.task.task_id,
            stronger=stronger,
            keeps_whole=purpose is not Purpose.MERGE,
            shown=self._shown,
        )
        policies, files = self._desk.policies, self._brief.task.files_to_create
        asked = replace(asked, wanted=Wanted(tuple(files), lambda path, text: fits(path, text, self._about)))
        usual = policies.formats.get(NAME, "auto")
        # Unless plans are all that is wanted: JSON holds nothing but whole files.
        whole = "json" if self._wants_whole() and usual == "auto" else usual
        if usual == "whole" and any(tokens(text) > WHOLE_TOKENS for text in self._brief.modified_files.values()):
            whole = "plan"
        return replace(asked, whole_slots=self._shown.whole).in_form(form or whole)

    def _wants_whole(self) -> bool:
        """Returns whether files are to come whole, because edits did not help and an answer has room for each file."""
        texts = self._brief.modified_files.values()
        stuck = self._brief.repeated and not self._has_new_analysis()
        return bool(stuck) and all(tokens(text) <= WHOLE_TOKENS for text in texts)

    def _has_new_analysis(self) -> bool:
        """Returns whether the tester says something of the failure that was not asked for before."""
        before = {(one.file, squeezed(one.fix)) for past in self._brief.history for one in past.instructions}
        new = any((one.file, squeezed(one.fix)) not in before for one in self._brief.instructions)
        return new or bool(self._brief.analysed and not self._brief.instructions)

    def _slots(self) -> dict[str, str]:
        brief, budget = self._brief, self._desk.policies.context_tokens
        return {
            **self._desk.common(self._story, brief.surface),
            "design": context.render_design(brief.breakdown),
            "allowed_dependencies": context.render_names(brief.allowed_dependencies, brief.versions),
            "done_tasks": "\n\n".join(brief.done_tasks),
            "task": context.render_task(brief.task),
            **self._shown.slots,
            "nearby": brief.nearby,
            "instructions": "\n".join(
                filter(None, (context.render_instructions(brief.instructions, brief.failure_output), brief.analysed))
            ),
            "history": context.render_history([(past.report, past.instructions) for past in brief.history], budget),
            "another_way": self._another_way(),
            "comments": render_comments(brief.reviews),
        }

    def _another_way(self) -> str:
        """Returns what is said when a failure came back; "" when none did."""
        if not self._brief.repeated:
            return ""
        # Without instructions the failure stands there in their place.
        told = "" if self._brief.failure_output else as_data(fence(self._brief.repeated, "text"), "output")
        failure = told or "What stands above."
        if self._has_new_analysis():
            return self._desk.library.note("notes/looked_again", failure=failure)
        said = self._desk.library.note("notes/another_way", failure=failure)
        return f"{said}\n\n{self._desk.library.note('notes/whole_files')}" if self._wants_whole() else said


def _stem(path: str) -> str:
    return splitext(basename(path))[0]


# Of the characters, and of the tokens: a model that thinks spends them elsewhere, and code has fewer than four each.
_ALL_OF_IT, _MOST_TOKENS = 0.9, 0.6
"""Share of an answer from which the file that it ends in cannot come whole in another answer either."""


def _fits_nowhere(delivery: Delivery | None, heard: Heard) -> bool:
    """Returns whether the answer was used up by one file that is not whole: a continuation would be cut as well."""
    used_up = heard.reply.stop_reason is StopReason.MAX_TOKENS
    if not used_up or (delivery is not None and (delivery.files or delivery.removed)):
        return False
    text, cut = heard.reply.text, cut_in(heard.extraction.value)
    start = text.find('"content"') if cut is None else sum(len(line) + 1 for line in text.split("\n")[: cut.line - 1])
    part = text[start:] if start >= 0 else ""
    used = max(tokens(text), heard.reply.usage.output)
    return len(part) >= _ALL_OF_IT * len(text) and tokens(part) >= _MOST_TOKENS * used


def _together(first: Delivery | None, rest: Delivery) -> Delivery:
    """Joins complete parts with later ones: the later change of a file counts, and no command runs twice."""
    if first is None:
        return rest
    files = {change.path: change for change in (*first.files, *rest.files) if change.path not in rest.removed}
    removed = dict.fromkeys((*first.removed, *rest.removed))
    again = [_unplaced(command) for command in rest.commands]
    before = (command for command in first.commands if _unplaced(command) not in again)
    whole = {
        "files": tuple(files.values()),
        "removed": tuple(path for path in removed if path not in files),
        "commands": (*before, *rest.commands),
        "title": first.title or rest.title,
        "rationale": first.rationale or rest.rationale,
    }
    return rest.model_copy(update=whole)


def _unplaced(command: Execute) -> Execute:
    """Returns a command, wherever it stood."""
    return command.model_copy(update={"line": 0})


def _action(cut: CutAction) -> str:
    """Returns the action that a plan ends in, for the author."""
    verb = f"`{cut.verb}`" if cut.verb is not None else "action"
    return f"the {verb}{f' of {cut.path}' if cut.path else ''} that the plan ended in"


def _cut_off(missing: Sequence[str]) -> Finding:
    return major(
        "delivery.cut_off",
        f"the delivery was cut off before {', '.join(missing)} was whole",
        fix="deliver every file of the task whole",
    )
