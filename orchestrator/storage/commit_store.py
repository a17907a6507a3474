"""The commits of sprints in Postgres: which refs a sprint has, and the packs of git objects that they need.

A repository's base commits, with their whole history, are packed once for all sprints of it. Every sprint adds packs of
its own, each with what is new since the one before.
"""

from collections.abc import Mapping, Sequence
from typing import IO

import sqlalchemy as sa

from orchestrator.core.delivery import KeptRefs, ObjectPack
from orchestrator.storage.event_table import Guard, connected, hold, lock, usable

PIECE_BYTES = 8 * 1024 * 1024
"""Size of the pieces that a pack is stored in: what a server and we have in memory at once."""
_TABLES = sa.MetaData()
REFS = sa.Table(
    "orchestrator_refs",
    _TABLES,
    sa.Column("sprint", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("repository", sa.Text, nullable=False, index=True),
)
PACKS = sa.Table(
    "orchestrator_packs",
    _TABLES,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=True),
    sa.Column("repository", sa.Text, nullable=False, index=True),
    # NULL for a pack with a base commit, which all sprints of the repository share.
    sa.Column("sprint", sa.Text, index=True),
    sa.Column("base", sa.Text, nullable=False),
    sa.Column("shallow", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
)
PIECES = sa.Table(
    "orchestrator_pack_pieces",
    _TABLES,
    sa.Column("pack", sa.ForeignKey(PACKS.c.number, ondelete="CASCADE"), primary_key=True),
    sa.Column("piece", sa.Integer, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)


class PostgresCommitStore:
    """`ports.CommitStore` in the database at `url`.

    `guard(connection, sprint)` is called in every transaction that writes, before it writes: what it raises ends the
    transaction and is raised.
    """

    def __init__(self, url: str, *, guard: Guard = lambda _connection, _sprint: None):
        self._url, self._guard = url, guard
        self._opened: sa.Engine | None = None

    def read(self, sprint: str, repository: str) -> KeptRefs:
        """See the port."""
        with usable(), self._engine.connect() as connection:
            return _read(connection, sprint, repository)

    def keep(
        self,
        sprint: str,
        repository: str,
        refs: Mapping[str, str],
        packs: Sequence[tuple[ObjectPack, IO[bytes]]],
        *,
        known: KeptRefs,
    ) -> bool:
        """See the port."""
        with usable(), self._engine.begin() as connection:
            self._guard(connection, sprint)
            _lock(connection, f"sprint {sprint}")
            if not known.refs or not refs:
                repository = _repository(connection, sprint) or repository
                # Nobody deletes or adds bases while it changes which sprints need them.
                _lock(connection, f"repository {repository}")
            found = _read(connection, sprint, repository)
            repository = found.repository or repository
            before, after = _difference(known.refs, refs)
            if found.refs and _has(found.refs, after):  # kept by an earlier trial, whose connection broke
                return True
            if not _has(found.refs, before) or (not known.refs and (found.refs or found.bases != known.bases)):
                return False
            for pack, file in packs:
                _insert_pack(connection, sprint, repository, pack, file)
            _replace_refs(connection, sprint, repository, after)
            if connection.execute(sa.select(REFS.c.name).where(REFS.c.sprint == sprint).limit(1)).first() is None:
                _delete(connection, sprint, repository)
        return True

    def packs(self, sprint: str) -> tuple[ObjectPack, ...]:
        """See the port."""
        with usable(), self._engine.connect() as connection:
            query = sa.select(PACKS.c.number, PACKS.c.base, PACKS.c.shallow, PACKS.c.size)
            needed = sa.or_(_bases(_repository(connection, sprint)), PACKS.c.sprint == sprint)
            rows = connection.execute(query.where(needed).order_by(PACKS.c.base == "", PACKS.c.number))
            return tuple(ObjectPack(**row) for row in rows.mappings())

    def load(self, pack: ObjectPack, file: IO[bytes]) -> None:
        """See the port."""
        query = sa.select(PIECES.c.content).where(PIECES.c.pack == pack.number, PIECES.c.piece == sa.bindparam("piece"))
        file.seek(0)
        file.truncate()
        with usable(), self._engine.connect() as connection:
            piece = 0
            while (content := connection.execute(query, {"piece": piece}).scalar()) is not None:
                file.write(content)
                piece += 1
        file.flush()

    def delete(self, sprint: str) -> None:
        """See the port."""
        with usable(), self._engine.begin() as connection:
            self._guard(connection, sprint)
            _lock(connection, f"sprint {sprint}")
            repository = _repository(connection, sprint)
            if repository is not None:
                _lock(connection, f"repository {repository}")
                _delete(connection, sprint, repository)

    @property
    def _engine(self) -> sa.Engine:
        """The engine, once it has made the tables; others may make them at the same moment."""
        if self._opened is None:
            # Without a pool: a connection is needed once per commit, and many sprints share the server.
            engine = connected(self._url, writes=True, pooled=False)
            with engine.begin() as connection:
                lock(connection)
                _TABLES.create_all(connection)
            self._opened = engine
        return self._opened


def _lock(connection: sa.Connection, name: str) -> None:
    hold(connection, sa.func.hashtextextended(f"orchestrator {name}", 0))


def _bases(repository: str | None) -> sa.ColumnElement[bool]:
    return sa.and_(PACKS.c.sprint.is_(None), PACKS.c.repository == repository)


def _read(connection: sa.Connection, sprint: str, repository: str) -> KeptRefs:
    query = sa.select(REFS.c.name, REFS.c.object, REFS.c.repository).where(REFS.c.sprint == sprint)
    refs = connection.execute(query).all()
    bases = connection.execute(sa.select(PACKS.c.base).where(_bases(repository)).order_by(PACKS.c.number))
    return KeptRefs(
        refs={row.name: row.object for row in refs},
        bases=tuple(base for (base,) in bases),
        repository=refs[0].repository if refs else "",
    )


def _repository(connection: sa.Connection, sprint: str) -> str | None:
    """Returns the repository that the sprint was kept for; a moved project calls it by another name now."""
    return connection.execute(sa.select(REFS.c.repository).where(REFS.c.sprint == sprint).limit(1)).scalar()


def _is_shared(connection: sa.Connection, sprint: str, repository: str) -> bool:
    others = sa.select(REFS.c.sprint).where(REFS.c.repository == repository, REFS.c.sprint != sprint).limit(1)
    return connection.execute(others).first() is not None


def _insert_pack(connection: sa.Connection, sprint: str, repository: str, pack: ObjectPack, file: IO[bytes]) -> None:
    row = {"repository": repository, "sprint": None if pack.base else sprint, "base": pack.base}
    made = sa.insert(PACKS).values(**row, shallow=pack.shallow, size=pack.size).returning(PACKS.c.number)
    number = connection.execute(made).scalar_one()
    file.seek(0)
    piece = 0
    while content := file.read(PIECE_BYTES):
        connection.execute(sa.insert(PIECES).values(pack=number, piece=piece, content=content))
        piece += 1


def _difference(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Returns both values of each ref that differs; None where it is absent."""
    moved = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in moved}, {name: after.get(name) for name in moved}


def _has(refs: Mapping[str, str], some: Mapping[str, str | None]) -> bool:
    return all(refs.get(name) == oid for name, oid in some.items())


def _replace_refs(connection: sa.Connection, sprint: str, repository: str, after: Mapping[str, str | None]) -> None:
    """Writes only what differs: a sprint may have thousands of refs, of which one has moved."""
    # Those that moved are among them, and inserted again.
    connection.execute(sa.delete(REFS).where(REFS.c.sprint == sprint, REFS.c.name.in_(after)))
    row = {"sprint": sprint, "repository": repository}
    rows = [{**row, "name": name, "object": oid} for name, oid in after.items() if oid is not None]
    if rows:
        connection.execute(sa.insert(REFS), rows)


def _delete(connection: sa.Connection, sprint: str, repository: str) -> None:
    shared = _is_shared(connection, sprint, repository)
    connection.execute(sa.delete(REFS).where(REFS.c.sprint == sprint))
    connection.execute(sa.delete(PACKS).where(PACKS.c.sprint == sprint))
    if not shared:
        connection.execute(sa.delete(PACKS).where(_bases(repository)))
