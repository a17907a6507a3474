"""Manifests as the contract sees them: names of packages."""

from orchestrator.domain.file_kinds import is_manifest
from orchestrator.syntax.manifest import Manifest, read_manifest

__all__ = ["Manifest", "dependencies_of", "is_manifest", "read_manifest"]


def dependencies_of(path: str, text: str) -> frozenset[str]:
    """Normalised names that the manifest at `path` declares; what cannot be read declares nothing. Never raises.

    Use `read_manifest` where an unreadable manifest must be noticed (its `problems`).
    """
    return read_manifest(path, text).dependencies
