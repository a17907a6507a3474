"""`--plan`: whose plan a file is, and what of it is kept; a dry run's look at it. Imports no engine."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from orchestrator.adapters.project_survey import project_files, read_texts
from orchestrator.checks.naming import nearest
from orchestrator.contract.manifests import dependencies_of, is_manifest
from orchestrator.domain.backlog_text import id_problem
from orchestrator.domain.sprint import BroughtPlan, SprintRecord
from orchestrator.domain.story import BacklogContent
from orchestrator.errors import ConfigError
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import JudgedTasks
from orchestrator.sprint.given_plan import judge_given, read_by_rules
from orchestrator.sprint.history import StoryHistory
from orchestrator.wiring.options import RunOptions, default_repository

SHOWN = 12
"""Stories that a message names."""


def brought(
    words: Sequence[str], selected: Sequence[str], content: BacklogContent, known: Mapping[str, BroughtPlan]
) -> dict[str, BroughtPlan]:
    """Story → the plan that `--plan` names for it. A file that is gone is not missed where `known` has the plan.

    Raises ConfigError for a plan of nobody or of two, a story twice, a file that cannot be read.
    """
    found: dict[str, BroughtPlan] = {}
    for word in words:
        story, path = _named(word, selected, content)
        if story in found:
            raise ConfigError(f"--plan names {story} twice: a story has one plan")
        found[story] = _read(path, known.get(story))
    return found


def _named(word: str, selected: Sequence[str], content: BacklogContent) -> tuple[str, str]:
    name, equals, path = word.partition("=")
    if equals and name in selected:
        if not path:
            raise ConfigError(f"--plan {word} names no file")
        return name, path
    if equals and not id_problem(name) and not Path(word).exists():
        raise ConfigError(f"--plan {word}: {_unknown(name, selected, content)}")
    if len(selected) != 1:
        stories = ", ".join(selected[:SHOWN]) + (", …" if len(selected) > SHOWN else "")
        raise ConfigError(
            f"--plan {word} does not say whose plan it is: write --plan STORY={word} ({stories or 'no story is open'})"
        )
    return selected[0], word


def _unknown(name: str, selected: Sequence[str], content: BacklogContent) -> str:
    row = content.story(name)
    if row is None:
        hint = nearest(name, list(selected))
        return f"there is no story {name}" + (f"; {hint}" if hint else "")
    if row.completed:
        return f"{name} is completed and is not run"
    return f"{name} is not among the stories of this sprint ({', '.join(selected[:SHOWN])})"


def _read(path: str, known: BroughtPlan | None) -> BroughtPlan:
    try:
        return BroughtPlan(path=path, text=Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        if known is not None:
            return known
        raise ConfigError(f"cannot read the plan {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the plan {path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def with_plans(
    record: SprintRecord,
    found: Mapping[str, BroughtPlan],
    histories: Mapping[str, StoryHistory],
    warn: Callable[[str], None],
) -> SprintRecord:
    """The record with these plans for the stories that have not begun; for others the plan they began with counts."""
    plans = dict(record.plans)
    for story, plan in found.items():
        before = plans.get(story)
        if before is not None and before.text == plan.text:
            continue
        if histories[story].started is None and histories[story].outcome is None:
            plans[story] = plan
        else:
            whose = f"the plan of {before.path} as it was then" if before is not None else "the architect's plan"
            warn(f"{story} has begun with {whose}; {plan.path} counts only once you `reset` it")
    return record.model_copy(update={"plans": plans})


def judged_by_rules(
    options: RunOptions, plans: Mapping[str, BroughtPlan], settings: Settings
) -> dict[str, JudgedTasks]:
    """What a dry run says about plans: read without a model, against the repository's files where there is one."""
    repo = options.repo or default_repository()
    files, packages = asyncio.run(project_of(repo)) if repo.is_dir() else (frozenset(), frozenset())
    judged = {}
    for story, plan in plans.items():
        given = read_by_rules(plan, story)
        findings = judge_given(given, story, files, packages, settings.plan.min_chars)
        judged[story] = JudgedTasks(count=len(given.breakdown.tasks), findings=findings)
    return judged


async def project_of(folder: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Paths of a folder's files, and the packages in its manifests."""
    files = await project_files(folder)
    texts = await asyncio.to_thread(read_texts, folder, [path for path in files if is_manifest(path)])
    return frozenset(files), frozenset(name for path, text in texts.items() for name in dependencies_of(path, text))
