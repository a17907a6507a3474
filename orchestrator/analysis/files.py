"""The files of an analysis: its plan for people and for programs, and the backlog."""

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.analysis.backlog import FORMATS, backlog_text
from orchestrator.analysis.plan_file import holds_tasks, is_plan, render_plan, ticked_titles, ticks_left
from orchestrator.core.analysis import ImprovementPlan, StageStatus
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import blocking, major
from orchestrator.core.secrets import redacted
from orchestrator.core.value import same_title
from orchestrator.files.atomic_file import replace_content
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Settings, packaged
from orchestrator.settings.options import AnalyseOptions

PLAN, PLAN_JSON = "mvp_improvement_plan.md", "plan.json"
INSTRUCTIONS = "notes/plan_instructions"


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the files go."""

    folder: Path
    """Of the plan's two files."""
    backlog: Path | None = None
    replace: bool = False
    """Whether a backlog that is there may be overwritten."""

    @classmethod
    def of(cls, options: AnalyseOptions) -> "Outputs":
        """Returns the outputs that a command line names."""
        return cls(folder=options.out, backlog=options.to_backlog, replace=options.replace)

    def check(self, wrote: Mapping[str, str] | None = None) -> None:
        """Raises ConfigError for what could not be written in the end, or would overwrite what is not ours.

        `wrote`: what the same analysis has written already, by path, with its hash.
        """
        out, backlog = self.folder, self.backlog
        if out.exists() and not out.is_dir():
            raise ConfigError(f"--out {out} is no folder")
        for path, is_ours in ((out / PLAN, is_plan), (out / PLAN_JSON, _is_plan_json)):
            if path.exists() and not is_ours(_text(path)):
                raise ConfigError(
                    f"{path} is there and is no improvement plan; move it, or name another folder with --out"
                )
        if backlog is None:
            return
        if backlog.suffix.lower() not in FORMATS:
            raise ConfigError(f"--to-backlog {backlog}: its name ends with .csv, .yaml or .yml")
        if not backlog.absolute().parent.is_dir():
            raise ConfigError(f"--to-backlog {backlog}: there is no folder {backlog.parent}")
        known = (wrote or {}).get(str(backlog.absolute()))
        if backlog.exists() and not self.replace and _hash(backlog.read_bytes()) != known:
            raise ConfigError(f"the backlog {backlog} is there already; add --replace to write over it")


@dataclass(frozen=True, kw_only=True)
class Written:
    """Result files of an analysis."""

    plan: ImprovementPlan
    plan_path: Path
    """mvp_improvement_plan.md; plan.json lies beside it."""
    backlog_path: Path | None = None
    """The backlog, where one was asked for and there was a task."""


def is_whole(plan: ImprovementPlan) -> bool:
    """Returns whether every stage answered as asked, and there is a task to do."""
    sound = all(stage.status is StageStatus.ANSWERED and not blocking(stage.findings) for stage in plan.stages)
    return sound and bool(plan.tasks)


def write_plan(
    outputs: Outputs,
    plan: ImprovementPlan,
    settings: Settings,
    library: PromptLibrary,
    *,
    secrets: Sequence[str] = (),
    wrote: Callable[[Path, str], None] = lambda _path, _hash: None,
) -> Written:
    """Writes the files, each whole or not at all. Boxes ticked in a plan that is there stay ticked; when no stage
    answered, a plan with tasks stays as it is.

    No file holds what looks like a secret, nor one of `secrets`. `wrote` gets the backlog and its hash before it is
    written. Raises ConfigError for a file that cannot be written; the same command then resumes, and nothing is lost.
    """
    plan_path, json_path = outputs.folder / PLAN, outputs.folder / PLAN_JSON
    before = _text(plan_path)
    plan = ImprovementPlan.model_validate(redacted(_ticked(plan, before).model_dump(mode="json"), secrets))
    backlog = outputs.backlog if plan.tasks else None
    if backlog is not None:
        text, said = backlog_text(plan, backlog.suffix.lower(), _header())
        plan = plan.model_copy(update={"findings": (*plan.findings, *said)})
        # Before the file is there: a run that is killed in between knows the file as its own.
        wrote(backlog, _hash(text.encode("utf-8", "replace")))
        _write(backlog, text)
    answered = {stage.status for stage in plan.stages} & {StageStatus.ANSWERED, StageStatus.PROSE}
    if holds_tasks(before) and not answered:
        message = f"no stage answered: {plan_path} stays as it was before"
        stays = major("improve.plan_stays", message, fix="remove the cause; the same command then writes it")
        plan = plan.model_copy(update={"findings": (*plan.findings, stays)})
        return Written(plan=plan, plan_path=plan_path)
    _write(json_path, json.dumps(plan.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
    _write(plan_path, render_plan(plan, settings.analysis.agent_name, library.note(INSTRUCTIONS)))
    return Written(plan=plan, plan_path=plan_path, backlog_path=backlog)


def _ticked(plan: ImprovementPlan, before: str) -> ImprovementPlan:
    """Returns the plan with what is ticked in the file it replaces; ticks wait for stages that have not answered."""
    ticked = ticked_titles(before)
    tasks = tuple(
        task.model_copy(update={"done": task.done or same_title(task.title) in ticked}) for task in plan.tasks
    )
    answered = all(stage.status is StageStatus.ANSWERED for stage in plan.stages)
    left = () if answered else (*plan.ticks_left, *ticks_left(before, (task.title for task in tasks)))
    return plan.model_copy(update={"tasks": tasks, "ticks_left": tuple(dict.fromkeys(left))})


def _header() -> list[str]:
    text = (packaged("examples") / "init" / "backlog.csv").read_text(encoding="utf-8")
    return next(csv.reader([text.split("\n", 1)[0]]))


def _is_plan_json(text: str) -> bool:
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):  # not ours to overwrite
        return False
    return isinstance(held, dict) and {"analysis", "profile", "tasks"} <= held.keys()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_content(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}; nothing is lost, the same command resumes"
        ) from error
