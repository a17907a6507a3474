"""`show` and `contract`: what the record says, from any terminal, also while a run is alive."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from orchestrator.cli import timeline
from orchestrator.cli.common import (
    ConfigOption,
    JsonOption,
    SetOption,
    SprintOption,
    UrlOption,
    configured,
    print_json,
    told,
)
from orchestrator.cli.gates import finding_lines, question_lines
from orchestrator.cli.logline import cut, safe
from orchestrator.cli.through import daemon_for
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.findings import Finding
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment
from orchestrator.sprint.timeline import as_data, of_data, of_story
from orchestrator.wiring.read import Reader, history_of
from orchestrator.wiring.remote import Remote
from orchestrator.wiring.shown import contract_of, story_json

StoryArgument = Annotated[str, typer.Argument(metavar="STORY", help="A story's id.")]


@told
def show_command(
    story: StoryArgument,
    sprint: SprintOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
    full: Annotated[bool, typer.Option("--full", help="Draw every event, not only what was decided.")] = False,
) -> None:
    """A story's path as a timeline, its plan, contract, findings, diff stat and the output of its failing tests.

    Example: orchestrator show US-003
    """
    _, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    shown = daemon.story(sprint, story, full=full) if daemon else _recorded(environment, sprint, story, full=full)
    if as_json:
        print_json(shown)
        return
    try:
        timeline.draw(story, of_data(shown["timeline"]))
        lines = [safe(line) for line in _lines(shown)]
    except (KeyError, TypeError, ValueError) as error:
        if daemon is None:
            raise
        raise ConfigError(f"{daemon.url} tells of {story} what this version does not know: use --json") from error
    for line in lines:
        print(line)


def _recorded(environment: Environment, sprint: str | None, story: str, *, full: bool) -> dict[str, Any]:
    """What the record says of the story."""
    reader = Reader(environment)
    view = reader.sprint(sprint, story=story)
    history = history_of(view, story)
    stat = asyncio.run(reader.diff_stat(view.record, story))
    drawn = of_story(history, running=view.running_pid is not None, full=full)
    return {**story_json(view, story, stat), "timeline": as_data(drawn)}


@told
def contract_command(
    story: StoryArgument,
    sprint: SprintOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """What a story's developer may write and depend on, by whom it is allowed, and what was refused.

    --json prints the contract alone, as contracts/architecture.schema.json describes it.

    Example: orchestrator contract US-003 --json
    """
    _, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    if daemon is None:
        view = Reader(environment).sprint(sprint, story=story)
        contract, shown = contract_of(view, story), story_json(view, story, "")
    else:
        contract, shown = _contract_there(daemon, sprint, story)
    if as_json:
        print_json(contract.model_dump(mode="json"), exact=True)
        return
    try:
        told = [(one["event"], datetime.fromisoformat(one["time"]), one["message"]) for one in shown["history"]]
        refusals = [Finding.model_validate(one) for one in shown.get("refused", ())]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"what is told of {story} is not known to this version: use --json") from error
    for line in _contract_lines(contract, told):
        print(safe(line))
    for finding in refusals:
        print(safe(f"  refused: {finding}"))


def _contract_there(daemon: Remote, sprint: str | None, story: str) -> tuple[ArchitectureContract, dict[str, Any]]:
    """A contract as a daemon has it, and what else it tells of the story."""
    shown = daemon.story(sprint, story)
    try:
        return ArchitectureContract.model_validate(daemon.contract(str(shown["sprint"]), story)), shown
    except ValueError as error:
        raise ConfigError(f"{daemon.url} tells of {story} what this version does not know") from error


def _contract_lines(contract: ArchitectureContract, history: Sequence[tuple[str, datetime, str]]) -> list[str]:
    """What is allowed, and by whom: what was there, a task of the plan, an amendment. History: event, time, message."""
    given = {path: number for number, one in enumerate(contract.amendments, start=1) for path in one.files}
    lines = [
        f"Contract of {contract.story_id}, hash {contract.hash[:16]}, base {contract.base_commit[:10] or 'empty tree'}"
    ]
    for task, files in contract.task_files.items():
        told = [f"{path} (amendment {given[path]})" if path in given else path for path in files]
        lines.append(f"  {task} may write: {', '.join(told) or 'nothing'}")
    added = {name for one in contract.amendments for name in one.dependencies}
    planned = [name for name in contract.declared_dependencies if name not in added]
    lines.append(f"  files already there: {len(contract.baseline_files)}")
    lines.append(f"  packages declared by the plan: {', '.join(planned) or 'none'}")
    lines.append(f"  packages already there: {', '.join(contract.baseline_dependencies) or 'none'}")
    if contract.local_names:
        lines.append(f"  names of the project's own modules: {', '.join(contract.local_names)}")
    times = [time for name, time, _ in history if name == "contract_amended"]
    for number, one in enumerate(contract.amendments, start=1):
        when = f" at {times[number - 1]:%Y-%m-%d %H:%M:%S}" if number <= len(times) else ""
        granted = ", ".join((*one.files, *one.dependencies))
        lines.append(
            f"  amendment {number}, by {one.by}{when} for {one.task_id}: {granted}: {one.reason or 'no reason given'}"
        )
    lines += [f"  {message}" for name, _, message in history if name == "amendment_refused"]
    return lines


def _lines(shown: dict[str, Any]) -> list[str]:
    lines = [f"{shown['id']} in sprint {shown['sprint']}: {shown['status']}", *filter(None, [cut(shown["title"])])]
    lines.append(f"branch {shown['branch'] or '-'}, commit {shown['commit'] or '-'}, {shown['calls']} calls")
    status_of = {task["id"]: task["status"] for task in shown["tasks"]}
    if shown["prompts"]:
        lines.append("prompts " + ", ".join(f"{one['name']} {one['version']}" for one in shown["prompts"]))
    lines += [*question_lines(shown), *_decision_lines(shown)]
    if shown["pruned"]:
        lines += ["", f"Pruned on {shown['pruned'][:10]}: its plan, its contract and its events are gone."]
    lines += ["", f"Plan: {shown['plan_file']} (brought by a person)" if shown["plan_file"] else "Plan:"]
    for task in (shown["plan"] or {}).get("tasks", []):
        state = status_of.get(task["task_id"], "pending")
        lines.append(f"  {task['task_id']} [{state}] {cut(task['description'])}")
        lines.append(
            f"      files: {', '.join(task['files_to_create']) or '-'}; command: {task['command_to_run'] or '-'}"
        )
    lines += ["", "Contract:", f"  {_contract_line(shown['contract'])}", "", "Findings:"]
    lines += [line for finding in shown["findings"] for line in finding_lines(Finding.model_validate(finding))] or [
        "  none"
    ]
    lines += ["", "Tests:"]
    lines += [f"  {case['result']:<8} {case['name']}  {case['criterion']}" for case in shown["tests"]["cases"]] or [
        "  none were run"
    ]
    lines += ["", "Changes:", shown["diff_stat"] or "  none"]
    if shown["test_output"]:
        lines += ["", "Output of the failing tests:", shown["test_output"]]
    return lines


def _decision_lines(shown: dict[str, Any]) -> list[str]:
    """The conflict a person has to decide, and what a person has said."""
    lines: list[str] = []
    if shown["conflict"]:
        lines += ["", "Conflict:", *(f"  {name.replace('_', ' ')}: {text}" for name, text in shown["conflict"].items())]
    if shown["replan"]:
        over = " (its conflict overridden)" if shown["replan"]["overridden_conflict"] else ""
        lines += ["", f"Planned anew{over}: {shown['replan']['comment']}"]
    return lines


def _contract_line(contract: dict[str, Any] | None) -> str:
    if contract is None:
        return "none: no plan was accepted"
    files = ", ".join(contract["declared_files"]) or "no new files"
    packages = ", ".join(contract["declared_dependencies"]) or "no new packages"
    return f"{files}; {packages}; hash {contract['hash'][:16]}"
