"""The store of commits on a real Postgres: tables, transactions, and who may write."""

import io
from collections.abc import Sequence
from typing import IO

import pytest
import sqlalchemy as sa

from orchestrator.core.delivery import KeptRefs, ObjectPack
from orchestrator.storage.commit_store import PIECE_BYTES, PostgresCommitStore

HEAD, BASE = "refs/heads/orchestrator/s1/result", "a" * 40


def packs(*contents: bytes, base: str = "") -> list[tuple[ObjectPack, IO[bytes]]]:
    return [(ObjectPack(base=base, size=len(content)), io.BytesIO(content)) for content in contents]


def read(store: PostgresCommitStore, kept: Sequence[ObjectPack]) -> list[bytes]:
    files = [io.BytesIO() for _ in kept]
    for pack, file in zip(kept, files, strict=True):
        store.load(pack, file)
    return [file.getvalue() for file in files]


def test_packs_come_back_in_order_and_a_repeated_call_keeps_nothing_twice(postgres: str) -> None:
    store = PostgresCommitStore(postgres)
    nothing = KeptRefs()
    large = bytes(range(256)) * (PIECE_BYTES // 256) + b"end"
    first, own = packs(large, base=BASE), packs(b"one")
    for _ in range(2):
        assert store.keep("s1", "app.git", {HEAD: "b"}, [*first, *own], known=nothing)
    known = store.read("s1", "app.git")
    assert known == KeptRefs(refs={HEAD: "b"}, bases=(BASE,), repository="app.git")
    assert store.keep("s1", "app.git", {HEAD: "c", "refs/x": "d"}, packs(b"two"), known=known)
    kept = store.packs("s1")
    assert [pack.base for pack in kept] == [BASE, "", ""]
    assert read(store, kept) == [large, b"one", b"two"]
    # A repository that was moved has another name; the sprint's packs are found by the sprint.
    known = store.read("s1", "moved.git")
    assert store.keep("s1", "moved.git", {HEAD: "e"}, [], known=known)
    assert store.packs("s1") == kept
    assert store.keep("s1", "moved.git", {}, [], known=store.read("s1", "moved.git"))
    assert store.packs("s1") == ()
    assert store.read("s1", "app.git") == nothing


def test_who_does_not_know_what_was_kept_last_keeps_nothing(postgres: str) -> None:
    store, slow = PostgresCommitStore(postgres), PostgresCommitStore(postgres)
    known = slow.read("s1", "app.git")
    assert store.keep("s1", "app.git", {HEAD: "b"}, packs(b"base", base=BASE), known=known)
    kept = store.packs("s1")
    assert not slow.keep("s1", "app.git", {HEAD: "c"}, packs(b"other", base=BASE), known=known)
    # Another sprint's pack was made when this base was not kept yet: with it, it would be there twice.
    assert not slow.keep("s2", "app.git", {HEAD: "c"}, packs(b"other", base=BASE), known=known)
    assert store.read("s1", "app.git").refs == {HEAD: "b"}
    assert store.packs("s1") == kept


class Fenced(Exception):
    pass


def test_the_guard_stands_before_every_write_and_sees_its_transaction(postgres: str) -> None:
    seen = []

    def guard(connection: sa.Connection, sprint: str) -> None:
        seen.append((sprint, connection.execute(sa.text("SELECT 1")).scalar()))
        if len(seen) > 1:
            raise Fenced

    store = PostgresCommitStore(postgres, guard=guard)
    assert store.keep("s1", "app.git", {HEAD: "b"}, packs(b"x"), known=KeptRefs())
    known = store.read("s1", "app.git")
    with pytest.raises(Fenced):
        store.keep("s1", "app.git", {HEAD: "c"}, packs(b"y"), known=known)
    with pytest.raises(Fenced):
        store.delete("s1")
    assert store.read("s1", "app.git") == known
    assert seen == [("s1", 1)] * 3
