"""What a project's dependencies came to on this machine."""

from orchestrator.domain.base import Value


class ProjectEnvironment(Value):
    """Where a project's packages lie, or why they could not be installed."""

    key: str = ""
    """Names the packages: the same ones have the same key. Empty where there are none."""
    seconds: float = 0.0
    """Until they were there; those that are there already take less."""
    megabytes: float = 0.0
    because: tuple[str, ...] = ()
    """Manifests that were read; why Python is not ours; what was refused; why the project itself could not be built."""
    problem: str = ""
    """Why they could not be installed; "" when they could."""
    output_end: str = ""
