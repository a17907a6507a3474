"""Every call of a model that a story took, in order: prompt, answer, what became of it; and what all cost."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orchestrator.board.deliveries import show_finding
from orchestrator.board.fit import cut_text
from orchestrator.core.calls.exchange import Usage
from orchestrator.core.calls.spending import PersonaSpending, amount_in
from orchestrator.core.command import Verdict
from orchestrator.core.errors import UnknownName
from orchestrator.core.event import Event
from orchestrator.core.history import SPENT
from orchestrator.core.sprint import SprintRecord, StageTime, Tokens
from orchestrator.core.value import each_once
from orchestrator.reports.path import verdict_of
from orchestrator.reports.report import STAGE_OF_PURPOSE
from orchestrator.storage.reply_journal import JournalEntry, ReplyJournal
from orchestrator.storage.state_folder import StateFolder

EXCERPT = 600
"""Characters of an answer in a list of calls."""
_VERDICTS = {
    "answer_accepted": ("good", "accepted"),
    "answer_sent_back": ("again", "sent back"),
    "answer_given_up": ("bad", "not accepted"),
    "answer_refused": ("bad", "unreadable"),
    "answer_truncated": ("again", "cut off"),
    "answer_repair_failed": ("bad", "repair failed"),
    "answer_repaired_by_model": ("good", "repaired on request"),
    "delivery_left_short": ("again", "files missing"),
    "breakdown_left_short": ("again", "tasks missing"),
    "files_shown": ("now", "asked for files"),
    "turn_failed": ("bad", "failed"),
    "amendment_refused": ("again", "nothing granted"),
    "contract_amended": ("good", "granted"),
    "older_tests_granted": ("good", "granted"),
}
"""Event about an answer → how it went, in one word; the last one counts."""
_ABOUT = frozenset(
    {*_VERDICTS, "answer_healed", "delivery_completed", "breakdown_completed", "review_read", "schema_left_out"}
)
"""Events that tell what became of the answer before them."""
_JUDGED = {
    "plan_judged": "breakdown",
    "amendment_refused": "amendment",
    "contract_amended": "amendment",
    "older_tests_granted": "amendment",
}
"""Events that name no persona → how the purpose begins of the call that they are about."""
_BEFORE = frozenset({"secret_masked"})
"""Events that tell of the request behind them."""


@dataclass
class _Turn:
    """One request to a persona, as the events tell of it."""

    asked: Event
    told: list[Event] = field(default_factory=list)
    finished: Event | None = None
    is_over: bool = False
    calls: Sequence[tuple[str, JournalEntry]] = ()
    """The calls that it took, with their ids."""


class StoryCalls:
    """The calls of a story in its present generation. Blocks while it is built."""

    def __init__(self, folder: StateFolder, record: SprintRecord, story: str, events: Iterable[Event]) -> None:
        self._journal, self._sprint = ReplyJournal(folder.replies, folder.shared), record.sprint
        self._workflow = record.workflow_id(story).removeprefix(f"{record.sprint}/")
        self._turns = _read_turns(events)
        self._read_journal()
        if any(turn.finished and not turn.calls for turn in self._turns) and self._journal.fetch(
            self._sprint, self._workflow
        ):
            self._read_journal()

    def rows(self, *, is_running: bool) -> list[dict[str, Any]]:
        """Returns a row per call in order; an answer is cut."""
        rows = []
        for turn in self._turns:
            for name, entry in turn.calls:
                rows.append(_row(turn, name, entry))
            if not turn.calls or (not turn.is_over and turn.calls[-1][1].ended == "error"):
                rows.append(_open_row(turn, is_running=is_running))
        return [{"number": number, **row} for number, row in enumerate(rows, start=1)]

    def call(self, name: str) -> dict[str, Any]:
        """Returns one call with prompt and answer whole, and its neighbours' ids. Raises UnknownName."""
        names = [one for turn in self._turns for one, _ in turn.calls]
        if name not in names:
            raise UnknownName(f"{self._workflow} has no call {name}")
        at = names.index(name)
        turn, entry = next((turn, entry) for turn in self._turns for one, entry in turn.calls if one == name)
        reply = entry.reply
        return {
            **_row(turn, name, entry),
            "number": at + 1,
            "before": names[at - 1] if at else "",
            "after": names[at + 1] if at + 1 < len(names) else "",
            "prompt_text": self._journal.prompt(self._sprint, self._workflow, entry.step),
            "answer": reply.text if reply else "",
            "reasoning_text": reply.reasoning if reply else "",
            "in_place_of": reply.in_place_of if reply else "",
            "unconstrained": reply.unconstrained if reply else "",
            "schema": entry.schema_name or "",
        }

    def find_answer(self, persona: str, task: str, until: datetime) -> str:
        """Returns the answer of a persona about a task that came last before a time; "" where it is not kept."""
        for turn in reversed(self._turns):
            if (turn.asked.persona, turn.asked.task or "") == (persona, task) and turn.asked.time <= until:
                return next((entry.reply.text for _, entry in turn.calls if entry.reply), "")
        return ""

    def _read_journal(self) -> None:
        """Gives each turn its calls."""
        steps: defaultdict[tuple[Any, ...], deque[list[tuple[str, JournalEntry]]]] = defaultdict(deque)
        last = None
        for entry in self._journal.entries(self._sprint, self._workflow):
            name = f"{entry.step}-{entry.turn}"
            queue = steps[(entry.key.persona, entry.key.task, str(entry.key.purpose), entry.prompt_hash)]
            if last == entry.step:
                queue[-1].append((name, entry))
            else:
                queue.append([(name, entry)])
            last = entry.step
        for turn in self._turns:
            asked = turn.asked
            # The same prompt may be asked twice: then the calls come in the same order.
            queue = steps[(asked.persona, asked.task, asked.data.get("purpose"), asked.data.get("prompt_hash"))]
            turn.calls = queue.popleft() if queue else ()


