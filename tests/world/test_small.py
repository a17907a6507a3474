"""Small and sure: SQL that no database takes, files that are one line, packages that are there, names like others."""

from collections.abc import Mapping, Sequence

import pytest

from orchestrator.answers.looks import look_in
from orchestrator.answers.paths import split_lines
from orchestrator.app.judge import Surroundings, judge
from orchestrator.checks.action_plan_files import with_line_ends
from orchestrator.code.check import check_syntax
from orchestrator.code.packages import missing_packages
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.value import suggest
from orchestrator.personas.shown import Shown
from tests.world.case import Case, table

MODELS = "schemas written by models"
CALLS = "answers by tool calls"
BAD_CHECK, RESERVED, COMMA = "the condition of CHECK", "is a reserved word", "a comma is missing"
TABLE = "CREATE TABLE a (\n  id INT,\n  age INT{}\n)"


def case(name: str, path: str, text: str, right: str, seen: str) -> Case:
    return Case(name=name, given=(path, text), right=right, seen=seen)


@table(
    *(
        case(f"{what} of {path}", path, text, right, MODELS)
        for path in ("a.sql", "mssql/a.sql", "postgres/a.sql", "mysql/a.sql", "sqlite/a.sql", "oracle/a.sql")
        for what, text, right in (
            ("check of a column", TABLE.format(" CHECK age > 0"), BAD_CHECK),
            ("check of a table", TABLE.format(", CHECK age > 0"), BAD_CHECK),
            ("a named check", TABLE.format(", CONSTRAINT grown CHECK age > 17"), BAD_CHECK),
            ("an added check", "ALTER TABLE a ADD CONSTRAINT grown CHECK age > 17", BAD_CHECK),
            ("a reserved name", "CREATE TABLE a (order INT)", RESERVED),
            ("right checks", TABLE.format(" CHECK (age > 0), CHECK (id < age)"), ""),
        )
    ),
    case("Python", "store.py", f'import sqlite3\nMAKE = """{TABLE.format(" CHECK age > 0")}"""\n', BAD_CHECK, MODELS),
    case("one line of Python", "store.py", 'run("CREATE TABLE a (order TEXT)")\n', RESERVED, MODELS),
    case("JavaScript", "store.js", f"db.exec(`{TABLE.format(' CHECK age > 0')}`);\n", BAD_CHECK, MODELS),
    case("a comma", "store.ts", "db.exec('CREATE TABLE a (id INT PRIMARY KEY name TEXT)');\n", COMMA, MODELS),
    case("a right string", "store.py", 'MAKE = "CREATE TABLE IF NOT EXISTS a (n INT CHECK (n > 0))"\n', "", MODELS),
    case("a filled string", "store.py", 'run(f"CREATE TABLE {name} (order TEXT)")\n', "", MODELS),
    case("a test's string", "tests/test_sql.py", 'BAD = "CREATE TABLE a (order TEXT)"\n', "", "tests of parsers"),
)
def test_sql_that_no_database_takes_is_refused(case: Case) -> None:
    assert is_found(*case.given, case.right)


SPELLED, TAIL = "line ends are spelled out", "the tail of a tool call"


@table(
    case("Markdown", "a.md", "# A\\n\\n- one\\n- two\\n", SPELLED, CALLS),
    case("text", "a.txt", "one\\ntwo\\n", SPELLED, CALLS),
    case("settings", "a.ini", "[a]\\nb = 1\\n", SPELLED, CALLS),
    case("variables", ".env", "A=1\\nB=2\\n", SPELLED, CALLS),
    case("SQL", "a.sql", "SELECT 1;\\nSELECT 2;\\n", SPELLED, CALLS),
    case("HTML", "a.html", "<p>a</p>\\n<p>b</p>\\n", SPELLED, CALLS),
    case("a key", ".env", 'KEY="-----BEGIN\\nabc\\n-----END\\n"\n', "", "keys of people"),
    case("words about it", "a.txt", "Write \\n or \\r\\n at an end.", "", "prose"),
    case("a call's end", "a.md", '# A\n\ntext\n</content>\n<parameter name="to">Write the', TAIL, CALLS),
    case("closed calls", "a.txt", "text\n</parameter>\n</invoke>\n", TAIL, CALLS),
    case("a call as an example", "a.md", '# A\n\n```xml\n<parameter name="to">x</parameter>\n```\n', "", "prose"),
)
def test_what_no_text_holds_is_refused(case: Case) -> None:
    assert is_found(*case.given, case.right)


