"""Commands through a daemon: what they ask it, and what they make of what it says."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from orchestrator.domain.analysis import AnalysisRequest, AnalysisState, AnalysisView
from orchestrator.domain.control import Settled, Verb
from orchestrator.domain.daemon import Submitted
from orchestrator.domain.doctor import DoctorRow
from orchestrator.domain.gate import GATE_ANSWERED, Gate
from orchestrator.domain.retention import Pruned
from orchestrator.domain.sprint import SprintRecord
from orchestrator.errors import ConfigError, UnknownName
from orchestrator.sprint.dry_run import DryRun
from orchestrator.wiring.gates import Asked

if TYPE_CHECKING:
    from orchestrator.adapters.daemon_client import DaemonClient

V = TypeVar("V", Settled, Submitted, Pruned, DoctorRow, DryRun, AnalysisState, AnalysisView)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
LONG_S = 900.0
"""A look at a large state folder, or at every tier of a machine, may take so long."""
LONGEST_WAIT_S = 15.0
"""Between two tries to reach a daemon that is away."""
_DOTS = frozenset({".", ".."})


class Remote:
    """What people ask of a daemon. Every method raises ConfigError with one sentence."""

    def __init__(self, client: "DaemonClient", *, found: bool = False) -> None:
        self.url, self.client = client.url, client
        self.found = found
        """Whether it is the one at work in the command's state folder, and nobody has named it."""
        self._client = client

    def sprint(self, name: str | None, *, story: str | None = None) -> dict[str, Any]:
        """The named sprint, or the latest (that has `story`), as `status --json` prints it."""
        if name is not None:
            return self._object(self._client.get(f"/sprints/{_part(name)}"), "sprint", "stories")
        named = {"story": _part(story)} if story is not None else {}
        sprints = self._client.get("/sprints", {"limit": "1", **named})
        if not isinstance(sprints, list):
            raise ConfigError(f"{self.url} does not answer as a daemon: a list of sprints should be there")
        if not sprints:
            raise UnknownName(f"the daemon at {self.url} knows no sprint; `orchestrator submit BACKLOG` starts one")
        return self._object(sprints[-1], "sprint", "stories")

    def sprint_again(self, name: str, tell: Callable[[str], None], pause: Callable[[float], None]) -> dict[str, Any]:
        """The same of a sprint that was told before: a daemon that is away by now is waited for, which is told."""
        from orchestrator.adapters.daemon_client import DaemonAway

        wait = 0.0
        while True:
            try:
                told = self.sprint(name)
            except DaemonAway as error:
                if not wait:
                    tell(f"{error.message}; waiting for it")
                wait = min(2 * wait + 1, LONGEST_WAIT_S)
                pause(wait)
            else:
                if wait:
                    tell(f"the daemon at {self.url} is there again")
                return told

    def sprint_while_there(self, name: str) -> dict[str, Any] | None:
        """The same, or None when the daemon is away."""
        from orchestrator.adapters.daemon_client import DaemonAway

        try:
            return self.sprint(name)
        except DaemonAway:
            return None

    def story(self, sprint: str | None, story: str, *, full: bool = False) -> dict[str, Any]:
        """A story as `show --json` prints it."""
        more = {"full": "true"} if full else {}
        return self._object(self._client.get(self._place(sprint, story), more), "id", "sprint", "history")

    def contract(self, sprint: str, story: str) -> dict[str, Any]:
        """A story's contract."""
        return self._object(self._client.get(f"{self._place(sprint, story)}/contract"), "hash", "task_files")

    def answer(self, sprint: str | None, story: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to the story's question that counts: the one that was given now, or an earlier one."""
        return self._object(self._client.post(f"{self._place(sprint, story)}/answer", said), "counts", "message")

    def replan(self, sprint: str | None, story: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """The answer that counts, of a story that waits; else which stories are begun anew."""
        return self._object(self._client.post(f"{self._place(sprint, story)}/replan", said), "sprint")

    def whom(self, name: str | None, sprint: str | None) -> tuple[str, str | None]:
        """(sprint, story or None for all of it) that an order with this name and --sprint is about."""
        if name is None or name == sprint:
            return sprint or str(self.sprint(None)["sprint"]), None
        if sprint is not None:
            return sprint, name
        try:
            return str(self.sprint(name)["sprint"]), None
        except UnknownName:
            return str(self.sprint(None, story=name)["sprint"]), name

    def at_question(self, sprint: str, story: str) -> bool:
        """As `wiring.gates.at_question`."""
        shown = self.story(sprint, story)
        last = shown["history"][-1:] if isinstance(shown["history"], list) else []
        return shown.get("question") is not None or [one.get("event") for one in last] == [GATE_ANSWERED]

    def order(self, verb: Verb, sprint: str, story: str | None, *, by: str, comment: str) -> Settled:
        """What became of an order."""
        place = self._place(sprint, story) if story is not None else f"/sprints/{_part(sprint)}"
        told = self._client.post(f"{place}/orders", {"verb": verb.value, "comment": comment, "by": by[:80]})
        return self._value(Settled, told)

    def submit(self, name: str, form: str, content: bytes) -> Submitted:
        """Hand a backlog in. Raises ConfigError with the findings when it is refused."""
        return self._value(Submitted, self._client.put(f"/backlogs/{_part(name)}", content, format=form))

    def dry_run(self, name: str, form: str, content: bytes) -> DryRun:
        """What a run of the backlog would do there. Raises ConfigError with the findings when it cannot be read."""
        return self._value(DryRun, self._client.post_file("/dry-run", content, format=form, name=_part(name)))

    def analyse(self, asked: AnalysisRequest) -> AnalysisState:
        """Begin an analysis of its repository."""
        said = asked.model_dump(mode="json", exclude_defaults=True)
        return self._value(AnalysisState, self._client.post("/analyses", said))

    def analysis(self, name: str) -> AnalysisView:
        """How an analysis stands, and what it has come to."""
        return self._value(AnalysisView, self._client.get(f"/analyses/{_part(name)}"))

    def analysis_while_there(self, name: str) -> AnalysisView | None:
        """The same, or None when the daemon is away."""
        from orchestrator.adapters.daemon_client import DaemonAway

        try:
            return self.analysis(name)
        except DaemonAway:
            return None

    def prune(self, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        """What one look at the past came to there."""
        body = {"dry_run": dry_run, **limits}
        return self._value(Pruned, self._client.post("/prune", body, patience_s=LONG_S))

    def examine(self, *, sandbox: bool) -> list[DoctorRow]:
        """What `doctor` says of the daemon and its machine."""
        told = self._client.get("/doctor", {"sandbox": "true" if sandbox else "false"}, patience_s=LONG_S)
        rows = self._object(told, "rows")["rows"]
        return [self._value(DoctorRow, row) for row in rows if isinstance(rows, list)]

    def backup(self) -> Iterator[bytes]:
        """The archive of its state folder in parts."""
        return self._client.parts("/backup", patience_s=LONG_S)

    def _place(self, sprint: str | None, story: str) -> str:
        _part(story)
        name = sprint if sprint is not None else str(self.sprint(None, story=story)["sprint"])
        return f"/sprints/{_part(name)}/stories/{story}"

    def _object(self, told: Any, *names: str) -> dict[str, Any]:
        if not isinstance(told, dict) or not told.keys() >= set(names):
            raise ConfigError(f"{self.url} does not answer as a daemon: {', '.join(names)} should be there")
        return told

    def _value(self, kind: type[V], told: Any) -> V:
        """A value of ours; what a newer daemon tells beside is left out."""
        known = {name: told[name] for name in kind.model_fields if name in self._object(told)}
        try:
            return kind.model_validate(known)
        except ValidationError as error:
            raise ConfigError(f"{self.url} does not answer as a daemon: this is no {kind.__name__}") from error


def asked_of(shown: Mapping[str, Any]) -> Asked:
    """The question of a story that a daemon has shown. Raises ConfigError when it asks nothing."""
    story, sprint, question = str(shown["id"]), str(shown["sprint"]), shown.get("question")
    if not isinstance(question, dict):
        raise ConfigError(f"{story} waits for nobody: it is {shown.get('status')}")
    try:
        gate = Gate.model_validate({name: value for name, value in question.items() if name in Gate.model_fields})
    except ValidationError as error:
        raise ConfigError(f"the question of {story} is one that this version does not know") from error
    record = SprintRecord(
        sprint=sprint, backlog="", repo="", base="", story_ids=(story,), titles={story: str(shown.get("title") or "")},
        started_at=gate.opened_at or datetime.now(UTC),
    )  # fmt: skip
    return Asked(record=record, story=story, gate=gate)


def _part(name: str) -> str:
    """A name as a part of an address: no other than a sprint, a story or a backlog can have."""
    if not _NAME.fullmatch(name) or name in _DOTS:
        raise ConfigError(f"{name} is the name of nothing: letters, digits, dots, hyphens and underlines, 64 at most")
    return name
