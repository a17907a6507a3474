"""Whole answers as values: what an architect, a developer and a tester could have meant to say."""

import random
from dataclasses import dataclass
from typing import Any

from benchmarks.answers import content

Answer = dict[str, Any]

DESCRIPTIONS = (
    "Add the {n} table and its index",
    'Answer GET /api/{n}s with {"items": [...], "count": n}',
    'Show "no {n}s yet" when there is none; don\'t hide the form',
    "Read {n} names by /^\\w+-\\d+$/, refuse the rest",
    "Draw a row per {n} with `${{n}.title}` // no markup in titles",
    "First the {n} model:\n- id, title\n\t- state (see [states])\nThen its tests",
    "Write C:\\temp\\{n}s.csv, a line per {n}, 100 % quoted",
)
NOTES = (
    "Standard library only.",
    'The field "state" is one of {on, off}; None is not true.',
    "Ask /* later */ whether a {n} may be lent twice: 3:1 said no.",
    "",
)
REASONS = (None, "", "needs the {n} table", "`{n}s.js` is written there")
COMMANDS = (None, "", "npm install", "python -m pytest -q", "node -e \"require('./db').migrate()\"")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A contract, and which list of the answer it is about."""

    contract: str
    """Stem of the schema in contracts/."""
    items: str
    code: tuple[str, ...]
    """Names of the fields that hold code or long text."""
    free: str
    """An outermost field that may hold any text."""


BREAKDOWN = Kind(contract="breakdown", items="tasks", code=("description", "technical_notes"), free="technical_notes")
DELIVERY = Kind(contract="delivery", items="files", code=("content",), free="notes")
SUITE = Kind(contract="suite", items="test_cases", code=("test_content",), free="story_id")
KINDS = (BREAKDOWN, DELIVERY, SUITE)


def _say(rng: random.Random, texts: tuple[Any, ...]) -> Any:
    text = rng.choice(texts)
    return text and text.replace("{n}", rng.choice(content.NOUNS))


def _breakdown(rng: random.Random) -> Answer:
    story = f"US-{rng.randint(1, 60):03d}"
    count = rng.choice((1, 2, 3, 4, 5, 7, 9))
    ids = [f"T-{story}-{number:02d}" for number in range(1, count + 1)]
    tasks = [
        {
            "task_id": ids[at],
            "description": _say(rng, DESCRIPTIONS),
            "files_to_create": [f"src/{rng.choice(content.NOUNS)}{at}.js", f"tests/t{at}.test.js"][: rng.randint(1, 2)],
            "command_to_run": rng.choice(COMMANDS),
            "dependencies": [one for one in ids[:at] if rng.random() < 0.3],
            "dependency_reason": _say(rng, REASONS),
        }
        for at in range(count)
    ]
    return {
        "story_id": story,
        "architectural_conflict": {"detected": rng.random() < 0.1},
        "task_count": count,
        "dependencies": rng.choice(([], ["express@^4.19.2"], {"dependencies": {"express": "^4.19.2"}})),
        "tasks": tasks,
        "technical_notes": _say(rng, NOTES),
    }


def _delivery(rng: random.Random) -> Answer:
    files = []
    for number in range(rng.choice((1, 1, 2, 3, 4))):
        ending, text = content.piece(rng)
        files.append({"path": f"{rng.choice(('src', 'lib', 'public'))}/part{number}.{ending}", "content": text})
    answer: Answer = {"story_id": f"US-{rng.randint(1, 60):03d}", "files": files}
    return answer | ({"notes": _say(rng, NOTES)} if rng.random() < 0.5 else {})


def _suite(rng: random.Random) -> Answer:
    ending, text = content.suite_text(rng)
    cases = [
        {"name": f"test_{rng.choice(content.NOUNS)}_{number}", "criterion": _say(rng, DESCRIPTIONS)}
        for number in range(rng.randint(1, 5))
    ]
    return {"test_file": f"tests/suite.{ending}", "test_content": text, "test_cases": cases}


_MAKERS = {"breakdown": _breakdown, "delivery": _delivery, "suite": _suite}


def answer(rng: random.Random, kind: Kind) -> Answer:
    """A whole, valid answer of this kind."""
    return _MAKERS[kind.contract](rng)


def draft_of(rng: random.Random, kind: Kind, whole: Answer) -> Answer:
    """An earlier version of `whole`: complete, of the same shape, and not what is meant in the end."""
    items = whole[kind.items]
    if rng.random() < 0.5 and len(items) > 1:
        kept = items[: rng.randint(1, len(items) - 1)]
    else:
        name = next(name for name in (*kind.code, "name") if name in items[0])
        kept = [
            item | {name: item[name] + rng.choice((" (first idea)", "\n# to be simplified\n" * 4))} for item in items
        ]
    return whole | {kind.items: kept} | ({"task_count": len(kept)} if "task_count" in whole else {})
