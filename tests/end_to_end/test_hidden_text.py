"""Text that reads otherwise than it runs: drawn for people and reviewers, and asked about where results are pushed."""

import re

import pytest

from tests.support import (
    ALL_PASS,
    RESULT,
    Played,
    Team,
    make_repo,
    plain_environment,
    play,
    run_cli,
    suite_text,
    write_backlog,
)

STORY = "US-1"
BIDI = "\u202e"
CODE = f"LEVEL = 1  # {BIDI}nimda ton si\n# \x1b[8mhidden\x1b[0m \x9b8m\n\n\ndef value():\n    return 1\n"
MODULES = {
    "us_1.py": CODE,
    "extra.pth": "import sys; sys.dont_write_bytecode = True\n",
    "locale/he.po": f'msgid "a"\nmsgstr "{BIDI}a"\n',
}
RAW = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder, team = tmp_path_factory.mktemp("hidden"), Team()
    team.plan(STORY, [*MODULES])
    team.deliver(STORY, 1, MODULES)
    team.suite(STORY, suite_text(STORY))
    row = {"Story_ID": STORY, "Title": f"A title {BIDI}with \x1b[31mcolour", "Notes": f"see \x9b1m {BIDI}"}
    backlog = write_backlog(folder / "backlog.csv", row)
    repo = make_repo(folder / "repo", {"README.md": "# A project\n"})
    return play(folder / "run", team, backlog, ALL_PASS, repo=repo, push_to=RESULT)


def test_a_person_is_asked_where_results_are_pushed_and_nothing_is_refused(run: Played) -> None:
    """Where they stay, nobody is: see tests/story/test_amendment.py and tests/contract/test_contract.py."""
    assert run.status(STORY) == "needs_attention", [str(one) for one in run.story(STORY).findings]
    asked = run.finding(STORY, "contract.ci")
    assert "`us_1.py` holds control characters" in asked.message
    assert "`extra.pth` runs with every start" in asked.message
    assert "he.po" not in asked.message
    told = {(finding.code, finding.where.file) for finding in run.story(STORY).findings}
    assert {path for code, path in told if code == "delivery.hidden_text"} == {"us_1.py"}
    assert run.text(STORY, "us_1.py") == CODE.strip(), "as it was delivered"


def test_it_is_drawn_wherever_it_is_read(run: Played) -> None:
    state = run.result.report_path.parents[2]
    prompts = {path.name: path.read_text() for path in state.glob("replies/*/*/*.prompt.md")}
    shown = {name: text for name, text in prompts.items() if "+LEVEL" in text}
    assert shown
    assert all("[U+202E]nimda" in text and "[U+001B][8mhidden" in text for text in shown.values())
    report = run.result.report_path
    environment = plain_environment(ORCHESTRATOR_HOME=str(state))
    printed = {
        " ".join(args): run_cli(args, state.parent, environment).stdout
        for args in (["status", "--json"], ["show", STORY, "--json"], ["logs", "--json"], ["show", STORY])
    }
    assert all(printed.values())
    texts = {**prompts, **printed, "report.md": report.with_suffix(".md").read_text(), "json": report.read_text()}
    assert [(name, found) for name, text in texts.items() if (found := RAW.findall(text))] == []
    assert "[U+202E]with" in texts["report.md"]
