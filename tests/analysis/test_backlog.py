"""Tasks as stories that `run` takes."""

import csv
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.analysis.files import backlog_text, dependencies
from orchestrator.backlogs.files import read_backlog
from orchestrator.checks.backlog import all_problems
from orchestrator.core.analysis import ImprovementTask
from orchestrator.core.finding import blocking
from orchestrator.core.story import BacklogContent, Priority
from orchestrator.core.value import one_line
from orchestrator.settings import load, packaged
from tests.analysis.samples import plan, task
from tests.support import plain_environment

HEADER = next(csv.reader([(packaged("examples") / "init" / "backlog.csv").read_text().split("\n")[0]]))


def read(folder: Path, suffix: str, *tasks: ImprovementTask) -> BacklogContent:
    text, _ = backlog_text(plan(*tasks), suffix, HEADER)
    path = folder / f"backlog{suffix}"
    path.write_text(text, encoding="utf-8", newline="")
    settings, environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(folder / "state")), folder)
    return read_backlog(path, settings, environment)


@pytest.mark.parametrize("suffix", [".csv", ".yaml"])
def test_every_field_comes_through(tmp_path: Path, suffix: str) -> None:
    description, criteria = "It is open.\n- Words are bound; none is pasted", ("Cached; see `a;b`", "A quote is found")
    content = read(
        tmp_path,
        suffix,
        task('Bind: the "words", all', "critical", description=description, acceptance_criteria=criteria,
             file="a/b.py", also=("testing",)),
        task("Later", "low", priority_stated="P4", depends_on=('bind: the "words", all',)),
    )  # fmt: skip
    assert all_problems(content) == ()
    first, second = content.stories
    assert (first.id, first.title, first.priority) == ("IMP-001", 'Bind: the "words", all', Priority.CRITICAL)
    assert first.functional_requirements == f"{description}\nConcerns a/b.py"
    assert first.acceptance_criteria == criteria
    assert first.dependencies == ()
    assert first.notes.startswith("Source stage: Security review (security), testing; task 1 of analysis AN-001")
    assert second.dependencies == ("IMP-001",)
    assert second.acceptance_criteria == ("Later",)
    assert "Priority stated as: P4" in second.notes


def test_the_csv_header_is_the_one_of_all_backlogs() -> None:
    text, _ = backlog_text(plan(task("One")), ".csv", HEADER)
    assert text.split("\n")[0] == ",".join(HEADER)


def test_dependencies_are_those_that_are_stated_and_never_a_cycle() -> None:
    tasks = plan(
        task("Alpha", depends_on=("beta.", "Nothing of that kind", "Alpha")),
        task("Beta", depends_on=("Gamma",)),
        task("Gamma", depends_on=("Alpha",)),
        task("Delta", depends_on=("Alpha", "Gamma")),
    ).tasks
    needs, said = dependencies(tasks)
    assert needs == {1: (2,), 2: (3,), 3: (), 4: (1, 3)}
    assert [finding.where.story for finding in said] == ["IMP-001", "IMP-001", "IMP-003"]
    assert not blocking(said)


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=80)


@example([("0", ";")], ".csv")
@given(
    st.lists(st.tuples(TEXT.map(one_line).filter(bool), TEXT), min_size=1, max_size=4),
    st.sampled_from([".csv", ".yaml"]),
)
def test_any_text_gives_a_backlog_without_a_problem(
    tmp_path_factory: pytest.TempPathFactory, held: list[tuple[str, str]], suffix: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    content = read(folder, suffix, *(task(title, description=text) for title, text in held))
    assert len(content.stories) == len(held)
    assert not blocking(all_problems(content))
    for (title, _), story in zip(held, content.stories, strict=True):
        assert story.title.strip() == title.strip()
        assert story.acceptance_criteria
