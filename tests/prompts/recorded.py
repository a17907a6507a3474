"""The prompts of three stories as readable files: the demo's first page of work, and a story of two small projects.

`python -m tests.prompts.recorded` writes them to `recorded/`; the test compares.
"""

import asyncio
import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.app.team import story_body, story_payload
from orchestrator.core.calls.exchange import Prompt, StoryBrief
from orchestrator.core.story import Story
from orchestrator.providers.scripted import Script, ScriptedProvider, load_script
from orchestrator.settings import Policies
from tests.memory_workspace import MemoryWorkspace
from tests.personas.desks import script_of
from tests.prompts.packaged import packaged_library
from tests.simulated import MemorySink, SimulatedRunner, SimulatedStep
from tests.support import APPROVED, breakdown, delivery, suite, task

LIBRARY = packaged_library()
FOLDER = Path(__file__).parent / "recorded"
DEMO = Path(__file__).parents[2] / "examples" / "library"
STATIC = ("data", "role", "rules", "contract")
"""Segments that stand in system_prompts/ as they are sent."""

SHOP = {
    "README.md": "# Shop\n\nA small shop.\n",
    "requirements.txt": "fastapi>=0.110,<1\nhttpx==0.27.0\n",
    "shop/__init__.py": "",
    "shop/money.py": "def rounded(amount: float) -> int:\n    return _half_up(amount)\n\n\n"
    "def _half_up(amount: float) -> int:\n    return int(amount + 0.5)\n",
    "shop/items.py": "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Item:\n    name: str\n"
    "    cents: int\n\n    def label(self) -> str:\n        return f'{self.name}: {self.cents}'\n",
    "shop/main.py": "from fastapi import FastAPI\n\nfrom shop.items import Item\n\napp = FastAPI()\n\n\n"
    "@app.get('/items')\ndef items() -> list[Item]:\n    return [Item('book', 500)]\n",
    "tests/test_items.py": "from shop.items import Item\n\n\ndef test_label() -> None:\n"
    "    assert Item('a', 1).label() == 'a: 1'\n",
    **{f"reports/report_{n}.py": f"def report_{n}() -> str:\n    return '{n}'\n" for n in range(60)},
}
PAGES = {
    "package.json": '{"name": "pages", "type": "module", "dependencies": {"express": "^4.19.2"}}\n',
    "schema.sql": "CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL);\n",
    "src/app.js": "import express from 'express';\nimport { list } from './members.js';\n\n"
    "export const app = express();\n"
    "app.get('/members', (req, res) => res.send(list()));\n",
    "src/members.js": "export function list() {\n  return [];\n}\n",
    "public/site.css": ".page { margin: 0 }\n.table-row:hover { color: red }\n.btn-primary { color: blue }\n",
    "public/members.html": '<main class="page"><table id="members"><tr class="table-row"></tr></table></main>\n',
}


def _answers(story: str, *tasks: Mapping[str, str], told: Iterable[str], test: str, content: str) -> Script:
    """Returns a script: a plan, a delivery and a review for each task, a suite."""
    listed = enumerate(zip(tasks, told, strict=True), start=1)
    planned = [{**task(story, number, list(files)), "description": text} for number, (files, text) in listed]
    said: list[dict[str, Any]] = [_said("mike", story, "breakdown", breakdown(story, *planned))]
    for number, files in enumerate(tasks, start=1):
        of = {"task": f"T-{story}-{number:02d}"}
        said += [
            _said("alex", story, "delivery", delivery(story, number, dict(files)), **of),
            _said("reviewer", story, "review", APPROVED, **of),
        ]
    return script_of([*said, _said("jordan", story, "suite", suite(story, content, test))])


def _said(persona: str, story: str, purpose: str, answer: Any, **more: Any) -> dict[str, Any]:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return {"persona": persona, "story": story, "purpose": purpose, "text": text, **more}


