"""Writes docs/events.md, the table of all events: `python -m tests.events_tool`.

Names, levels and data keys are read from the syntax trees; what an event means is written here.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator.core.command import KEYS, Loop
from orchestrator.core.event import Event

PACKAGE = Path(__file__).parent.parent / "orchestrator"
TABLE = Path(__file__).parent.parent / "docs" / "events.md"
DECIDERS = frozenset({"decide", "_decide"})
"""Those whose events tell a decision."""
EMITTERS = DECIDERS | {"emit", "_emit"}
CALL = re.compile(r"\b(?:Event|_?emit|_?decide)\(")
CONSTANT = re.compile(r"""^[A-Z][A-Z0-9_, ]* = "[^"\n]*"(?:, "[^"\n]*")*$""", re.MULTILINE)
OWN = frozenset({"level", "task", "persona", "known", "data", "left", "valid"})
"""Keywords of an emitter that are no data."""
ACCOUNT = ("purpose", "turn", "layer", "repairs", "first_repairs")
SPREAD: dict[str, tuple[str, ...]] = {
    "spent": ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd"),
    "account": ACCOUNT,
    "decided": KEYS,
    "said": KEYS,
    "counts": (),
    "more": ("removed",),
}
"""What stands behind `**` at an emitter → its keys."""
SOMETIMES = {
    "story_reset": ("comment", "overridden_conflict"),
    "task_committed": ("removed",),
}
"""Keys that are there only where they apply."""
MEANS = {
    "daemon_unguarded": "`serve --no-auth` runs: every user and program of its machine may give it orders",
    "whole_suite_run": "the whole suite was run on the story's branch before its merge, and nothing new fails",
    "base_begun": "the base commit of a sprint is tried before its first call: installed, its tests run",
    "base_tried": "what came of the base commit (`base`); with a `reason` nothing is paid for before it can be run",
    "analysis_pruned": "everything but the record of an analysis was removed",
    "sprint_pruned": "everything but record, report and result branch of a sprint was removed; its earlier events too",
    "event_log_waits": "the event log's database has gone away, or is back; shown only, for nothing can be stored",
    "analysis_continued": "a process resumes an analysis of a repository",
    "analysis_started": "a process begins an analysis of a repository",
    "codebase_packed": "what the prompts of an analysis show of the repository",
    "stage_finished": "a stage of an analysis has its result",
    "stage_started": "a stage of an analysis begins",
    "task_normalised": "something of a stage's answer was dropped or counts as something else",
    "activity_begun": "something began two seconds ago and lasts: an install, tests, a wait; which it is",
    "call_progress": "a call of a model lasts: how much of the answer has come; told every 20 seconds",
    "activity_ended": "it is over, and how long it took",
    "answer_accepted": "an answer satisfies every check",
    "answer_given_up": "an answer does not, and no further one is asked for",
    "answer_healed": "an answer was not as asked for and could be read without a guess",
    "answer_refused": "no value could be read from an answer",
    "answer_repair_failed": "the one repair request gave nothing whole",
    "answer_repaired_by_model": "the one repair request gave a whole answer",
    "answer_sent_back": "an answer goes back with its findings",
    "answer_truncated": "an answer was cut off; its whole parts are kept",
    "older_tests_granted": "the tester may change older tests that expect what the story changes",
    "amendment_refused": "the contract is not extended",
    "breakdown_completed": "missing tasks were asked for and came",
    "breakdown_left_short": "missing tasks were asked for and did not come",
    "call_retried": "a request failed and was sent again",
    "command_finished": "a command of a task has run",
    "conflict_detected": "the architect says that the story contradicts the architecture",
    "contract_amended": "the contract is extended",
    "places_unusual": "new files of a plan or suite lie in folders that the project does not have",
    "contract_frozen": "a plan is accepted: what its developer may write and use",
    "control_given": "people ordered something of a sprint or a story",
    "backlog_warning": "cells could not be written into the backlog file; where they are kept",
    "backlog_taken": "the daemon has taken over a backlog, new or changed",
    "backlog_refused": "what stands in a watched backlog cannot be worked on; what was good last goes on",
    "state_folder_closed": "the state folder was open to other users, and is no more; shown only",
    "daemon_ready": "the daemon has started",
    "daemon_listens": "the daemon answers over HTTP; where",
    "daemon_stopping": "the daemon was told to end: nothing new begins",
    "daemon_stopped": "the daemon is about to end; what was cut is done again at the next start",
    "past_pruned": "what the daemon has removed of finished sprints",
    "pruning_failed": "the daemon could not remove what is too old; it tries again",
    "service_away": "a call waits for a service that answers nobody; it asks again until it is answered",
    "sprint_ended": "every story of a sprint of the daemon has its outcome; the report is written",
    "story_given_back": "a daemon cannot run another one's story now",
    "sprint_waits": "the daemon cannot work on a sprint or a backlog now and tries again",
    "control_settled": "what became of an order that people gave: pause, resume, cancel, retry, reset",
    "delivery_completed": "missing files were asked for and came",
    "delivery_left_short": "missing files were asked for and did not come",
    "diff_checked": "the whole diff of a story was held against its contract",
    "older_test_rewritten": "the tester changed an older test as the plan wants it; both versions",
    "suite_replaced": "the tester wrote the story's suite again and says why; both versions",
    "tests_run_hollow": "the story's suite has run with functions that return nothing; the result of each test",
    "tests_run_before": "the story's suite has run on the tree without the story's change; the result of each test",
    "suite_kept": "tests that fail without the story's change were asked for and did not come: the suite stays",
    "failure_repeated": "a story failed as it had before: another way is tried once, then a person is needed",
    "older_tests_failed": "the story's own suite is green, and tests that were there before fail",
    "failure_analysed": "the tester says what a red run means, or nothing usable",
    "files_shown": "files were asked for; they go into the next request; `only`: in place of an answer",
    "model_switched": "another model than its own answers a persona from now on, and why; or its own does again",
    "gate_answered": "somebody has answered an open question, also while nothing runs; the first answer counts",
    "gate_opened": "a story waits for a person",
    "gate_settled": "the story continues with the answer",
    "merge_refused": "the story is not merged",
    "plan_given": "a person's plan was read",
    "merge_resolved": "the developer brought a story together with what was merged before; its branch has both",
    "merge_unresolved": "the developer's one answer about a merge was refused",
    "plan_judged": "a plan was checked and routed",
    "plan_mended": "what could be mended of the last plan was, and it is built",
    "record_updated": "what a merged story adds to the architecture record",
    "secret_masked": "a prompt would have held a secret; a name stands in its place",
    "review_diff_cut": "a change is too long for a reviewer to be shown whole, so it cannot be approved",
    "review_judged": "all reviewers have read a task's change: approved, sent back, or on without approval",
    "review_read": "what a reviewer says of a task's change",
    "sprint_continued": "a process resumes a sprint",
    "sandbox_chosen": "in which tier the commands of this process are, what holds there and what is missing",
    "sprint_paused": "no further story begins: too many failed, a budget is used up, the provider refuses or is away",
    "sprint_held": "nothing of a sprint goes on before people resume the stories that they have paused",
    "sprint_stopped": "a paused sprint has come to rest; the next start continues with the stories that did not begin",
    "sprint_started": "a process begins a sprint",
    "story_finished": "a story has its outcome",
    "story_merged": "the story's branch is part of the result",
    "story_reset": "a story is begun again; events before it belong to an earlier generation",
    "story_started": "a story begins",
    "suite_committed": "the tester's suite is on the story's branch, frozen",
    "task_committed": "files of a task are on the story's branch",
    "task_unchanged": "a task's files came as they are on the branch, so nothing was committed",
    "task_finished": "how far a task has come",
    "tests_finished": "the story's suite has run",
    "turn_failed": "a request failed for good, or a budget is used up",
    "schema_left_out": "the schema of an answer was to hold and did not: refused, not possible, not kept to; told once "
    "per persona and schema in a process",
    "turn_finished": "a persona answered",
    "turn_started": "a persona is asked",
}
HEAD = """# Events

