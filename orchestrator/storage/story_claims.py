"""Stories that the daemons of one Postgres share: who runs which one, and how many calls are under way over all.

The daemon that holds a sprint offers its stories here; any daemon claims one and runs it. What a process has claimed is
its own until it gives it back or its lease is gone (see `leases`), so that a look at the own row is all the fencing.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from orchestrator.storage.event_table import hold, lock
from orchestrator.storage.leases import DAEMONS, Lease, drop_stale, stale_before
from orchestrator.storage.locks import SERVES

_TABLES = sa.MetaData()
STORIES = sa.Table(
    "orchestrator_stories",
    _TABLES,
    sa.Column("workflow_id", sa.Text, primary_key=True),
    sa.Column("sprint", sa.Text, nullable=False, index=True),
    sa.Column("payload", sa.Text, nullable=False),
    # Of the process that runs it; NULL, or of one that is gone: anyone's.
    sa.Column("token", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("cut", sa.Boolean, nullable=False),
    sa.Column("offered", sa.DateTime(timezone=True), nullable=False),
)
"""Stories that were begun and have not ended, by workflow id, with the input of the workflow as JSON."""
CALLS = sa.Table(
    "orchestrator_calls",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
)
"""Calls of a provider that are under way, and the process of each."""
State = Literal["offered", "at work", "waiting", "ended"]
_AT_WORK = ("offered", "at work")
"""States in which a story counts for `concurrency.stories`; one that waits for a person does not."""
STORY_LOCK, CALL_LOCK = 3157034517263092, 3157034517263093
"""Of transactions that count before they write."""


# Made once: every daemon looks twice a second.
_ALIVE = sa.and_(DAEMONS.c.token.is_not(None), DAEMONS.c.seen >= stale_before())
_AGE = sa.extract("epoch", sa.func.clock_timestamp() - STORIES.c.offered)
_ROWS = sa.select(
    STORIES.c.workflow_id, STORIES.c.sprint, STORIES.c.state, STORIES.c.cut, STORIES.c.token,
    _ALIVE.label("alive"), _AGE.label("age"),
).select_from(STORIES.outerjoin(DAEMONS, DAEMONS.c.token == STORIES.c.token))  # fmt: skip
_OTHERS = (
    sa.select(sa.func.count(STORIES.c.workflow_id).filter(STORIES.c.state.in_(_AT_WORK)))
    .select_from(DAEMONS.outerjoin(STORIES, DAEMONS.c.token == STORIES.c.token))
    .where(DAEMONS.c.seen >= stale_before(), DAEMONS.c.executor_id.startswith(SERVES))
    .where(DAEMONS.c.token != sa.bindparam("mine"))
    .group_by(DAEMONS.c.token)
)


@dataclass(frozen=True, slots=True)
class StoryRow:
    """A story as it was at the last look."""

    workflow_id: str
    sprint: str
    state: State
    cut: bool
    """Whether the holder of the sprint wants it interrupted."""
    is_mine: bool
    is_held: bool
    """Whether a living process runs it, this one or another."""
    age_s: float
    """Seconds since it was offered or given back."""


@dataclass(frozen=True)
class Look:
    """All shared stories, and how many each other living daemon has at work."""

    stories: Mapping[str, StoryRow] = field(default_factory=dict)
    others: tuple[int, ...] = ()

    @property
    def at_work(self) -> int:
        """Returns how many stories are at work over all."""
        return sum(row.state in _AT_WORK for row in self.stories.values())

    @cached_property
    def is_behind(self) -> bool:
        """Returns whether no other daemon has fewer stories at work than this one."""
        mine = sum(row.is_mine and row.state in _AT_WORK for row in self.stories.values())
        return all(mine <= theirs for theirs in self.others)


class StoryClaims:
    """The shared stories, for the process of one lease. Everything blocks, and raises EventLogAway and SprintLocked."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def prepare(self) -> None:
        """Makes the tables, and forgets the calls of processes that are gone."""
        with self._lease.writing("") as connection:
            lock(connection)
            _TABLES.create_all(connection)
            connection.execute(sa.delete(CALLS).where(CALLS.c.token.not_in(sa.select(DAEMONS.c.token))))

    def look(self) -> Look:
        """Returns how it is now."""
        with self._lease.reading() as connection:
            found = [
                StoryRow(
                    workflow_id=row.workflow_id,
                    sprint=row.sprint,
                    state=row.state,
                    cut=row.cut,
                    is_mine=row.token == self._lease.token,
                    is_held=row.alive,
                    age_s=float(row.age),
                )
                for row in connection.execute(_ROWS)
            ]
            others = connection.execute(_OTHERS, {"mine": self._lease.token}).scalars()
            return Look({row.workflow_id: row for row in found}, tuple(others))

    def is_run_elsewhere(self, sprint: str) -> bool:
        """Returns whether other living daemons run stories of a sprint, also where it has no daemon of its own now."""
        with self._lease.reading() as connection:
            if not sa.inspect(connection).has_table(STORIES.name):
                return False
        return any(row.sprint == sprint and row.is_held and not row.is_mine for row in self.look().stories.values())

    def offer(self, workflow_id: str, sprint: str, payload: str, limit: int) -> bool:
        """Offers a story, unless `limit` are at work over all; returns whether it is among the shared ones now."""
        with self._lease.writing(sprint) as connection:
            hold(connection, STORY_LOCK)
            if connection.execute(sa.select(STORIES.c.state).where(STORIES.c.workflow_id == workflow_id)).first():
                return True
            if not _has_room(connection, limit):
                return False
            row = {"workflow_id": workflow_id, "sprint": sprint, "payload": payload, "token": None}
            begun = {"state": "offered", "cut": False, "offered": sa.func.clock_timestamp()}
            connection.execute(sa.insert(STORIES).values(**row, **begun))
        return True

    def claim(self, workflow_id: str) -> str | None:
        """Takes a story that nobody runs; returns its payload, None where somebody does or it is not to be run."""
        with self._lease.writing("*") as connection:
            which = STORIES.c.workflow_id == workflow_id, ~STORIES.c.cut
            mine = sa.select(STORIES.c.payload).where(*which, STORIES.c.token == self._lease.token)
            found = _take(connection, self._lease.token, *which).first() or connection.execute(mine).first()
        return None if found is None else str(found[0])

    def claim_cut(self, workflow_id: str) -> bool:
        """Takes a story back that its holder has interrupted as it was told, or whose holder is gone."""
        with self._lease.writing("*") as connection:
            return _take(connection, self._lease.token, STORIES.c.workflow_id == workflow_id).first() is not None

    def claim_sprint(self, sprint: str) -> None:
        """Takes the stories of a sprint whose daemons are gone; what its last holder wanted interrupted goes on."""
        with self._lease.writing(sprint) as connection:
            _take(connection, self._lease.token, STORIES.c.sprint == sprint, STORIES.c.token.is_not(None))
            connection.execute(sa.update(STORIES).where(STORIES.c.sprint == sprint).values(cut=False))

    def cut(self, workflow_id: str) -> None:
        """Tells the holder of a story to interrupt it and to give it back."""
        self._change(workflow_id, cut=True)

    def give_back(self, workflow_id: str, *, cut: bool | None = None) -> None:
        """Leaves a story of ours to others; with `cut` set so, it is to be run or not to be run."""
        free = {"token": None, "state": "offered", "offered": sa.func.clock_timestamp()}
        self._change(workflow_id, mine=True, **free, **({} if cut is None else {"cut": cut}))

    def wait(self, workflow_id: str) -> None:
        """Notes that a story of ours waits for a person, without a place among those at work."""
        self._change(workflow_id, mine=True, state="waiting")

    def return_(self, workflow_id: str, limit: int) -> bool:
        """Gives it a place again; returns False while `limit` are at work."""
        with self._lease.writing("*") as connection:
            hold(connection, STORY_LOCK)
            if not _has_room(connection, limit):
                return False
            change = sa.update(STORIES).where(STORIES.c.workflow_id == workflow_id, STORIES.c.state == "waiting")
            connection.execute(change.values(state="at work"))
        return True

    def end(self, workflow_id: str) -> None:
        """Notes that a story of ours has its outcome."""
        self._change(workflow_id, mine=True, state="ended")

    def delete(self, workflow_id: str) -> None:
        """Removes a story whose outcome was taken."""
        with self._lease.writing("*") as connection:
            connection.execute(sa.delete(STORIES).where(STORIES.c.workflow_id == workflow_id))

    def begin_call(self, call: str, limit: int) -> bool:
        """Counts a call of ours; returns False, and counts none, while `limit` are under way over all.

        May be repeated after an answer that was lost.
        """
        alive = sa.select(sa.func.count()).select_from(CALLS).join(DAEMONS, DAEMONS.c.token == CALLS.c.token)
        under_way = alive.where(DAEMONS.c.seen >= stale_before(), CALLS.c.id != call).scalar_subquery()
        row = sa.select(sa.literal(call), sa.literal(self._lease.token)).where(under_way < limit)
        counted = postgresql.insert(CALLS).from_select(["id", "token"], row)
        # An update of nothing, for the row is told then too.
        again = counted.on_conflict_do_update(index_elements=[CALLS.c.id], set_={"token": self._lease.token})
        with self._lease.writing("*") as connection:
            hold(connection, CALL_LOCK)
            return connection.execute(again.returning(CALLS.c.id)).first() is not None

    def end_calls(self, calls: Collection[str]) -> None:
        """Counts these no more; may be repeated."""
        with self._lease.writing("*") as connection:
            connection.execute(sa.delete(CALLS).where(CALLS.c.id.in_(calls)))

    def _change(self, workflow_id: str, *, mine: bool = False, **values: object) -> None:
        change = sa.update(STORIES).where(STORIES.c.workflow_id == workflow_id)
        if mine:
            change = change.where(STORIES.c.token == self._lease.token)
        with self._lease.writing("*") as connection:
            connection.execute(change.values(**values))


def _take(connection: sa.Connection, token: str, *which: sa.ColumnElement[bool]) -> sa.CursorResult[tuple[str]]:
    drop_stale(connection, sa.select(STORIES.c.token).where(*which, STORIES.c.token.is_not(None)).scalar_subquery())
    free = sa.or_(STORIES.c.token.is_(None), STORIES.c.token.not_in(sa.select(DAEMONS.c.token)))
    taken = sa.update(STORIES).where(*which, free, STORIES.c.state != "ended").values(token=token, state="at work")
    return connection.execute(taken.returning(STORIES.c.payload))


def _has_room(connection: sa.Connection, limit: int) -> bool:
    count = sa.select(sa.func.count()).select_from(STORIES).where(STORIES.c.state.in_(_AT_WORK))
    return connection.execute(count).scalar_one() < limit
