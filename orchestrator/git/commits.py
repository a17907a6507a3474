"""Reads and builds commits of the mirror without a working tree: exactly the given bytes, without filters."""

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from orchestrator.core.delivery import CommitNote, DiffEntry, FileChange
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.paths import folders_of, no_text, obstacle_at, parents, spelling
from orchestrator.core.secrets import redact
from orchestrator.core.value import printable
from orchestrator.git.command import GitOutput
from orchestrator.git.mirror import Mirror
from orchestrator.git.objects import Commit, TreeEntry, name_of, trees

REGULAR = {0o100644, 0o100755, 0o100664}
"""Modes of plain files (the last one occurs in old histories)."""


def shown(path: str) -> str:
    """Returns a path from git as text that can be stored anywhere: invalid UTF-8 becomes escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def encoded(changes: Sequence[FileChange]) -> dict[str, bytes]:
    """Returns contents by path; the last change of a path counts. Raises WorkspaceError for a lone surrogate."""
    contents: dict[str, bytes] = {}
    for change in changes:
        try:
            contents[change.path] = change.content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise WorkspaceError(f"{change.path} holds a character that is no valid Unicode: {error.reason}") from error
    return contents


async def tree_entries(mirror: Mirror, commit: str, *, sizes: bool = False) -> dict[str, TreeEntry]:
    """Returns all leaves of a commit's tree by path (file system encoding), in git's order; sizes only on request."""
    tree = mirror.known_tree(commit)
    output = None if sizes else mirror.kept.get((*_SIZED, tree))
    if output is None:
        output = await mirror.read(*(_SIZED if sizes else _LISTED), tree, ids=(tree,))
    return {path: entry for path, entry in _parse_entries(output).items() if not entry.is_folder}


_LISTED = ("ls-tree", "-r", "-z", "--full-tree")
_SIZED = (*_LISTED, "-l", "-t")
"""With the folders, whose trees a commit of ours may keep."""


# `<mode> blob <oid> <size>\t<path>`; of a folder the size is `-`, without `-l` there is none.
_ENTRY = re.compile(r"([0-7]+) \S+ ([0-9a-f]+) *(\d*)-?\t([^\0]+)\0")


def _parse_entries(listed: GitOutput) -> dict[str, TreeEntry]:
    found = _ENTRY.findall(os.fsdecode(listed.stdout))
    modes = {mode: int(mode, 8) for mode in {one[0] for one in found}}
    return {path: TreeEntry(modes[mode], oid, int(size or 0)) for mode, oid, size, path in found}


def _list_entries(entries: Mapping[str, TreeEntry]) -> GitOutput:
    paths = sorted((os.fsencode(path), entry) for path, entry in entries.items())
    lines = (b"%06o - %s %d\t%s\0" % (entry.mode, entry.oid.encode(), entry.size, path) for path, entry in paths)
    return GitOutput(0, b"".join(lines))


async def blobs(mirror: Mirror, oids: Sequence[str]) -> list[bytes]:
    """Returns contents of the blobs `oids`, in order. Raises WorkspaceError when one is missing."""
    found = {oid: kept.stdout for oid in oids if (kept := mirror.kept.get(("blob", oid)))}
    missing = [oid for oid in dict.fromkeys(oids) if oid not in found]
    if missing:
        found |= await _ask_blobs(mirror, missing)
    return [found[oid] for oid in oids]


async def _ask_blobs(mirror: Mirror, oids: Sequence[str]) -> dict[str, bytes]:
    output = await mirror.git("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode())
    data, at, contents = output.stdout, 0, dict[str, bytes]()
    for oid in oids:
        end = data.index(b"\n", at)
        header = data[at:end].split()  # `<oid> blob <size>`, or `<oid> missing`
        if len(header) != 3:
            raise WorkspaceError(f"git cat-file: object {oid} is missing from the mirror")
        start = end + 1
        at = start + int(header[2]) + 1
        contents[oid] = data[start : at - 1]
        mirror.kept.put(("blob", oid), GitOutput(0, contents[oid]))
    return contents


async def read_files(mirror: Mirror, commit: str, paths: Sequence[str], *, limit: int) -> dict[str, bytes]:
    """Returns the content of those `paths` that are regular files of at most `limit` bytes, in the given order."""
    if not paths:
        return {}
    entries = await tree_entries(mirror, commit, sizes=True)
    wanted = {
        path: entry.oid
        for path in dict.fromkeys(paths)
        if (entry := entries.get(path)) and entry.mode in REGULAR and entry.size <= limit
    }
    return dict(zip(wanted, await blobs(mirror, list(wanted.values())), strict=True))


async def read_texts(mirror: Mirror, commit: str, paths: Sequence[str], *, limit: int) -> dict[str, str]:
    """Like `read_files`, as text; leaves out files that are not UTF-8."""
    texts = {}
    for path, content in (await read_files(mirror, commit, paths, limit=limit)).items():
        with suppress(UnicodeDecodeError):  # not text: left out
            texts[path] = content.decode("utf-8")
    return texts


_KINDS = {0o120000: "a link", 0o160000: "a submodule"}


async def obstacles(mirror: Mirror, commit: str, paths: Sequence[str], *, limit: int) -> dict[str, str]:
    """Returns path → why no text can be written there, for those of `paths` where none can (`paths.obstacle_at`)."""
    entries = await tree_entries(mirror, commit, sizes=True)
    kinds = {path: _KINDS[entry.mode] for path, entry in entries.items() if entry.mode in _KINDS}
    named = [path for path in paths if path in entries and path not in kinds]
    kinds |= {path: f"larger than {limit} bytes" for path in named if entries[path].size > limit}
    for path, content in (await read_files(mirror, commit, named, limit=limit)).items():
        if said := no_text(content):
            kinds[path] = said
    inside = folders_of(entries)
    folders = {spelling(folder): folder for folder in inside}
    folders |= {spelling(folder): folder for path in paths for folder in parents(path) if folder in inside}
    return {path: said for path in paths if (said := obstacle_at(path, kinds, folders))}


async def find_step(mirror: Mirror, base: str, head: str, step: str) -> str | None:
    """Returns the commit between `base` and `head` (first parents) whose last paragraph has the trailer of `step`."""
    for commit, message in await first_parents(mirror, base, head):
        if trailer_of(message, "Step") == step:
            return commit
    return None


async def first_parents(mirror: Mirror, base: str, head: str) -> list[tuple[str, str]]:
    """Like `log`, of first parents only."""
    made = mirror.made_between(base, head)
    if made is None:
        return await log(mirror, base, head, "--first-parent")
    return [(oid, commit.message) for oid, commit in made]


async def log(mirror: Mirror, base: str, head: str, *options: str) -> list[tuple[str, str]]:
    """Returns (commit, message) of the commits in `head` and not in `base`, newest first."""
    if base == head:
        return []
    output = await mirror.read("log", "-z", *options, "--format=%H%n%B", f"{base}..{head}", ids=(base, head))
    records = (record.partition("\n") for record in output.text.split("\0") if record)
    return [(commit, message) for commit, _, message in records]


def trailer_of(message: str, name: str) -> str:
    """Returns the value of our trailer `name` in a message's last paragraph; "" when it is absent."""
    start = f"Orchestrator-{name}: "
    lines = message.strip().rpartition("\n\n")[2].splitlines()
    return next((line.removeprefix(start) for line in lines if line.startswith(start)), "")