Every fact that a run records, and what its `data` holds; in a [log line](logs.md) these keys follow
`timestamp`, `level`, `message`, `event`, `sprint`, `story`, `task` and `persona`. Keys in brackets are there only where
they apply.

An event marked ● tells a **decision**, always with the same five keys: `stage` (the loop:
{loops}), `verdict` (one word), `findings` (those that decided),
`attempt` (counts from 1 within its loop) and `budget_left` (how many more of this loop are allowed; 0 when it was the
last). `orchestrator show STORY` draws a story's path from them.

{count} events, generated by `make events` from the places that emit them."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """One place that emits an event; `keys` are those of its data."""

    place: str
    name: str
    levels: tuple[str, ...]
    keys: tuple[str, ...]


@cache
def all_told() -> list[Told]:
    """Every event that is emitted anywhere, by file and line."""
    read = ((path, path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py")))
    shared, trees = dict[str, str](), dict[Path, ast.Module]()
    for path, text in read:
        # To parse the whole package takes seconds, which each worker of the tests would spend.
        shared |= _constants(ast.parse("\n".join(CONSTANT.findall(text))))
        if CALL.search(text):
            trees[path] = ast.parse(text)
    return [told for path, tree in trees.items() for told in _of_module(path, tree, shared)]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names of a module that stand for one text, also `A, B = "a", "b"`."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((name, text) for name, held in _pairs(node) for text in _texts(held, {}))


def _pairs(node: ast.Assign) -> list[tuple[str, ast.expr]]:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [(one.id, held) for one, held in zip(target.elts, value.elts, strict=False) if isinstance(one, ast.Name)]
    return []


def _of_module(path: Path, tree: ast.Module, shared: dict[str, str]) -> Iterator[Told]:
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) or scope.name in EMITTERS:
            continue  # an emitter hands on what its callers say
        names: dict[str, list[ast.expr]] = {}
        for node in ast.walk(scope):
            for name, held in _pairs(node) if isinstance(node, ast.Assign) else ():
                names.setdefault(name, []).append(held)
        for call in ast.walk(scope):
            if isinstance(call, ast.Call):
                yield from _of_call(f"{path.relative_to(PACKAGE.parent)}:{call.lineno}", call, names, shared)


def _of_call(place: str, call: ast.Call, names: dict[str, list[ast.expr]], shared: dict[str, str]) -> Iterator[Told]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    levels = _levels(keywords.get("level"), names)
    if called == "Event" and "name" in keywords:
        held = keywords["name"]
        keys = list(_of_mapping(keywords.get("data"), names))
    elif called in EMITTERS and call.args and not isinstance(call.args[0], ast.Call):
        # Some emitters take whom the event is about first.
        held = next((one for one in call.args[:2] if _texts(one, names, shared)), call.args[0])
        keys = [name for name in keywords if name not in OWN]
        keys += [key for keyword in call.keywords if keyword.arg is None for key in _spread(keyword.value)]
        keys += [*_of_mapping(keywords.get("data"), names), *(KEYS if called in DECIDERS else ())]
    else:
        return
    for name in _texts(held, names, shared):
        yield Told(place=place, name=name, levels=levels, keys=tuple(dict.fromkeys(keys)))


def _texts(node: ast.expr, names: dict[str, list[ast.expr]], shared: dict[str, str] | None = None) -> list[str]:
    """The names that an expression may stand for; none when it is no name of an event."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) and node.value.isidentifier() else []
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, names, shared), *_texts(node.orelse, names, shared)]
    if isinstance(node, ast.Name) and node.id in names:
        return [text for held in names[node.id] for text in _texts(held, {}, shared)]
    if isinstance(node, ast.Name) and shared and node.id in shared:
        return [shared[node.id]]
    return []


