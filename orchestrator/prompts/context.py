"""Stories, tasks, designs, the project, suites, test reports and merges as prompt text."""

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.core.breakdown import AcceptanceTest, Breakdown, Task
from orchestrator.core.contract import Surface
from orchestrator.core.paths import is_test_file
from orchestrator.core.story import Story
from orchestrator.core.suite import PROBLEMS, CaseResult, FailureInstruction, ReportedCase, TestReport, TestSuite
from orchestrator.core.value import listed
from orchestrator.prompts.budget import (
    BUDGET_TOKENS,
    CHARS_PER_TOKEN,
    ContextBlock,
    as_data,
    cap,
    cap_middle,
    fence,
    fit,
    language_of,
    tokens,
)


def show_path(path: str) -> str:
    """Returns a path on one line, whatever is in it."""
    return path if path.isprintable() else repr(path)


SURFACE_TOKENS = 2_000
"""What every prompt shows of a project, however large it is."""
RECORD_TOKENS = 1_000
"""What every prompt shows of the architecture record: locked conventions stand first in it."""
PACKAGES_CHARS = 1_200
"""Of the list of packages."""


def render_surface(surface: Surface, budget_tokens: int = SURFACE_TOKENS) -> str:
    """What the scan found: packages with versions, and the map that was made for the story; without one the list of
    files."""
    if not surface.files:
        return "The repository is empty."
    facts = [f"Runtime: {surface.runtime}"] if surface.runtime else []
    packages = cap(render_names(surface.dependencies, surface.versions), PACKAGES_CHARS)
    facts.append(f"Packages in the manifests: {packages}")
    files = "\n".join(show_path(path) for path in surface.files)
    parts = (
        ("packages", "\n".join(facts), 3),
        ("files", f"Files ({len(surface.files)}), those nearest to the story first:\n\n{surface.map or files}", 1),
    )
    return fit([ContextBlock(name=name, text=text, weight=weight) for name, text, weight in parts], budget_tokens)


def render_files(
    texts: Mapping[str, str], budget_tokens: int = BUDGET_TOKENS, parts: Mapping[str, str] | None = None
) -> str:
    """Every file's path and full text in a fence that holds, or what `parts` shows of it; what does not fit is cut or
    named as left out."""
    shown = parts or {}
    blocks = [
        ContextBlock(
            name=show_path(path), text=f"### {show_path(path)}\n\n{shown.get(path) or fence(text, language_of(path))}"
        )
        for path, text in texts.items()
    ]
    return fit(blocks, budget_tokens)


def render_paths(paths: Iterable[str]) -> str:
    """One path per line."""
    return "\n".join(f"- {show_path(path)}" for path in paths)


def render_names(names: Iterable[str], versions: Mapping[str, str] | None = None) -> str:
    """Package names in one line, sorted, with their versions where these are known; says so when there are none."""
    known = versions or {}
    told = (f"{name} {known[name]}" if known.get(name) else name for name in sorted(names))
    return ", ".join(told) or "none beyond the standard library"


