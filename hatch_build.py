"""Records the commit in what is built, because neither a wheel nor a source archive has the history."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Adds one file. An editable installation has none: it is the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Part of hatchling."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from orchestrator.files.source_commit import RECORD, read_commit
        finally:
            sys.path.remove(self.root)
        self._folder = tempfile.TemporaryDirectory()
        record = Path(self._folder.name, RECORD)
        record.write_text(f"{read_commit(Path(self.root))}\n", encoding="utf-8")
        build_data["force_include"][str(record)] = (
            RECORD if self.target_name == "sdist" else f"orchestrator/_packaged/{RECORD}"
        )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Part of hatchling."""
        if version != "editable":
            self._folder.cleanup()
