"""Tasks of all stages → one list: each title once, nearly the same ones marked, the most urgent first (pure)."""

from collections.abc import Collection, Iterable, Sequence

from rapidfuzz import fuzz, process

from orchestrator.analysis.evidence import World, marks_of
from orchestrator.domain.analysis import ImprovementTask, StageResult
from orchestrator.domain.titles import same_title

NEAR = 86.0
"""How alike two titles are, of 100, that are told as nearly the same."""
MAX_COMPARED = 3000
"""Tasks up to which each is compared with each."""


def aggregate(stages: Sequence[StageResult], world: World, ticked: Collection[str] = ()) -> tuple[ImprovementTask, ...]:
    """The tasks of a plan, numbered; `ticked` are titles that a person ticked, as `same_title` has them.

    Of tasks with the same title the first stands, with the higher priority and what only a later one has.
    """
    merged: dict[str, ImprovementTask] = {}
    for task in (task for stage in stages for task in stage.tasks):
        known = same_title(task.title)
        merged[known] = _joined(merged[known], task) if known in merged else task
    ordered = sorted(merged.items(), key=lambda item: item[1].priority.rank)
    numbered = [
        task.model_copy(
            update={"number": number, "done": known in ticked, "marks": marks_of(task, stages, world)},
        )
        for number, (known, task) in enumerate(ordered, start=1)
    ]
    near = _near([known for known, _ in ordered])
    return tuple(
        task.model_copy(update={"near": tuple(numbered[other].number for other in others)})
        for task, others in zip(numbered, near, strict=True)
    )


def _joined(first: ImprovementTask, later: ImprovementTask) -> ImprovementTask:
    higher = min((first, later), key=lambda task: task.priority.rank)
    also = [stage for stage in (*first.also, later.stage) if stage != first.stage]
    return first.model_copy(
        update={
            "priority": higher.priority,
            "priority_stated": higher.priority_stated,
            "description": first.description or later.description,
            "file": first.file or later.file,
            "depends_on": _once((*first.depends_on, *later.depends_on)),
            "also": _once(also),
        }
    )


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _near(titles: Sequence[str]) -> list[list[int]]:
    """Per title the places of those that are nearly the same, each told of the other, in order."""
    found: list[set[int]] = [set() for _ in titles]
    for place, title in enumerate(titles[:MAX_COMPARED]):
        rest = titles[place + 1 : MAX_COMPARED]
        for _, _, at in process.extract(title, rest, scorer=fuzz.token_sort_ratio, score_cutoff=NEAR, limit=None):
            found[place].add(place + 1 + at)
            found[place + 1 + at].add(place)
    return [sorted(held) for held in found]
