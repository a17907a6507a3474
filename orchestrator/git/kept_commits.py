"""Keeps the commits of a sprint outside of this machine before its steps count, and gets them back from there."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any, Concatenate, ParamSpec, Protocol, TypeVar

from orchestrator.core.delivery import KeptRefs, ObjectPack
from orchestrator.core.errors import EventLogAway
from orchestrator.core.event import activity
from orchestrator.core.ports import CommitStore
from orchestrator.git.mirror import KINDS, RESULT, Mirror, SprintRefs

P = ParamSpec("P")
T = TypeVar("T")
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Between two trials to reach the store; the last one again and again."""
_LOOSE_BYTES = 1024 * 1024
"""Packs up to this size become single objects of the mirror: hundreds of small packs would slow down every git call."""
_PACK_HEADER = 12
"""Bytes before the first object of a pack; the last four of them are the number of objects."""


class KeptCommits:
    """The refs of one sprint in the mirror, and the same in a store.

    A ref that is ahead of the store belongs to a step that has not counted: `restore` sets it back, and the step runs
    again. The store is waited for as long as it takes. Several machines may have the sprint's refs: one at a time moves
    those of a story, and one the result; what another one has moved comes with `fetch`.
    """

    def __init__(self, mirror: Mirror, refs: SprintRefs, sprint: str, store: CommitStore) -> None:
        self._mirror, self._refs, self._sprint, self._store = mirror, refs, sprint, store
        self._known: KeptRefs | None = None
        """The refs that mirror and store had alike when we looked or kept last; the store may have more."""
        self._loaded: set[int] = set()
        """Numbers of packs that are in the mirror."""
        self._calls: set[asyncio.Future[Any]] = set()
        self._one = asyncio.Lock()

    async def restore(self) -> None:
        """Makes the sprint's refs in the mirror what the store has, if it knows the sprint; gets missing objects.

        The caller holds the sprint's lock, and the mirror exists. Raises WorkspaceError.
        """
        async with self._one:
            self._known = await self._read()
            kept = self._known.refs
            if not kept or (present := await self._present()) == kept:
                return
            await self._get(kept.values())
            gone = [f"delete {name}" for name in present if name not in kept]
            await self._mirror.update(
                *gone, *(f"update {name} {oid}" for name, oid in kept.items() if present.get(name) != oid)
            )

    async def fetch(self, *names: str, taken: bool = False) -> None:
        """Makes these refs in the mirror what the store has, unless ours are ahead of it.

        With `taken` also then: they belong to a story that another machine has had.
        """
        async with self._one:
            known = self._known
            if known is None:
                return  # nothing was restored, and what is here is all there is
            found = await self._read()
            present = {name: ref.commit for name, ref in (await self._mirror.refs(*names)).items()}
            ours = [name for name in names if taken or present.get(name) == known.refs.get(name)]
            moved = {name: found.refs.get(name) for name in ours if present.get(name) != found.refs.get(name)}
            await self._get([oid for oid in moved.values() if oid is not None])
            if moved:
                changes = (f"update {name} {oid}" if oid else f"delete {name}" for name, oid in moved.items())
                await self._mirror.update(*changes)
            rest = {name: oid for name, oid in known.refs.items() if name not in ours}
            same = {name: found.refs[name] for name in ours if name in found.refs}
            self._known = found.model_copy(update={"refs": {**rest, **same}})

    async def settle(self) -> None:
        """Waits for calls of the store whose caller was cancelled: they still count."""
        while self._calls:
            await asyncio.wait(self._calls)

    async def restore_once(self) -> None:
        """Restores, in a workspace that is not prepared, into a mirror that may not exist yet."""
        if self._known is None:
            if not await asyncio.to_thread((self._mirror.path / "config").exists):
                await self._mirror.prepare()
            await self.restore()

    async def keep(self) -> None:
        """Returns once the store has the sprint's refs with all their objects. Raises WorkspaceError."""
        async with self._one:
            while True:
                refs = await self._present()
                if self._known is None:
                    self._known = await self._read()
                known = self._known
                if refs == known.refs:
                    return
                async with self._packed(refs, known) as packs:
                    keep, where = self._store.keep, (self._sprint, self._mirror.path.name)
                    kept = await self._reach(keep, *where, refs, packs, known=known)
                # Not kept: the store has something else than we knew, such as another sprint's base.
                self._known = KeptRefs(refs=refs) if kept else await self._known_now(refs, known)

    async def _known_now(self, refs: Mapping[str, str], known: KeptRefs) -> KeptRefs:
        """Returns what is known once the store has refused to move some of our refs from where we knew them."""
        found = await self._read()
        ours = {name for name in {**known.refs, **refs} if known.refs.get(name) != refs.get(name)}
        rest = {name: oid for name, oid in known.refs.items() if name not in ours}
        there = {name: oid for name, oid in found.refs.items() if name in ours}
        await self._get(there.values())
        return found.model_copy(update={"refs": {**rest, **there}})

    async def hold(self, story: str, tree: str) -> None:
        """Gives a merged tree that no commit has a ref: a story that goes on elsewhere reads it."""
        await self._mirror.update(f"update {self._refs.ref('sides', story)} {tree}")

    async def _read(self) -> KeptRefs:
        return await self._reach(self._store.read, self._sprint, self._mirror.path.name)

    async def _present(self) -> dict[str, str]:
        refs = await self._mirror.refs(*(self._refs.ref(kind, "") for kind in KINDS))
        return {name: ref.commit for name, ref in refs.items()}

    async def _lacks(self, oids: Collection[str]) -> bool:
        """Returns whether the mirror may lack some of these objects, or of what they refer to.

        Only what can be reached from a ref is complete: a kill leaves objects without those that they refer to.
        """
        held = {ref.commit for ref in (await self._mirror.refs()).values()}
        wanted = "\n".join(sorted({*oids} - held))
        walk = ("rev-list", "--objects", "--not", "--all", "--not", "--stdin")
        found = await self._mirror.git(*walk, stdin=f"{wanted}\n".encode(), ok=(0, 128)) if wanted else None
        return found is not None and (found.code != 0 or bool(found.stdout))

    async def _get(self, oids: Collection[str]) -> None:
        """Gets objects that the mirror lacks, with all that they refer to."""
        if not oids or not await self._lacks(oids):
            return
        held = {ref.commit for ref in (await self._mirror.refs()).values()}
        for pack in await self._reach(self._store.packs, self._sprint):
            if pack.base in held or pack.number in self._loaded:
                continue
            async with self._file() as file:
                await self._reach(self._store.load, pack, file)
                await asyncio.to_thread(file.seek, 0)
                if pack.size <= _LOOSE_BYTES:
                    await self._mirror.git("unpack-objects", "-q", stdin=file)
                else:
                    await self._mirror.git("index-pack", "--stdin", "--fix-thin", stdin=file)
            await asyncio.to_thread(self._mirror.add_shallow, pack.shallow)
            self._loaded.add(pack.number)

    @asynccontextmanager
    async def _packed(
        self, refs: Mapping[str, str], known: KeptRefs
    ) -> AsyncIterator[list[tuple[ObjectPack, IO[bytes]]]]:
        """Yields the packs with what the store lacks of these refs."""
        base = "" if known.refs else refs.get(self._refs.ref("base", RESULT), "")
        kept = {*known.refs.values()} or {*filter(None, [base])}
        packs = []
        async with AsyncExitStack() as stack:
            if base and base not in known.bases:
                there = await self._among(known.bases)
                file = await stack.enter_async_context(self._file())
                shallow = await asyncio.to_thread(self._mirror.shallow)
                if size := await self._pack([base], there, file):
                    packs.append((ObjectPack(base=base, shallow=shallow, size=size), file))
            if new := {*refs.values()} - kept:
                file = await stack.enter_async_context(self._file())
                # A small one, for which starting threads would take longer than packing it.
                if size := await self._pack(new, kept, file, "--threads=1"):
                    packs.append((ObjectPack(size=size), file))
            yield packs

    async def _pack(self, wanted: Collection[str], kept: Collection[str], file: IO[bytes], *more: str) -> int:
        """Writes what these objects refer to and the kept ones do not; returns the size, 0 where that is nothing."""
        lines = "\n".join([*sorted(wanted), "--not", *sorted(kept), ""])
        options = ("--revs", "--thin", "--delta-base-offset", "--stdout", "-q", *more)
        await self._mirror.git("pack-objects", *options, stdin=lines.encode(), stdout=file)
        return await asyncio.to_thread(_pack_size, file)

    async def _among(self, oids: Collection[str]) -> list[str]:
        """Returns those of these commits that the mirror has."""
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        told = await self._mirror.git("cat-file", "--batch-check", stdin=asked)
        return [line.split(" ")[0] for line in told.text.splitlines() if not line.endswith(" missing")]

    @asynccontextmanager
    async def _file(self) -> AsyncIterator[IO[bytes]]:
        """Yields a file without a name, of which a kill leaves nothing; beside the mirror, where there is room."""
        opening = asyncio.ensure_future(asyncio.to_thread(_open, self._mirror.path.parent))
        try:
            yield await asyncio.shield(opening)
        finally:  # also when we are cancelled while it is opened
            await asyncio.wait({opening})
            if opening.exception() is None:
                opening.result().close()

    async def _reach(self, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Returns the result of a call of the store, as soon as it can be reached: no outage ends a story."""

        async with AsyncExitStack() as stack:
            for pause in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
                running = asyncio.ensure_future(asyncio.to_thread(call, *args, **named))
                self._calls.add(running)
                running.add_done_callback(self._calls.discard)
                try:
                    return await asyncio.shield(running)
                except EventLogAway as error:
                    if pause == _PAUSES_S[0]:
                        await stack.enter_async_context(activity(f"waiting to keep commits: {error.message}"))
                await asyncio.sleep(pause)
        raise AssertionError("it is tried without end")


def _open(folder: Path) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


def _pack_size(file: IO[bytes]) -> int:
    file.seek(0)
    if not int.from_bytes(file.read(_PACK_HEADER)[-4:]):
        return 0
    return file.seek(0, 2)


class _Keeping(Protocol):
    """A workspace whose refs are kept."""

    _kept: KeptCommits | None


W = TypeVar("W", bound=_Keeping)


def kept(
    method: Callable[Concatenate[W, P], Awaitable[T]],
) -> Callable[Concatenate[W, P], Coroutine[Any, Any, T]]:
    """A method that returns only when the store has what its result refers to.

    Also one that only reads a ref which another story moves: its caller may write the commit down.
    """

    @wraps(method)
    async def call(self: W, /, *args: P.args, **named: P.kwargs) -> T:
        result = await method(self, *args, **named)
        if self._kept is not None:
            await self._kept.keep()
        return result

    return call
