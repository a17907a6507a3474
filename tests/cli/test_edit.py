"""A plan is changed by a person: checked like any other, answered whole, and never lost."""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import Result

from orchestrator.core.command import Choice
from orchestrator.core.finding import major
from tests.cli.waiting import Waiting, about_plan, plan
from tests.support import breakdown, run_cli

FILES = {"app.py": "A = 1\n", "requirements.txt": "flask>=2\n"}
ISSUE = major("breakdown.abstract_path", "`src/` is a\u2028folder: no", fix="Name real files.")


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    monkeypatch.chdir(tmp_path)
    made = Waiting(tmp_path)
    made.open_branch("US-1", FILES)
    made.ask("US-1", about_plan("US-1", ISSUE))
    return made


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Waiting:
    """A question that no test of this module answers."""
    made = Waiting(tmp_path_factory.mktemp("asked"))
    made.open_branch("US-1", FILES)
    made.ask("US-1", about_plan("US-1", ISSUE))
    return made


@pytest.fixture
def unanswered(asked: Waiting, monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    """That question; what a test wrote about it goes with the test."""
    monkeypatch.chdir(asked.folder)
    yield asked
    assert asked.answers() == []
    for path in asked.folder.glob("seen-*"):
        path.unlink()


def editor(waiting: Waiting, *steps: str) -> str:
    """An editor that does one Python statement per opening, on `text`; what it was shown is kept as seen-N."""
    script = waiting.folder / "editor.py"
    script.write_text(
        "import pathlib, sys, time\n"
        f"place, here = pathlib.Path(sys.argv[-1]), pathlib.Path({str(waiting.folder)!r})\n"
        "text, turn = place.read_text(), len(list(here.glob('seen-*')))\n"
        "(here / f'seen-{turn}').write_text(text)\n"
        f"exec({list(steps)!r}[turn])\n"
        "place.exists() and place.write_text(text)\n"
    )
    return f"{sys.executable} {script} --wait"


def seen(waiting: Waiting, turn: int = 0) -> str:
    return (waiting.folder / f"seen-{turn}").read_text()


def test_what_was_changed_in_the_editor_is_the_answer(waiting: Waiting) -> None:
    done = waiting.cli(
        "edit", "US-1", "--comment", "mine", EDITOR=editor(waiting, "text = text.replace('app', 'main')")
    )
    assert done.exit_code == 0, done.output
    assert "US-1: the plan is edited and approved by anna: mine" in done.stdout
    (answer,) = waiting.answers()
    assert answer.plan == plan("US-1", ["main.py"])
    shown = seen(waiting)
    for part in ("# US-1 Story US-1: plan 1, question 1", "# - it works", "the plan is invalid: 1 issue",
                 "`src/` is a folder: no", "#     to do: Name real files.", "\n  - app.py\n"):  # fmt: skip
        assert part in shown
    shown_later = waiting.cli("show", "US-1").stdout
    assert "main.py" in shown_later


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("pass", "the plan was left as it was"),
        ("text = ''", "the plan was left as it was"),
        ("text = '# only\\n\\n# comments'", "the plan was left as it was"),
        ("text = text.replace('\\n', '\\r\\n').split('\\r\\n\\r\\n', 1)[1]", "the plan was left as it was"),
    ],
)
def test_a_person_leaves_without_an_answer(unanswered: Waiting, step: str, said: str) -> None:
    done = unanswered.cli("edit", "US-1", EDITOR=editor(unanswered, step))
    assert (done.exit_code, unanswered.answers()) == (1, [])
    assert f"nothing was answered: {said}" in done.stderr


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"EDITOR": "nonesuch -w"}, "nonesuch"),
        ({"EDITOR": "true", "VISUAL": "false"}, "false: Editing failed"),
        ({"EDITOR": " "}, "there is no terminal for an editor: name a file with --file"),
    ],
)
def test_an_editor_that_is_not_there(unanswered: Waiting, variables: dict[str, str], said: str) -> None:
    done = unanswered.cli("edit", "US-1", **variables)
    assert (done.exit_code, unanswered.answers()) == (2, [])
    assert said in done.stderr


BAD = "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [app.py, tests/test_app.py]}\n"
IDLE = (
    "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [app.py]}\n"
    "- {task_id: T-US-1-02, description: y, files_to_create: []}\n"
)
HARD = "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [../x.py]}\n"


def test_without_a_terminal_a_bad_plan_is_printed_and_force_has_it_built(waiting: Waiting) -> None:
    done = waiting.cli("edit", "US-1", EDITOR=editor(waiting, f"text = {IDLE!r}"))
    assert (done.exit_code, waiting.answers()) == (1, [])
    assert "breakdown.no_work" in done.stderr
    assert IDLE in done.stderr, "nothing that was written is lost"
    kept = waiting.folder / "plan.yaml"
    kept.write_text(IDLE)
    forced = waiting.cli("edit", "US-1", "--file", str(kept), "--force", "--json")
    assert forced.exit_code == 0, forced.output
    assert json.loads(forced.stdout)["choice"] == "edit"
    built = waiting.answers()[0].plan
    assert built is not None
    assert [one.files_to_create for one in built.tasks] == [("app.py",), ()]
    assert kept.read_text() == IDLE, "a person's file stays"


