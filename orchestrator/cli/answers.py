"""`extract`: the value in a model's text; `answers`: kept texts as cases, and what a newer version makes of them."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.answers import Extraction, Status, extract
from orchestrator.answers.cases import Replayed, Verdict
from orchestrator.app.cases import Choice, Exported, export, reasonings, replay_all, schema_of
from orchestrator.cli.common import (
    Context,
    Exit,
    FileArgument,
    command,
    command_group,
    print_json,
    read_text,
    safe,
    say,
)
from orchestrator.core.calls.exchange import Reply
from orchestrator.core.case import CaseWritten, Seen
from orchestrator.sprint.judge import WHOLE_KINDS, read_whole

app = command_group()
answers_app = command_group(
    no_args_is_help=True, help="Keep answers of models as cases, and replay them with a newer version."
)
app.add_typer(answers_app, name="answers")
EXIT_OF = {
    Status.OK: Exit.GOOD,
    Status.REPAIRED: Exit.GOOD,
    Status.TRUNCATED: Exit.TRUNCATED,
    Status.REFUSED: Exit.REFUSED,
}

ContractOption = Annotated[
    str | None,
    typer.Option("--contract", metavar="NAME", help="What the answer must fit: breakdown, delivery, suite, …"),
]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder with a folder per case.")]


@command(app, "extract", "url", "config", "overrides")
def extract_command(context: Context, file: FileArgument, contract: ContractOption = None) -> int:
    """Extract the value from a model's answer; exit 0: whole, 3: truncated, 4: refused.

    Example: orchestrator extract reply.txt --contract breakdown --json
    """
    text = read_text(file)
    extraction = extract(text, schema_of(contract) if contract is not None else None)
    if extraction.value is None and contract in WHOLE_KINDS:
        extraction = read_whole(text) or extraction
    if context.as_json:
        print_json({"value": extraction.value} | extraction.model_dump(mode="json", exclude={"value"}), exact=True)
    else:
        _show(extraction)
    return EXIT_OF[extraction.status]


def _show(extraction: Extraction) -> None:
    """The value on stdout, how it was found on stderr."""
    if extraction.status is not Status.REFUSED:
        print_json(extraction.value, exact=True)
    kinds = sorted({repair.kind for repair in extraction.repairs})
    repairs = f", {len(extraction.repairs)} repairs ({', '.join(kinds)})" if kinds else ""
    say(f"{extraction.status} by layer {extraction.layer}{repairs}")
    for problem in extraction.problems:
        say(str(problem))


@command(answers_app, "export", "url")
def export_command(
    context: Context,
    folder: FolderArgument,
    sprint: Annotated[str | None, typer.Option(metavar="ID", help="Only this sprint; default: every one.")] = None,
    story: Annotated[str | None, typer.Option(metavar="ID", help="Only this story.")] = None,
    fine_too: Annotated[bool, typer.Option("--all", help="Also answers that were whole and valid.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace other cases of the same name.")] = False,
) -> int:
    """Write each answer that was repaired, cut off or refused as a case, without secrets.

    A case is a folder with text.txt, contract.json (JSON Schema), extraction.json and source.json (persona, purpose,
    turn, model). Another case of the same name is left alone and named, with exit code 1.

    Example: orchestrator answers export cases --sprint SP-001
    """
    done = export(folder, Choice(sprint=sprint, story=story, fine_too=fine_too), context.environment, replace=replace)
    if context.as_json:
        lists: dict[str, Any] = {str(what): done.names(what) for what in CaseWritten}
        print_json({**lists, "redaction_changed": done.altered, "left_out": done.left_out})
    else:
        _say_exported(folder, done)
    return Exit.NOT_DONE if done.names(CaseWritten.KEPT) else Exit.GOOD


def _say_exported(folder: Path, done: Exported) -> None:
    kinds = ", ".join(f"{count} {status}" for status, count in sorted(done.statuses.items()))
    new = len(done.names(CaseWritten.WRITTEN)) + len(done.names(CaseWritten.REPLACED))
    print(f"{new} written to {folder}, {len(done.names(CaseWritten.UNCHANGED))} there already ({kinds or 'no case'})")
    for name in done.names(CaseWritten.REPLACED):
        print(f"  replaced  {name}")
    for name in done.altered:
        say(f"warning: {name} is read otherwise without its secrets; source.json says how")
    for name in done.names(CaseWritten.KEPT):
        say(f"warning: another case {name} is there and was left alone; --replace replaces it")
    if done.left_out:
        say(f"{done.left_out} replies without a contract of their own are left out")


@command(answers_app, "replay", "url", "config", "overrides")
def replay_command(context: Context, folder: FolderArgument) -> int:
    """Extract all cases with the installed version and show what changed; exit 1 if something got worse.

    Worse means that less is recovered than before (whole, truncated, refused), or that the value differs.

    Example: orchestrator answers replay cases
    """
    results = replay_all(folder)
    counts = Counter(result.verdict for result in results)
    changed = [result for result in results if result.verdict is not Verdict.SAME]
    if context.as_json:
        totals = {str(verdict): counts[verdict] for verdict in Verdict}
        print_json({"cases": len(results), **totals, "changes": [_change(result) for result in changed]})
    else:
        for result in changed:
            where = f", the value differs at {result.differs_at or 'its root'}" if result.differs_at is not None else ""
            print(f"{result.verdict:<10} {result.name}: {_seen(result.before)} → {_seen(result.after)}{where}")
        told_counts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        print(f"{len(results)} cases: {told_counts}")
    return Exit.NOT_DONE if counts[Verdict.WORSE] else Exit.GOOD


@command(answers_app, "reasoning", "url")
def reasoning_command(
    context: Context,
    sprint: Annotated[str | None, typer.Option(metavar="ID", help="Only this sprint; default: every one.")] = None,
    story: Annotated[str | None, typer.Option(metavar="ID", help="Only this story.")] = None,
) -> int:
    """Show what models thought before they answered, without secrets, where their services tell it.

    Example: orchestrator answers reasoning --story US-003
    """
    found = list(reasonings(Choice(sprint=sprint, story=story), context.environment))
    if context.as_json:
        print_json([_thoughts(*one) for one in found])
        return Exit.GOOD
    for in_sprint, of_story, reply in found:
        usage, asked = reply.usage, " ".join(filter(None, (reply.key.purpose, reply.key.task)))
        tokens = f", {usage.reasoning} of {usage.output} tokens" if usage.reasoning else ""
        print(f"{in_sprint} {of_story}: {reply.key.persona}, {asked}, turn {reply.turn}{tokens}")
        print("\n".join(f"  {safe(line)}" for line in reply.reasoning.splitlines()), end="\n\n")
    if not found:
        say("no reply that is kept tells what its model thought")
    return Exit.GOOD


def _thoughts(sprint: str, story: str, reply: Reply) -> dict[str, Any]:
    """Returns what a model thought for programs."""
    about = reply.model_dump(include={"turn", "model", "usage", "reasoning"})
    return {**reply.key.model_dump(), "sprint": sprint, "story": story, **about}


def _seen(seen: Seen) -> str:
    return f"{seen.status} by layer {seen.layer}"


def _change(result: Replayed) -> dict[str, Any]:
    """Returns a changed case for programs."""
    return {
        "case": result.name,
        "verdict": result.verdict,
        "differs_at": result.differs_at,
        "before": result.before.model_dump(),
        "after": result.after.model_dump(),
    }
