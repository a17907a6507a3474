"""What a suite is held against: the project it is to test, as far as it is known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import basename, splitext

SETTINGS_FILES = ("pyproject.toml", "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
"""Files in a project's root that may configure pytest."""
_AUTO = re.compile(r"^\s*(asyncio_mode|anyio_mode)\s*=\s*[\"']?auto\b", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Project:
    """Each part may be unknown: a rule that needs it is then left out, or only told."""

    files: frozenset[str] | None = None
    """Paths of the project, those of the story included; None when nobody looked."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The files under test, with their texts."""
    packages: frozenset[str] | None = None
    """Normalised names of the packages the project has; None when nobody looked."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Texts of those of SETTINGS_FILES that exist."""

    @property
    def awaits_by_itself(self) -> bool | None:
        """Whether pytest is set to run every async test there is; None when nobody looked at its settings."""
        if any(_AUTO.search(text) for text in self.settings.values()):
            return True
        return None if self.files is None else False

    def modules(self) -> frozenset[str]:
        """Names by which the project's own Python modules and packages are imported first: `shop`, `app`, `src`."""
        found: set[str] = set()
        for path in self.files or ():
            if path.endswith((".py", ".pyi")):
                folders = path.split("/")[:-1]
                found.update((*folders, splitext(basename(path))[0]))
        return frozenset(found - {"__init__"})


UNKNOWN = Project()
"""Nothing is known but the suite."""
