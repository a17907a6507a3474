"""Backlogs of people and their trackers: what a cell says, and what it does not."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.backlogs.files import open_backlog
from orchestrator.core.errors import BacklogError
from orchestrator.core.story import BacklogContent, CellUpdate, IdIndex, Priority, parse_dependencies, priority_of
from orchestrator.core.value import criteria_below, is_criteria_heading, parse_criteria
from orchestrator.daemon.backlog_watcher import Watched
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import dry_run
from orchestrator.storage.state_folder import StateFolder
from tests.world.case import Case, table

IDS = IdIndex(["US-001", "US-002", "US-003", "US-004", "US-005", "NFR-001", "X-1", "BACK-427"])


def needs(name: str, given: str, ids: str = "", unknown: str = "", told: str = "", seen: str = "a CSV by hand") -> Case:
    return Case(name=name, given=given, right=(ids.split(), [unknown] if unknown else [], told), seen=seen)


@table(
    needs("two dots", "US-001..US-003", "US-001 US-002 US-003"),
    needs("the word to", "US-002 to US-004", "US-002 US-003 US-004"),
    needs("a hyphen between blanks", "US-004 - US-005", "US-004 US-005"),
    needs("a dash without blanks", "US-001\u2013US-003", "US-001 US-002 US-003", seen="a word processor"),
    needs("the number alone", "US-003 to 005, NFR-001", "US-003 US-004 US-005 NFR-001"),
    needs("an end that is no row", "US-003..US-009", "US-003 US-004 US-005", "US-009"),
    needs("a hyphen before words", "US-001 - the log-in", "US-001", told="US-001 - the log-in"),
    needs("arrows", "US-001 -> US-002", "US-001 US-002", seen="a backlog that a model wrote"),
    needs("a letter for a digit", "X-l", unknown="X-l"),
    needs("without its hyphen", "US003", unknown="US003"),
    needs("with a blank", "US 003", unknown="US 003"),
    needs("a letter too many", "USR-003", unknown="USR-003"),
    needs("the prefix of another tool", "task-427", unknown="task-427", seen="Backlog.md"),
    needs("not", "not US-003", told="not US-003"),
    needs("not beside one that counts", "US-001, not US-003", "US-001", told="not US-003"),
    needs("except", "US-001 (all except US-002)", "US-001", told="all except US-002"),
    needs("not before", "not before US-003", "US-003", told="not before US-003"),
    needs("no blocker", "no blocker", told="no blocker"),
    needs("a note in brackets", "US-001 (base); NFR-001", "US-001 NFR-001"),
    needs("words", "Log-in (US-001)", "US-001", told="Log-in"),
)
def test_a_dependency_cell_names_rows_or_is_told(case: Case) -> None:
    cell = parse_dependencies(case.given, IDS)
    assert ([*cell.ids], [*cell.unknown], "; ".join(cell.notes)) == case.right


@table(
    Case(name="not", given="Not urgent", right=None, seen="a CSV by hand"),
    Case(name="no", given="no blocker", right=None, seen="a CSV by hand"),
    Case(name="must not", given="Must not", right=None, seen="MoSCoW"),
    Case(name="none given", given="No priority", right=Priority.MEDIUM, seen="Linear"),
    Case(name="level and word", given="P0 - Critical", right=Priority.CRITICAL, seen="a backlog that a model wrote"),
    Case(name="should", given="Should have", right=Priority.HIGH, seen="MoSCoW"),
    Case(name="won't", given="Won\u2019t have", right=Priority.LOW, seen="MoSCoW"),
    Case(name="emoji", given="\U0001f534 High", right=Priority.HIGH, seen="Notion"),
    Case(name="higher than any", given="P10", right=None, seen="a CSV by hand"),
)
def test_a_priority_is_one_of_a_few_words_or_told(case: Case) -> None:
    assert priority_of(case.given) == case.right


def read(folder: Path, name: str, text: str) -> BacklogContent:
    """The backlog `name` with this text; a name of Markdown is a folder of that one story."""
    place = folder / "stories" if name.endswith(".md") else folder
    place.mkdir(exist_ok=True)
    (place / name).write_text(text, encoding="utf-8", newline="")
    path = place if name.endswith(".md") else place / name
    return open_backlog(path, Settings(), StateFolder(folder / "state")).read()


def csv(header: str, *rows: str) -> tuple[str, str]:
    return "b.csv", "\n".join((f"id,title,{header}", *rows, ""))


@table(
    Case(name="done", given=csv("Status", "A,a,Done", "B,b,In Progress"), right={"A"}, seen="Jira"),
    Case(name="canceled", given=csv("Status", "A,a,Canceled", "B,b,Not done"), right={"A"}, seen="Linear"),
    Case(name="state", given=csv("State", "A,a,Closed", "B,b,Active"), right={"A"}, seen="Azure DevOps"),
    Case(
        name="a date", given=csv("Completed,Canceled", "A,a,2026-02-01T10:00:00Z,", "B,b,,"), right={"A"}, seen="Linear"
    ),
    Case(name="accepted", given=csv("Status", "A,a,accepted", "B,b,started"), right={"A"}, seen="Pivotal Tracker"),
    Case(
        name="a flag of JSON",
        given=("b.json", '[{"id": "A", "title": "a", "passes": true}, {"id": "B", "title": "b", "passes": false}]'),
        right={"A"},
        seen="a prd.json of an agent loop",
    ),
    Case(
        name="what a run wrote counts more",
        given=csv("Status,Execution_Status", "A,a,Done,pending", "B,b,To Do,completed", "C,c,,cancelled"),
        right={"B"},
        seen="a reset story of a tracker's export",
    ),
)
def test_a_row_that_its_tracker_has_finished_is_not_run(case: Case, tmp_path: Path) -> None:
    content = read(tmp_path, *case.given)
    assert {story.id for story in content.stories if story.completed} == case.right


@table(
    Case(name="blocked by", given=csv("Blocked by", "A,a,", "B,b,A"), right=("A",), seen="Linear"),
    Case(name="blocker", given=csv("Blocker", "A,a,", "B,b,A"), right=("A",), seen="a spreadsheet"),
    Case(name="inward link", given=csv("Inward issue link (Blocks)", "A,a,", "B,b,A"), right=("A",), seen="Jira"),
    Case(
        name="two columns",
        given=csv("Depends on,Blocked by", "A,a,,", "C,c,,", "B,b,A,C"),
        right=("A", "C"),
        seen="a spreadsheet",
    ),
    Case(
        name="two fields",
        given=("b.yaml", "- {id: A, title: a}\n- {id: C, title: c}\n- {id: B, title: b, needs: [A], blockedBy: C}\n"),
        right=("A", "C"),
        seen="a tasks file of an agent",
    ),
    Case(name="outward links are none", given=csv("Blocks", "A,a,", "B,b,A"), right=(), seen="Jira"),
)
def test_columns_that_mean_needs_are_read(case: Case, tmp_path: Path) -> None:
    content = read(tmp_path, *case.given)
    assert [story.dependencies for story in content.stories if story.id == "B"] == [case.right]


@table(
    Case(
        name="columns",
        given=csv("Labels,Labels,Epic", "A,a,x,y,z"),
        right=["not read: Labels, Epic"],
        seen="Jira",
    ),
    Case(
        name="fields",
        given=("b.json", '[{"id": 1, "title": "a", "details": "d"}, {"id": 2, "title": "b", "details": "d"}]'),
        right=["not read: details"],
        seen="Taskmaster",
    ),
    Case(
        name="front matter",
        given=("a.md", "---\nid: A\ntitle: a\nordinal: 3\n---\n# a\n"),
        right=["not read: ordinal"],
        seen="Backlog.md",
    ),
)
def test_what_is_not_read_is_named_once(case: Case, tmp_path: Path) -> None:
    content = read(tmp_path, *case.given)
    assert [one.message.split(": ", 1)[1] for one in content.problems if one.code == "backlog.field"] == case.right


@table(
    Case(
        name="the second is filled",
        given=csv("Acceptance Criteria,Acceptance Criteria", 'A,a,,"* x\n* y"'),
        right=("x", "y"),
        seen="Jira",
    ),
    Case(
        name="both are filled",
        given=csv("Acceptance Criteria,Acceptance Criteria", "A,a,1. x; 2. y,z"),
        right=("x", "y", "z"),
        seen="Jira",
    ),
)
def test_of_a_repeated_column_what_is_filled_counts(case: Case, tmp_path: Path) -> None:
    content = read(tmp_path, *case.given)
    assert content.stories[0].acceptance_criteria == case.right
    assert [one.code for one in content.problems] == ["backlog.column_twice"]


@table(
    Case(name="title", given="title: Update #2 of the list", right=[2], seen="YAML by a model"),
    Case(name="text", given="title: t\n  description: Fix #4\n    and #5", right=[3], seen="YAML by a model"),
    Case(
        name="criterion", given="title: t\n  acceptance_criteria:\n    - is #fff\n    - a #b", right=[4, 5], seen="same"
    ),
    Case(name="nothing is left", given="title: t\n  dependencies: #12", right=[3], seen="YAML by hand"),
    Case(name="quoted", given="title: 'Update #2' # why\n  notes: |\n    is #fff", right=[], seen="YAML by hand"),
    Case(name="no comment", given="title: C#7 and a#b", right=[], seen="YAML by hand"),
    Case(name="another field", given="title: t\n  priority: High # ask Ann", right=[], seen="YAML by hand"),
)
def test_what_yaml_takes_for_a_comment_is_told_with_its_line(case: Case, tmp_path: Path) -> None:
    text = f"- id: A\n  {case.given}\n"
    try:
        content = read(tmp_path, "b.yaml", text)
    except BacklogError:  # a text of several lines that a comment ends is no YAML
        assert case.name == "text"
        return
    assert [one.where.line for one in content.problems if one.code == "backlog.comment"] == case.right


@table(
    Case(name="named", given="sep=;\nid;title;notes\nA;x, y;z\n", right=("A", "x, y", "z"), seen="Excel"),
    Case(name="semicolon", given="id;title;notes\nA;x, y;z\n", right=("A", "x, y", "z"), seen="Excel in German"),
    Case(name="tab", given="id\ttitle\tnotes\nA\tx, y\tz\n", right=("A", "x, y", "z"), seen="a copied sheet"),
    Case(name="bar", given="id|title|notes\nA|x; y|z\n", right=("A", "x; y", "z"), seen="a database"),
    Case(name="comma", given="id,title,notes\nA,x;y,z\n", right=("A", "x;y", "z"), seen="everywhere"),
)
def test_other_separators_are_read_and_written(case: Case, tmp_path: Path) -> None:
    story = read(tmp_path, "b.csv", case.given).stories[0]
    assert (story.id, story.title, story.notes) == case.right
    backlog = open_backlog(tmp_path / "b.csv", Settings(), StateFolder(tmp_path / "state"))
    assert backlog.write([CellUpdate(story_id="A", cells={"Notes": "a; b|c\td, e"})]) is None
    after = backlog.read().stories[0]
    assert (after.id, after.title, after.notes) == (*case.right[:2], "a; b|c\td, e")
    assert (tmp_path / "b.csv").read_text().splitlines()[:-1] == case.given.splitlines()[:-1]


@table(
    *(
        Case(name=line, given=line, right=True, seen="stories of trackers, kits and people")
        for line in (
            "## Acceptance Criteria",
            "Acceptance criteria:",
            "### Acceptance Criteria (ACs)",
            "ACs",
            "AC:",
            "**Acceptance Criteria:**",
            "#### \u2705 Acceptance Criteria",
            "## 3. Acceptance Criteria",
            "__AC__",
        )
    ),
    *(
        Case(name=line, given=line, right=False, seen="prose")
        for line in ("AC power is off", "We agree on acceptance criteria later", "Acme", "## Activities", "Accept")
    ),
)
def test_headings_of_criteria(case: Case) -> None:
    assert is_criteria_heading(case.given) is case.right
    assert criteria_below(f"Why.\n\n{case.given}\n- [ ] a\n- b\n\n## Notes\n- c") == (("a", "b") if case.right else ())


@table(
    Case(
        name="HTML list",
        given="<ul><li>a &amp; b</li><li><b>c</b></li></ul>",
        right=["a & b", "c"],
        seen="Azure DevOps",
    ),
    Case(name="HTML blocks", given="<div>1. a</div><div>2. b</div>", right=["a", "b"], seen="Azure DevOps"),
    Case(
        name="tags that are meant",
        given="shows `<li>` and <p>; ends",
        right=["shows `<li>` and <p>", "ends"],
        seen="a web app",
    ),
    Case(
        name="comments",
        given="<!-- AC:BEGIN -->\n- [ ] #1 a\n- [x] #2 b\n<!-- AC:END -->",
        right=["a", "b"],
        seen="Backlog.md",
    ),
    Case(
        name="scenarios",
        given="Feature: x\n\nScenario: one\n  Given a\n  When b\n  Then c; d\n\nScenario: two\n  Given e\n  Then f",
        right=["Scenario: one Given a When b Then c; d", "Scenario: two Given e Then f"],
        seen="Gherkin in a cell",
    ),
    Case(
        name="scenarios as items",
        given="- **Scenario: one**\n  - Given a\n  - Then b\n- **Scenario: two**\n  - Given c",
        right=["Scenario: one Given a Then b", "Scenario: two Given c"],
        seen="Markdown of a kit",
    ),
    Case(
        name="table",
        given="| # | Criterion |\n|---|:--|\n| 1 | it is one |\n| 2 | it is two |",
        right=["it is one", "it is two"],
        seen="a wiki",
    ),
    Case(name="rule", given="- a\n---\n- b\n***", right=["a", "b"], seen="Markdown"),
    Case(name="semicolon in code", given="`a; b` prints both; c", right=["`a; b` prints both", "c"], seen="a shell"),
    Case(name="semicolon in quotes", given='says "a; b"; c', right=['says "a; b"', "c"], seen="a shell"),
    Case(name="numbers of Jira", given="# a\n# b", right=["a", "b"], seen="Jira"),
    Case(name="other boxes", given="- [-] a\n- [~] b\n- [] c", right=["a", "b", "c"], seen="Obsidian"),
)
def test_criteria_are_what_people_mean_by_them(case: Case) -> None:
    assert [*parse_criteria(case.given)] == case.right


def test_a_story_without_criteria_says_so_in_the_dry_run(tmp_path: Path) -> None:
    content = read(tmp_path, *csv("Acceptance_Criteria", "A,a,", "B,b,1. x"))
    told = [one.message for one in dry_run(content, stories=None, settings=Settings()).problems]
    assert told == ["1 story without acceptance criteria: A (line 2)"]


def test_criteria_are_found_below_a_heading_of_any_level(tmp_path: Path) -> None:
    text = "---\ntitle: t\n---\n### Problem\n\nx\n\n### Acceptance criteria\n\n- [ ] a\n- [ ] b\n\n### Else\n\n- c\n"
    assert read(tmp_path, "GH-1.md", text).stories[0].acceptance_criteria == ("a", "b")
    shutil.rmtree(tmp_path / "stories")
    text = "---\ntitle: t\n---\n## Acceptance Criteria (ACs)\n1. a\n2. b\n## Tasks\n- c\n"
    assert read(tmp_path, "1.2.md", text).stories[0].acceptance_criteria == ("a", "b")


LONG = "# Plan\n\nGoal: every record is kept, and nothing is lost when the page is left.\n\n"


@table(
    Case(
        name="begun", given="- [-] 1. `src/a.ts`\n- [~] 2. `src/b.ts`\n- [/] 3. `src/c.ts`", right="1 2 3", seen="Kiro"
    ),
    Case(name="empty", given="- [] 1. `src/a.ts`\n- [ ]2. `src/b.ts`", right="1 2", seen="a plan by hand"),
    Case(name="letters", given="- [x] T001 `src/a.ts`\n- [ ] T001a `src/b.ts`", right="1x 1a", seen="Spec Kit"),
    Case(name="hyphen", given="- [ ] T-001 `src/a.ts`\n- [X] T-2 `src/b.ts`", right="1 2x", seen="a plan by a model"),
    Case(
        name="three numbers", given="- [ ] 1.2.3 `src/a.ts`\n- [ ] 1.2.4 `src/b.ts`", right="1.2.3 1.2.4", seen="Kiro"
    ),
    Case(
        name="a ticked parent",
        given="- [x] 1. Both\n  - [x] 1.1 `src/a.ts`\n  - [ ] 1.2 `src/b.ts`\n- [x] 2. All\n  - [x] 2.1 `src/c.ts`",
        right="1 2x",
        seen="Kiro",
    ),
)
def test_a_box_is_a_task_and_done_only_where_it_is_ticked(case: Case) -> None:
    reading = read_task_plan(LONG + case.given, "plan.md")
    assert " ".join(task.number + "x" * task.done for task in reading.plan.tasks) == case.right
    assert all(task.files for task in reading.plan.tasks if not task.done)
    assert reading.findings == ()


def test_a_ticked_child_is_not_made_again() -> None:
    plan = LONG + "- [x] 1. Both\n  - [x] 1.1 `src/a.ts`\n  - [ ] 1.2 `src/b.ts`\n"
    assert read_task_plan(plan, "plan.md").plan.tasks[0].files == ("src/b.ts",)


def test_a_box_that_is_nearly_a_task_is_refused_by_name() -> None:
    (told,) = read_task_plan(f"{LONG}- [ ] T001 `src/a.ts`\n- [ ] TASK-7 `src/b.ts`\n", "plan.md").findings
    assert (told.code, told.severity.blocks, "TASK-7" in told.message) == ("task_plan.heading", True, True)


def test_a_folder_of_stories_is_watched_as_it_is_read(tmp_path: Path) -> None:
    inside, beside = tmp_path / "node_modules" / "x" / "README.md", tmp_path / "README.md"
    inside.parent.mkdir(parents=True)
    (tmp_path / "A.md").write_text("---\ntitle: a\n---\n")
    watched = Watched(tmp_path, StateFolder(tmp_path / "state"), lambda content: content)
    watched.look(Settings(), datetime.now(UTC))
    for other in (inside, beside):
        other.write_text("no story")
    assert watched.is_current
    (tmp_path / "B.md").write_text("---\ntitle: b\n---\n")
    assert not watched.is_current
