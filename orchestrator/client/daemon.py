"""A daemon, as commands use it: what they ask of it, checked to be what a daemon answers."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator.client.http import DaemonAway, DaemonClient, RemoteLog
from orchestrator.core.command import AnswerBody, OrderBody, ReplanBody, Settled
from orchestrator.core.daemon import Submitted
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.core.sprint import Pruned
from orchestrator.records.logs import LogQuery
from orchestrator.sprint.dry_run import DryRun

R = TypeVar("R")
V = TypeVar("V", bound=BaseModel)
# As `server.models.Id`: it becomes a part of a path.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_DOTS = frozenset({".", ".."})
LONG_S = 900.0
"""A look at a large state folder, or at every tier of a machine, may take so long."""
LONGEST_WAIT_S = 15.0
"""Between two tries to reach a daemon that is away."""


class Daemon:
    """One daemon, with the methods of `LocalFolder` and more. Each raises ConfigError with one sentence."""

    poll_s = 2.0

    def __init__(self, client: DaemonClient) -> None:
        self.url, self.client = client.url, client
        self._client = client

    def sprint(self, name: str | None, *, story: str | None = None) -> dict[str, Any]:
        """Returns a sprint; see `LocalFolder`."""
        if name is not None:
            return self._object(self._client.get(f"/sprints/{_part(name)}"), "sprint", "stories")
        named = {"story": _part(story)} if story is not None else {}
        sprints = self._client.get("/sprints", {"limit": "1", **named})
        if not isinstance(sprints, list):
            raise ConfigError(f"{self.url} does not answer as a daemon: a list of sprints should be there")
        if not sprints:
            raise UnknownName(f"the daemon at {self.url} knows no sprint; `orchestrator submit BACKLOG` starts one")
        return self._object(sprints[-1], "sprint", "stories")

    def follow(
        self, name: str, tell: Callable[[str], None], pause: Callable[[float], None] = time.sleep
    ) -> dict[str, Any]:
        """Returns the sprint again; waits for a daemon that is away."""
        return self._when_there(lambda: self.sprint(name), tell, pause)

    def story(self, sprint: str | None, story: str, *, full: bool = False) -> dict[str, Any]:
        """Returns a story; see `LocalFolder`."""
        more = {"full": "true"} if full else {}
        return self._object(self._client.get(self._place(sprint, story), more), "id", "sprint", "history")

    def contract(self, sprint: str, story: str) -> dict[str, Any]:
        """Returns a contract; see `LocalFolder`."""
        return self._object(self._client.get(f"{self._place(sprint, story)}/contract"), "hash", "task_files")

    def answer(self, sprint: str | None, story: str, given: AnswerBody) -> dict[str, Any]:
        """Returns the answer that counts; see `LocalFolder`."""
        body = given.model_dump(mode="json", exclude={} if given.file else {"file"})
        return self._object(self._client.post(f"{self._place(sprint, story)}/answer", body), "counts", "message")

    def replan(self, sprint: str | None, story: str, given: ReplanBody) -> dict[str, Any]:
        """Returns what came of it; see `LocalFolder`."""
        return self._object(
            self._client.post(f"{self._place(sprint, story)}/replan", given.model_dump(mode="json")), "sprint"
        )

    def target(self, name: str | None, sprint: str | None) -> tuple[str, str | None]:
        """Returns what an order is about; see `LocalFolder`."""
        if name is None or name == sprint:
            return sprint or str(self.sprint(None)["sprint"]), None
        if sprint is not None:
            return sprint, name
        try:
            return str(self.sprint(name)["sprint"]), None
        except UnknownName:
            return str(self.sprint(None, story=name)["sprint"]), name

    def order(self, sprint: str | None, story: str | None, given: OrderBody) -> Settled:
        """Returns what became of it; see `LocalFolder`."""
        place = self._place(sprint, story) if story is not None else f"/sprints/{_part(sprint or '')}"
        return self._value(Settled, self._client.post(f"{place}/orders", given.model_dump(mode="json")))

    def prune(self, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        """Deletes what is too old or too much; see `LocalFolder`."""
        body = {"dry_run": dry_run, **limits}
        return self._value(Pruned, self._client.post("/prune", body, patience_s=LONG_S))

    def log(self, query: LogQuery, after: int) -> RemoteLog:
        """Returns its event log behind a number, to be closed."""
        return RemoteLog(self._client, query, after=after)

    def submit(self, name: str, form: str, content: bytes) -> Submitted:
        """Hands a backlog in. Raises ConfigError with the findings when it is refused."""
        return self._value(Submitted, self._client.send_file("PUT", f"/backlogs/{_part(name)}", content, format=form))

    def dry_run(self, name: str, form: str, content: bytes) -> DryRun:
        """Returns what a run of the backlog would do. Raises ConfigError with the findings when it cannot be read."""
        made = self._client.send_file("POST", "/dry-run", content, format=form, name=_part(name))
        return self._value(DryRun, made)

    def _when_there(self, ask: Callable[[], R], tell: Callable[[str], None], pause: Callable[[float], None]) -> R:
        wait = 0.0
        while True:
            try:
                answer = ask()
            except DaemonAway as error:
                if not wait:
                    tell(f"{error.message}; waiting for it")
                wait = min(2 * wait + 1, LONGEST_WAIT_S)
                pause(wait)
            else:
                if wait:
                    tell(f"the daemon at {self.url} is there again")
                return answer

    def _place(self, sprint: str | None, story: str) -> str:
        _part(story)
        name = sprint if sprint is not None else str(self.sprint(None, story=story)["sprint"])
        return f"/sprints/{_part(name)}/stories/{story}"

    def _object(self, answer: Any, *names: str) -> dict[str, Any]:
        if not isinstance(answer, dict) or not answer.keys() >= set(names):
            raise ConfigError(f"{self.url} does not answer as a daemon: {', '.join(names)} should be there")
        return answer

    def _value(self, kind: type[V], answer: Any) -> V:
        """Returns a value of ours; what a newer daemon adds to it is left out."""
        known = {name: answer[name] for name in kind.model_fields if name in self._object(answer)}
        try:
            return kind.model_validate(known)
        except ValidationError as error:
            raise ConfigError(f"{self.url} does not answer as a daemon: this is no {kind.__name__}") from error


def _part(name: str) -> str:
    """Returns a name as a part of an address: no other than a sprint, a story or a backlog can have."""
    if not _NAME.fullmatch(name) or name in _DOTS:
        raise ConfigError(f"{name} is the name of nothing: letters, digits, dots, hyphens and underlines, 64 at most")
    return name
