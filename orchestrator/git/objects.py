"""Git objects in the format that git stores them in: what we make ourselves needs no git process, and what is known
about objects is kept, because they never change."""

import hashlib
import os
import secrets
import stat
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from orchestrator.git.command import IDENTITY, GitOutput

_KEPT_BYTES, _LARGEST_KEPT = 16 * 1024 * 1024, 1024 * 1024
_FOLDER = 0o40000


class KeptAnswers:
    """Latest answers about objects named by their full id. Objects never change, so no answer grows old."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, ...], GitOutput] = OrderedDict()
        self._size = 0

    def get(self, question: tuple[str, ...]) -> GitOutput | None:
        """Returns the answer to an earlier question, None when there is none."""
        if question in self._answers:
            self._answers.move_to_end(question)
        return self._answers.get(question)

    def put(self, question: tuple[str, ...], answer: GitOutput) -> None:
        """Keeps an answer, unless it is large, in place of the least recently used ones."""
        if len(answer.stdout) > _LARGEST_KEPT or question in self._answers:
            return
        self._answers[question] = answer
        self._size += _cost(question, answer)
        while self._size > _KEPT_BYTES:
            self._size -= _cost(*self._answers.popitem(last=False))

    def clear(self) -> None:
        """Forgets all answers."""
        self._answers.clear()
        self._size = 0


def _cost(question: tuple[str, ...], answer: GitOutput) -> int:
    return sum(map(len, question)) + len(answer.stdout) + 500  # 500: the objects around them


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit object says, apart from who made it and when."""

    tree: str
    parents: tuple[str, ...]
    message: str

    def encode(self) -> bytes:
        """Returns the content of a commit that we make now."""
        now = int(time.time())
        who = f"{IDENTITY[0]} <{IDENTITY[1]}> {now} {time.strftime('%z', time.localtime(now))}"
        parents = (f"parent {parent}" for parent in self.parents)
        lines = (f"tree {self.tree}", *parents, f"author {who}", f"committer {who}", "", self.message)
        return "\n".join(lines).encode("utf-8", "replace")


class TreeEntry(NamedTuple):
    """One entry of a tree, seen from its root."""

    mode: int
    oid: str
    size: int = 0
    """Bytes; 0 for what is no blob, and when sizes were not requested."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a tree itself."""
        return self.mode == _FOLDER


def name_of(kind: str, content: bytes) -> str:
    """Returns the id of an object."""
    return hashlib.sha1(_header(kind, content) + content, usedforsecurity=False).hexdigest()


def trees(leaves: Mapping[str, TreeEntry]) -> dict[str, tuple[str, bytes]]:
    """Returns id and content of all trees, by folder, that have these leaves; the root is the last one, "". A leaf
    may be a folder whose tree is known.

    The caller ensures that no leaf is a folder of another one.
    """
    folders: dict[bytes, list[tuple[bytes, bytes]]] = {b"": []}
    for path, leaf in leaves.items():
        folder, _, name = os.fsencode(path).rpartition(b"/")
        _add_folder(folders, folder)
        # git sorts a folder as if its name ended with a slash
        folders[folder].append((name + b"/" * leaf.is_folder, _entry(_canonical(leaf.mode), name, leaf.oid)))
    made = {}
    # The deepest first: a tree has the ids of those in it.
    for folder in sorted(folders, key=lambda path: (bool(path), path.count(b"/")), reverse=True):
        content = b"".join(line for _, line in sorted(folders[folder]))
        made[os.fsdecode(folder)] = oid, _ = name_of("tree", content), content
        above, _, name = folder.rpartition(b"/")
        if folder:
            folders[above].append((name + b"/", _entry(_FOLDER, name, oid)))
    return made


def _add_folder(folders: dict[bytes, list[tuple[bytes, bytes]]], folder: bytes) -> None:
    while folder not in folders:
        folders[folder] = []
        folder = folder.rpartition(b"/")[0]


def _entry(mode: int, name: bytes, oid: str) -> bytes:
    return b"%o %s\0%s" % (mode, name, bytes.fromhex(oid))


def _canonical(mode: int) -> int:
    """Returns a mode as git's index has it: old histories have others for regular files."""
    if not stat.S_ISREG(mode):
        return mode
    return 0o100755 if mode & 0o100 else 0o100644


def _header(kind: str, content: bytes) -> bytes:
    return f"{kind} {len(content)}\0".encode()


def write_objects(folder: Path, objects: Iterable[tuple[str, str, bytes]]) -> None:
    """Writes objects (id, kind, content) that are not there yet below a repository's `folder`, each as a whole.

    As git does, with the same names for what is not finished, so that the same cleanup finds it. Blocks.
    """
    for oid, kind, content in objects:
        path = folder / oid[:2] / oid[2:]
        with suppress(FileNotFoundError):
            os.utime(path)  # as git does: an old one that nothing refers to yet may be pruned
            continue
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f"tmp_obj_{secrets.token_hex(6)}")
        try:
            # 1: git's own level for loose objects
            beside.write_bytes(zlib.compress(_header(kind, content) + content, 1))
            beside.chmod(0o444)
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