async def build_tree(mirror: Mirror, head: str, changes: Sequence[FileChange], removed: Sequence[str]) -> str:
    """Writes the tree of `head` with `changes` and without `removed`, and returns its id.

    Raises WorkspaceError when a change would replace a link, a submodule or a folder, or be below a file, or when a
    removed path is not a regular file of the branch.
    """
    contents, gone = encoded(changes), frozenset(removed)
    if not contents and not gone:
        return await tree_of(mirror, head)
    tree = mirror.known_tree(head)
    sized = mirror.kept.get((*_SIZED, tree))
    listed = sized or await mirror.read(*_LISTED, "-t", tree, ids=(tree,))  # without the slow sizes in a large project
    tree, objects, listed = await asyncio.to_thread(_compose, listed, contents, gone)
    await mirror.write(objects)
    if sized is not None:
        mirror.kept.put((*_SIZED, tree), listed)
    for oid, kind, content in objects:
        if kind == "blob":
            mirror.kept.put((kind, oid), GitOutput(0, content))
    return tree


def _compose(
    listed: GitOutput, contents: Mapping[str, bytes], removed: Collection[str]
) -> tuple[str, list[tuple[str, str, bytes]], GitOutput]:
    """Returns a tree with these changes of a listed one, the objects to write for it, and what git will list for it."""
    before = _parse_entries(listed)
    modes = _modes(before, contents)
    absent = next((path for path in removed if path not in before or before[path].mode not in REGULAR), None)
    if absent is not None:
        raise WorkspaceError(f"{absent} cannot be removed: it is no regular file of the branch")
    # Only folders with a change in them are made again: a project has hundreds.
    changed = {folder for path in (*contents, *removed) for folder in _above(path)}
    after = {path: entry for path, entry in before.items() if path not in changed and path not in removed}
    objects = []
    for path, content in contents.items():
        oid = name_of("blob", content)
        after[path] = TreeEntry(modes[path], oid, len(content))
        objects.append((oid, "blob", content))
    changed.add("")
    folders = trees({path: entry for path, entry in after.items() if path.rpartition("/")[0] in changed})
    there = {entry.oid for entry in before.values()}
    objects += [(oid, "tree", content) for oid, content in folders.values() if oid not in there]
    root, _ = folders.pop("")
    return root, objects, _list_entries(after | {path: TreeEntry(0o40000, oid) for path, (oid, _) in folders.items()})


