"""Files of a tree that may be full of traps: written, read and removed below a directory descriptor, through no link.

Paths are relative, with `/` between their parts. Reading is bounded and takes regular files only. Removing uses a
constant number of descriptors and no recursion: a command may have left trees thousands of folders deep, folders
without permissions, links to the outside, special files. Everything here blocks: call it from a thread.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

from orchestrator.core.errors import WorkspaceError
from orchestrator.core.paths import unsafe_reason

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of a folder that must be one itself."""


def open_folder(root_fd: int, folder: str, *, made: list[str] | None = None) -> int:
    """Returns a descriptor of `folder` below the root, "" being the root itself; the caller closes it. Raises OSError.

    Each part is opened in the one before it, and no link is followed. With `made`, missing folders are created and
    appended to it.
    """
    fd = os.open(".", DIRECTORY, dir_fd=root_fd)
    path = ""
    for part in folder.split("/") if folder else ():
        path = f"{path}/{part}" if path else part
        try:
            if made is not None:
                with suppress(FileExistsError):  # made by another process meanwhile
                    os.mkdir(part, dir_fd=fd)
                    made.append(path)
            below = os.open(part, DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


# O_EXCL and O_NOFOLLOW: a link at this name is never written through.
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_root(folder: Path) -> int:
    """Opens `folder`, which must be a directory and no link, as a descriptor to close. Raises WorkspaceError."""
    try:
        return os.open(folder, DIRECTORY)
    except OSError as error:
        raise WorkspaceError(f"opening the folder {folder.name}: {error.strerror}") from error


@contextmanager
def _folder_of(root_fd: int, path: str, made: list[str] | None = None) -> Iterator[int]:
    """Yields a descriptor of the folder that `path` lies in; see `open_folder`."""
    fd = open_folder(root_fd, _split(path)[0], made=made)
    try:
        yield fd
    finally:
        os.close(fd)


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def _refused(doing: str, path: str, error: OSError) -> WorkspaceError:
    if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EXDEV}:
        return WorkspaceError(f"{doing} {path}: a link or a file stands where a folder or a plain file belongs")
    return WorkspaceError(f"{doing} {path}: {error.strerror or error}")


def _checked(path: str) -> str:
    reason = unsafe_reason(path)
    if reason is not None:
        raise WorkspaceError(f"the path {path!r} is not safe: {reason}")
    return path


def write_all(root_fd: int, changes: Sequence[tuple[str, bytes]], removed: Sequence[str] = ()) -> None:
    """Writes all files and takes those of `removed` away, or does nothing.

    Missing folders are made, emptied ones stay, a later entry for the same path replaces an earlier one. What is
    removed must be there. An existing target must be a regular file with a single name; its permissions are kept, as
    far as they are no more than permissions and let us read and write it. Raises WorkspaceError for unsafe paths,
    links, folders and special files in the way, and any failure of the file system, after putting back what was there.
    """
    token = secrets.token_hex(6)
    wanted: dict[str, bytes | None] = {**dict(changes), **dict.fromkeys(map(_checked, removed))}
    made: list[str] = []
    current = ""
    try:
        with ExitStack() as undo:
            undo.callback(_remove_folders, root_fd, made)  # first, so that it runs last: folders must be empty by then
            for number, (current, content) in enumerate(wanted.items()):
                _stage(root_fd, _checked(current), content, f".{token}-{number}.new", made, undo)
            replaced = []
            for number, (current, content) in enumerate(wanted.items()):
                new, old = f".{token}-{number}.new", f".{token}-{number}.old"
                if _place(root_fd, current, content, new, old, undo):
                    replaced.append((current, old))
            undo.pop_all()  # everything is in its place: nothing is undone
    except OSError as error:
        raise _refused("writing", current, error) from error
    for path, old in replaced:
        _unlink(root_fd, path, old)


def write_below(folder: Path, changes: Sequence[tuple[str, bytes]], removed: Sequence[str] = ()) -> None:
    """Writes as `write_all` below a folder that must be a directory and no link."""
    root = open_root(folder)
    try:
        write_all(root, changes, removed)
    finally:
        os.close(root)


