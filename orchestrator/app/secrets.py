"""Secrets that a run was started with or finds in the repository, and the masks that stand for them."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from orchestrator.core.secrets import Masks, secrets_in, worth_hiding
from orchestrator.git.workspace import GitWorkspace
from orchestrator.storage.state_folder import StateFolder

MAX_FILES, MAX_CHARS = 300, 200_000
"""Files looked into at most, those nearest to the root first; a longer one is data."""
TOLD = 5
"""Secrets that are reported one by one; of more only the number is."""
_NAMES = frozenset({".netrc", ".npmrc", ".pypirc", ".pgpass", "credentials", "secrets", "id_rsa", "id_ed25519"})
_SUFFIXES = frozenset(
    {
        ".pem",
        ".key",
        ".p8",
        ".env",
        ".ini",
        ".cfg",
        ".conf",
        ".properties",
        ".toml",
        ".yaml",
        ".yml",
        ".json",
        ".tfvars",
    }
)
# Parts of names of files that hold examples, checksums or shapes, and no secret.
_SAMPLES = ("example", "sample", "template", "dist", "lock", "schema")


def masks_of(folder: StateFolder, secrets: Sequence[str]) -> Masks:
    """Returns the names for secrets of this state folder: the same in every process that works in it. Blocks."""
    return Masks(key=folder.mask_key()).knowing(secrets)


async def find_secrets(workspace: GitWorkspace, own: Sequence[str], tell: Callable[[str], None]) -> tuple[str, ...]:
    """Returns `own`, and the secrets in files of the repository that usually hold them; reports each by its place.

    A command may print them although no prompt shows them. Samples (`.env.example`) hold none.
    """
    head = await workspace.result_head()
    # Secrets usually lie near the root.
    paths = sorted(filter(_may_hold, await workspace.files_at(head)), key=lambda path: (path.count("/"), path))
    texts = await workspace.read_at(head, paths[:MAX_FILES])
    found = [
        (f"{path}, line {text.count(chr(10), 0, one.start) + 1}", one.kind, text[one.start : one.end])
        for path, text in texts.items()
        if len(text) <= MAX_CHARS
        for one in secrets_in(text)
    ]
    for place, kind, _ in found[:TOLD]:
        tell(f"warning: the repository holds a secret: {kind} in {place}; it is masked in prompts, revoke it")
    if len(found) > TOLD:
        tell(f"warning: and {len(found) - TOLD} more")
    return tuple(dict.fromkeys((*own, *worth_hiding(secret for _, _, secret in found))))


def _may_hold(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    if any(word in name for word in _SAMPLES) or "node_modules" in path:
        return False
    return name in _NAMES or name.startswith(".env") or PurePosixPath(name).suffix in _SUFFIXES
