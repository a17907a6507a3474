"""The page of the log: lines that fit the filters of its address, up to the newest or around a moment."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from orchestrator.core.errors import UnknownName
from orchestrator.core.event import Event, Level, json_line
from orchestrator.records.logs import LogQuery
from orchestrator.records.sprint_reader import Reader
from orchestrator.storage.event_reader import HIGHEST, EventReader

FILTERS = ("sprint", "story", "task", "persona", "level", "since")
MOST_LINES = 200
AROUND = 100
"""Lines before a moment."""
MOST_READ = 50_000
"""Events that one page looks through for lines that fit: about a second."""
DRIFT = timedelta(hours=1)
"""Events that processes record side by side may stand in another order than that of their times."""
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
"""Before any event."""
MOST_NAMED = 100
"""Sprints that the page proposes."""


def values(
    reader: Reader, given: Mapping[str, str], *, level: Level, text_cap: int, most_read: int = MOST_READ
) -> dict[str, Any]:
    """Returns what logs.html shows for an address's query; `level` counts where it names none.

    A filter that means nothing is told beside its field, and no line is shown.
    """
    chosen = {name: given[name].strip() for name in FILTERS if given.get(name, "").strip()}
    problems: dict[str, str] = {}
    query = _read_query(reader, chosen, level, problems)
    at, before = (_read_number(given, name, problems) for name in ("at", "before"))
    shown: dict[str, Any] = {"lines": [], "place": 0, "older": None, "newer": None, "is_partial": False}
    if not problems and (log := reader.log()) is not None:
        try:
            shown["place"] = log.head()  # first: what is recorded meanwhile is followed
            lines = _Lines(log, query, most_read)
            end = at or before or shown["place"] + 1
            found, shown["older"], shown["is_partial"] = lines.before(end, AROUND if at else MOST_LINES)
            if at:
                later, shown["newer"] = lines.after(at - 1, MOST_LINES - AROUND)
                found += later
            shown["lines"] = [line(seq, event, text_cap) for seq, event in found]
        finally:
            log.close()
    newest = f"/logs?{urlencode(chosen)}" if chosen else "/logs"
    since = {"since": query.since.isoformat()} if query.since is not None else {}
    followed = {name: text for name, text in chosen.items() if name != "since"} | {"level": query.level.value} | since
    return {
        **shown,
        "at": at,
        "follows": not (at or before or problems),
        "problems": problems,
        "fields": {name: given.get(name, "") for name in FILTERS}
        | {"level": query.level.value, "since": _local(query)},
        "levels": [one.value for one in Level],
        "sprints": [record.sprint for record in reversed(reader.records()[-MOST_NAMED:])],
        "newest_address": newest,
        "here_address": f"{newest}{'&' if chosen else '?'}",  # a place in the log follows
        "stream": f"/api/v1/events?{urlencode(followed)}&after={shown['place']}",
    }


def _read_query(reader: Reader, chosen: Mapping[str, str], level: Level, problems: dict[str, str]) -> LogQuery:
    since = None
    if "since" in chosen:
        try:
            told = datetime.fromisoformat(chosen["since"])
            told = max(told if told.tzinfo else told.replace(tzinfo=UTC), _FIRST)
            told.astimezone(UTC)  # not so for the last hours of the year 9999
            since = told
        except (ValueError, OverflowError):
            problems["since"] = "a time is written as 2026-03-01T12:30"
    if "level" in chosen:
        try:
            level = Level(chosen["level"])
        except ValueError:
            problems["level"] = f"a level is one of {', '.join(Level)}"
    sprint = chosen.get("sprint")
    try:
        if sprint is not None:
            reader.expect_run(sprint)
    except UnknownName as error:
        problems["sprint"] = error.message
    names = {name: chosen.get(name) for name in ("sprint", "story", "task", "persona")}
    return LogQuery(**names, level=level, since=since)


def _read_number(given: Mapping[str, str], name: str, problems: dict[str, str]) -> int | None:
    text = given.get(name, "").strip()
    if text.isascii() and text.isdigit() and len(text) <= len(str(HIGHEST)) and int(text) <= HIGHEST:
        return int(text)
    if text:
        problems[name] = f"{name} is the number of a line"
    return None


def _local(query: LogQuery) -> str:
    """Returns `since` as a field of a browser takes it, in UTC."""
    return query.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") if query.since is not None else ""


class _Lines:
    """The lines of a log that fit a query, as [(number, event)]."""

    def __init__(self, log: EventReader, query: LogQuery, most_read: int) -> None:
        self._log, self._query, self._most_read = log, query, most_read

    def before(self, number: int, most: int) -> tuple[list[tuple[int, Event]], int | None, bool]:
        """Returns the last `most` lines before a number; before which number older ones are (None: there are none),
        and whether the look ended there before it had found enough."""
        found: list[tuple[int, Event]] = []
        since = self._query.since
        for read, (seq, event) in enumerate(self._log.backwards(self._query.sprint, number), start=1):
            if since is not None and event.time < since - DRIFT:
                break
            if self._query.wants(event):
                if len(found) == most:  # there is one more
                    return found[::-1], found[-1][0], False
                found.append((seq, event))
            if read == self._most_read:
                return found[::-1], seq, True
        return found[::-1], None, False

    def after(self, number: int, most: int) -> tuple[list[tuple[int, Event]], int | None]:
        """Returns the first `most` lines behind a number, and the last line of them if there may be more."""
        found: list[tuple[int, Event]] = []
        for read, (seq, event) in enumerate(self._log.read(self._query.sprint, number), start=1):
            if self._query.wants(event):
                found.append((seq, event))
            if len(found) == most or read == self._most_read:
                return found, seq
        return found, None


def line(seq: int, event: Event, text_cap: int) -> dict[str, Any]:
    """Returns a line as the stream of events has it, with the fields that the page shows."""
    told = json.loads(json_line(event, text_cap, seq=seq))
    names = ("timestamp", "level", "event", "sprint", "story", "task", "persona", "message")
    return {"seq": seq, **{name: told.get(name) or "" for name in names}}
