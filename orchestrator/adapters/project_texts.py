"""The product's texts that personas are given: vision and wireframes; what is missing is a finding."""

from pathlib import Path

from orchestrator.domain.findings import Finding, Where, minor

WIREFRAME_SUFFIXES = (".md", ".html", ".txt", ".svg")
MAX_BYTES = 60_000


class ProjectTexts:
    """Reads below `base` what the configuration names."""

    def __init__(self, base: Path, vision: str | None, wireframes: str | None) -> None:
        self._vision = base / vision if vision else None
        self._wireframes = base / wireframes if wireframes else None

    def vision(self) -> tuple[str, list[Finding]]:
        """The vision's text, and a finding when the configured file cannot be read."""
        if self._vision is None:
            return "", []
        text = _read(self._vision)
        if text is None:
            return "", [
                _missing("vision.missing", f"the vision file {self._vision.name} cannot be read", "project.vision")
            ]
        return text, []

    def wireframe(self, reference: str) -> tuple[str, list[Finding]]:
        """The wireframe a story refers to by its stem, and a finding when there is none."""
        stem = reference.strip()
        if not stem or self._wireframes is None:
            return "", []
        if "/" in stem or "\\" in stem or stem.startswith("."):
            return "", [_missing("wireframe.reference", f"`{stem}` is no file stem", "Wireframe_Ref")]
        for suffix in WIREFRAME_SUFFIXES:
            text = _read(self._wireframes / f"{stem}{suffix}")
            if text is not None:
                return text, []
        return "", [_missing("wireframe.missing", f"there is no wireframe `{stem}`", "Wireframe_Ref")]


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None


def _missing(code: str, message: str, field: str) -> Finding:
    return minor(code, message, where=Where(field=field), fix="add the file or correct the name")
