"""Which version of a language a project promises to run on."""

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from orchestrator.domain.base import Value

_NEWEST = 40
"""Minor versions of Python 3 that are looked at."""
_STATED = re.compile(r"requires-python\s+([^;]+)")


class Target(Value):
    """What the code must parse for."""

    python: tuple[int, int] | None = None
    """The oldest Python the project promises; None when it says nothing: then the running one decides."""


ANY = Target()
"""The project says nothing."""


def target_of(runtime: str) -> Target:
    """The target in the facts that a project scan gives on the runtime, such as `requires-python >=3.11; node >=20`."""
    stated = _STATED.search(runtime)
    return Target(python=oldest_python(stated[1])) if stated else ANY


def oldest_python(specifier: str) -> tuple[int, int] | None:
    """The oldest Python 3 that a `requires-python` allows; None when it names no lower bound or cannot be read."""
    try:
        allowed = SpecifierSet(specifier.strip())
    except InvalidSpecifier:
        return None
    patches = sorted({0, 99, *(int(patch) for patch in re.findall(r"3\.\d+\.(\d+)", specifier)[:8])})
    oldest = next(
        (minor for minor in range(_NEWEST) if any(allowed.contains(f"3.{minor}.{patch}") for patch in patches)), None
    )
    return None if oldest in {None, 0} else (3, oldest or 0)