def _read_turns(events: Iterable[Event]) -> list[_Turn]:
    turns: list[_Turn] = []
    open_turns: dict[tuple[str | None, str | None], _Turn] = {}
    before: defaultdict[tuple[str | None, str | None], list[Event]] = defaultdict(list)
    for event in events:
        who = (event.persona, event.task)
        if event.name == "turn_started":
            open_turns[who] = _Turn(event, told=before.pop(who, []))
            turns.append(open_turns[who])
        elif event.name in _BEFORE:
            before[who].append(event)
        elif purpose := _JUDGED.get(event.name):
            asked = [one for one in turns if str(one.asked.data.get("purpose")).startswith(purpose)]
            if asked:  # else it is a person's plan
                asked[-1].told.append(event)
        elif (turn := open_turns.get(who)) is not None:
            if event.name == "turn_finished":
                turn.finished = event
            if event.name in _ABOUT:
                turn.told.append(event)
            turn.is_over |= event.name in SPENT
    return turns


def _common(turn: _Turn, told: Sequence[Event]) -> dict[str, Any]:
    """Returns what was asked, and what the events tell of the answer."""
    asked = turn.asked
    findings = [show_finding(one) for event in told for one in event.data.get("findings") or ()]
    return {
        "time": asked.time.isoformat(),
        "persona": asked.persona or "",
        "task": asked.task or "",
        "purpose": str(asked.data.get("purpose") or ""),
        "prompt": str(asked.data.get("prompt") or ""),
        "prompt_version": str(asked.data.get("prompt_version") or ""),
        "told": [_tell(event) for event in told],
        "repairs": _repairs(told),
        "findings": each_once(findings),
    }


def _row(turn: _Turn, name: str, entry: JournalEntry) -> dict[str, Any]:
    reply, failure = entry.reply, entry.failure
    last = entry is turn.calls[-1][1]
    told = turn.told if last else []
    mark, verdict = _judge(told, entry, is_last=last)
    return {
        **_common(turn, told),
        "id": name,
        "turn": entry.turn,
        "mark": mark,
        "verdict": verdict,
        "error": failure.model_dump(include={"kind", "message", "original_message"}) if failure else None,
        "model": reply.model if reply else "",
        "provider": reply.provider if reply else failure.provider_name if failure else "",
        "stop_reason": str(reply.stop_reason) if reply else "",
        **(reply.usage if reply else Usage()).model_dump(),
        "usd": reply.cost_usd if reply else 0.0,
        "duration_ms": reply.duration_ms if reply else 0,
        "excerpt": cut_text(reply.text, EXCERPT) if reply else "",
        "is_over": True,
        "is_cut": reply is not None and len(reply.text) > EXCERPT,
    }


