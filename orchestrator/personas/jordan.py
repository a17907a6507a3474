"""Jordan, QA: the suite of a story, and what its failures mean."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from orchestrator.answers.action_plan import plan_in
from orchestrator.answers.whole_files import Wanted, is_whole_files
from orchestrator.checks.action_plan import suite_value
from orchestrator.checks.action_plan_files import like
from orchestrator.checks.suite import (
    check_changed,
    check_suite,
    read_analysis,
    read_suite,
    read_tests_to_change,
    reason_of,
)
from orchestrator.checks.suite_place import test_file_of
from orchestrator.checks.whole_files import holds_tests, suite_of_files, with_file_name
from orchestrator.core.breakdown import Breakdown, TestToChange
from orchestrator.core.calls.exchange import Analysed, FailureBrief, Purpose, StoryBrief, SuiteBrief, Written
from orchestrator.core.calls.wire import AnalysisAnswer, SuiteAnswer
from orchestrator.core.errors import SchemaValidationError
from orchestrator.core.finding import Finding
from orchestrator.core.suite import FailureInstruction, TestCase, TestSuite
from orchestrator.personas.ask import ask
from orchestrator.personas.secrecy import OwnFiles
from orchestrator.personas.session import Desk
from orchestrator.prompts import context
from orchestrator.prompts.budget import CHARS_PER_TOKEN, as_data, cap_middle

NAME = "jordan"
# `2`, `#2`, `AC 2`, `criteria 1, 3 and 4`: numbers without words of a criterion.
_NUMBERS = re.compile(
    r"^\s*(?:acceptance\s+)?(?:criterion|criteria|acs?)?[\s#:]*\d{1,3}(?:(?:[\s,;/&#]|and)+\d{1,3})*[.)\s]*$", re.I
)


class _Analysis(NamedTuple):
    instructions: tuple[FailureInstruction, ...]
    suite_fault: str = ""
    environment: str = ""
    tests_to_change: tuple[TestToChange, ...] = ()


class Jordan:
    """`ports.Tester` of one running story."""

    def __init__(self, desk: Desk, brief: StoryBrief) -> None:
        self._desk = desk
        self._brief = brief

    async def suite(self, brief: SuiteBrief, judge: Callable[[TestSuite], Awaitable[Sequence[Finding]]]) -> Written:
        """See ports.Tester: a suite within the answer budget that satisfies every check."""
        wanted = self._required_tests(brief.breakdown)
        older = {one.path: one.text for one in brief.older}
        faulty = brief.faulty.suite if brief.faulty is not None else None
        test_file = faulty.test_file if faulty is not None else test_file_of(self._brief.story.id, brief.files)
        test_file = brief.place if brief.place and faulty is None else test_file
        covered: dict[str, str] = {brief.place: brief.covered} if brief.covered is not None else {}
        # What it may EDIT, as it is shown: its own suite so far, or the file that it adds to.
        shown_as = dict(covered)
        if faulty is not None:
            shown_as[faulty.test_file] = faulty.test_content
        edited = {path: self._desk.secrecy.masks.masked(text) for path, text in shown_as.items()}
        so_far: dict[str, str] = {}
        if faulty is not None and older:
            so_far[faulty.test_file] = edited[faulty.test_file]
        own = OwnFiles(self._desk.secrecy, {faulty.test_file: [faulty.test_content]} if faulty is not None else None)

        def read(value: Any) -> tuple[TestSuite | None, Sequence[Finding]]:
            suite, said = self._read_suite(value, older, test_file, edited, covered, so_far)
            suite = suite and _with_line_ends(suite, {**older, **shown_as})
            if suite is not None and faulty is not None and suite.test_content == faulty.test_content:
                named = any(case.criterion for case in suite.test_cases)
                suite = suite if named else suite.model_copy(update={"test_cases": faulty.test_cases})
            whole, masked = own.suite(suite and self._with_own_criteria(suite, brief.breakdown), {**older, **shown_as})
            return whole, [*said, *masked]

        async def judged(suite: TestSuite) -> Sequence[Finding]:
            return [*_checked(suite, brief, wanted), *await judge(suite)]

        slots = {
            **self._desk.common(self._brief, brief.surface),
            "acceptance_tests": context.render_acceptance_tests(brief.breakdown.acceptance_tests),
            "suite_rule": self._rule(wanted),
            "files": context.render_files(brief.files, parts=brief.parts),
            "place": self._place(brief),
            "near_tests": context.render_files(_shortened(brief.near, self._room), self._room),
            "older_tests": _older(brief),
            "faulty": self._faulty(brief),
        }
        # A file that is shown in part can be READ.
        whole = {path: text for path, text in brief.files.items() if path not in brief.parts}
        shown = self._desk.shown(whole, older, brief.near, covered)
        request = self._desk.request(NAME, Purpose.SUITE, SuiteAnswer, slots, shown=shown)
        policies = self._desk.policies
        request = replace(request, wanted=Wanted((test_file,), holds_tests))
        asked_in = request.in_form(policies.formats.get(NAME, "auto"))
        try:
            asked = await ask(self._desk, asked_in, read=read, judge=judged)
        except SchemaValidationError as error:
            return Written(suite=None, findings=error.findings)
        return Written(suite=asked.value if asked.accepted else None, findings=asked.findings)

    @property
    def _room(self) -> int:
        """Tokens for existing tests in a prompt."""
        return self._desk.policies.context_tokens // 4

    def _place(self, brief: SuiteBrief) -> str:
        """Returns where the tests go, with the file that they are added to."""
        if not brief.place or brief.faulty is not None:
            return ""
        if brief.covered is None:
            return self._desk.library.note("notes/new_test_file", file=brief.place)
        text = self._desk.secrecy.masks.masked(brief.covered)
        shown = context.render_files(_shortened({brief.place: text}, self._room), self._room)
        said = self._desk.library.note("notes/more_tests", file=brief.place)
        return f"{said}\n\n{as_data(shown, 'tests')}"

    def _faulty(self, brief: SuiteBrief) -> str:
        """Returns the suite that is written again, and why; beside older tests it may be right and stay."""
        if brief.faulty is None:
            return ""
        stays = self._desk.library.note("notes/suite_stays").rstrip() if brief.older else ""
        return "\n\n".join(filter(None, (brief.faulty.reason, stays, context.render_suite(brief.faulty.suite))))

    def _read_suite(
        self,
        value: Any,
        older: Mapping[str, str],
        test_file: str,
        edited: Mapping[str, str],
        covered: Mapping[str, str],
        so_far: Mapping[str, str],
    ) -> tuple[TestSuite | None, Sequence[Finding]]:
        """Returns the suite in an answer of any form."""
        plan = plan_in(value)
        said: Sequence[Finding] = ()
        if is_whole_files(value):
            as_json, said = suite_of_files(value, older, self._brief.story.acceptance_criteria, so_far)
        else:
            as_json, said = (value, ()) if plan is None else suite_value(plan, older, edited, so_far)
        if as_json is None:
            return None, said
        own = self._desk.policies.test.custom is not None
        named: Sequence[Finding] = ()
        if not own:
            as_json, named = with_file_name(as_json, test_file)
        suite, findings = read_suite(as_json, self._brief.story.id, older, covered, any_language=own)
        return suite, [*said, *named, *findings]

    def _with_own_criteria(self, suite: TestSuite, breakdown: Breakdown) -> TestSuite:
        """Returns the suite with the story's criteria where its cases give their numbers, or repeat the plan's words.

        The architect's plan has one entry per criterion, in order, often in other words, and the prompt shows both. A
        person's has one per task.
        """
        planned = [test.criterion for test in breakdown.acceptance_tests]
        criteria = self._brief.story.acceptance_criteria or planned
        by_place = len(planned) == len(criteria) and self._brief.plan is None
        meant = {words.strip(): own for words, own in zip(planned, criteria, strict=False) if by_place}
        meant |= {own.strip(): own for own in criteria}

        cases: list[TestCase] = []
        for case in suite.test_cases:
            numbers = [int(one) for one in re.findall(r"\d+", case.criterion)] if _NUMBERS.match(case.criterion) else []
            found = [criteria[number - 1] for number in numbers if 1 <= number <= len(criteria)]
            told = found or [meant.get(case.criterion.strip(), case.criterion)]
            cases += (case.model_copy(update={"criterion": one}) for one in told)
        return suite.model_copy(update={"test_cases": tuple(cases)})

    async def analyse(self, brief: FailureBrief) -> Analysed:
        """See ports.Tester."""
        slots = {
            **self._desk.common(self._brief, brief.surface),
            "suite": context.render_suite(brief.suite),
            "files": context.render_files(brief.files, parts=brief.parts),
            "report": context.render_report(brief.report),
            "environment": brief.environment,
            "older_tests": context.render_files(brief.older),
            "planned_tests": "\n".join(f"- {one.file}: {one.reason}" for one in brief.tests_to_change),
            "history": context.render_history([(past.report, past.instructions) for past in brief.history]),
        }
        suite: dict[str, str] = {change.path: change.content for change in brief.suite.changes}
        shown = self._desk.shown(brief.files, brief.older, suite)
        request = self._desk.request(NAME, Purpose.ANALYSIS, AnalysisAnswer, slots, shown=shown)
        try:
            asked = await ask(self._desk, request, read=self._read_analysis)
        except SchemaValidationError as error:
            return Analysed(findings=error.findings)
        found = asked.value if asked.accepted else _Analysis(())
        return Analysed(**found._asdict(), findings=asked.findings)

    def _required_tests(self, breakdown: Breakdown) -> int | None:
        """Number of criteria that need a test of their own; None asks for a smoke test."""
        mode = self._desk.policies.test.mode
        if mode == "smoke" or (mode == "auto" and not breakdown.acceptance_tests):
            return None
        return len(breakdown.acceptance_tests) or len(self._brief.story.acceptance_criteria) or None

    def _read_analysis(self, value: object) -> tuple[_Analysis | None, Sequence[Finding]]:
        instructions, findings = read_analysis(value)
        suite_fault, environment = reason_of(value, "suite_fault"), reason_of(value, "environment")
        found = _Analysis(instructions, suite_fault, environment, read_tests_to_change(value))
        return (found if any(found) else None), findings

    def _rule(self, wanted: int | None) -> str:
        rule = "Write one or two smoke tests that show the story's main behaviour."
        if wanted is not None:
            rule = f"Write at least one test for each of the {wanted} acceptance criteria."
        if (own := self._desk.policies.test.custom) is not None:
            rule += (
                f" All tests are run by the project's own command `{own.command}`. Whatever is said above about Python "
                "and Node, write the file in the language of the code under test, named, placed and written as the "
                "project's own tests are, so that this command runs it. In test_cases, name each as its report does."
            )
        return rule


def _with_line_ends(suite: TestSuite, before: Mapping[str, str]) -> TestSuite:
    """Returns the suite with each whole text in the form of the file that it replaces."""
    changed = tuple(
        one.model_copy(update={"content": like(before.get(one.path, ""), one.content)}) for one in suite.changed
    )
    content = like(before.get(suite.test_file, ""), suite.test_content)
    return suite.model_copy(update={"test_content": content, "changed": changed})


def _checked(suite: TestSuite, brief: SuiteBrief, wanted: int | None) -> list[Finding]:
    """Returns what is wrong with the suite, and what its older tests have lost."""
    older = {one.path: one.text for one in brief.older}
    alone = partial(check_suite, required_criteria=None)
    return [*check_suite(suite, required_criteria=wanted), *check_changed(suite, older, alone)]


def _shortened(texts: Mapping[str, str], room: int) -> dict[str, str]:
    """Returns the texts, of long ones head and tail: where imports and fixtures stand, and where is added."""
    each = room * CHARS_PER_TOKEN * 9 // 10 // max(1, len(texts))
    return {path: cap_middle(text, each) for path, text in texts.items()}


def _older(brief: SuiteBrief) -> str:
    return "\n\n".join(
        f"{one.path}: {one.reason or 'no reason given'}\n\n{context.render_files({one.path: one.text})}"
        for one in brief.older
    )
