"""A person's editor, and the files it works on. Blocks."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.errors import ConfigError

DEFAULT = "vi"
_NAMES = ("VISUAL", "EDITOR")


def editor_command(variables: Mapping[str, str], *, terminal: bool) -> list[str]:
    """The words that start the editor: of VISUAL, else of EDITOR, else vi where there is a terminal for it.

    Raises ConfigError when there is none, or it is not installed.
    """
    name = next((name for name in _NAMES if variables.get(name, "").strip()), None)
    if name is None and not terminal:
        raise ConfigError("there is no terminal for an editor: name a file with --file, or set VISUAL or EDITOR")
    try:
        words = shlex.split(variables[name]) if name is not None else [DEFAULT]
    except ValueError as error:
        raise ConfigError(f"{name} holds no command: {error}") from error
    if not words or shutil.which(words[0], path=variables.get("PATH")) is None:
        missing = words[0] if words else variables.get(str(name), "")
        named = f"{name} names the editor {missing}" if name is not None else f"the editor is {missing}"
        raise ConfigError(f"{named}, which is not there: set VISUAL or EDITOR, or name a file with --file")
    return words


def run_editor(words: Sequence[str], path: Path) -> int:
    """Have `path` edited, to the editor's end; its exit code. Raises ConfigError when it does not start."""
    try:
        process = subprocess.Popen([*words, str(path)])
    except OSError as error:
        raise ConfigError(f"the editor {words[0]} does not start: {error.strerror}") from error
    # Ctrl-C is a key of the editor's; it must not end us and leave the editor alone with the terminal.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def new_file(folder: Path, stem: str, text: str) -> Path:
    """A new file that only its owner reads. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{stem}-", suffix=".yaml", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from error
    return Path(name)


def rewrite(path: Path, text: str) -> None:
    """Replace the content of a file of ours. Raises ConfigError."""
    try:
        path.write_bytes(text.encode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def saved_text(path: Path) -> str:
    """What an editor left; "" when it left no file. Raises ConfigError when it cannot be read as UTF-8."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
