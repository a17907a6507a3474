"""What stands around an answer: prose, examples, drafts, reasoning, fences, chat marks; and texts without any."""

import json
import random

from benchmarks.answers import content
from benchmarks.answers.draft import Draft, Unfit, fault
from benchmarks.answers.truth import Kind, draft_of
from benchmarks.answers.writer import Written

OPENINGS = (
    "Below you find what you asked for.\n\n",
    'I read the story "as it stands", it\'s clear enough.\n\n',
    "Routes look like `/api/{id}`, templates like `${name}`. Here we go:\n\n",
    "# Result\n\nThe set is {a, b}; f(x) { return x } stays as it was.\n\n",
)
CLOSINGS = (
    "\n\nTell me when something is missing.",
    '\n\n- the "id" is a number\n- run `npm test` {once}\n',
    "\n\nI left {colour} open, see [1].",
)
OVERLAP = 20
"""Characters that a second part repeats at least, blanks not counted: brackets alone would tell nothing."""


@fault("prose around", "around", "before after")
def prose(draft: Draft) -> None:
    draft.before.append(draft.rng.choice(OPENINGS))
    draft.after.append(draft.rng.choice(CLOSINGS))


@fault("an example before", "around", "before")
def example_before(draft: Draft) -> None:
    """The format is explained by a small object first."""
    example = draft.rng.choice(({draft.kind.items: []}, {"path": "src/x.js", "content": "…"}, {"story_id": "US-XXX"}))
    draft.before.append(f"You asked for the format {json.dumps(example)}, so:\n\n")


@fault("an example behind", "around", "after")
def example_behind(draft: Draft) -> None:
    example = draft.rng.choice(({"ok": True}, {"error": "none"}, {"note": "see [2]", "list": []}))
    draft.after.append(f"\n\nThe service then answers {json.dumps(example)}.")


@fault("fenced", "around", "fence")
def fenced(draft: Draft) -> None:
    draft.fence = draft.rng.choice(("```json", "```", "~~~json", "````json", "```javascript", "```JSON5"))


@fault("fenced, with fences inside", "around", "fence said texts")
def fenced_fences(draft: Draft) -> None:
    """A delivered guide has code fences of its own."""
    noun = draft.rng.choice(content.NOUNS)
    guide = {"path": "README.md", "content": content.samples()["guide.md"].replace("book", noun)}
    if draft.kind.contract != "delivery":
        raise Unfit
    draft.full = draft.said = draft.full | {"files": [*draft.full["files"], guide]}
    draft.fence = "```json"


def _draft(draft: Draft, indent: int | None) -> str:
    return json.dumps(draft_of(draft.rng, draft.kind, draft.full), indent=indent, ensure_ascii=False)


@fault("a draft, then the answer", "around", "before")
def first_draft(draft: Draft) -> None:
    text = _draft(draft, draft.rng.choice((None, 2)))
    if draft.rng.random() < 0.5:
        text = f"```json\n{text}\n```"
    turn = draft.rng.choice(("On second thought, better so:", "That misses a case. Corrected:", "Improved answer:", ""))
    draft.before.append(f"{text}\n\n{turn}\n\n")


@fault("reasoning with a draft", "around", "before")
def reasoning(draft: Draft) -> None:
    """Between tags, or with the closing tag alone, as servers that swallow the opening one send it."""
    tag = draft.rng.choice(("think", "thinking", "reasoning"))
    thought = draft.rng.choice(
        (
            f"Perhaps {_draft(draft, None)} would do, but no.",
            f'I start with {{"{draft.kind.items}": [ and go on from there',
        )
    )
    opening = draft.rng.choice((f"<{tag}>\n", f"<{tag}>\n", ""))
    draft.before.append(f"{opening}{thought}\n</{tag}>\n\n")


@fault("marks of a chat", "around", "after")
def chat_marks(draft: Draft) -> None:
    draft.after.append(draft.rng.choice(("<|im_end|>", "\n</s>", "<|eot_id|>\n", "\n</answer>", "\n[END]")))


@fault("closers too many", "around", "after")
def closers_behind(draft: Draft) -> None:
    draft.after.append(draft.rng.choice(("}", "]}", "\n}\n```", "}}", ",", "\n]")))


@fault("in a tag", "around", "before after fence")
def tagged(draft: Draft) -> None:
    tag = draft.rng.choice(("answer", "output", "json", "tool_call"))
    draft.before.append(f"<{tag}>\n")
    draft.after.append(f"\n</{tag}>")


@fault("two parts that overlap", "around", "core fence before after")
def overlapping(draft: Draft) -> None:
    """Cut off once and continued: the second part repeats the end of the first."""
    draft.style.indent = draft.style.indent or 2

    def parts(draft: Draft, written: Written) -> str:
        lines = written.text.split("\n")
        cut = draft.rng.randint(3, len(lines) - 2)
        back = draft.rng.randint(1, 3)
        while back < cut and len("".join(lines[cut - back : cut]).replace(" ", "")) < OVERLAP:
            back += 1
        turn = draft.rng.choice(("\n\nContinuing:\n\n", "\n\n(part 2)\n\n", "\n```\n\n```json\n"))
        return "\n".join(lines[:cut]) + turn + "\n".join(lines[cut - back :])

    draft.core = parts


def no_answer(rng: random.Random, kind: Kind) -> str:
    """A text that holds no answer of this kind."""
    _, code = content.piece(rng)
    noun = rng.choice(content.NOUNS)
    return rng.choice(
        (
            "",
            f'What should happen when a {noun} is "lost"? I need {{state}} and {{owner}} before I can start.',
            f"```\n{code}```\n\nThis is how I would begin; shall I go on?",
            f"I can't do that: the {noun} of US-007 isn't there.",
            f'Please confirm the format {{"{kind.items}": [...]}} and I will send it.',
            '{"error": {"type": "overloaded", "message": "try again later"}}',
            f'<think>\n{{"{kind.items}": []}} would be wrong.\n</think>\n\nI have a question first.',
            f'The {noun} service answers {{"items": [], "count": 0}}. Nothing else is known.',
        )
    )
