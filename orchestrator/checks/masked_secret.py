"""Names that stand for secrets, in files that a model wrote: the secret is put back, or the file is left out."""

from collections.abc import Mapping, Sequence

from orchestrator.domain.delivery import FileChange
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.masking import Masks
from orchestrator.domain.paths import RepoPath

FIX = (
    "Leave each such name as it stands, in its own file and place; a value that is needed elsewhere is read from the "
    "environment or a file of settings when the program runs."
)


def with_secrets(
    masks: Masks, files: Sequence[FileChange], before: Mapping[RepoPath, str]
) -> tuple[list[FileChange], list[Finding]]:
    """The files with the secrets of `before`, the same files as they are, in place of the names that stand for them.

    A file that names a secret which it does not hold is left out, with a major finding: no name is ever written over a
    secret, and no secret moves into another file.
    """
    kept: list[FileChange] = []
    findings: list[Finding] = []
    for change in files:
        text, unknown = masks.restored(change.content, before.get(change.path))
        if unknown:
            message = f"`{change.path}` holds `{unknown[0]}`, which stands for a secret that is not in that file"
            findings.append(major("delivery.masked_secret", message, where=Where(file=change.path), fix=FIX))
        else:
            kept.append(change if text == change.content else change.model_copy(update={"content": text}))
    return kept, findings