def _existing(parent: int, path: str) -> os.stat_result | None:
    try:
        found = os.stat(_split(path)[1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise WorkspaceError(f"{path} is no regular file")
    if found.st_nlink != 1:
        raise WorkspaceError(f"{path} has a second name somewhere (a hard link)")
    return found


def _stage(root_fd: int, path: str, content: bytes | None, new: str, made: list[str], undo: ExitStack) -> None:
    """Writes the content under the temporary name `new` beside its target; None: only looks whether it can go."""
    with _folder_of(root_fd, path, made=None if content is None else made) as parent:
        found = _existing(parent, path)
        if content is None:
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return
        fd = os.open(new, _NEW_FILE, 0o666, dir_fd=parent)
        undo.callback(_unlink, root_fd, path, new)
        with os.fdopen(fd, "wb") as stream:
            if found is not None:
                os.fchmod(fd, found.st_mode & 0o777 | 0o600)
            stream.write(content)


def _place(root_fd: int, path: str, content: bytes | None, new: str, old: str, undo: ExitStack) -> bool:
    """Moves the old content to `old` and the staged one into its place; returns whether there was an old one."""
    name = _split(path)[1]
    with _folder_of(root_fd, path) as parent:
        replaced = _existing(parent, path) is not None
        if replaced:
            os.rename(name, old, src_dir_fd=parent, dst_dir_fd=parent)
            undo.callback(_move_back, root_fd, path, old)
        if content is not None:
            os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
            undo.callback(_unlink, root_fd, path, name)
    return replaced


def _unlink(root_fd: int, path: str, name: str) -> None:
    """Removes `name` beside `path`, as far as the file system lets us."""
    with suppress(OSError), _folder_of(root_fd, path) as parent:  # best effort: the original error matters more
        os.unlink(name, dir_fd=parent)


def _move_back(root_fd: int, path: str, old: str) -> None:
    with suppress(OSError), _folder_of(root_fd, path) as parent:  # best effort: the original error matters more
        os.rename(old, _split(path)[1], src_dir_fd=parent, dst_dir_fd=parent)


def _remove_folders(root_fd: int, made: Sequence[str]) -> None:
    for folder in reversed(made):
        with suppress(OSError), _folder_of(root_fd, folder) as parent:  # not empty, or gone
            os.rmdir(_split(folder)[1], dir_fd=parent)


MAX_BYTES = 2 * 1024 * 1024  # larger files are data


_MOST_ENTRIES = 200_000
"""Entries of a tree that are looked at: a command may have left millions."""


def walk_files(root: Path, skipped: Callable[[str], bool]) -> Iterator[tuple[str, list[str]]]:
    """Yields every folder below `root` as the prefix of its paths ("" for the root's own) with the names of its files.

    Folders whose names are `skipped` are left out, no link is followed, and a tree of too many entries ends early.
    """
    seen = 0
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not skipped(name)]
        seen += len(inner) + len(names)
        if seen > _MOST_ENTRIES:
            return
        place = os.path.relpath(folder, root)
        yield "" if place == "." else f"{place}/", names


def root_files(root: Path) -> tuple[str, ...]:
    """Names of the entries of the root folder that are no folders, sorted; empty when there is no such folder."""
    try:
        with os.scandir(root) as entries:
            return tuple(sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)))
    except OSError:
        return ()


def read_text(root: Path, path: str, most: int = MAX_BYTES) -> str | None:
    """Returns the UTF-8 text of `path` below `root`.

    None where it is absent, behind a link, no regular file, larger than `most` bytes, or no UTF-8.
    """
    if ".." in path.split("/"):
        return None
    try:
        root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the root itself may be a link
        try:
            with _folder_of(root_fd, path) as folder:
                # O_NONBLOCK: opening a named pipe would wait forever.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                fd = os.open(_split(path)[1], flags, dir_fd=folder)
        finally:
            os.close(root_fd)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            content = file.read(most + 1)
        return content.decode("utf-8") if len(content) <= most else None
    except (OSError, ValueError):  # unreadable or not UTF-8
        return None


_GITLINK = 0o160000
"""git's mode of a submodule: a folder in the tree."""


