"""Plans against the files that are there: what is said, and what they come to."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.checks.action_plan import Applied, apply_plan, delivery_of, named_paths, suite_value
from orchestrator.checks.action_plan_files import PlanWorld, nearest
from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Move, Pair, Prune, Read
from tests.effort import examples

FILES = {
    "a.py": "def f():\n    return 1\n\n\ndef g():\n    return 1\n",
    "crlf.txt": "one\r\ntwo\r\nthree",
    "bom.txt": "\ufeffone\ntwo\n",
    "end": "x\ny",
    "src/b.py": "B = 1\n",
}
PATHS = frozenset({*FILES, "logo.png"})


def world(files: Mapping[str, str] = FILES, context: frozenset[str] | None = PATHS) -> PlanWorld:
    return PlanWorld(paths=frozenset({*files, "logo.png"}), texts=files, context=context)


def plan(*actions: Action) -> ActionPlan:
    return ActionPlan(title="T", rationale="R", actions=actions)


def applied(*actions: Action, context: frozenset[str] | None = PATHS) -> Applied:
    return apply_plan(plan(*actions), world(context=context))


def edit(path: str, *pairs: tuple[str, str]) -> Edit:
    return Edit(path=path, pairs=tuple(Pair(find=find, replace=replace) for find, replace in pairs))


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (Create(path="../x", content=""), "delivery.unsafe_path"),
        (Create(path="a.py", content="x"), "plan.exists"),
        (Create(path="src", content="x"), "plan.clash"),
        (Create(path="a.py/b", content="x"), "plan.clash"),
        (edit("c.py", ("a", "b")), "plan.missing"),
        (edit("src", ("a", "b")), "plan.missing"),
        (edit("logo.png", ("a", "b")), "plan.unreadable"),
        (edit("a.py", ("return 2", "x")), "plan.not_found"),
        (edit("a.py", ("    return 1", "x")), "plan.ambiguous"),
        (edit("a.py", ("", "x")), "plan.empty_find"),
        (edit("a.py", ("\n\n", "x")), "plan.empty_find"),
        (Edit(path="a.py", pairs=()), "plan.empty_find"),
        (edit("a.py", ("def f():", "x"), ("def f():", "y")), "plan.not_found"),
        (Read(resource="none.py"), "plan.missing"),
        (Read(resource="/etc/passwd"), "plan.resource"),
        (Read(resource="src/"), "plan.missing"),
        (Prune(resource="none.py"), "plan.not_shown"),
        (Execute(command=" \n"), "plan.command"),
        (Execute(command="ls", cwd=".."), "plan.cwd"),
        (Execute(command="ls", cwd="a.py"), "plan.cwd"),
        (Delete(path="none.py"), "plan.missing"),
        (Move(path="a.py", target="src/b.py"), "plan.exists"),
        (Move(path="a.py", target="a.py"), "plan.exists"),
        (Move(path="a.py", target="../a.py"), "delivery.unsafe_path"),
        (Move(path="a.py", target="a.py/b"), "plan.clash"),
    ],
)
def test_what_cannot_be_done_changes_nothing(action: Action, code: str) -> None:
    done = applied(Create(path="new.py", content="x\n"), action, Delete(path="end"))
    blocking = [finding for finding in done.findings if finding.severity.blocks]
    assert [finding.code for finding in blocking] == [code]
    assert blocking[0].fix
    assert not done.valid
    assert done.changes == {}


@pytest.mark.parametrize(
    "action",
    [
        edit("a.py", ("def f():", "x")),
        Create(path="a.py", content="x", overwrite=True),
        Delete(path="a.py"),
        Move(path="a.py", target="z.py"),
    ],
)
def test_nobody_changes_what_he_has_not_read(action: Action) -> None:
    assert [f.code for f in applied(action, context=frozenset({"end"})).findings] == ["plan.unread"]
    unknown = applied(action, context=None)
    assert [f.code for f in unknown.findings] == ["plan.context_unknown"]
    assert unknown.valid
    assert applied(Create(path="n.py", content="1\n"), edit("n.py", ("1", "2")), context=frozenset()).valid
    assert applied(Create(path="n.py", content="1\n"), Create(path="n.py", content="2\n")).findings[0].code == (
        "plan.same_path"
    )


@pytest.mark.parametrize(
    ("path", "pairs", "text"),
    [
        ("a.py", [("def f():\n    return 1\n", "def f():\n    return 2\n")], FILES["a.py"].replace("1", "2", 1)),
        ("a.py", [("def f():", "def h():"), ("def h():\n    return 1", "H = 1")], "H = 1" + FILES["a.py"][21:]),
        ("a.py", [("def f():\n    return 1\n\n\n", "")], "def g():\n    return 1\n"),
        ("a.py", [("f()", "")], FILES["a.py"].replace("f()", "")),
        ("crlf.txt", [("one\ntwo\n", "1\n2\n")], "1\r\n2\r\nthree"),
        ("crlf.txt", [("two", "2\n2b")], "one\r\n2\r\n2b\r\nthree"),
        ("crlf.txt", [("three", "3\n4")], "one\r\ntwo\r\n3\r\n4"),
        ("crlf.txt", [("two\n", "")], "one\r\nthree"),
        ("crlf.txt", [("three\n", "")], "one\r\ntwo"),
        ("bom.txt", [("one", "1")], "\ufeff1\ntwo\n"),
        ("bom.txt", [("one\n", "")], "\ufefftwo\n"),
        ("end", [("y\n", "z\n")], "x\nz"),
        ("end", [("y", "")], "x"),
        ("end", [("x\ny", "\n")], ""),
        ("end", [("x\ny", "")], ""),
        ("src/b.py", [("B = 1\n", "B = 1\n\nC = 2\n")], "B = 1\n\nC = 2\n"),
    ],
)  # fmt: skip
def test_pairs_replace_lines_by_lines(path: str, pairs: list[tuple[str, str]], text: str) -> None:
    done = applied(edit(path, *pairs))
    assert done.findings == ()
    assert done.changes == {path: text}


def test_an_edit_that_changes_nothing_is_told() -> None:
    done = applied(edit("end", ("x", "x")), Create(path="src/b.py", content="B = 1", overwrite=True))
    assert [f.code for f in done.findings] == ["plan.no_change"] * 2
    assert done.changes == {}


def test_an_overwritten_file_keeps_its_line_ends_and_mark() -> None:
    done = applied(
        Create(path="crlf.txt", content="a\nb\n", overwrite=True), Create(path="bom.txt", content="a\n", overwrite=True)
    )
    assert done.changes == {"crlf.txt": "a\r\nb\r\n", "bom.txt": "\ufeffa\n"}


def test_actions_see_what_earlier_ones_left() -> None:
    done = applied(
        Move(path="src/b.py", target="src/c.py"),
        edit("src/c.py", ("B = 1", "C = 1")),
        Delete(path="end"),
        Create(path="end", content="new\n"),
        Create(path="x/y.py", content="1\n"),
        Delete(path="x/y.py"),
    )
    assert done.findings == ()
    assert done.changes == {"src/b.py": None, "src/c.py": "C = 1\n", "end": "new\n"}
    delivery = delivery_of(done, "US-1", "T-US-1-01")
    assert (delivery.paths, delivery.removed) == (("src/c.py", "end"), ("src/b.py",))
    assert applied(Delete(path="end"), edit("end", ("x", "y"))).findings[0].code == "plan.missing"
    moved = plan(Move(path="a.py", target="../b"), Read(resource="https://x.org"), Read(resource="end"))
    assert named_paths(moved) == ("a.py", "end")


def test_findings_show_the_nearest_text_and_all_matches() -> None:
    (found,) = apply_plan(plan(edit("a.py", ("def g(): \n    return 2", "x"))), world()).findings
    assert "the nearest text is at line 5 (" in found.message
    assert "\n-    return 1\n+def g(): \n+    return 2" in found.message
    (found,) = apply_plan(plan(edit("a.py", ("def g():\n  return 1", "x"))), world()).findings
    assert "they differ in blanks only" in found.message
    (found,) = apply_plan(plan(edit("a.py", ("completely = different()", "x"))), world()).findings
    assert "nothing there is like it" in found.message
    (found,) = apply_plan(plan(edit("a.py", ("return 1", "x"))), world()).findings
    assert "2 times in `a.py`: at lines 2, 6" in found.message
    assert "Add context" in found.fix
    (found,) = apply_plan(plan(Read(resource="src/bb.py")), world()).findings
    assert "`src/b.py` does" in found.message


def test_the_nearest_text_is_found_in_a_large_file() -> None:
    """In less than a second; what looked at every place would not end."""
    rng = random.Random(1)
    words = ("alpha", "beta", "return", "x = 1")
    lines = [f"{' '.join(rng.choice(words) for _ in range(5))} {rng.randrange(999)}" for _ in range(90_000)]
    find = "\n".join(lines[60_000:60_050]).replace("alpha", "alpho")
    found = nearest("\n".join(lines), find)
    assert found is not None
    assert found.line == 60_001
    assert nearest("x" * 10_000_000, "y" * 2000) is None
    assert nearest("x" * 10_000_000, "x" * 2000 + "y") is None
    assert nearest("a\n" * 5_000_000, "a\nb\n" * 500) is not None


TEXTS = st.text(st.sampled_from("ab\n\r"), max_size=20).map(lambda text: text.replace("\r", "\r\n"))
BLOCKS = st.text(st.sampled_from("ab\n"), max_size=6)
NAMES = st.sampled_from(("a", "b", "c/d"))
ACTIONS = st.lists(
    st.builds(Create, path=NAMES, content=BLOCKS, overwrite=st.booleans())
    | st.builds(Edit, path=NAMES, pairs=st.lists(st.builds(Pair, find=BLOCKS, replace=BLOCKS), min_size=1, max_size=3))
    | st.builds(Delete, path=NAMES)
    | st.builds(Move, path=NAMES, target=NAMES),
    max_size=5,
)


def put(files: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {path: text for path, text in {**files, **changes}.items() if text is not None}


@settings(max_examples=examples(500))
@given(st.dictionaries(NAMES, TEXTS), ACTIONS)
def test_a_plan_applies_whole_or_not_at_all(files: dict[str, str], actions: list[Action]) -> None:
    before = PlanWorld(paths=frozenset(files), texts=files)
    done = apply_plan(plan(*actions), before)
    assert done.valid == (not any(finding.severity.blocks for finding in done.findings))
    after = put(files, done.changes)
    if not done.valid:
        assert after == files
    for number in range(len(actions)):  # what a plan does is what its actions do one by one
        part = apply_plan(plan(*actions[:number]), before)
        rest_world = PlanWorld(paths=frozenset(put(files, part.changes)), texts=put(files, part.changes))
        rest = apply_plan(plan(*actions[number:]), rest_world)
        if done.valid and part.valid and rest.valid:
            assert put(put(files, part.changes), rest.changes) == after


@settings(max_examples=examples(500))
@given(TEXTS, BLOCKS, BLOCKS)
def test_a_pair_changes_only_the_one_place_it_found(text: str, find: str, replace: str) -> None:
    done = apply_plan(
        plan(edit("a", (find, replace))), PlanWorld(paths=frozenset({"a"}), texts={"a": text}, context=frozenset({"a"}))
    )
    needle, lf = find.removesuffix("\n"), text.replace("\r\n", "\n")
    count = sum(lf.startswith(needle, at) for at in range(len(lf) + 1)) if find.strip() else 0
    assert done.valid == (count == 1)
    if done.valid and replace.strip() and needle:
        new = done.changes.get("a", text)
        assert new is not None
        assert new.replace("\r\n", "\n") == lf.replace(needle, replace.removesuffix("\n"))
        if "\r\n" not in text:
            assert "\r" not in new
        elif "\n" not in text.replace("\r\n", ""):
            assert "\n" not in new.replace("\r\n", "")


def test_tests_in_another_file_than_theirs_are_told_where_they_go() -> None:
    """From ufo: tests were added to test/query.test.ts, where the prompt said test/utilities.test.ts."""
    elsewhere = plan(edit("test/query.test.ts", ("a", "b")))
    covered, older = {"test/utilities.test.ts": "a"}, {"test/old.test.ts": "a"}
    start = "Answer with one plan that has under `## Action Plan` "
    there = "EDITs of `test/utilities.test.ts`, where the tests go, and nothing else"
    for given_older, given_covered, fix in [
        ({}, covered, f"{there}."),
        (older, covered, f"{there} but EDITs of `test/old.test.ts`."),
        ({}, {}, "one CREATE, the test file, and nothing else."),
    ]:
        value, (said,) = suite_value(elsewhere, given_older, given_covered)
        assert value is None
        assert said.fix == f"{start}{fix}"