async def empty_tree(mirror: Mirror) -> str:
    """Writes the tree without entries, and returns its id."""
    ((oid, content),) = trees({}).values()
    await mirror.write([(oid, "tree", content)])
    mirror.kept.put((*_SIZED, oid), GitOutput(0, b""))
    return oid


async def tree_of(mirror: Mirror, commit: str) -> str:
    """Returns the id of a commit's tree. Raises WorkspaceError for an unknown commit."""
    tree = mirror.known_tree(commit)
    if tree == commit:
        tree = (await mirror.read("rev-parse", "--verify", f"{commit}^{{tree}}", ids=(commit,))).text
    return tree


def _modes(entries: Mapping[str, TreeEntry], paths: Iterable[str]) -> dict[str, int]:
    """Returns modes for the new contents of a tree with these entries, its folders among them; refuses changes that
    git's index would silently drop or turn into others.
    """
    paths = frozenset(paths)
    folders = {folder for path in paths for folder in _above(path)}
    modes = {}
    for path in paths:
        old = entries.get(path)
        if old is not None and old.mode not in REGULAR and not old.is_folder:
            raise WorkspaceError(f"{path} is a link or a submodule on the branch, no regular file")
        if path in folders or (old is not None and old.is_folder):
            raise WorkspaceError(f"{path} is a folder on the branch, no file")
        found = ((folder, entries.get(folder)) for folder in _above(path))
        blocked = next((folder for folder, one in found if folder in paths or (one and not one.is_folder)), None)
        if blocked is not None:
            raise WorkspaceError(f"{path} cannot be written: {blocked} is no folder on the branch")
        modes[path] = 0o100755 if old is not None and old.mode == 0o100755 else 0o100644
    return modes


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


async def commit_tree(mirror: Mirror, tree: str, parents: Sequence[str], message: str) -> str:
    """Writes a commit object and returns its id; no branch moves."""
    return await mirror.write_commit(Commit(tree, tuple(dict.fromkeys(parents)), message))


_TRAILER = re.compile(r"^(?=Orchestrator-)", re.MULTILINE)


def message_of(note: CommitNote) -> str:
    """Returns the note's message, without secrets, with its subject on one line and its body indented where a line of
    it begins as a trailer of ours does, so that none of it passes for one."""
    subject = redact(" ".join(printable(note.subject, keep="").split()))
    body = redact(_TRAILER.sub(" ", printable(note.body, keep="\n").strip()))
    return note.model_copy(update={"subject": subject or f"Work on {note.story}", "body": body}).message


async def raw_diff(mirror: Mirror, base: str, head: str) -> tuple[DiffEntry, ...]:
    """Returns every path that differs between two commits, in git's order; renames count as two entries."""
    options = ("-r", "--raw", "-z", "--no-renames", "--no-ext-diff")
    output = await mirror.read("diff-tree", *options, base, head, "--", ids=(base, head))
    fields = iter(output.stdout.split(b"\0")[:-1])
    entries = []
    for facts, path in zip(fields, fields, strict=True):
        old_mode, new_mode, _, _, status = facts.decode("ascii").lstrip(":").split()
        text = shown(os.fsdecode(path))
        entries.append(DiffEntry(path=text, status=status[0], old_mode=old_mode, new_mode=new_mode))
    return tuple(entries)


# The text is independent of the user's git configuration. The lines `index <oid>..<oid>` inform no one.
_PATCH = (
    *("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers"),
)
_INDEX = re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+(?: [0-7]+)?\n", re.MULTILINE)


async def patch(mirror: Mirror, base: str, head: str, paths: Sequence[str] = ()) -> str:
    """Returns the same difference, of `paths` or of all, as a patch; invalid UTF-8 is shown as escapes.

    No attribute of the tree hides a file. Raises WorkspaceError for an unknown commit.
    """
    output = await mirror.read("diff-tree", *_PATCH, base, head, "--", *dict.fromkeys(paths), ids=(base, head))
    return _INDEX.sub("", output.stdout.decode("utf-8", "backslashreplace"))


async def diff_stat(mirror: Mirror, base: str, head: str) -> str:
    """Returns the same difference as a table for people; empty without a difference."""
    options = ("-r", "--stat=120", "--no-renames", "--no-ext-diff", "--no-textconv")
    return (await mirror.read("diff-tree", *options, base, head, "--", ids=(base, head))).text
