"""What a persona is told about the project as it is: the result of the project scan."""

from orchestrator.domain.base import Value


class FileExports(Value):
    """Names another file may import from this one."""

    path: str
    names: tuple[str, ...]


class Surface(Value):
    """The project at one commit, small enough for a prompt. Paths are relative, sorted."""

    commit: str
    files: tuple[str, ...]
    exports: tuple[FileExports, ...] = ()
    dependencies: tuple[str, ...] = ()
    """Names from every manifest, normalised."""
    runtime: str = ""
    """Facts from manifests that matter to a plan, e.g. `requires-python >=3.11`; empty when unknown."""
