"""A backlog's file as UTF-8 text, or one clear error."""

from pathlib import Path

from orchestrator.adapters.backlog_tree import unusable
from orchestrator.errors import BacklogError

BOM = "\ufeff"


def read_text(path: Path, source: str) -> str:
    """The file's text without a byte order mark. Raises BacklogError when it cannot be read or is not UTF-8 text."""
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"cannot read the backlog {source}: {error.strerror}"
        raise unusable("backlog.unreadable", message, source, fix="name an existing file or folder") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_text(data, error.start, source) from error
    if "\0" in text:
        raise _not_text(data, data.index(0), source)
    return text.removeprefix(BOM)


def _not_text(data: bytes, offset: int, source: str) -> BacklogError:
    line = data.count(b"\n", 0, offset) + 1
    message = f"{source} is not UTF-8 text: byte 0x{data[offset]:02x} in line {line}"
    return unusable("backlog.encoding", message, source, fix="save the file as UTF-8", line=line)
