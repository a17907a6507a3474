"""Plans read: what is written is what is read, slips are told, and what would have to be guessed is refused."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orchestrator.answers.action_plan import PlanExtraction, is_plan, parse_plan, with_sections
from orchestrator.answers.result import Status
from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Pair, Verb
from orchestrator.core.paths import unsafe_reason
from tests.answers import plans
from tests.answers.action_plan_text import render_plan
from tests.effort import examples

SEEDS = examples(200)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.lists(
    st.sampled_from(plans.LINES), max_size=12
).map("\n".join)


def codes(found: PlanExtraction) -> set[str]:
    return {finding.code for finding in found.findings}


@settings(max_examples=examples(300))
@given(st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
def test_contents_come_back_as_they_were_written(texts: list[str], command: str) -> None:
    plan = ActionPlan(
        title="T",
        rationale="R",
        actions=(
            Create(path="a.md", content=texts[0]),
            Edit(path="b.md", pairs=tuple(Pair(find=text, replace=texts[0]) for text in texts)),
            Execute(command=command, env={"A": "x"}),
            Delete(path="c"),
        ),
    )
    found = parse_plan(render_plan(plan))
    assert (found.status, found.findings) == (Status.OK, ())
    assert found.plan is not None
    assert plans.plain(found.plan) == plan


@settings(max_examples=examples(300))
@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=60))
def test_paths_come_back_as_they_were_written(path: str) -> None:
    assume(unsafe_reason(path) is None)
    plan = ActionPlan(title="T", rationale="R", actions=(Delete(path=path), Delete(path=path)))
    found = parse_plan(render_plan(plan))
    if found.plan is not None:
        assert [action.path for action in plans.plain(found.plan).actions if isinstance(action, Delete)] == [path] * 2
    else:
        assert not any(char.isalnum() for char in path)


@pytest.mark.parametrize("mark", ["-", "+", "*", "1."])
def test_an_empty_item_is_no_item_of_what_stands_behind_it(mark: str) -> None:
    text = f"# T\n\n## Rationale\n\n{mark}\n\nWhy.\n\n## Action Plan\n\n### `DELETE`\n\n- **File Path:** [a](/a)\n"
    found = parse_plan(text)
    assert found.plan is not None
    assert found.plan.rationale == f"{mark}\n\nWhy."
    assert not parse_plan(f"{mark}\n\nfoo").plan


def test_actions_alone_get_the_sections_of_a_plan() -> None:
    """So was answered by who knew the files of commander.js and only wanted to see one, or to edit one."""
    read = "### `READ`\n\n- **Resource:** [tests/a.test.js](/tests/a.test.js)\n"
    edit = "Here it is.\n\n### `EDIT` lib/command.js\n\n#### FIND:\n```js\na\n```\n#### REPLACE:\n```js\nb\n```\n"
    for text, verb in ((read, Verb.READ), (edit, Verb.EDIT)):
        assert parse_plan(text).plan is None
        plan = parse_plan(with_sections(text) or "").plan
        assert plan is not None
        assert [one.verb for one in plan.actions] == [verb]
    assert "a\x0c\u2028b" in (with_sections(edit.replace("\na\n", "\na\x0c\u2028b\n")) or "")
    assert with_sections(f"Say this:\n\n```md\n{read}```\n") is None
    assert with_sections(f"## Notes\n\nNone.\n\n{read}") is None, "an action in the middle of something else"
    assert with_sections(render_plan(plans.plan(random.Random(1)))) is None


def test_generated_plans_are_read_as_they_are() -> None:
    for seed in range(SEEDS):
        plan = plans.plan(random.Random(seed))
        found = parse_plan(render_plan(plan))
        assert found.findings == ()
        assert found.plan is not None
        assert plans.plain(found.plan) == plan
        assert is_plan(render_plan(plan))


@pytest.mark.parametrize("name", plans.HARMLESS)
def test_a_slip_that_leaves_no_doubt_is_accepted_and_told(name: str) -> None:
    told = 0
    for seed in range(examples(50)):
        rng = random.Random(f"{name}{seed}")
        plan = plans.plan(rng)
        text = plans.HARMLESS[name](render_plan(plan), rng)
        found = parse_plan(text)
        assert found.plan is not None, (text, found.findings)
        want = plan.model_copy(update={"title": "", "metadata": {}}) if name == "no title" else plan
        read = found.plan.model_copy(update={"metadata": {}}) if name == "no title" else found.plan
        assert plans.plain(read) == want, text
        assert found.status is (Status.REPAIRED if found.findings else Status.OK)
        assert all(finding.fix and finding.where.line for finding in found.findings)
        assert is_plan(text)
        told += bool(found.findings)
    unsaid = {"no leading slash", "dot slash", "code for link", "closed heading", "longer rules", "language and path"}
    unsaid |= {"end of thoughts", "thoughts", "another section", "section between", "closing rule"}
    unsaid |= {"colon outside of bold", "lower case", "seconds"}
    assert (told > 0) == (name not in unsaid)


def test_slips_over_slips_never_give_a_wrong_value() -> None:
    for seed in range(SEEDS):
        rng = random.Random(f"mixed{seed}")
        plan = plans.plan(rng)
        text = render_plan(plan)
        for name in rng.sample(list(plans.HARMLESS), 2):
            if name not in {"no title", "thoughts", "tildes"}:
                text = plans.HARMLESS[name](text, rng)
        text = rng.choice(list(plans.HARMFUL.values()))(text, rng)
        found = parse_plan(text)
        if found.plan is not None and found.status is not Status.TRUNCATED:
            assert plans.plain(found.plan).actions == plan.actions, text


def test_what_is_left_of_a_cut_plan_is_right() -> None:
    for seed in range(SEEDS):
        rng = random.Random(f"cut{seed}")
        plan = plans.plan(rng)
        text = plans.cut(render_plan(plan), rng)
        found = parse_plan(text)
        if found.plan is None:
            continue
        read = plans.plain(found.plan).actions
        if found.status is Status.TRUNCATED:
            assert read == plan.actions[: len(read)]
            assert found.cut is not None
            assert len(read) < len(plan.actions)
        else:  # cut where nothing shows it: between two actions, or inside the last field of one
            assert read[:-1] == plan.actions[: len(read) - 1]


HEAD = "# T\n\n## Rationale\n\nR\n\n## Action Plan\n\n"
A = "### `CREATE`\n\n- **File Path:** [a.py](/a.py)\n\n```python\nx = 1\n```\n"
B = "### `DELETE`\n\n- **File Path:** [b.py](/b.py)\n"
EDIT = "### `EDIT`\n\n- **File Path:** [c.py](/c.py)\n\n"
FIND, REPLACE = "#### FIND:\n\n```\na\n```\n\n", "#### REPLACE:\n\n```\nb\n```\n"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "plan.none", None),
        ("Just words.", "plan.none", 1),
        (HEAD.replace("## Action Plan\n\n", "") + A, "plan.outside", 7),
        (HEAD + A + "\n# DELETE\n\n- **File Path:** [b.py](/b.py)\n", "plan.outside", 17),
        (HEAD + A + f"\n# End\n\n## Notes\n\n{B}", "plan.outside", 21),
        (f"# Draft\n\n{B}\n" + HEAD + A, "plan.outside", 3),
        (HEAD + A + f"\n{HEAD}{B}", "plan.section", 23),
        (HEAD.replace("## Rationale\n\nR\n\n", "") + A, "plan.section", 11),
        (HEAD + A + "\n## Action Plan\n\n" + B, "plan.section", 17),
        (HEAD + "Nothing to do.\n", "plan.no_actions", 9),
        (HEAD + A.replace("CREATE", "UPDATE"), "plan.verb", 9),
        (HEAD + A + "---\n**DELETE**\n\n- **File Path:** b\n", "plan.verb", 17),
        (HEAD + "### Create the tables\n\n" + A, "plan.verb", 9),
        (HEAD + A + "```python\ny = 2\n```\n" + B, "plan.block", 16),
        (HEAD + A.replace("x = 1", "```bash\nls") + "---\n" + B, "plan.fence_short", 13),
        (HEAD + A.replace("x = 1\n```", "x = 1") + "---\n" + B, "plan.fence_open", 13),
        (HEAD + "### `CREATE`\n\n```python\nx = 1\n```\n" + B, "plan.incomplete", 9),
        (HEAD + "### `CREATE`\n\n- **File Path:** [a.py](/a.py)\n\n---\n\n" + B, "plan.incomplete", 9),
        (HEAD + A.replace("[a.py](/a.py)", "[a.py](/other.py)"), "plan.path", 11),
        (HEAD + A.replace("[a.py](/a.py)", "`a.py` and `b.py`"), "plan.path", 11),
        (HEAD + A.replace("[a.py](/a.py)", "[a.py"), "plan.path", 11),
        (HEAD + A.replace("```python", "```python src/b.py"), "plan.path", 13),
        (HEAD + A.replace("\n\n```", "\n- **Path:** [b.py](/b.py)\n\n```", 1), "plan.field_twice", 12),
        (HEAD + A.replace("\n\n```", "\n- **Overwrite:** maybe\n\n```", 1), "plan.field_value", 12),
        (HEAD + B.replace("DELETE", "EXECUTE") + "\n```sh\nls\n```\n\n```sh\nls\n```\n", "plan.block", 17),
        (HEAD + "### `EXECUTE`\n\n- **Timeout:** soon\n\n```sh\nls\n```\n", "plan.field_value", 11),
        (HEAD + "### `EXECUTE`\n\n- **env:** 1=2\n\n```sh\nls\n```\n", "plan.field_value", 11),
        (HEAD + B + "\n```\nx\n```\n", "plan.block", 13),
        (HEAD + EDIT + "```\nwhole\n```\n", "plan.pairs", 13),
        (HEAD + EDIT + REPLACE + FIND, "plan.pairs", 13),
        (HEAD + EDIT + FIND + FIND + REPLACE, "plan.pairs", 19),
        (HEAD + EDIT + FIND + "---\n\n" + B, "plan.incomplete", 9),
        (HEAD.replace("R\n", f"R\n\n{B}") + A, "plan.outside", 7),
        (HEAD + A.replace("x = 1", "x = '\udc80'"), "plan.encoding", 14),
        ("> " + (HEAD + A).replace("\n", "\n> "), "plan.none", 1),
        (HEAD + "1. a\n   ```\n\tx\n   ```\n" + A, "plan.block", 10),
        (HEAD + "<!-- not now\n\n" + B + "\n-->\n\n" + A, "plan.comment", 9),
        (HEAD + B.replace("[b.py](/b.py)", "a.py, b.py"), "plan.path", 11),
        (HEAD + "### `EXECUTE`\n\n- **Command:** `a` and `b`\n", "plan.block", 11),
        (HEAD + "- a\n" * 30_000, "plan.too_many", None),
    ],
)  # fmt: skip
def test_what_leaves_doubt_is_refused_with_its_line(text: str, code: str, line: int | None) -> None:
    found = parse_plan(text)
    assert (found.status, found.plan, found.cut) == (Status.REFUSED, None, None)
    blocked = [finding for finding in found.findings if finding.severity.blocks]
    assert (blocked[0].code, blocked[0].where.line) == (code, line), blocked
    assert all(finding.fix for finding in blocked)


def test_findings_of_a_stage_come_together() -> None:
    text = HEAD.replace("## Rationale", f"# Two\n\n{B}") + A.replace("CREATE", "UPDATE")
    assert {f.code for f in parse_plan(text).findings if f.severity.blocks} == {"plan.outside", "plan.section"}
    text = HEAD + A.replace("CREATE", "UPDATE") + B.replace("[b.py](/b.py)", "") + EDIT + REPLACE
    assert {f.code for f in parse_plan(text).findings if f.severity.blocks} == {"plan.verb", "plan.path", "plan.pairs"}


def test_two_plans_are_refused() -> None:
    second = (HEAD + B).replace("# T", "# Final")
    assert parse_plan(f"{HEAD + A}\nNo, better:\n\n{second}").status is Status.REFUSED


def test_a_markdown_file_behind_too_short_a_bar_is_read_only_where_that_is_certain() -> None:
    readme = "# R\n\n```bash\nnpm i\n```\n\n## More\n\n---\n\n```js\nx\n```\n"
    action = f"### `CREATE`\n\n- **File Path:** [README.md](/README.md)\n\n```markdown\n{readme}```\n"
    for text in (HEAD + action, HEAD + action + "\n---\n\n" + A, HEAD + A + "\n---\n" + action + "\n\n" + B):
        found = parse_plan(text)
        assert found.plan is not None, found.findings
        (made,) = [a for a in found.plan.actions if isinstance(a, Create) and a.path == "README.md"]
        assert made.content == readme
        assert [f.fix[:19] for f in found.findings if f.code == "plan.fence_short"] == ["Write a bar of 4: `"]
    for unclear in (
        action.replace("```bash", "```"),
        action.replace("npm i\n```", "npm i"),
        action.replace("README.md", "readme.py"),
        action + "\nand more\n",
    ):
        assert parse_plan(HEAD + unclear + "\n---\n\n" + A).status is Status.REFUSED, unclear


def test_a_plan_in_a_block_that_an_inner_one_closes_early() -> None:
    inner = HEAD + A + "\n---\n\n" + EDIT + FIND + REPLACE
    for text in (f"```markdown\n{inner}```\n", f"Here:\n\n```md\n{inner}```\n\nDone.\n", f"~~~\n{inner}~~~"):
        found = parse_plan(text)
        assert found.plan is not None, found.findings
        assert len(found.plan.actions) == 2
        assert "plan.wrapped" in codes(found)
        assert is_plan(text)
    assert parse_plan(f"```markdown\n{inner}").status is not Status.OK


def test_beginnings_of_plans_are_plans() -> None:
    assert is_plan("# T\n\n## Rationale\n\nBecause of")
    assert is_plan(HEAD)
    assert is_plan(HEAD + A.replace("CREATE", "UPDATE"))


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from((*plans.LINES, *HEAD.split("\n"), *A.split("\n"), *FIND.split("\n"))), max_size=40))
def test_no_text_raises(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = parse_plan(text)
    assert (found.plan is None) == (found.status is Status.REFUSED)
    assert (found.cut is None) == (found.status is not Status.TRUNCATED)
    is_plan(text)


@pytest.mark.parametrize(
    ("body", "action"),
    [
        ("### `DELETE`\n- **File Path:** [a](/a)\nDone!\n", Delete(path="a")),
        ("### `DELETE`\n- **File Path:**\n  [a](/a)\n", Delete(path="a")),
        ("### `DELETE`\n- **File Path:** [a](/a)\nDescription: why\n", Delete(path="a", description="why")),
        ("### `DELETE` a.py\n", Delete(path="a.py")),
        ("### `DELETE`\n- **File Path:** `a` (old)\n", Delete(path="a")),
        ("### `EXECUTE`\n- **Command:** `ls -l`\n", Execute(command="ls -l")),
        ("### `EXECUTE`\n- **env:** `A=1`, `B=2`\n```\nls\n```\n", Execute(command="ls", env={"A": "1", "B": "2"})),
        ("### `CREATE`\n```python src/a.py\nx\n```\n", Create(path="src/a.py", content="x\n")),
        (
            "### `CREATE`\n- **File Path:** [a](/a)\n- **Content:**\n\n  ~~~\n  x\n    y\n  ~~~\n",
            Create(path="a", content="x\n  y\n"),
        ),
        (
            "### `EDIT`\n- **File Path:** [a](/a)\n- **FIND:**\n  ```\n  a\n  ```\n- **REPLACE:**\n  ```\n  ```\n",
            Edit(path="a", pairs=(Pair(find="a", replace=""),)),
        ),
    ],
)
def test_more_slips_that_leave_no_doubt(body: str, action: Action) -> None:
    found = parse_plan(HEAD + body)
    assert found.plan is not None, found.findings
    assert plans.plain(found.plan).actions == (action,)
    assert (found.status is Status.REPAIRED) == bool(found.findings)
