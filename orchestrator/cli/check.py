"""`check`: what a run's checks say about one answer, for people and CI; no engine, provider or network."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.answers import Status
from orchestrator.cli.common import Exit, JsonOption, print_json, say, told
from orchestrator.cli.extract import FileArgument, text_of
from orchestrator.domain.redaction import redact
from orchestrator.sprint.by_hand import Judged
from orchestrator.wiring.check import CheckOptions, check

check_app = typer.Typer(no_args_is_help=True, help="Judge one answer by the checks of a run; exit 1 if one fails.")
StoryOption = Annotated[
    str | None, typer.Option("--story", metavar="ID", help="The story's id; default: the one the answer names.")
]
RepoOption = Annotated[
    Path | None,
    typer.Option("--repo", metavar="PATH", help="A folder, git or not, whose files count as being there already."),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="F,…", help="The files of the task; without it all that is delivered."),
]
BreakdownOption = Annotated[
    str | None,
    typer.Option("--breakdown", metavar="FILE", help="The story's breakdown: its contract is held against all files."),
]
EXIT_OF = {Status.TRUNCATED: Exit.TRUNCATED, Status.REFUSED: Exit.REFUSED}


@check_app.command("breakdown")
@told
def breakdown_command(
    file: FileArgument, story: StoryOption = None, repo: RepoOption = None, as_json: JsonOption = False
) -> None:
    """Structure, ids, dependencies, paths and packages of an architect's answer.

    Exit 0: nothing major; 1: something is; 3: cut off; 4: no answer in the text. Without --repo every path counts as
    new, and no package as there.

    Not checked: whether the plan fulfils the story, and its size against the budgets of a run.

    Example: orchestrator check breakdown answer.txt --story US-003 --repo ./app

    Example: cat answer.txt | orchestrator check breakdown - --json
    """
    _tell(check("breakdown", text_of(file), CheckOptions(story=story, repo=repo)), as_json)


@check_app.command("delivery")
@told
def delivery_command(
    file: FileArgument,
    story: StoryOption = None,
    repo: RepoOption = None,
    context: ContextOption = None,
    breakdown: BreakdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shape, paths, contents and contract of a developer's answer. Nothing is written.

    Exit 0: nothing major; 1: something is; 3: cut off; 4: no answer in the text. The contract is frozen from --repo and
    --breakdown as in a run, or from --repo and --context, the task's files.

    Not checked: without --repo imports and packages, and what a file was before; without --context and --breakdown
    whether the task may write these files; packages the plan declares are known from --breakdown only; the task's
    command is not run.

    Example: orchestrator check delivery answer.txt --repo ./app --context src/shop/prices.py

    Example: orchestrator check delivery answer.txt --repo ./app --breakdown plan.json --json
    """
    named = tuple(name.strip() for name in (context or "").split(",") if name.strip())
    plan = text_of(breakdown) if breakdown is not None else None
    _tell(check("delivery", text_of(file), CheckOptions(story=story, repo=repo, context=named, plan=plan)), as_json)


@check_app.command("suite")
@told
def suite_command(file: FileArgument, story: StoryOption = None, as_json: JsonOption = False) -> None:
    """Shape, name, syntax and test patterns of a tester's answer.

    Exit 0: nothing major; 1: something is; 3: cut off; 4: no answer in the text.

    Not checked: whether each acceptance criterion has its test, and older tests of the project; nothing is run.

    Example: orchestrator check suite answer.txt --json
    """
    _tell(check("suite", text_of(file), CheckOptions(story=story)), as_json)


def _tell(judged: Judged, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "valid": judged.valid,
                "severity": judged.severity.value,
                "findings": [finding.model_dump(mode="json") for finding in judged.findings],
            }
        )
    else:
        for finding in judged.findings:
            print(redact(str(finding)))
            print(redact(f"    to do: {finding.fix}"))
        count = len(judged.findings)
        say(f"{'valid' if judged.valid else 'not valid'}; {judged.status}, {count} finding{'' if count == 1 else 's'}")
    raise typer.Exit(EXIT_OF.get(judged.status, Exit.GOOD if judged.valid else Exit.NOT_DONE))
