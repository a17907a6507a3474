"""Prompts of analyses as files: the packaged library and a folder of the user's own, plain Markdown as it is."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import yaml

from orchestrator.domain.analysis import StagePrompt
from orchestrator.errors import ConfigError

_NO_PROMPTS = frozenset({"readme", "index", "contributing", "changelog", "license"})
_FRONT = re.compile(r"\A---[ \t]*\n(?P<front>.*?\n)---[ \t]*\n", re.DOTALL)
_KEYS = frozenset({"id", "goal", "stage", "category", "history"})
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_DOTS = re.compile(r"\.{2,}")
_ASKS_HISTORY = re.compile(
    r"\b(previous|earlier|prior|preceding)\s+(analys[ei]s|stages?|findings|results|reviews?|steps)\b", re.IGNORECASE
)
MAX_CHARS = 200_000


def load_stage_prompts(folder: Path) -> dict[str, StagePrompt]:
    """`stage_prompts` of the Markdown files below `folder`. Raises ConfigError for what cannot be read, too."""
    if not folder.is_dir():
        raise ConfigError(f"the prompt folder {folder} does not exist")
    paths = [path for path in folder.rglob("*") if path.suffix.lower() in {".md", ".markdown"} and path.is_file()]
    found = stage_prompts({path: _read(path) for path in paths if not _is_aside(path.relative_to(folder))}, folder)
    if not found:
        raise ConfigError(f"the prompt folder {folder} holds no prompts (*.md)")
    return found


def stage_prompts(texts: Mapping[Path, str], folder: Path = Path()) -> dict[str, StagePrompt]:
    """Id → prompt, for every text that is no README or the like, in the order of the paths, 2 before 10.

    Without front matter a file's id is its name, with a hash where letters of it fit no id, and it is told earlier
    findings where it speaks of them. Raises ConfigError for an empty prompt and an id that stands twice.
    """
    found: dict[str, StagePrompt] = {}
    for path in sorted(texts, key=_natural):
        relative = path.relative_to(folder)
        if _is_aside(relative):
            continue
        prompt = _prompt(texts[path], path, relative)
        if prompt.id in found:
            raise ConfigError(f"{path} and {found[prompt.id].file} are both the prompt {prompt.id}; rename one")
        found[prompt.id] = prompt
    return found


def _is_aside(relative: Path) -> bool:
    return any(part.startswith((".", "_")) for part in relative.parts) or relative.stem.lower() in _NO_PROMPTS


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read the prompt {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the prompt {path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def _prompt(text: str, path: Path, relative: Path) -> StagePrompt:
    front, body = _split(text.replace("\r\n", "\n"), path)
    if not body.strip():
        raise ConfigError(f"the prompt {path} is empty")
    if len(body) > MAX_CHARS:
        raise ConfigError(f"the prompt {path} is longer than {MAX_CHARS} characters")
    told = front.get("history")
    name = _text(front, "id") or "-".join(relative.with_suffix("").parts)
    known, whole = _id(name, path)
    return StagePrompt(
        id=known,
        goal=_text(front, "goal") or ("" if whole else name),
        stage=_text(front, "stage"),
        category=_text(front, "category"),
        history=told if isinstance(told, bool) else bool(_ASKS_HISTORY.search(body)),
        text=body.strip("\n"),
        file=str(path),
    )


def _split(text: str, path: Path) -> tuple[dict[str, object], str]:
    """Front matter and body. What stands between rules at the top and names none of our fields belongs to the text."""
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    try:
        front = yaml.safe_load(match["front"])
    except (yaml.YAMLError, ValueError):
        front = None
    if isinstance(front, dict) and not _KEYS.isdisjoint(front):
        return front, text[match.end() :]
    if re.search(r"^(id|goal|category)[ \t]*:", match["front"], re.MULTILINE):
        raise ConfigError(f"the prompt {path}: its front matter is no valid YAML; put quotes around texts with `: `")
    return {}, text


def _text(front: dict[str, object], key: str) -> str:
    value = front.get(key)
    return "" if value is None else " ".join(str(value).split())


def _id(name: str, path: Path) -> tuple[str, bool]:
    """The name as an id, which names folders of the state folder too, and whether all its letters stand in it."""
    plain = unicodedata.normalize("NFC", name.strip())
    found = _DOTS.sub(".", _UNFIT.sub("-", plain)).strip(".-")[:64].strip(".-").removesuffix(".lock")
    whole = not any(letter.isalnum() and not letter.isascii() for letter in plain)
    if not whole:
        found = f"{found or 'prompt'}"[:55].rstrip(".-") + f"-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
    if not found:
        raise ConfigError(f"the prompt {path}: its name has no letter or digit; give it an id")
    return found, whole


def _natural(path: Path) -> tuple[list[list[tuple[bool, int, str]]], Path]:
    """Names in the order people number them, numbers first."""
    parts = [re.findall(r"(\d+)|(\D+)", part) for part in path.parts]
    return [[(not digits, int(digits or 0), text) for digits, text in part] for part in parts], path
