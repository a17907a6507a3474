"""What the stages of an analysis are shown beside PRD and repository."""

from collections.abc import Sequence

from orchestrator.domain.analysis import StagePrompt, StageResult, StageStatus
from orchestrator.prompts.budget import CHARS_PER_TOKEN, cap, fence

HISTORY_TOKENS = 8000
"""Room for what earlier stages found."""
_LONGEST_SUMMARY = 2000


def render_prd(prd: str, budget_tokens: int) -> str:
    """The PRD in a fence that holds, its end left out and told where it is too long."""
    if not prd.strip():
        return "There is no document with requirements: judge by what the project itself says that it is for."
    return fence(cap(prd.strip(), budget_tokens * CHARS_PER_TOKEN), "markdown")


def render_history(results: Sequence[StageResult]) -> str:
    """What earlier stages found, in their order; "" when none answered."""
    told = [_result(result) for result in results if result.status in {StageStatus.ANSWERED, StageStatus.PROSE}]
    return cap("\n\n".join(told), HISTORY_TOKENS * CHARS_PER_TOKEN)


def _result(result: StageResult) -> str:
    lines = [f"### {result.name}", "", fence(cap(result.summary or "(no summary)", _LONGEST_SUMMARY), "text"), ""]
    lines += [f"- {' '.join(text.split())}" for text in result.recommendations]
    for task in result.tasks:
        place = f" (`{task.file}`)" if task.file else ""
        lines.append(f"- Task, {task.priority}: {task.title}{place}")
    return "\n".join(lines).rstrip()


def render_offered(prompts: Sequence[StagePrompt]) -> str:
    """One line per prompt: its id and what it is about."""
    return "\n".join(_offered(prompt) for prompt in prompts)


def _offered(prompt: StagePrompt) -> str:
    first = next((line for line in prompt.text.splitlines() if line.strip(" #")), "")
    about = " ".join((prompt.goal or first.strip(" #")).split())
    return f"- `{prompt.id}`: {cap(about, 200)}" + (f" ({prompt.category})" if prompt.category else "")
