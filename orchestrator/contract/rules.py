"""Rules on paths that hold whatever a contract allows."""

from orchestrator.domain.file_kinds import is_test_file

__all__ = ["is_test_file"]
