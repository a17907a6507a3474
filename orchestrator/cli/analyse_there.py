"""`analyse` by a daemon: its own repository, read there; what comes of it is written here."""

import time
from collections.abc import Mapping

from orchestrator.cli.analysis_summary import tell_written
from orchestrator.cli.common import Exit, say
from orchestrator.client.daemon import Daemon
from orchestrator.client.discovery import HERE, named_daemon
from orchestrator.domain.analysis_order import AnalysisAsked, AnalysisShown, AnalysisStatus
from orchestrator.errors import ConfigError, UnknownName
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.options import AnalyseOptions

LOOK_S = 1.0
_FORMS = {".csv": "csv", ".yaml": "yaml", ".yml": "yaml"}


def goes_there(environment: Environment, url: str | None, *, here: Mapping[str, bool], options: AnalyseOptions) -> bool:
    """Whether a daemon that is named reads its repository; `here`: what says that a folder here is meant.

    Raises ConfigError when the same command line says both.
    """
    address = url or environment.url
    if address is None or address == HERE:
        return False
    models = {"--provider": options.provider, "--script": options.script, "--call-log": options.call_log}
    mine = [name for name, is_said in {**here, **{name: value is not None for name, value in models.items()}}.items()
            if is_said]  # fmt: skip
    if mine and url is not None:
        raise ConfigError(f"a daemon reads its own repository, in its own way: {mine[0]} goes with --url {HERE}")
    return not mine


def analyse_there(
    options: AnalyseOptions,
    settings: Settings,
    environment: Environment,
    url: str | None,
    *,
    triage: bool,
    as_json: bool,
) -> int:
    """Begin it, or wait for the one that is named and at work; wait for its end and write its files; the exit code."""
    # Imported here: they bring git, locks and databases, and --help needs none of them.
    from orchestrator.wiring.analysis_input import check_outputs
    from orchestrator.wiring.analysis_output import write_plan
    from orchestrator.wiring.team import prompt_library

    daemon = named_daemon(environment, settings, url)
    assert daemon is not None
    check_outputs(options)
    name = _begun(daemon, _asked(options, triage=triage))
    try:
        shown = _awaited(daemon, name)
    except KeyboardInterrupt:
        say(f"it goes on there; the same command with --id {name} waits for it")
        return Exit.INTERRUPTED
    if shown.plan is None:
        why = shown.why or (f"it is too long: {', '.join(shown.too_long)}" if shown.too_long else str(shown.status))
        raise ConfigError(f"analysis {name} of {daemon.url} has no plan: {why}")
    written = write_plan(options, settings, prompt_library(settings, environment), shown.plan)
    return tell_written(written, say if as_json else print, as_json=as_json, there=True)


def _asked(options: AnalyseOptions, *, triage: bool) -> AnalysisAsked:
    """The same with texts in place of files. Raises ConfigError."""
    try:
        prd = options.prd.read_text(encoding="utf-8-sig") if options.prd is not None else None
        files = sorted(options.prompts.glob("*.md")) if options.prompts is not None else []
        prompts = {path.name: path.read_text(encoding="utf-8-sig") for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"what the daemon is to be given cannot be read: {error}") from error
    if options.prompts is not None and not prompts:
        raise ConfigError(f"there is no prompt in {options.prompts}: a prompt is a Markdown file")
    backlog = _FORMS.get(options.to_backlog.suffix.lower()) if options.to_backlog is not None else None
    asked = {
        "profile": options.profile, "stages": options.stages, "triage": triage or None, "prd": prd, "prompts": prompts,
        "backlog": backlog, "analysis": options.analysis,
    }  # fmt: skip
    try:
        return AnalysisAsked.model_validate(asked)
    except ValueError as error:
        raise ConfigError("a prompt's file name, the PRD or an id is longer or other than a daemon takes") from error


def _begun(daemon: Daemon, asked: AnalysisAsked) -> str:
    """Its id."""
    if asked.analysis is not None:
        try:
            if daemon.analysis(asked.analysis).status is AnalysisStatus.RUNNING:
                return asked.analysis
        except UnknownName:
            pass
    state = daemon.analyse(asked)
    say(f"analysis {state.analysis} of {state.repo} begins at {daemon.url}")
    return state.analysis


def _awaited(daemon: Daemon, name: str) -> AnalysisShown:
    told: set[str] = set()
    away = False
    while True:
        shown = daemon.analysis_while_there(name)
        if shown is None and not away:
            say(f"the daemon at {daemon.url} cannot be reached; waiting for it")
        away = shown is None
        if shown is not None:
            for stage in [stage for stage in shown.stages if stage not in told]:
                say(f"{stage}: {shown.stages[stage].replace('_', ' ')}")
                told.add(stage)
            if shown.status is not AnalysisStatus.RUNNING:
                return shown
        time.sleep(LOOK_S)
