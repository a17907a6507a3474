"""What a project's dependencies came to on this machine, and those that a plan brings."""

from orchestrator.domain.base import Value

NO_SCRIPT = "runs code of its own while it is installed, which environment.install_scripts does not allow"
"""Of a package, in the refusal of those that a plan brings."""


class ProjectEnvironment(Value):
    """Where a project's packages lie, or why they could not be installed."""

    key: str = ""
    """Names the packages: the same ones have the same key. Empty where there are none."""
    seconds: float = 0.0
    """Until they were there; those that are there already take less."""
    megabytes: float = 0.0
    because: tuple[str, ...] = ()
    """Manifests that were read; what was refused; why the project itself could not be built."""
    problem: str = ""
    """Why they could not be installed; "" when they could."""
    output_end: str = ""


class NewPackages(Value):
    """Whether the packages that a plan brings can be had."""

    refusal: str = ""
    """Why not, in the installer's words; "" where they can, or where that could not be found out."""
    base_too: bool = False
    """Whether the project's own packages are refused without them as well."""
