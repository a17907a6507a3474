"""`answers export` and `answers replay`: keep what models said, and see what a newer version makes of it."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.answers.cases import Replayed, Verdict
from orchestrator.app.cases import Choice, Exported, export, replay_all
from orchestrator.cli.common import Context, Exit, command, command_group, print_json, say
from orchestrator.core.exchange import CaseWritten, Seen

app = command_group()
answers_app = command_group(
    no_args_is_help=True, help="Keep answers of models as cases; run a newer version over them."
)
app.add_typer(answers_app, name="answers")
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder with a folder per case.")]


@command(answers_app, "export", "url")
def export_command(
    context: Context,
    folder: FolderArgument,
    sprint: Annotated[str | None, typer.Option(metavar="ID", help="Only this sprint; default: every one.")] = None,
    story: Annotated[str | None, typer.Option(metavar="ID", help="Only this story.")] = None,
    fine_too: Annotated[bool, typer.Option("--all", help="Answers that were whole and valid, too.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace other cases of the same name.")] = False,
) -> int:
    """Write every answer that was repaired, cut off or refused as a case, without secrets.

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
    """Run the installed version over cases and show what changed; exit 1 if something changed for the worse.

    Worse is: less is recovered than before (whole, truncated, refused), or the value is another one.

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


def _seen(seen: Seen) -> str:
    return f"{seen.status} by layer {seen.layer}"


def _change(result: Replayed) -> dict[str, Any]:
    """A changed case for programs."""
    return {
        "case": result.name,
        "verdict": result.verdict,
        "differs_at": result.differs_at,
        "before": result.before.model_dump(),
        "after": result.after.model_dump(),
    }
