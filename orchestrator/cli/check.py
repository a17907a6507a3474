"""`check`: the checks of a run on one answer, for people and CI; no engine, provider or network."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.answers import Status
from orchestrator.app.judge import CheckOptions, Judged, check, find_path_in, judged_json
from orchestrator.app.plans import NO_PLAN, check_any_plan
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
    split_names,
)
from orchestrator.core.finding import blocking

app = command_group()
check_app = command_group(no_args_is_help=True, help="Check an answer as a run does.")
app.add_typer(check_app, name="check")
StoryOption = Annotated[
    str | None, typer.Option("--story", metavar="ID", help="The story's id; default: the one the answer names.")
]
RepoOption = Annotated[
    Path | None,
    typer.Option("--repo", metavar="PATH", help="A folder, git or not, with the files that are there already."),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="F,…", help="The files of the task; default: all that are delivered."),
]
ShownOption = Annotated[
    str | None,
    typer.Option("--context", metavar="F,…", help="The files and pages that were shown in full before the plan."),
]
BreakdownOption = Annotated[
    str | None,
    typer.Option("--breakdown", metavar="FILE", help="The story's breakdown; its contract is checked."),
]
EnvironmentOption = Annotated[
    str,
    typer.Option(
        "--environment",
        metavar="DIR|auto|none",
        help="Where the project's packages are installed; auto: its .venv and node_modules, none: names alone decide.",
    ),
]
EXIT_OF = {Status.TRUNCATED: Exit.TRUNCATED, Status.REFUSED: Exit.REFUSED}


@command(check_app, "breakdown", "url", "config", "overrides")
def breakdown_command(context: Context, file: FileArgument, story: StoryOption = None, repo: RepoOption = None) -> int:
    """Structure, ids, dependencies, paths and packages of an architect's answer.

    Exit 0: nothing major; 1: something is; 3: cut off; 4: no answer in the text. Without --repo every path counts as
    new, and no package as there.

    Not checked: whether the plan fulfils the story, and its size against the budgets of a run.

    Example: orchestrator check breakdown answer.txt --story US-003 --repo ./app

    Example: cat answer.txt | orchestrator check breakdown - --json
    """
    return _print(context, check("breakdown", read_text(file), CheckOptions(story=story, repo=repo)))


@command(check_app, "delivery", "url", "config", "overrides")
def delivery_command(
    command_context: Context,
    file: FileArgument,
    story: StoryOption = None,
    repo: RepoOption = None,
    context: ContextOption = None,
    breakdown: BreakdownOption = None,
    environment: EnvironmentOption = "auto",
) -> int:
    """Shape, paths, contents and contract of a developer's answer. Nothing is written.

    Exit 0: nothing major; 1: something is; 3: cut off; 4: no answer in the text. The contract is frozen from --repo and
    --breakdown as in a run, or from --repo and --context, the task's files. What a run would ask the architect or a
    person about is shown as a question and refuses nothing.

    Not checked: without --repo imports and packages, and what a file was before; without --context and --breakdown
    whether the task may write these files; packages the plan declares are known from --breakdown only; the task's
    command is not run.

    Example: orchestrator check delivery answer.txt --repo ./app --context src/shop/prices.py

    Example: orchestrator check delivery answer.txt --repo ./app --breakdown plan.json --json
    """
    plan = read_text(breakdown) if breakdown is not None else None
    options = CheckOptions(story=story, repo=repo, context=split_context(context), plan=plan, environment=environment)
    return _print(command_context, check("delivery", read_text(file), options))


@command(check_app, "suite", "url", "config", "overrides")
def suite_command(
    command_context: Context,
    file: FileArgument,
    story: StoryOption = None,
    repo: RepoOption = None,
    context: ContextOption = None,
) -> int:
    """Shape, name, syntax and test patterns of a tester's answer, or of a test file: *.py, *.js, *.mjs, *.cjs, *.ts …

    Exit 0: nothing major; 1: something is; 3: cut off; 4: no answer in the text. With --repo it is seen whether the
    tests use the project at all and what runs them; with --context too, the files under test, whether they test copies
    of these.

    Not checked: whether each acceptance criterion has its test, and older tests of the project; nothing is run.

    Example: orchestrator check suite tests/test_prices.py --repo . --context src/shop/prices.py

    Example: orchestrator check suite answer.txt --json
    """
    text = read_text(file)
    options = CheckOptions(story=story, repo=repo, context=split_context(context), file=find_path_in(repo, file))
    return _print(command_context, check("suite", text, options))


@command(check_app, "plan", "url", "config", "overrides")
def plan_command(
    command_context: Context,
    file: FileArgument,
    story: StoryOption = None,
    repo: RepoOption = None,
    context: ShownOption = None,
) -> int:
    """An action plan (`## Action Plan`) or a person's task plan (`### Task N`, `- [ ] T001 …`).

    Nothing is written and nothing run.

    Exit 0: nothing major; 1: something is; 3: cut off; 4: no plan in the text. `kind` says which it is.

    Of an action plan structure comes first, then the actions, then what they would do to the files of --repo; a stage
    with something major ends the checking. Of a task plan all checks report together: its tasks, its goal, its length
    and what they depend on, then the rules on the architect's breakdowns: files, paths, packages.

    Not checked: without --repo what the actions would do, and every path of a task plan counts as new; without
    --context whether what is changed was shown before; without --story the contents of files and what the story's
    contract allows. Pages are not fetched. A text in which no task can be read by rules is the architect's to
    follow in a run.

    Example: orchestrator check plan plan.md --repo ./app

    Example: orchestrator check plan answer.md --repo ./app --context src/shop.py,README.md --json
    """
    named = "" if file == "-" else file
    options = CheckOptions(story=story, repo=repo, context=split_context(context), file=named)
    kind, judged = check_any_plan(read_text(file), options)
    return _print(command_context, judged, kind=kind)


def split_context(context: str | None) -> tuple[str, ...] | None:
    """Returns the files named by --context; None when it is not given: nothing is known then."""
    return None if context is None else split_names(context)


def say_findings(judged: Judged, kind: str = "") -> None:
    """Prints what was found, for people."""
    for finding in judged.findings:
        print(safe(f"{'question: ' * finding.ask}{finding}"))
        print(safe(f"    to do: {finding.fix}"))
    count = len(judged.findings)
    what = f"{kind}: " if kind else ""
    valid = "valid" if judged.valid else "not valid"
    say(f"{what}{valid}; {judged.status}, {count} finding{'' if count == 1 else 's'}")


def get_exit_code(judged: Judged) -> Exit:
    """Returns how an answer was judged as an exit code; a plan that is there and faulty is no text without one."""
    faulty = {finding.code for finding in blocking(judged.findings) if finding.code.startswith("plan.")} - NO_PLAN
    if judged.status is Status.REFUSED and faulty:
        return Exit.NOT_DONE
    return EXIT_OF.get(judged.status, Exit.GOOD if judged.valid else Exit.NOT_DONE)


def _print(context: Context, judged: Judged, kind: str = "") -> int:
    if context.as_json:
        print_json({**({"kind": kind} if kind else {}), **judged_json(judged)})
    else:
        say_findings(judged, kind)
    return get_exit_code(judged)