def _demo() -> tuple[Story, dict[str, str], Script]:
    with (DEMO / "backlog.csv").open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["Story_ID"] == "US-001")
    criteria = tuple(line.partition(". ")[2] for line in row["Acceptance_Criteria"].splitlines())
    story = Story(id="US-001", title=row["Title"], user_story=row["User_Story"], acceptance_criteria=criteria)
    folder = DEMO / "team" / "NFR-001"
    base = {
        path.relative_to(part).as_posix(): path.read_text(encoding="utf-8")
        for part in sorted(folder.glob("*"))
        if part.is_dir()
        for path in sorted(part.rglob("*.py"))
    }
    return story, base, load_script(DEMO / "team.jsonl")


def _shop() -> tuple[Story, dict[str, str], Script]:
    story = Story(
        id="US-7",
        title="Prices have a discount",
        acceptance_criteria=("An item costs ten per cent less with a discount", "The page of items shows it"),
    )
    made = "RATE = 0.1\n\n\ndef discounted(cents: int, rate: float = RATE) -> int:\n    return cents\n"
    first = {"shop/discount.py": made}
    second = {"shop/items.py": SHOP["shop/items.py"] + "\n\ndef cheap(item: Item) -> int:\n    return item.cents\n"}
    told = (
        "A function discounted(cents, rate) in shop/discount.py takes the rate off and rounds with `_half_up`.",
        "A function cheap takes an Item and returns what discounted gives for its cents.",
    )
    test = "from shop.items import Item, cheap\n\n\ndef test_cheap() -> None:\n    assert cheap(Item('a', 100)) == 90\n"
    return story, SHOP, _answers("US-7", first, second, told=told, test="tests/test_us_7.py", content=test)


def _pages() -> tuple[Story, dict[str, str], Script]:
    story = Story(id="US-8", title="A page with a member's loans", acceptance_criteria=("Loans are shown in a table",))
    first = {"src/loans.js": "export function loansOf(member) {\n  return [member];\n}\n"}
    second = {"public/loans.html": '<main class="page"><table id="loans"><tr class="loan-row"></tr></table></main>\n'}
    told = ("loansOf(member) in src/loans.js returns the loans of a member.", "The page public/loans.html lists loans.")
    test = "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\nimport { loansOf } from"
    test += " '../src/loans.js';\n\ntest('loans are listed', () => assert.deepEqual(loansOf(1), [1]));\n"
    return story, PAGES, _answers("US-8", first, second, told=told, test="tests/us_8.test.js", content=test)


STORIES = {"demo": _demo, "shop": _shop, "pages": _pages}


async def prompts_of(name: str) -> list[Prompt]:
    """Returns every prompt of one of STORIES, in order."""
    story, base, script = await asyncio.to_thread(STORIES[name])
    step = SimulatedStep(ScriptedProvider(script), MemorySink(), story=story.id)
    body = story_body(LIBRARY, MemoryWorkspace(base_files=base), SimulatedRunner())
    record = "Locked conventions (a story that needs another is a conflict):\n- amounts are cents (NFR-1)"
    brief = StoryBrief(story=story, sprint="S", record=record if name == "shop" else "")
    await body(step, story_payload(brief, Policies()))
    return step.prompts


def told(prompts: Iterable[Prompt]) -> dict[str, str]:
    """Returns file name → the prompt, without what stands in system_prompts/ and what the prompts share but in one."""
    files: dict[str, str] = {}
    seen: set[str] = set()
    for number, prompt in enumerate(prompts, start=1):
        parts = [f"{prompt.key.persona}: {prompt.key.purpose} {prompt.key.task or ''}".strip()]
        for segment in prompt.segments:
            same = segment.name in {"project", "story", "skills"} and segment.text in seen
            seen.add(segment.text)
            text = f"(as in system_prompts/{prompt.name}.md)" if segment.name in STATIC else segment.text
            parts.append(f"---- {segment.name}\n{'(the same as before)' if same else text}")
        task_name = f"-{prompt.key.task.rpartition('-')[2]}" if prompt.key.task else ""
        files[f"{number:02d}-{prompt.key.persona}-{prompt.key.purpose}{task_name}.txt"] = "\n\n".join(parts) + "\n"
    return files


def main() -> None:
    """Writes the files anew."""
    for name in STORIES:
        folder = FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.txt"):
            old.unlink()
        for file, text in told(asyncio.run(prompts_of(name))).items():
            (folder / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