def is_found(path: str, text: str, right: str) -> bool:
    """Whether the one major finding on the text says so; with no right value, whether there is none."""
    said = [one.message for one in check_syntax(path, text) if one.severity.blocks]
    return len(said) == 1 and right in said[0] if right else not said


def test_what_every_environment_has_is_no_package() -> None:
    assert missing_packages("Use the `json` library, the `fs` package and the `leftpad` package.") == ("leftpad",)


def test_a_name_is_meant_only_by_one_that_is_like_it() -> None:
    assert suggest("alhpa", ["alpha", "beta"]) == "; did you mean alpha?"
    assert suggest("zzz", ["alpha", "beta"]) == suggest("qwert", ["story", "budget"]) == ""


def test_lines_behind_a_path_are_kept_as_what_is_wanted_of_it() -> None:
    plan = "# Look\n\n## Rationale\n\nFirst.\n\n## Action Plan\n\n### READ\n\n- **Resource:** `src/a.py#L10-L20`\n"
    for text in ("READ src/a.py#L10-L20", '{"read": ["src/a.py#L10-L20"]}', plan):
        look = look_in(text)
        assert look is not None
        assert look.reads == ("src/a.py#L10-L20",)


@pytest.mark.parametrize(
    ("address", "path", "lines"),
    [
        ("a.py#L10-L20", "a.py", range(10, 21)),
        ("a.py#L10-20", "a.py", range(10, 21)),
        ("a.py#L10C3-L20C5", "a.py", range(10, 21)),
        ("a.py#L20-L10", "a.py", range(10, 21)),
        ("a.py#L7", "a.py", range(7, 8)),
        ("docs/C#L.md", "docs/C#L.md", None),
        ("a.py", "a.py", None),
    ],
)
def test_an_address_of_lines_is_a_path_and_its_range(address: str, path: str, lines: range | None) -> None:
    assert split_lines(address) == (path, lines)


async def test_of_a_long_file_the_lines_asked_for_are_shown() -> None:
    texts = {
        "long.py": "\n".join(f"value_{number} = {number}" for number in range(1, 5001)) + "\n",
        "short.py": "A = 1\n",
    }

    async def look(paths: Sequence[str]) -> Mapping[str, str]:
        return {path: texts[path] for path in paths if path in texts}

    shown = Shown({}, look, 8000, looks=9, in_part=False)
    asked = ("long.py#L4000-L4010", "long.py#L3000", "short.py#L1", "long.py#L9000", "none.py#L1")
    assert await shown.show(asked, ()) == ("short.py", "long.py#L4000-L4010", "long.py#L3000")
    told = shown.slots["shown_files"]
    assert "### long.py#L4000-L4010\n\nLines 4000 to 4010 of 5000:" in told
    assert "value_4000 = 4000" in told
    assert "value_4011 = " not in told
    assert "Lines 2980 to 3020 of 5000:" in told
    assert "`long.py#L9000` is not shown: the file has 5000 lines." in told
    assert "`none.py` is not shown: it is no text file of the repository." in told
    assert shown.in_full == {"short.py"}
    await shown.show((), ["long.py"])
    assert "value_4000" not in shown.slots["shown_files"]


def test_a_whole_text_keeps_the_line_ends_of_its_file() -> None:
    files = (FileChange(path="a.txt", content="1\n2\n"), FileChange(path="new.txt", content="1\n"))
    delivery = Delivery(story_id="S", task_id="T", files=files)
    said = with_line_ends(delivery, {"a.txt": "1\r\n3\r\n"})
    assert said is not None
    assert [one.content for one in said.files] == ["1\r\n2\r\n", "1\n"]


def test_whole_files_are_judged_as_a_run_judges_them() -> None:
    said = judge("delivery", "src/cap.py\n```python\nCAP = 1\n```\n", Surroundings())
    assert not [one.message for one in said.findings if one.severity.blocks]
    tests = "tests/test_cap.py\n```python\ndef test_cap():\n    assert 1 == 1\n```\n"
    assert not [one.code for one in judge("suite", tests, Surroundings()).findings if one.code == "answer.none"]
