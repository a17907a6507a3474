"""What `analyse` may be told."""

from typing import Literal

from pydantic import Field

from orchestrator.domain.analysis import TaskPriority
from orchestrator.settings.section import Section

PROFILES: dict[str, tuple[str, ...]] = {
    "quick_review": ("code_quality", "security", "testing", "plan_summary"),
    "full_review": (
        *("architecture", "module_boundaries", "product_gaps", "code_quality", "error_handling", "security", "secrets"),
        *("data_integrity", "performance", "testing", "test_reliability", "documentation", "dependencies"),
        *("operations", "plan_summary"),
    ),
    "security": ("security", "secrets", "dependencies", "error_handling", "operations"),
    "tests": ("testing", "test_reliability", "error_handling"),
    "architecture": ("architecture", "module_boundaries", "data_integrity", "performance", "dependencies"),
}


class AnalysisSettings(Section):
    """The analysis of a repository that ends in an improvement plan."""

    profile: str = "full_review"
    """The profile when none is named."""
    profiles: dict[str, tuple[str, ...]] = PROFILES
    """Name → ids of prompts, in the order of the stages."""
    prompts: str | None = None
    """Folder with prompts of one's own, beside the packaged ones; the same id replaces one."""
    triage: bool = False
    """Whether a model picks the prompts, in place of the profile."""
    context_tokens: int = Field(default=60000, ge=1000)
    """Budget of PRD and repository in each prompt, in tokens of about four characters."""
    ignore: tuple[str, ...] = ()
    """What is left out of the prompts beside what .gitignore says, in its syntax."""
    history: Literal["auto", "always", "never"] = "auto"
    """Which stages are told what earlier ones found: those whose prompt asks for it, all, none."""
    response_contract: bool = True
    """Whether each prompt ends with the JSON shape of the answer."""
    stop_after_failures: int = Field(default=3, ge=0)
    """Stages that fail in a row until no further one is begun; 0 never."""
    priority_synonyms: dict[str, TaskPriority] = Field(default_factory=dict)
    """Word, in any case → the priority it stands for."""
    agent_name: str = "Claude Code"
    """Whom the plan's instructions are for."""
