"""Stories, tasks and a breakdown's design as prompt text."""

import json
from collections.abc import Sequence
from typing import Any

from orchestrator.domain.breakdown import AcceptanceTest, Breakdown, Task
from orchestrator.domain.story import Story
from orchestrator.prompts.budget import BUDGET_TOKENS, ContextBlock, cap, fit, tokens

_DONE_LINE = 160
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
    """Ids, titles and acceptance criteria; when short of room every title is told before any criterion."""
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


def render_done_tasks(tasks: Sequence[Task]) -> str:
    """One line per finished task: id, files, the beginning of its description."""
    return "\n".join(
        f"- {task.task_id} ({', '.join(task.files_to_create) or task.command}): "
        f"{cap(_one_line(task.description), _DONE_LINE)}"
        for task in tasks
    )


def render_missing(story_id: str, known: Sequence[Task], announced: int) -> str:
    """What a breakdown lacks: the counts, and the ids the missing tasks get."""
    first, last = len(known) + 1, max(announced, len(known) + 1)
    ids = ", ".join(f"T-{story_id}-{number:02d}" for number in range(first, last + 1))
    if announced > len(known):
        return f"{announced} tasks were announced, {len(known)} are there. Missing: {cap(ids, 2000)}."
    return f"{len(known)} tasks are there, the answer was cut off behind them. The next one is {ids}."


def render_acceptance_tests(tests: Sequence[AcceptanceTest]) -> str:
    """One numbered entry per acceptance test: the criterion, and below it what the test is to show."""
    return "\n".join(
        f"{number}. {_one_line(test.criterion)}" + (f"\n   Test: {_one_line(test.test)}" if test.test.strip() else "")
        for number, test in enumerate(tests, start=1)
    )


def _free(value: Any) -> str:
    """A free-form field of an answer: text as it is, anything else as JSON; empty containers are nothing."""
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
