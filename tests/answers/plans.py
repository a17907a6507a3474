"""Action plans with known truth, and the slips of people and models that write them."""

import random
import re
from collections.abc import Callable

from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Move, Pair, Prune, Read

PATHS = ("src/a.py", "src/__init__.py", "docs/my file.md", "app/[id]/page.tsx", "Makefile", "ü/é.css", "x/y-z_1.json")
LINES = (
    "x = 1", "", "    return `x`", "---", "# Title", "## Action Plan", "### `DELETE`", "\tindented", "> quote",
    "- item", "```", "```python", "~~~", "````md", "#### FIND:", "é 💥 \u2028", "<think>", "</think>", "  trailing  ",
    "$` \\n \\",
    "- **File Path:** [other](/other)", "{{ slot }}", "```js ```",
)  # fmt: skip
WORDS = ("Add `x`", "why not", "a: b", "see [this](x)", "it's", "100 %", "**bold**")


def plain(plan: ActionPlan) -> ActionPlan:
    """The plan without the lines it was read from."""
    actions = []
    for action in plan.actions:
        if isinstance(action, Edit):
            action = action.model_copy(update={"pairs": tuple(p.model_copy(update={"line": 0}) for p in action.pairs)})
        actions.append(action.model_copy(update={"line": 0}))
    return plan.model_copy(update={"actions": tuple(actions)})


def content(rng: random.Random, least: int = 0) -> str:
    return "".join(f"{rng.choice(LINES)}\n" for _ in range(rng.randint(least, 6)))


def pair(rng: random.Random) -> Pair:
    return Pair(find="x = 1\n" + content(rng), replace=content(rng))


def action(rng: random.Random) -> Action:
    description = rng.choice(("", rng.choice(WORDS)))
    path = rng.choice(PATHS)
    resource = rng.choice((path, "https://example.org/a?b=c&d"))
    makers: tuple[Callable[[], Action], ...] = (
        lambda: Create(path=path, content=content(rng), overwrite=rng.random() < 0.3, description=description),
        lambda: Create(path=path, content=content(rng, 2), description=description),
        lambda: Edit(path=path, pairs=tuple(pair(rng) for _ in range(rng.randint(1, 3))), description=description),
        lambda: Read(resource=resource, description=description),
        lambda: Prune(resource=resource, description=description),
        lambda: Delete(path=path, description=description),
        lambda: Move(path=path, target="new/" + path, description=description),
        lambda: Execute(
            command="pytest -q\n" + content(rng).strip("\n"),
            cwd=rng.choice((".", "app")),
            env=rng.choice(({}, {"A": "1", "B_2": " `x` = y"})),
            expected_outcome=rng.choice(("", "all green")),
            timeout_s=rng.choice((None, 60, 0.5)),
            allow_failure=rng.random() < 0.3,
            description=description,
        ),
    )
    return rng.choice(makers)()


def plan(rng: random.Random) -> ActionPlan:
    return ActionPlan(
        title=rng.choice(("Add prices", "Fix: `a` & b", "Zeile für Zeile")),
        metadata=rng.choice(({}, {"Status": "draft", "Owner": "`me`"})),
        rationale=rng.choice(("Because.", "One.\n\nTwo:\n\n- a\n- b", "See\n\n```\ncode\n```\n\nthere.")),
        actions=tuple(action(rng) for _ in range(rng.randint(1, 5))),
    )


Slip = Callable[[str, random.Random], str]


def outside(text: str, change: Callable[[str], str]) -> str:
    """Change the lines of a rendered plan that stand in no code block."""
    bar, lines = "", []
    for line in text.split("\n"):
        run = re.match(r"`{3,}", line)
        if not bar:
            lines.append(change(line))
            bar = run[0] if run else ""
        else:
            lines.append(line)
            bar = "" if line == bar else bar
    return "\n".join(lines)


def each(pattern: str, new: str) -> Slip:
    return lambda text, rng: outside(text, lambda line: re.sub(pattern, new, line))


def verbs(new: Callable[[str], str]) -> Slip:
    return lambda text, rng: outside(text, lambda line: re.sub(r"^### `([A-Z]+)`$", lambda m: new(m[1]), line))


def tildes(text: str) -> str:
    """Bars of tildes, where no content has a bar of its own."""
    head, between, actions = text.partition("\n## Action Plan\n")
    if "~~~" in actions or "````" in actions:
        return text
    return head + between + re.sub(r"^```", "~~~", actions, flags=re.M)


