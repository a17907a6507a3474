"""A person's plan on its way to become an answer: in a file that is there until it is one, so that nothing is lost."""

from pathlib import Path

from orchestrator.adapters import editor
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.settings import Environment


class Draft:
    """A plan that a person writes. Raises ConfigError where its file cannot be written or read."""

    def __init__(
        self, environment: Environment, sprint: str, stem: str, text: str, *, path: Path | None = None
    ) -> None:
        """`stem` names a new file; `path` is a file of the person's own, which is never changed or removed."""
        self.text = text
        self._environment = environment
        self._folder = StateFolder(environment.home).edits(sprint)
        self._stem = stem
        self._path, self._ours = path, path is None

    def edit(self, *, terminal: bool) -> int:
        """Have the text edited, to the editor's end; the editor's exit code."""
        words = editor.editor_command(self._environment.variables, terminal=terminal)
        path = self.keep()
        editor.rewrite(path, self.text)
        code = editor.run_editor(words, path)
        self.text = editor.saved_text(path)
        return code

    def keep(self) -> Path:
        """The file that holds the text."""
        if self._path is None:
            self._path = editor.new_file(self._folder, self._stem, self.text)
        return self._path

    def drop(self) -> None:
        """The text is an answer now, or nothing that anybody wrote."""
        if self._path is not None and self._ours:
            self._path.unlink(missing_ok=True)
            self._path = None
