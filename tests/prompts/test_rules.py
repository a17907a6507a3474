"""What checks enforce and what personas are told agree."""

import ast
import re
from pathlib import Path

from orchestrator.checks.delivery import PLACEHOLDER
from orchestrator.checks.paths import plan_problem
from orchestrator.prompts.render import PROMPT_SLOTS, SHARED
from tests.prompts.packaged import packaged_files, packaged_texts, without_examples
from tests.prompts.rules import OWN_CODES, RULES

PACKAGE = Path(__file__).parents[2] / "orchestrator"
TEXTS, FILES = packaged_texts(), packaged_files()
FAMILIES = ("breakdown.", "delivery.", "contract.", "suite.", "analysis.", "plan.", "extract.", "review.", "merge.")
PLAN_PROMPTS = ("developer/delivery_plan", "developer/continuation_plan", "developer/merge_plan", "tester/suite_plan")
WHOLE_PROMPTS = tuple(name for name in PROMPT_SLOTS if name.endswith("_whole"))
REVIEW_PROMPTS = tuple(name for name in PROMPT_SLOTS if name.startswith("reviewer/"))
LONGER = ("developer/merge_plan", "architect/breakdown", "architect/breakdown_missing")
JSON_PROMPTS_WITH_CODE = ("developer/delivery", "developer/continuation", "developer/merge", "tester/suite")


def told(name: str) -> str:
    return " ".join(TEXTS[name].split())


def codes_in(*rooms: str) -> set[str]:
    """String literals of the checks that look like codes of our families."""
    found: set[str] = set()
    for room in rooms:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                value = node.value if isinstance(node, ast.Constant) else None
                if isinstance(value, str) and re.fullmatch(r"[a-z]+\.[a-z_]+", value) and value.startswith(FAMILIES):
                    found.add(value)
    return found


def test_every_rule_is_told() -> None:
    untold = [rule for rule in RULES if rule.prompt not in PROMPT_SLOTS or rule.phrase not in told(rule.prompt)]
    assert untold == []


def test_the_table_and_the_checks_name_the_same_codes() -> None:
    paths = ("../x", "database", "tests/test_x.py", "logo.png")
    problems = [plan_problem(path, frozenset(), frozenset()) for path in paths]
    used = codes_in("answers", "checks", "contract", "personas", "sprint", "story") | {p.code for p in problems if p}
    listed = {rule.code for rule in RULES}
    assert used - listed - OWN_CODES == set(), "codes that no prompt tells of"
    assert (listed | OWN_CODES) - used == set(), "codes that no check raises"


def test_the_never_list_stands_right_under_the_output_rule() -> None:
    for name in ("architect/breakdown", "architect/breakdown_missing"):
        output = TEXTS[name].split("## Output\n", 1)[1].split("\n## ", 1)[0]
        assert output.index("one JSON object") < output.index("Never")
        for phrase in ("no backticks", "no `${`", "no raw line break inside a string", "no code in values"):
            assert phrase in output


def test_prompts_that_ask_for_code_in_json_speak_of_escapes() -> None:
    escapes = 'Inside a JSON string line breaks are written \\n, tabs \\t, double quotes \\" and backslashes \\\\'
    for name in JSON_PROMPTS_WITH_CODE:
        field = "test_content" if name.startswith("tester") else "content"
        assert f"`{field}` is a JSON string" in told(name), name
        assert escapes in told(name), name


def test_the_placeholder_that_is_refused_is_the_one_the_prompt_names() -> None:
    assert PLACEHOLDER in TEXTS["developer/delivery"]


def test_the_format_is_described_by_the_schema_alone() -> None:
    no_schema = (
        *PLAN_PROMPTS,
        *WHOLE_PROMPTS,
        *REVIEW_PROMPTS,
        "analyst/stage",
    )  # the last one's stands in a note that can be left out
    for name in PROMPT_SLOTS:
        assert TEXTS[name].count("{{schema}}") == (name not in no_schema), name
        assert TEXTS[name].count("Answer with one action plan in Markdown") == (name in PLAN_PROMPTS), name
        assert TEXTS[name].count("Answer with files and nothing else") == (name in WHOLE_PROMPTS), name
        words = without_examples(TEXTS[name])
        assert not re.search(r'"\w+"\s*:', words), f"{name}: a second description of the answer's shape"
        assert not re.search(r"(fields|keys) (are|named)|an object with|has the (fields|keys)", words, re.IGNORECASE), (
            name
        )


RUN = 12
"""Words in a row that no two files share: what is said twice will one day be said differently."""


def runs_of_words(text: str, run: int) -> set[str]:
    found = set()
    for line in without_examples(text).splitlines():
        words = re.sub(r"^\W+", "", line).split()
        found |= {" ".join(words[start : start + run]) for start in range(len(words) - run + 1)}
    return found


def said_twice(files: dict[str, str], run: int = RUN) -> dict[str, list[str]]:
    """Runs of words → the files they stand in, for those in more than one."""
    places: dict[str, list[str]] = {}
    for name, text in files.items():
        for words in runs_of_words(text, run):
            places.setdefault(words, []).append(name)
    return {words: names for words, names in places.items() if len(names) > 1}


def test_nothing_is_described_in_two_files() -> None:
    assert said_twice(FILES) == {}
    assert said_twice({**FILES, "mine": FILES["shared/escapes"]})
    assert all(any(f"include: {name} " in text for text in FILES.values()) for name in FILES if name.startswith(SHARED))


def test_prompt_files_stay_short() -> None:
    def size(text: str) -> int:
        return len(text.encode())

    assert {name: size(text) for name, text in FILES.items() if size(text) > 6700} == {}
    most = dict.fromkeys(TEXTS, 8000) | dict.fromkeys(LONGER, 8500)
    assert {name: size(text) for name, text in TEXTS.items() if size(text) > most[name]} == {}
