"""One file that holds many, each with its checksum: written and read as a stream, refused when a byte differs."""

import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from orchestrator.core.daemon import FORMAT, HEADER, MANIFEST, BackupHeader, FileSum, Manifest
from orchestrator.core.errors import ConfigError

_CHUNK = 1 << 20  # bytes
_FASTEST = 1
"""Most of it is compressed already: objects of git, or written once and never read again."""


class _Hashing:
    """A file that is read once from its start, and its hash."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.hash.update(data)
        return data


class ArchiveWriter:
    """Writes the header, then files, then, at the end of its context, the manifest. Blocks. Raises OSError."""

    def __init__(self, stream: IO[bytes], header: BackupHeader) -> None:
        self._gzip = gzip.GzipFile("", "wb", compresslevel=_FASTEST, fileobj=stream)
        # Closed by close(): what is not closed is no archive.
        self._tar = tarfile.open(fileobj=self._gzip, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self._sums: dict[str, FileSum] = {}
        self.add(HEADER, _json(header), header.created.timestamp())

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._drop()
            return
        try:
            self._end()
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        """It is no archive: what is not written by now goes nowhere, also when this object goes."""
        self._gzip.fileobj = io.BytesIO()
        self._tar.close()
        self._gzip.close()

    @property
    def files(self) -> int:
        """Number of added files."""
        return len(self._sums)

    def add(self, name: str, data: bytes, mtime: float) -> None:
        """Adds a file with this content."""
        self._add(name, io.BytesIO(data), len(data), mtime, 0o600)

    def add_file(self, name: str, path: Path) -> bool:
        """Adds a file from the disk as it is now; returns False when it is gone, or is no regular file."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return False
            self._add(name, file, found.st_size, found.st_mtime, found.st_mode & 0o777)
        return True

    def _add(self, name: str, file: IO[bytes], size: int, mtime: float, mode: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, mtime, mode
        hashing = _Hashing(file)
        self._tar.addfile(info, cast(IO[bytes], hashing))  # it only reads
        self._sums[name] = FileSum(size=size, sha256=hashing.hash.hexdigest())

    def _end(self) -> None:
        data = _json(Manifest(files=self._sums))
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(data), 0o600
        self._tar.addfile(info, io.BytesIO(data))
        self._tar.close()
        self._gzip.close()


def unpack(source: Path, folder: Path) -> tuple[BackupHeader, int]:
    """Writes every file of an archive below the empty `folder`; returns its header and how many files it held.

    Raises ConfigError when it is no whole archive of ours, or of a newer format; what was written by then is the
    caller's to remove. Blocks.
    """
    try:
        with source.open("rb") as stream:
            return _read(stream, folder, str(source))
    except OSError as error:
        raise ConfigError(f"{source} could not be unpacked: {error.strerror or error}") from error


def passed_on(parts: Iterator[bytes], stream: IO[bytes]) -> tuple[BackupHeader, int]:
    """Writes the parts of an archive to a stream; returns its header and how many files it holds.

    Raises ConfigError when it is no whole archive of ours, once that is known, and OSError. Blocks.
    """
    source = _Passing(parts, stream)
    found = _read(cast(IO[bytes], source), None, "what came")
    while source.read(_CHUNK):
        pass  # what fills the archive's last block
    return found


class _Passing:
    """Parts as a file that is read once; what is taken from them is written on."""

    def __init__(self, parts: Iterator[bytes], stream: IO[bytes]) -> None:
        self._parts, self._stream = parts, stream
        self._held = bytearray()

    def read(self, size: int) -> bytes:
        while len(self._held) < size and (part := next(self._parts, b"")):
            self._stream.write(part)
            self._held += part
        data = bytes(self._held[:size])
        del self._held[:size]
        return data


def _read(stream: IO[bytes], folder: Path | None, what: str) -> tuple[BackupHeader, int]:
    """Checks an archive and, with a `folder`, writes its files there."""
    try:
        with tarfile.open(fileobj=stream, mode="r|gz") as tar:
            return _checked(tar, folder)
    except (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{what} is no whole backup: {str(error)[:200] or type(error).__name__}") from error


def _checked(tar: tarfile.TarFile, folder: Path | None) -> tuple[BackupHeader, int]:
    members = iter(tar)
    header = _header(tar, next(members, None))
    sums: dict[str, FileSum] = {}
    for member in members:
        if member.name == MANIFEST:
            told = Manifest.model_validate_json(_content(tar, member).read())
            ours = {name: one for name, one in told.files.items() if name != HEADER}
            if ours != sums:
                different = sorted(name for name in {*ours, *sums} if ours.get(name) != sums.get(name))
                raise ValueError(f"{different[0]} is missing or is not what was backed up")
            return header, len(sums)
        hashing = _Hashing(_content(tar, member))
        with _target(member, folder) as target:
            shutil.copyfileobj(hashing, target, _CHUNK)
        if folder is not None:
            os.utime(folder / member.name, (member.mtime, member.mtime))
        sums[member.name] = FileSum(size=member.size, sha256=hashing.hash.hexdigest())
    raise ValueError("its end is missing")


def _header(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> BackupHeader:
    if member is None or member.name != HEADER:
        raise ValueError("it does not begin as one")
    told = json.loads(_content(tar, member).read())
    if told["format"] > FORMAT:
        raise ConfigError(f"this backup was made by the newer version {told['version']}: restore it with that one")
    return BackupHeader.model_validate(told)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = tar.extractfile(member) if member.isreg() else None
    if stream is None or member.name.startswith("/") or {"..", ".", ""} & {*member.name.split("/")}:
        raise ValueError(f"{member.name[:80]!r} does not belong into one")
    return stream


def _target(member: tarfile.TarInfo, folder: Path | None) -> IO[bytes]:
    """Returns the new file that a member becomes, nowhere without a folder."""
    if folder is None:
        return open(os.devnull, "wb")
    target = folder / member.name
    target.parent.mkdir(parents=True, exist_ok=True)
    mask = 0o777 if target.is_relative_to(folder / "mirrors") else 0o700  # commands read a mirror's objects
    return os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, member.mode & mask), "wb")


def _json(value: BackupHeader | Manifest) -> bytes:
    return json.dumps(value.model_dump(mode="json"), indent=1).encode()