def _open_row(turn: _Turn, *, is_running: bool) -> dict[str, Any]:
    """Returns the row of a call of which the journal has nothing: under way, cut, or another machine's."""
    done, data = turn.finished, turn.finished.data if turn.finished else {}
    mark, verdict = _judge(turn.told, None, is_last=True)
    if not turn.is_over:
        mark, verdict = ("now", "under way") if is_running else ("again", "not ended")
    return {
        **_common(turn, turn.told),
        "id": "",
        "mark": mark,
        "verdict": verdict,
        "error": None,
        **{name: data.get(name, "") for name in ("turn", "model", "provider", "stop_reason")},
        **{kind: data.get(f"{kind}_tokens", 0) for kind in ("input", "cached", "output", "reasoning")},
        "usd": data.get("cost_usd", 0.0),
        "duration_ms": data.get("duration_ms", 0),
        "excerpt": "its text was not kept on this machine" if done else "",
        "is_over": turn.is_over,
        "is_cut": False,
    }


def _judge(told: Sequence[Event], entry: JournalEntry | None, *, is_last: bool) -> tuple[str, str]:
    """Returns a mark and a word for how a call went."""
    if entry is not None and entry.failure is not None:
        return ("bad", "failed") if is_last and told else ("again", "failed, asked again")
    return next((verdict for event in reversed(told) if (verdict := _read_verdict(event))), ("good", "answered"))


def _read_verdict(event: Event) -> tuple[str, str] | None:
    if event.name != "plan_judged":
        return _VERDICTS.get(event.name)
    route = verdict_of(event)
    return None if route == Verdict.VALID else ("again" if route == Verdict.REVISE else "bad", route.replace("_", " "))


def _tell(event: Event) -> dict[str, Any]:
    return {"name": event.name.replace("_", " "), "message": event.message, "level": event.level.value}


def _repairs(told: Iterable[Event]) -> list[dict[str, Any]]:
    """Returns what was repaired in an answer, by kind, and the places of the first of each."""
    found: dict[str, dict[str, Any]] = {}
    for event in told:
        first = event.data.get("first_repairs", ())
        for kind, count in event.data.get("repairs", {}).items():
            places = [one["offset"] for one in first if one["kind"] == kind]
            found[kind] = {"kind": kind.replace("_", " "), "count": count, "offsets": places}
    return [*found.values()]


def add_up(events: Iterable[Event], stages: Iterable[StageTime]) -> list[dict[str, Any]]:
    """Returns the stages of a story with their time, and what the calls of each persona took in them."""
    spent: dict[tuple[str, str], PersonaSpending] = {}
    for event in events:
        took = amount_in(event.data) if event.name in SPENT else None
        if took is None:
            continue
        data, persona = event.data, event.persona or ""
        tokens = Tokens(input=data["input_tokens"], cached=data["cached_tokens"], output=data["output_tokens"])
        call = PersonaSpending(persona=persona, calls=took.calls, tokens=tokens, cost_usd=data["cost_usd"])
        key = (STAGE_OF_PURPOSE.get(str(data.get("purpose")), "other calls"), persona)
        spent[key] = spent[key] + call if key in spent else call
    times = {one.stage: one.duration_s for one in stages}
    names = dict.fromkeys([*times, *(stage for stage, _ in spent)])
    rows = [
        {
            "stage": stage,
            "duration_s": times.get(stage, 0.0),
            "personas": [_spent_row(one) for (at, _), one in spent.items() if at == stage],
        }
        for stage in names
    ]
    return [row for row in rows if row["duration_s"] or row["personas"]]


def _spent_row(spent: PersonaSpending) -> Mapping[str, Any]:
    return {**spent.model_dump(exclude={"tokens"}), **spent.tokens.model_dump()}
