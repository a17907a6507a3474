"""Reads prompt files: the packaged ones, single files replaced by those of an override folder."""

from pathlib import Path

from rapidfuzz import process

from orchestrator.core.errors import ConfigError

_SUFFIX = ".md"
_LIBRARY = "library/"
"""Below it stand the prompts of analyses, which are read by adapters/stage_prompts.py."""


def _files(folder: Path) -> dict[str, Path]:
    """Relative POSIX path → file, for everything below `folder` that is not hidden."""
    try:
        found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    except OSError as error:
        raise ConfigError(f"cannot read the prompt folder {folder}: {error.strerror}") from error
    return {name.as_posix(): path for name, path in found.items() if not any(p.startswith(".") for p in name.parts)}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read the prompt {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the prompt {path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def _is_prompt(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.startswith(_LIBRARY)


def load_prompts(packaged: Path, override: Path | None) -> dict[str, str]:
    """Prompt name (`architect/breakdown`) → text. Line ends become `\\n`, a byte order mark is dropped.

    A file of `override` replaces the packaged one of the same relative name. Raises ConfigError when a folder does not
    exist, a file cannot be read, or `override` holds a file that replaces nothing (names the nearest one).
    """
    for folder in (packaged, override):
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"the prompt folder {folder} does not exist")
    chosen = {name: path for name, path in _files(packaged).items() if _is_prompt(name)}
    if not chosen:
        raise ConfigError(f"the prompt folder {packaged} holds no {_SUFFIX} files")
    for name, path in (_files(override) if override is not None else {}).items():
        if name.startswith(_LIBRARY):
            continue
        if name not in chosen:
            nearest = process.extractOne(name, sorted(chosen))
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise ConfigError(f"{path} replaces no prompt: there is no {name}{hint}")
        chosen[name] = path
    return {name.removesuffix(_SUFFIX): _read(path) for name, path in chosen.items()}