_DESIGN = (
    ("Database design", "database_design", 3),
    ("API design", "api_design", 3),
    ("Code patterns", "code_patterns", 2),
    ("Conventions", "conventions", 2),
)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _labelled(pairs: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{label}: {text.strip()}" for label, text in pairs if text.strip())


def _numbered(criteria: Sequence[str], indent: str = "") -> str:
    return "\n".join(f"{indent}{number}. {_one_line(text)}" for number, text in enumerate(criteria, start=1))


def render_common(surface: Surface, record: str, story: Story, budget_tokens: int = BUDGET_TOKENS) -> dict[str, str]:
    """Returns the slots that every persona of the story is shown first, the same for each."""
    shown = render_surface(surface, min(budget_tokens, SURFACE_TOKENS))
    settled = fit([ContextBlock(name="the rest of the record", text=record)], RECORD_TOKENS)
    return {"surface": shown, "record": settled, "story": render_story(story)}


def render_story(story: Story) -> str:
    """Everything a persona may use of the row; empty cells are left out, criteria are numbered."""
    facts = _labelled(
        [
            ("Id", story.id),
            ("Title", story.title),
            ("User story", story.user_story),
            ("Functional requirements", story.functional_requirements),
            ("Non-functional requirements", story.non_functional_requirements),
            ("Integrations", story.integrations),
            ("Depends on", ", ".join(story.dependencies)),
            ("Constraints", story.constraints),
            ("Notes", story.notes),
        ]
    )
    if not story.acceptance_criteria:
        return facts
    return f"{facts}\n\nAcceptance criteria:\n{_numbered(story.acceptance_criteria)}"


def render_sprint_stories(stories: Sequence[Story], budget_tokens: int = BUDGET_TOKENS) -> str:
    """Ids, titles and acceptance criteria; when short of room every title comes before any criterion."""
    heads = [f"- {story.id}: {_one_line(story.title)}" for story in stories]
    criteria = [_numbered(story.acceptance_criteria, "  ") for story in stories]
    whole = "\n".join(part for pair in zip(heads, criteria, strict=True) for part in pair if part)
    if tokens(whole) <= budget_tokens:
        return whole
    blocks = [ContextBlock(name="the list of stories", text="\n".join(heads), weight=2)]
    for story, text in zip(stories, criteria, strict=True):
        name = f"criteria of {story.id}"
        blocks.append(ContextBlock(name=name, text=f"{name}:\n{text}" if text else ""))
    return fit(blocks, budget_tokens)


def render_task(task: Task) -> str:
    """One task in full: id, description, files, command and what it builds on."""
    lines = [
        ("Task", task.task_id),
        ("Description", task.description),
        ("Files to create or modify", ", ".join(task.files_to_create)),
        ("Command run afterwards", task.command or ""),
        ("Builds on tasks", ", ".join(task.dependencies)),
        ("Because", task.dependency_reason),
    ]
    return _labelled(lines)


def render_tasks(tasks: Sequence[Task]) -> str:
    """Several tasks in full, in order."""
    return "\n\n".join(render_task(task) for task in tasks)


DONE_CHARS = 300
"""Length of a finished task's description in prompts: behind it stands what the task made."""
MADE_CHARS = 4_000
"""Length of that."""


def render_done_task(task: Task, status: str, made: str) -> str:
    """A finished task: id, status, what it was to do in short, and what its commit defines."""
    told = textwrap.shorten(task.description, DONE_CHARS, placeholder=" …")
    head = f"### {task.task_id} ({status})\n\n{told}"
    return f"{head}\n\n{as_data(cap(made, MADE_CHARS), 'made')}" if made else head


def render_missing(story_id: str, known: Sequence[Task], announced: int) -> str:
    """What a breakdown lacks: the counts, and the ids the missing tasks get."""
    first, last = len(known) + 1, max(announced, len(known) + 1)
    ids = ", ".join(f"T-{story_id}-{number:02d}" for number in range(first, last + 1))
    if announced > len(known):
        return f"{announced} tasks were announced, {len(known)} are there. Missing: {cap(ids, 2000)}."
    return f"{len(known)} tasks are there, the answer was cut off behind them. The next one is {ids}."


def render_acceptance_tests(tests: Sequence[AcceptanceTest]) -> str:
    """One numbered entry per acceptance test: the criterion, and below it what the test is to show, code as it is."""
    told = (test.test.strip() for test in tests)
    shown = (textwrap.indent(text, "   ").lstrip() if "```" in text else _one_line(text) for text in told)
    return "\n".join(
        f"{number}. {_one_line(test.criterion)}" + (f"\n   Test: {text}" if text else "")
        for number, (test, text) in enumerate(zip(tests, shown, strict=True), start=1)
    )


def _free(value: Any) -> str:
    """Returns a free-form field of an answer: text as it is, anything else as JSON; empty containers are nothing."""
    if value is None or value == {} or value == []:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)


def render_design(breakdown: Breakdown, budget_tokens: int = BUDGET_TOKENS) -> str:
    """Database and API design, code patterns and conventions, under headings; "" when the breakdown has none."""
    blocks = []
    for heading, field, weight in _DESIGN:
        text = _free(getattr(breakdown, field))
        blocks.append(ContextBlock(name=heading, text=f"### {heading}\n\n{text}" if text else "", weight=weight))
    return fit(blocks, budget_tokens)


_MESSAGE_CHARS = 4000  # of one failure
_NAMED = 40


def render_suite(suite: TestSuite, budget_tokens: int = BUDGET_TOKENS) -> str:
    """Returns the test file's path and text."""
    return render_files({suite.test_file: suite.test_content}, budget_tokens)


def _summary(report: TestReport) -> str:
    skipped = report.count(CaseResult.SKIPPED)
    lines = [f"{report.passed} passed, {report.failed} failed, {skipped} skipped."]
    if report.problem is not None:
        lines.insert(0, f"Problem ({report.problem}): {PROBLEMS[report.problem]}.")
    if report.missing_names:
        lines.append(f"Missing from the report: {listed(report.missing_names, _NAMED)}.")
    return "\n".join(lines)


