"""What a project's dependencies came to on this machine, and those that a plan brings."""

from orchestrator.domain.base import Value

LEFT_OUT = "was left out"
"""Of a package that manifests ask for, in what is told of an environment."""


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
    failed: str = ""
    """Packages that could not be built on this machine, and why."""
    output_end: str = ""


class NewPackages(Value):
    """Whether the packages that a plan brings can be had."""

    refusal: str = ""
    """Why not, in the installer's words; "" where they can, or where that could not be found out."""
    base_too: bool = False
    """Whether the project's own packages are refused without them as well."""
    closed: tuple[str, ...] = ()
    """Packages that need to run code while they are installed, and may not."""
    listed: tuple[str, ...] = ()
    """What `environment.install_scripts` lists so far, `auto` included."""
    failed: str = ""
    """How the code of allowed ones ended that could not build them, in the installer's words."""

    @property
    def setting(self) -> str:
        """What would allow the closed ones to, as it is written in config.yaml."""
        names = dict.fromkeys((*self.listed, *self.closed))
        quoted = (f'"{name}"' if name[:1] == "@" else name for name in names)
        return f"environment.install_scripts: [{', '.join(quoted)}]"

    @property
    def had(self) -> bool:
        """Whether nothing is said against them."""
        return not (self.refusal or self.closed or self.failed)
