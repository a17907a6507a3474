"""Writes team.jsonl, the scripted team, from the readable sources in team/.

    python build_team.py            write team.jsonl
    python build_team.py --check    say whether team.jsonl is what the sources make (exit code 1 when not)

`team/turns.csv` lists every reply in the order in which it is asked for. A reply's `source` lies in the folder of its
story: a file is the answer itself, word for word but for its last line break; a folder of a delivery holds the
delivered files; a folder of a suite holds one test file, whose functions say in their docstrings which acceptance
criterion they test. `form` says how a model wrote it: `plan` as an action plan under the row's `title`, which creates
what is new and edits what is there, `json` bare, `fenced` in a code fence with a sentence before it, `text` exactly as
the file has it.
"""

import ast
import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CHARS_PER_TOKEN = 4


def read_turns(team: Path) -> list[dict[str, str]]:
    """The rows of turns.csv, in order."""
    with (team / "turns.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files_of(folder: Path) -> list[dict[str, str]]:
    """Every file below a folder as path and content, sorted by path. Raises FileNotFoundError when there is none."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    if not found:
        raise FileNotFoundError(f"{folder} holds no files")
    return [{"path": p.relative_to(folder).as_posix(), "content": p.read_text(encoding="utf-8")} for p in found]


def delivery(folder: Path, story: str, task: str) -> dict[str, Any]:
    """A developer's answer that delivers the files of a folder."""
    return {"story_id": story, "task_id": task, "files": files_of(folder)}


def suite(folder: Path) -> dict[str, Any]:
    """A tester's answer: the one test file of a folder, with the criterion of each test from its docstring."""
    (file,) = files_of(folder)
    tests = [
        node
        for node in ast.parse(file["content"]).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    cases = [{"name": test.name, "criterion": ast.get_docstring(test) or ""} for test in tests]
    return {"test_file": file["path"], "test_content": file["content"], "test_cases": cases}


def earlier(team: Path, turn: dict[str, str], path: str) -> str | None:
    """The text that a file has when this reply is asked for: what was accepted of it last, None for a new one."""
    text = None
    for other in read_turns(team):
        if other == turn:
            return text
        folder = team / other["story"] / other["source"]
        if other["purpose"] == "delivery" and not other["source"].endswith("-refused") and (folder / path).is_file():
            text = (folder / path).read_text(encoding="utf-8")
    return text


def block(text: str, language: str) -> str:
    """A fenced block whose fence is longer than any run of backticks inside."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}{fence}"


def change(old: str, new: str) -> tuple[str, str]:
    """The lines to be found and those that take their place: what differs, with lines around it until it is unique."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    while start or end:
        found = "".join(before[start : len(before) - end])
        if found.strip() and old.count(found) == 1:
            break
        start, end = max(start - 1, 0), max(end - 1, 0)
    return "".join(before[start : len(before) - end]), "".join(after[start : len(after) - end])


def action(path: str, content: str, old: str | None) -> str:
    """CREATE for a new file, EDIT for one that is there."""
    target = f"- **File Path:** [{path}](/{path})"
    language = {"py": "python", "md": "markdown"}.get(path.rsplit(".", 1)[-1], "")
    if old is None:
        return f"### `CREATE`\n\n{target}\n\n{block(content, language)}"
    find, replace = change(old, content)
    blocks = f"#### FIND:\n\n{block(find, language)}\n\n#### REPLACE:\n\n{block(replace, language)}"
    return f"### `EDIT`\n\n{target}\n\n{blocks}"


def action_plan(team: Path, turn: dict[str, str], source: Path) -> str:
    """A delivery or a suite as an action plan."""
    actions = [action(f["path"], f["content"], earlier(team, turn, f["path"])) for f in files_of(source)]
    what = turn["title"] or turn["task"] or f"The tests of {turn['story']}"
    parts = [f"# {what}", "## Rationale", "As the story asks for it, and nothing else."]
    if turn["purpose"] == "suite":
        cases = "\n".join(f"- `{case['name']}`: {case['criterion']}" for case in suite(source)["test_cases"])
        parts += ["## Test Cases", cases]
    return "\n\n".join([*parts, "## Action Plan", "\n\n---\n\n".join(actions)]) + "\n"


def answer_text(team: Path, source: Path, turn: dict[str, str]) -> str:
    """The answer before it is dressed."""
    if source.is_file():
        return source.read_text(encoding="utf-8").removesuffix("\n")
    if turn["form"] == "plan":
        return action_plan(team, turn, source)
    value = suite(source) if turn["purpose"] == "suite" else delivery(source, turn["story"], turn["task"])
    return json.dumps(value, ensure_ascii=False, indent=1)


def dressed(text: str, form: str) -> str:
    """The answer as the model writes it. Raises ValueError for an unknown form, or for JSON that is none."""
    if form in {"text", "plan"}:
        return text
    json.loads(text)
    if form == "json":
        return text
    if form == "fenced":
        return f"Here is the answer.\n\n```json\n{text}\n```\n"
    raise ValueError(f"unknown form {form!r}; use plan, json, fenced or text")


def entry(team: Path, turn: dict[str, str]) -> dict[str, Any]:
    """One line of the script."""
    failed = bool(turn["error"])
    text = "" if failed else dressed(answer_text(team, team / turn["story"] / turn["source"], turn), turn["form"])
    return {
        "persona": turn["persona"],
        "story": turn["story"],
        "task": turn["task"] or None,
        "purpose": turn["purpose"],
        "turn": int(turn["turn"]),
        "text": text,
        "stop_reason": turn["stop_reason"] or "end_turn",
        "input_tokens": int(turn["input_tokens"] or 0),
        "output_tokens": -(-len(text) // CHARS_PER_TOKEN),
        "latency_ms": int(turn["latency_ms"]),
        "error": turn["error"] or None,
    }


def lines(team: Path) -> Iterator[str]:
    """The script, line by line."""
    for turn in read_turns(team):
        yield json.dumps(entry(team, turn), ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write or compare; 0 when team.jsonl is what the sources make."""
    target, made = HERE / "team.jsonl", "".join(lines(HERE / "team"))
    if "--check" not in arguments:
        target.write_text(made, encoding="utf-8", newline="\n")
        return 0
    if target.is_file() and target.read_text(encoding="utf-8") == made:
        return 0
    print(f"{target.name} is not what team/ makes; run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