def test_what_cannot_be_carried_out_is_not_forced(unanswered: Waiting) -> None:
    done = unanswered.cli("edit", "US-1", "--file", "-", "--force", "--json", text=HARD)
    assert (done.exit_code, unanswered.answers()) == (1, [])
    assert "the plan cannot be carried out: `../x.py` is unsafe" in done.stderr
    told = json.loads(done.stdout)
    assert (told["counts"], [one["code"] for one in told["findings"]]) == (False, ["breakdown.unsafe_path"])
    assert HARD in done.stderr


MARKDOWN = """# A start page

**Goal:** Readers find every shelf from one page, so that nobody has to ask at the desk where a book stands.

### Task 1: The page

- Modify: `app.py:1-9`

Show a list of all shelves with a link to each of them, in the order in which the shelves stand in the room.
"""


def test_a_task_plan_in_markdown_is_taken_and_judged_in_its_own_words(waiting: Waiting) -> None:
    path = waiting.folder / "plan.md"
    path.write_text(MARKDOWN.replace("app.py", "../app.py"))
    refused = waiting.cli("edit", "US-1", "--file", "plan.md", "--force")
    assert (refused.exit_code, waiting.answers()) == (1, [])
    assert "plan.md:5" in refused.stderr
    path.write_text("no plan at all")
    assert waiting.cli("edit", "US-1", "--file", "plan.md", "--force").exit_code == 1
    path.write_text(MARKDOWN)
    done = waiting.cli("edit", "US-1", "--file", "plan.md")
    assert done.exit_code == 0, done.output
    built = waiting.answers()[0].plan
    assert built is not None
    assert [one.files_to_create for one in built.tasks] == [("app.py",)]
    assert path.read_text() == MARKDOWN


def edit_while(waiting: Waiting, *words: str) -> Result:
    """Edit US-1; bob gives a command once the editor is open, which waits for the end of it."""
    step = "while not (here / 'ended').exists(): time.sleep(0.01)\ntext = text.replace('app', 'main')"
    words_of_editor = editor(waiting, step)

    def act() -> None:
        while not (waiting.folder / "seen-0").exists():
            time.sleep(0.01)
        run_cli(words, waiting.folder, waiting.environment(LOGNAME="bob"))
        (waiting.folder / "ended").touch()

    with ThreadPoolExecutor() as pool:
        other = pool.submit(act)
        done = waiting.cli("edit", "US-1", EDITOR=words_of_editor)
        other.result(60)
    return done


def test_who_answers_while_the_editor_is_open_is_first(waiting: Waiting) -> None:
    done = edit_while(waiting, "approve", "US-1")
    assert done.exit_code == 2
    assert "question 1 of US-1 was answered already" in done.stderr
    assert "the plan is approved by bob" in done.stderr
    assert [(one.choice, one.by) for one in waiting.answers()] == [(Choice.APPROVE, "bob")]
    assert "main.py" in done.stderr


def test_on_a_terminal_the_editor_opens_again_with_what_was_found(waiting: Waiting) -> None:
    mended = "text = text.replace('a: [', '').replace(', tests/test_app.py', '')"
    words = editor(waiting, f"text = {BAD!r}", "text = text + 'a: [\\n'", mended)
    code, printed = waiting.on_a_terminal("edit", "US-1", EDITOR=words)
    assert code == 0, printed
    assert "breakdown.test_file" in printed
    second, third = seen(waiting, 1), seen(waiting, 2)
    assert "was found in it" in second
    assert second.endswith(f"\n\n{BAD}")
    assert "breakdown.test_file" in second
    assert "gate.edit_syntax" in third
    assert "breakdown.test_file" not in third, "findings of the time before are gone"
    (answer,) = waiting.answers()
    assert answer.plan is not None
    assert answer.plan.tasks[0].files_to_create == ("app.py",)


SOUND = json.dumps(breakdown("US-1", ["app.py"]))


@pytest.mark.parametrize("content", [SOUND.encode("utf-16"), b"tasks: \xff", SOUND.encode("utf-16-le")])
def test_what_is_no_utf_8_is_told(unanswered: Waiting, content: bytes) -> None:
    path = unanswered.folder / "plan.yaml"
    path.write_bytes(content)
    done = unanswered.cli("edit", "US-1", "--file", str(path))
    assert done.exit_code in {1, 2}
    assert unanswered.answers() == []
    assert path.read_bytes() == content


def test_without_the_branch_nothing_is_taken_for_checked(tmp_path: Path) -> None:
    made = Waiting(tmp_path)
    made.ask("US-1")
    with pytest.raises(Exception, match="the branch of US-1 cannot be read"):
        made.cli("edit", "US-1", "--file", "-", text=SOUND)
    assert made.answers() == []