class Trash:
    """A folder that takes what is thrown away; leaving the context removes it all. Same file system as its victims."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / secrets.token_hex(6)
        self._names: list[str] = []
        self._fd = -1

    def __enter__(self) -> "Trash":
        self._folder.mkdir(parents=True)
        self._fd = open_root(self._folder)
        return self

    def take(self, parent_fd: int, name: str) -> None:
        """Removes the entry `name` of an open folder, whatever it is. Raises WorkspaceError."""
        try:
            self._take(parent_fd, name)
        except OSError as error:
            raise WorkspaceError(f"removing {name}: {error.strerror}") from error

    def _take(self, parent_fd: int, name: str) -> None:
        found = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=parent_fd)
            return
        make_usable(parent_fd, name, found)
        unique = str(len(self._names))
        os.rename(name, unique, src_dir_fd=parent_fd, dst_dir_fd=self._fd)
        self._names.append(unique)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Empties every folder at depth one: folders in it are first moved up, beside it."""
        try:
            done = 0
            while done < len(self._names):
                name = self._names[done]
                fd = open_folder(self._fd, name)
                try:
                    for entry in os.listdir(fd):
                        self.take(fd, entry)
                finally:
                    os.close(fd)
                os.rmdir(name, dir_fd=self._fd)
                done += 1
        except OSError as problem:
            raise WorkspaceError(f"emptying the trash: {problem.strerror}") from problem
        finally:
            os.close(self._fd)
        self._folder.rmdir()


def make_usable(parent_fd: int, name: str, found: os.stat_result) -> None:
    """Gives the owner all rights on a folder that lacks some. `found` has shown that it is a folder and no link."""
    if found.st_mode & 0o700 != 0o700:
        os.chmod(name, stat.S_IMODE(found.st_mode) | 0o700, dir_fd=parent_fd)


def discard(path: Path, trash: Path) -> None:
    """Removes `path`, whatever it is; absent is fine. Raises WorkspaceError."""
    if not os.path.lexists(path):
        return
    parent = open_root(path.parent)
    try:
        with Trash(trash) as bin_:
            bin_.take(parent, path.name)
    finally:
        os.close(parent)


def prune(folder: Path, kept: Collection[str]) -> None:
    """Removes what a killed run left in a folder of worktrees: those that are not in `kept`, their state, its trash."""
    trash = folder / ".trash"
    for place in (folder, folder / ".state", trash):
        for entry in list(place.iterdir()) if place.is_dir() else ():
            if place == trash or entry.name not in kept:
                discard(entry, trash)


def sweep(root_fd: int, tracked: Mapping[str, int], trash: Path) -> None:
    """Removes everything but the `tracked` paths (path → git mode), and `.git` at the root, which is the caller's.

    Tracked paths of another kind than their mode says, or with a second name (hard link), are removed too: git then
    writes them afresh. Tracked folders become usable by us. Raises WorkspaceError.
    """
    wanted = _by_folder(tracked)
    pending = [""]
    with Trash(trash) as bin_:
        while pending:
            folder = pending.pop()
            try:
                fd = open_folder(root_fd, folder)
                try:
                    pending += _sweep_folder(fd, folder, wanted[folder], bin_)
                finally:
                    os.close(fd)
            except OSError as error:
                raise WorkspaceError(f"cleaning {folder or 'the tree'}: {error.strerror}") from error


def _by_folder(tracked: Mapping[str, int]) -> dict[str, dict[str, int]]:
    wanted: dict[str, dict[str, int]] = {"": {}}
    for path, mode in tracked.items():
        folder, _, name = path.rpartition("/")
        wanted.setdefault(folder, {})[name] = stat.S_IFDIR if mode == _GITLINK else mode
        if mode == _GITLINK:
            wanted.setdefault(path, {})
        while folder:
            above, _, name = folder.rpartition("/")
            wanted.setdefault(above, {})[name] = stat.S_IFDIR
            folder = above
    return wanted


def _sweep_folder(fd: int, folder: str, wanted: Mapping[str, int], bin_: Trash) -> list[str]:
    below = []
    for name in os.listdir(fd):
        if name == ".git" and not folder:
            continue
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not _fits(wanted.get(name), found):
            bin_.take(fd, name)
        elif stat.S_ISDIR(found.st_mode):
            make_usable(fd, name, found)
            below.append(f"{folder}/{name}" if folder else name)
    return below


def _fits(mode: int | None, found: os.stat_result) -> bool:
    if mode is None or stat.S_IFMT(mode) != stat.S_IFMT(found.st_mode):
        return False
    return stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