def _failing(cases: Sequence[ReportedCase]) -> ContextBlock:
    """Tests that say the same, which is told once."""
    head = f"### {listed([case.id for case in cases], _NAMED)} ({cases[0].result})"
    message = cap_middle(cases[0].message.strip(), _MESSAGE_CHARS)
    text = f"{head}\n\n{fence(message, 'text')}" if message else head
    return ContextBlock(name=cases[0].id, text=text, weight=3)


# A file and a line in a stack; paths of libraries are absolute, or lead there.
_PLACE = re.compile(
    r"(?<![\w./@+-])(?!node_modules/)((?:[\w@+-][\w.@+-]*/)*[\w@+-][\w.@+-]*\.(?:py|[cm]?[jt]sx?))(?::|\", line )\d"
)
_PASSED_LINE = re.compile(r"^\S+ PASSED +\[ *\d+%\]\n", re.MULTILINE)
"""What pytest prints of a test that is among the report's cases."""
_STACKS, _STACK_LINES = 3, 30
"""Printed stacks that are shown, and lines of each."""


def _printed_causes(report: TestReport) -> str:
    """Returns paragraphs of the output that name places in the project's code; "" where failing tests name some."""
    if any(_names_code(cases[0].message) for cases in report.failures):
        return ""
    paragraphs = [one for one in re.split(r"\n[ \t]*\n", report.output) if _names_code(one)]
    shown = ["\n".join(one.split("\n")[:_STACK_LINES]) for one in dict.fromkeys(paragraphs)]
    return "\n\n".join(shown[:_STACKS])


def _names_code(text: str) -> bool:
    return any(not is_test_file(path) for path in _PLACE.findall(text))


def render_report(report: TestReport, budget_tokens: int = BUDGET_TOKENS) -> str:
    """Summary, failing tests with their messages, then passed names and printed text as far as they fit.

    The printed text is given when the run had a problem or no failing test says why it failed. Where no failing test
    names code of the project, as behind a server's answer 500, the stacks that were printed are.
    """
    failing = report.failures
    # The rows of a table have one name.
    counts = Counter(case.name for case in report.cases if case.result is CaseResult.PASSED)
    passed = [f"{name} ({count} times)" if count > 1 else name for name, count in counts.items()]
    blocks = [ContextBlock(name="summary", text=_summary(report), weight=4), *map(_failing, failing)]
    if passed:
        blocks.append(ContextBlock(name="passed tests", text=f"Passed: {listed(passed, _NAMED)}", weight=1))
    printed = report.output if report.problem is not None or not failing else _printed_causes(report)
    if printed := (_PASSED_LINE.sub("", printed) if report.cases else printed).strip():
        output = cap_middle(printed, max(budget_tokens, 0) * CHARS_PER_TOKEN // 2)
        text = f"### Printed text\n\n{fence(output, 'text')}"
        blocks.append(ContextBlock(name="printed text", text=text, weight=2))
    return fit(blocks, budget_tokens)


def render_instructions(instructions: Sequence[FailureInstruction], output: str = "") -> str:
    """Renders a bullet per instruction (place, issue, fix); without any, the unexplained `output`."""
    return "\n".join(_instruction(entry) for entry in instructions) or as_data(output, "output")


def _instruction(entry: FailureInstruction) -> str:
    place = f"{entry.file}, {entry.function}" if entry.function.strip() else entry.file
    return f"- {place}\n  Issue: {_indented(entry.issue)}\n  Fix: {_indented(entry.fix)}"


def _indented(text: str) -> str:
    return "\n  ".join(text.strip().split("\n"))


def render_history(
    attempts: Sequence[tuple[TestReport, Sequence[FailureInstruction]]], budget_tokens: int = BUDGET_TOKENS
) -> str:
    """Earlier runs with what was asked for after each; later attempts are served first when the room is short."""
    blocks = []
    for number, (report, instructions) in enumerate(attempts, start=1):
        lines = [f"### Attempt {number}", "", _summary(report)]
        if report.failing_ids:
            lines.append(f"Failing: {listed(sorted(report.failing_ids), _NAMED)}")
        if instructions:
            lines += ["Asked for:", render_instructions(instructions)]
        blocks.append(ContextBlock(name=f"attempt {number}", text="\n".join(lines), weight=number))
    return fit(blocks, budget_tokens)
