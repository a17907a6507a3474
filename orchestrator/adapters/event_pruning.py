"""The one exception to the event log being append-only: what is told of a pruned sprint goes, but for its last word."""

import sqlalchemy as sa

from orchestrator.adapters.event_table import EVENTS, connected, usable


class EventPruner:
    """Removes the events of finished sprints; blocks. Raises ConfigError when the database cannot be used."""

    def __init__(self, url: str) -> None:
        self._engine = connected(url, writes=True)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def weigh(self, sprint: str) -> int:
        """Bytes of the sprint's events."""
        with usable(), self._engine.connect() as connection:
            if not sa.inspect(connection).has_table(EVENTS.name):
                return 0
            query = sa.select(sa.func.sum(sa.func.length(EVENTS.c.body))).where(EVENTS.c.sprint == sprint)
            return int(connection.execute(query).scalar() or 0)

    def prune(self, sprint: str, last_word: str) -> int:
        """Remove the sprint's events that came before the one with this id; how many they were.

        What was recorded later stays, so that no sequence number is ever given twice. Without such an event nothing
        goes.
        """
        word = sa.select(EVENTS.c.seq).where(EVENTS.c.id == last_word).scalar_subquery()
        with usable(), self._engine.begin() as connection:
            gone = connection.execute(sa.delete(EVENTS).where(EVENTS.c.sprint == sprint, EVENTS.c.seq < word))
            return gone.rowcount