def _levels(node: ast.expr | None, names: dict[str, list[ast.expr]]) -> tuple[str, ...]:
    if node is None:
        return ("info",)
    found = [held for one in ast.walk(node) if isinstance(one, ast.Name) for held in names.get(one.id, ())]
    parts = (one for held in [node, *found] for one in ast.walk(held) if isinstance(one, ast.Attribute))
    return tuple(dict.fromkeys(one.attr.lower() for one in parts if ast.unparse(one.value) == "Level"))


def _spread(node: ast.expr) -> tuple[str, ...]:
    """Keys of what stands behind `**`; unknown ones are a KeyError: see SPREAD."""
    if isinstance(node, ast.Call):
        return SPREAD[node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")]
    return SPREAD[ast.unparse(node)]


def _of_mapping(node: ast.expr | None, names: dict[str, list[ast.expr]]) -> Iterator[str]:
    if isinstance(node, ast.Name):
        node = next((held for held in names.get(node.id, ()) if isinstance(held, ast.Dict)), None)
    if isinstance(node, ast.Dict):
        yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant))
        behind = (held for key, held in zip(node.keys, node.values, strict=True) if key is None)
        yield from (key for held in behind if isinstance(held, ast.Call) for key in _spread(held))


def keys_of(told: Iterable[Told]) -> dict[str, set[str]]:
    """Event → all keys that its data may hold."""
    found: dict[str, set[str]] = {}
    for one in told:
        found.setdefault(one.name, set()).update(one.keys, SOMETIMES.get(one.name, ()))
    return found


