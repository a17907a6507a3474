"""`run --dry-run`: waves, problems, calls and what they cost; nothing is paid for."""

import asyncio
from pathlib import Path

from orchestrator.app.plan_files import judge_by_rules, read_plans
from orchestrator.app.spending import with_spending
from orchestrator.app.sprints import find_resumable_sprint
from orchestrator.app.team import prompt_library
from orchestrator.backlogs.files import read_backlog
from orchestrator.cli.common import Exit, print_json, safe, say
from orchestrator.core.errors import BacklogError, ConfigError, ProviderIncomplete
from orchestrator.core.finding import blocking
from orchestrator.core.story import BacklogContent, Story
from orchestrator.core.value import counted
from orchestrator.git.repository import is_there, open_repository
from orchestrator.providers.routing import check_providers
from orchestrator.records.histories import is_sprint_finished, read_histories
from orchestrator.settings import Environment, Settings
from orchestrator.settings.options import RunOptions, default_repository
from orchestrator.settings.prices import AS_OF
from orchestrator.sprint.dry_run import DryRun, JudgedTasks, dry_run
from orchestrator.sprint.selection import select
from orchestrator.storage.recordings import expect_place
from orchestrator.storage.state_folder import StateFolder


def dry_run_command(options: RunOptions, settings: Settings, environment: Environment, *, as_json: bool) -> int:
    """Prints waves, problems and calls. Returns exit code 2 for a problem that keeps the sprint from starting.

    Raises UserError for a backlog, a setting or a file that a run would refuse. A model, key or script that is missing
    is printed: a dry run needs none.
    """
    try:
        content = read_backlog(options.backlog, settings, environment)
    except BacklogError as error:
        content = BacklogContent(source=str(options.backlog), stories=(), problems=error.findings)
        if as_json:
            print_json(dry_run(content, stories=None, settings=settings).as_json())
        raise
    try:
        stories = _selected(options, settings, environment, content)
    except BacklogError:
        # The problems of the whole file are told below; only a selection's own error ends here.
        if not blocking(dry_run(content, stories=None, settings=settings).problems):
            raise
        stories = None
    plans = _plans(options, settings, content, stories)
    made = dry_run(content, stories=stories, settings=settings, strict=options.strict, plans=plans)
    if blocking(made.problems):
        return print_dry_run(made, as_json=as_json)
    made = made.model_copy(update={"missing": _missing(options, settings, environment)})
    told = with_spending(made, settings, environment, provider=options.provider)
    return print_dry_run(told, as_json=as_json)


def _missing(options: RunOptions, settings: Settings, environment: Environment) -> str:
    """Returns which model, key or script a run would not begin without, or "". Raises UserError for what it refuses."""
    if options.record is not None:
        expect_place(options.record)
    missing = ""
    try:
        check_providers(options, settings, environment)
    except ProviderIncomplete as error:
        missing = error.message
    prompt_library(settings, environment)
    folder = _repository(options)
    if is_there(folder):  # a run makes another one
        asyncio.run(open_repository(folder))
    return missing


def _repository(options: RunOptions) -> Path:
    return (options.repo or default_repository()).resolve()


def print_dry_run(planned: DryRun, *, as_json: bool) -> Exit:
    """Prints it. Returns USAGE for a problem that keeps the sprint from starting."""
    if as_json:
        print_json(planned.as_json())
    else:
        _print(planned)
    serious = blocking(planned.problems)
    for problem in serious:
        say(f"error: {problem}" + (f"; {problem.fix}" if problem.fix else ""))
    return Exit.USAGE if serious else Exit.GOOD


def _plans(
    options: RunOptions, settings: Settings, content: BacklogContent, stories: list[Story] | None
) -> dict[str, JudgedTasks]:
    """Returns the plans of --plan as rules read them. Raises ConfigError as the run would."""
    rows = content.stories if stories is None else stories
    selected = [story.id for story in rows if not story.completed]
    return judge_by_rules(options, read_plans(options.plans, selected, content, {}), settings) if options.plans else {}


def _selected(
    options: RunOptions, settings: Settings, environment: Environment, content: BacklogContent
) -> list[Story] | None:
    """Returns the stories that a run would work on: what is left of a sprint that it resumes, else a selection.

    None where nothing narrows the backlog. Raises BacklogError for a selection that a run would refuse.
    """
    chosen = _left_of_sprint(options, environment)
    if chosen is None and options.sprint is None and not options.stories:
        return None
    if chosen is None:
        # Not strict: what --strict finds is a problem to print beside the waves, not the end of the dry run.
        selection = select(content, sprint=options.sprint, stories=options.stories, taken_sprints=(), strict=False)
        chosen = frozenset(selection.story_ids)
    return [story for story in content.stories if story.id in chosen]


def _left_of_sprint(options: RunOptions, environment: Environment) -> frozenset[str] | None:
    """Returns the stories without an outcome of the sprint that a run would resume; None when it would begin one."""
    folder = StateFolder.of(environment)
    try:
        record = find_resumable_sprint(
            options, _repository(options), folder, lambda one: not is_sprint_finished(environment, folder, one)
        )
    except ConfigError:  # a run says so; the waves of the backlog can be told all the same
        return None
    if record is None or record.cleared:
        return None
    histories = read_histories(environment, folder, record)
    return frozenset(story for story, history in histories.items() if history.outcome is None)


def _print(planned: DryRun) -> None:
    print(f"{counted(planned.stories, 'story', 'stories')} in {counted(len(planned.waves), 'wave')}")
    for number, wave in enumerate(planned.waves, start=1):
        print(safe(f"  wave {number}: {', '.join(wave)}"))
    if planned.closed:
        closed = ", ".join(f"{row} (by {closer})" for row, closer in planned.closed.items())
        print(safe(f"  done with others: {closed}"))
    print(f"calls: about {planned.calls.expected}, at most {planned.calls.maximal} (budget.calls_per_story)")
    if (spending := planned.spending) is not None:
        basis = "in the last sprints" if spending.measured else "on other projects: none here has asked a model yet"
        print(f"tokens: about {spending.input_tokens} in, {spending.output_tokens} out (a call as {basis})")
        if spending.unpriced:
            unpriced = safe(", ".join(spending.unpriced))
            print(f"cost: unknown: no price of {unpriced}; name it under `prices` in config.yaml")
        elif spending.usd is not None:
            whose = f"list prices of {AS_OF} where `prices` in config.yaml names no others"
            print(f"cost: about {spending.usd:.2f} USD ({whose})")
    for problem in planned.problems:
        if not problem.severity.blocks:
            print(safe(f"note: {problem}"))
    if planned.missing:
        print(safe(f"not ready to run: {planned.missing}"))