HARMLESS: dict[str, Slip] = {
    "verb with colon": verbs(lambda verb: f"### `{verb}`:"),
    "plain verb": verbs(lambda verb: f"### {verb}"),
    "verb in title case": verbs(lambda verb: f"### {verb.title()}"),
    "verb in bold": verbs(lambda verb: f"### **{verb}**"),
    "numbered verb": verbs(lambda verb: f"### 1. `{verb}`"),
    "step": verbs(lambda verb: f"### Step 2: {verb}"),
    "closed heading": verbs(lambda verb: f"### `{verb}` ###"),
    "second level": verbs(lambda verb: f"## `{verb}`"),
    "fourth level": verbs(lambda verb: f"#### {verb}"),
    "no leading slash": each(r"\]\(/", "]("),
    "dot slash": each(r"\]\(/", "](./"),
    "code for link": each(r"(File Path|Resource|Target):\*\* \[([^]]*)\]\([^)]*\)", r"\1:** `\2`"),
    "no link": each(r"(File Path|Resource|Target):\*\* \[([^]]*)\]\([^)]*\)", r"\1:** \2"),
    "path": each(r"\*\*File Path:\*\*", "**Path:**"),
    "file": each(r"\*\*File Path:\*\*", "**File:**"),
    "lower case": each(r"\*\*File Path:\*\*", "**file path:**"),
    "snake case": each(r"\*\*File Path:\*\*", "**file_path:**"),
    "colon outside of bold": each(r"\*\*(File Path|Description|Overwrite):\*\*", r"**\1**:"),
    "bullets of stars": each(r"^- \*\*", "* **"),
    "bullets of plus": each(r"^- \*\*", "+ **"),
    "not bold": each(r"^- \*\*([^*]+:)\*\*", r"- \1"),
    "no bullets": each(r"^- \*\*(File Path|Resource|Overwrite|Target|Description)", r"**\1"),
    "no rules": each(r"^---$", ""),
    "longer rules": each(r"^---$", "* * *"),
    "find in bold": each(r"^#### (FIND|REPLACE):$", r"**\1:**"),
    "find in third level": each(r"^#### (FIND|REPLACE):$", r"### `\1`"),
    "find in fifth level": each(r"^#### (FIND|REPLACE):$", r"##### \1"),
    "replace with": each(r"^#### REPLACE:$", "#### Replace with:"),
    "overwrite yes": each(r"Overwrite:\*\* true", "Overwrite:** Yes"),
    "seconds": each(r"Timeout:\*\* ([0-9.]+)", r"Timeout:** \1 seconds"),
    "language and path": each(r"^(```+)$", r"\1"),
    "crlf": lambda text, rng: text.replace("\n", "\r\n"),
    "byte order mark": lambda text, rng: "\ufeff" + text,
    "prose before": lambda text, rng: "Sure! Here is the plan:\n\n" + text,
    "prose right before": lambda text, rng: "Here it is.\n" + text,
    "prose behind": lambda text, rng: text + "\nLet me know what you think.\n",
    "thoughts": lambda text, rng: "<think>\n# Draft\n## Action Plan\n### `DELETE`\n```\nopen\n</think>\n" + text,
    "end of thoughts": lambda text, rng: "I should create it.\n\n</think>\n\n" + text,
    "long wrap": lambda text, rng: "`" * 9 + "markdown\n" + text + "`" * 9 + "\n",
    "wrap and prose": lambda text, rng: "Here:\n\n" + "`" * 9 + "md\n" + text + "`" * 9 + "\n\nDone.\n",
    "section in lower case": each(r"^## Action Plan$", "## Action plan:"),
    "section numbered": each(r"^## Rationale$", "## 1. Rationale"),
    "another section": lambda text, rng: text + "\n## Notes\n\nNothing.\n",
    "section between": lambda text, rng: text.replace("\n## Act", "\n## Risks\n\nNone.\n\n## Act", 1),
    "no title": lambda text, rng: text.split("\n", 1)[1],
    "title before": lambda text, rng: "# Answer\n\n" + text,
    "title between": lambda text, rng: text.replace("\n## Act", "\n# Changes\n\n## Act", 1),
    "title behind": lambda text, rng: text + "\n# Done\n\nThat is all.\n",
    "title among actions": lambda text, rng: text.replace("---\n\n###", "---\n\n# Next\n\n###", 1),
    "actions in the first level": each(r"^### `", "# `"),
    "quoted plan before": lambda text, rng: "".join(f"> {line}\n" for line in text.split("\n")) + "\n" + text,
    "closing rule": lambda text, rng: text + "\n---\n",
    "tildes": lambda text, rng: tildes(text),
}  # fmt: skip
"""Slips that leave no doubt: whatever is read of them is the truth."""


def cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(1, len(text))]


def drop_bullet(text: str, rng: random.Random) -> str:
    """Without one bullet that is needed."""
    named = [line for line in text.split("\n") if line.startswith("- **File Path:**")]
    gone = rng.choice(named) if named else None
    return outside(text, lambda line: "" if line == gone else line)


HARMFUL: dict[str, Slip] = {
    "short bars": lambda text, rng: re.sub(r"^`{4,9}(?!\w)", "```", text, flags=re.M),
    "wrapped too short": lambda text, rng: f"```markdown\n{text}```\n",
    "unknown verb": each(r"^### `CREATE`$", "### `UPSERT`"),
    "a line fewer": drop_bullet,
    "no rationale": lambda text, rng: text.replace("## Rationale", "", 1),
    "no action plan": lambda text, rng: text.replace("## Action Plan", "", 1),
    "no finds": each(r"^#### FIND:$", ""),
}
"""Slips that may leave doubt: what is read is the truth, or it is refused."""
