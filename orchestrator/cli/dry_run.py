"""`run --dry-run`: what would happen, without provider, repository or network."""

from orchestrator.cli.common import Exit, print_json, say
from orchestrator.cli.logline import safe
from orchestrator.domain.findings import blocking
from orchestrator.domain.story import BacklogContent, Story
from orchestrator.domain.words import counted
from orchestrator.errors import BacklogError
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.dry_run import DryRun, JudgedTasks, dry_run
from orchestrator.sprint.selection import select
from orchestrator.wiring.backlogs import read_backlog
from orchestrator.wiring.brought import brought, judged_by_rules
from orchestrator.wiring.options import RunOptions
from orchestrator.wiring.runners import programs_there


def dry_run_command(options: RunOptions, settings: Settings, environment: Environment, *, as_json: bool) -> int:
    """Print waves, problems and calls; exit code 2 when a problem would keep the sprint from starting."""
    try:
        content = read_backlog(options.backlog, settings, environment)
    except BacklogError as error:
        content = BacklogContent(source=str(options.backlog), stories=(), problems=error.findings)
        if as_json:
            print_json(dry_run(content, stories=None, settings=settings).as_json())
        raise
    try:
        stories = _selected(options, content)
    except BacklogError:
        # The problems of the whole file are told below; only a selection's own error ends here.
        if not blocking(dry_run(content, stories=None, settings=settings).problems):
            raise
        stories = None
    plans = _plans(options, settings, content, stories)
    there = programs_there(environment)
    made = dry_run(content, stories=stories, settings=settings, strict=options.strict, plans=plans, programs=there)
    return tell(made, as_json=as_json)


def tell(planned: DryRun, *, as_json: bool) -> Exit:
    """Print it; USAGE when a problem would keep the sprint from starting."""
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
    """The plans of --plan as rules read them. Raises ConfigError as the run would."""
    rows = content.stories if stories is None else stories
    selected = [story.id for story in rows if not story.completed]
    return judged_by_rules(options, brought(options.plans, selected, content, {}), settings) if options.plans else {}


def _selected(options: RunOptions, content: BacklogContent) -> list[Story] | None:
    if options.sprint is None and not options.stories:
        return None
    # Not strict: what --strict finds is a problem to print beside the waves, not the end of the dry run.
    selection = select(content, sprint=options.sprint, stories=options.stories, taken_sprints=(), strict=False)
    chosen = set(selection.story_ids)
    return [story for story in content.stories if story.id in chosen]


def _print(planned: DryRun) -> None:
    print(f"{counted(planned.stories, 'story', 'stories')} in {counted(len(planned.waves), 'wave')}")
    for number, wave in enumerate(planned.waves, start=1):
        print(safe(f"  wave {number}: {', '.join(wave)}"))
    if planned.closed:
        closed = ", ".join(f"{row} (by {closer})" for row, closer in planned.closed.items())
        print(safe(f"  done with others: {closed}"))
    print(f"calls: about {planned.calls.expected}, at most {planned.calls.maximal}")
    if planned.stories:
        expected, maximal = planned.explained
        print(f"  about: {expected}")
        print(f"  at most: {maximal}")
    for problem in planned.problems:
        if not problem.severity.blocks:
            print(safe(f"note: {problem}"))
