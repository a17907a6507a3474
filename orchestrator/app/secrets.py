"""Secrets that a run was started with or finds in its backlog and repository, and the masks that stand for them."""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.core.secrets import Masks, encoded_in, env_values, is_wordy, secrets_in, secrets_of, worth_hiding
from orchestrator.core.story import BacklogContent, Story
from orchestrator.files.safe_files import read_text, root_files
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import Environment
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


def known_secrets(environment: Environment, repo: Path | None) -> tuple[str, ...]:
    """Returns the secrets of the environment, and those in `.env` files of the repository's folder, which git often
    ignores (None for a repository elsewhere); of these none that may be a name in the project. Blocks."""
    if repo is None:
        return secrets_of(environment.variables)
    texts = (read_text(repo, name, MAX_CHARS) for name in root_files(repo) if _is_env(name) and _may_hold(name))
    found = (value for text in texts if text for value in env_values(text) if not is_wordy(value))
    return (*secrets_of(environment.variables), *found)


def backlog_secrets(content: BacklogContent) -> tuple[str, ...]:
    """Returns the secrets in the texts of a backlog. Blocks."""
    text = _text(content)
    return tuple(dict.fromkeys(text[one.start : one.end] for one in secrets_in(text)))


def mask_backlog(content: BacklogContent, masks: Masks) -> BacklogContent:
    """Returns the backlog with a name in place of each secret, as everything that begins with its stories has it.
    Blocks."""

    def masked(value: Any) -> Any:
        return masks.masked(value) if isinstance(value, str) else tuple(map(masks.masked, value))

    def story(row: Story) -> Story:
        texts = _texts(row)
        plain = {name: masked(value) for name, value in texts.items()}
        return row if plain == texts else row.model_copy(update=plain)

    text = _text(content)  # of many thousand rows hardly one has any
    if not secrets_in(text) and not any(secret in text or encoded_in(text, secret) for secret in masks.known):
        return content
    return content.model_copy(update={"stories": tuple(map(story, content.stories))})


_CELLS = (
    "title", "user_story", "functional_requirements", "non_functional_requirements", "integrations", "constraints",
    "acceptance_criteria", "notes",
)  # fmt: skip


def _texts(story: Story) -> dict[str, Any]:
    return {name: value for name in _CELLS if (value := getattr(story, name))}


def _text(content: BacklogContent) -> str:
    return "\n".join(line for story in content.stories for value in _texts(story).values() for line in _lines(value))


def _lines(value: str | Sequence[str]) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value


async def find_secrets(workspace: GitWorkspace, own: Sequence[str], tell: Callable[[str], None]) -> tuple[str, ...]:
    """Returns `own`, and the secrets in files of the repository that usually hold them; reports each by its place.

    A command may print them although no prompt shows them. Samples (`.env.example`) hold none. A part of a path, and a
    word that other settings have as well, are names in the project, whoever uses them as a password.
    """
    head = await workspace.result_head()
    files = await workspace.files_at(head)
    # Secrets usually lie near the root.
    paths = sorted(filter(_may_hold, files), key=lambda path: (path.count("/"), path))
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
    paths_told, others = "\n".join(files), "\n".join(text for path, text in texts.items() if not _is_env(path))
    of_env = (
        value
        for path, text in texts.items()
        if _is_env(path)
        for value in env_values(text[:MAX_CHARS])
        if not (is_wordy(value) and value in others)
    )
    hidden = dict.fromkeys((*own, *worth_hiding(secret for _, _, secret in found), *of_env))
    return tuple(value for value in hidden if value not in paths_told)


def _is_env(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return name.startswith(".env") or name.endswith(".env")


def _may_hold(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    if any(word in name for word in _SAMPLES) or "node_modules" in path:
        return False
    return name in _NAMES or name.startswith(".env") or PurePosixPath(name).suffix in _SUFFIXES