@cache
def documented() -> dict[str, set[str]]:
    """What the table says: event → keys."""
    return keys_of(all_told())


def untrue(events: Iterable[Event]) -> list[str]:
    """What these events have that the table does not tell, and what decisions among them lack."""
    wrong = []
    for event in events:
        keys = documented().get(event.name)
        if keys is None:
            wrong.append(f"{event.name} is in no table")
            continue
        wrong += [f"{event.name} tells {key}, the table does not" for key in event.data if key not in keys]
        if keys >= set(KEYS):
            wrong += [f"{event.name} lacks {key}" for key in KEYS if key not in event.data]
            attempt, left = event.data.get("attempt", 1), event.data.get("budget_left", 0)
            stage, verdict = event.data.get("stage"), str(event.data.get("verdict"))
            if attempt < 1 or left < 0 or stage not in set(Loop) or not verdict.isidentifier():
                wrong.append(f"{event.name}: {stage} {verdict} {attempt} {left}")
    return wrong


def table() -> str:
    """The whole text of docs/events.md."""
    told, order = all_told(), ("debug", "info", "warn", "error")
    lines = ["| Event | Level | Means | Data |", "| --- | --- | --- | --- |"]
    for name, keys in sorted(keys_of(told).items()):
        levels = sorted({level for one in told if one.name == name for level in one.levels}, key=order.index)
        decides = keys >= set(KEYS)
        rest = sorted(keys - set(KEYS) if decides else keys)
        data = [f"[`{key}`]" if key in SOMETIMES.get(name, ()) else f"`{key}`" for key in rest]
        level = " or ".join(levels)
        lines.append(f"| `{name}`{' ●' if decides else ''} | {level} | {MEANS[name]} | {', '.join(data) or '—'} |")
    loops = ", ".join(f"`{loop}`" for loop in Loop)
    return f"{HEAD.format(count=len(lines) - 2, loops=loops)}\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    """Write the table."""
    TABLE.write_text(table(), encoding="utf-8")


if __name__ == "__main__":
    main()
