"""Everything that turns values into prompt text, under one name for the personas."""

from orchestrator.prompts.budget import (
    BUDGET_TOKENS,
    CHARS_PER_TOKEN,
    ContextBlock,
    cap,
    cap_middle,
    fence,
    fit,
    tokens,
)
from orchestrator.prompts.excerpt import render_excerpt
from orchestrator.prompts.merging import render_conflicts, render_merged
from orchestrator.prompts.project import render_files, render_names, render_paths, render_summaries, render_surface
from orchestrator.prompts.stories import (
    render_acceptance_tests,
    render_design,
    render_done_tasks,
    render_missing,
    render_sprint_stories,
    render_story,
    render_task,
    render_tasks,
)
from orchestrator.prompts.testing import render_history, render_instructions, render_report, render_suite

__all__ = [
    "BUDGET_TOKENS",
    "CHARS_PER_TOKEN",
    "ContextBlock",
    "cap",
    "cap_middle",
    "fence",
    "fit",
    "render_acceptance_tests",
    "render_conflicts",
    "render_design",
    "render_done_tasks",
    "render_excerpt",
    "render_files",
    "render_history",
    "render_instructions",
    "render_merged",
    "render_missing",
    "render_names",
    "render_paths",
    "render_report",
    "render_sprint_stories",
    "render_story",
    "render_suite",
    "render_summaries",
    "render_surface",
    "render_task",
    "render_tasks",
    "tokens",
]
