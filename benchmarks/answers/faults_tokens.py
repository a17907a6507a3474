"""Faults between the strings: commas, brackets, quotes, keys, literals, comments."""

import json
import math
import pprint
from collections.abc import Callable
from typing import Any

from benchmarks.answers.draft import Draft, Unfit, fault
from benchmarks.answers.writer import Path, quoted

REMARKS = ('the "main" part', "TODO: check {this}", "don't change", "see https://example.org/a?b=[1]", "optional")


def _members(draft: Draft, fits: Callable[[Path, Any], bool] = lambda path, value: True) -> list[Path]:
    """Places of members that another member follows."""
    last = {
        (*path, name)
        for path, value in draft.values()
        if isinstance(value, dict | list) and value
        for name in [list(value)[-1] if isinstance(value, dict) else len(value) - 1]
    }
    return [path for path, value in draft.values() if path and path not in last and fits(path, value)]


def _some(draft: Draft, paths: list[Path], most: int = 3) -> list[Path]:
    if not paths:
        raise Unfit
    return draft.rng.sample(paths, min(len(paths), draft.rng.randint(1, most)))


@fault("comma after the last", "tokens", "commas")
def trailing_comma(draft: Draft) -> None:
    inner = set(_members(draft))
    for path in _some(draft, [path for path, _ in draft.values() if path and path not in inner], 4):
        draft.style.commas[path] = ","


@fault("comma missing", "tokens", "commas")
def missing_comma(draft: Draft) -> None:
    """Between fields, or between objects of a list; never between two bare strings, which could be meant as one."""
    for path in _some(draft, _members(draft, lambda path, value: isinstance(path[-1], str) or isinstance(value, dict))):
        draft.style.commas[path] = "" if draft.style.indent else " "


@fault("comma doubled", "tokens", "commas")
def doubled_comma(draft: Draft) -> None:
    for path in _some(draft, _members(draft)):
        draft.style.commas[path] = draft.rng.choice((",,", ", ,"))


@fault("closer missing in the middle", "tokens", "commas closers")
def missing_closer(draft: Draft) -> None:
    """A bracket was forgotten; what follows shows that it was meant."""

    def fits(path: Path, value: Any) -> bool:
        return bool(value) and (
            (isinstance(value, list) and isinstance(path[-1], str))
            or (isinstance(value, dict) and isinstance(path[-1], int))
        )

    draft.style.closers[draft.rng.choice(_some(draft, _members(draft, fits)))] = ""


@fault("closer of the other kind", "tokens", "closers")
def wrong_closer(draft: Draft) -> None:
    path = draft.rng.choice(
        _some(draft, _members(draft, lambda path, value: isinstance(value, dict | list) and bool(value)))
    )
    value: Any = draft.said
    for name in path:
        value = value[name]
    draft.style.closers[path] = "]" if isinstance(value, dict) else "}"


@fault("stray mark behind a value", "tokens", "tails")
def stray(draft: Draft) -> None:
    for path in _some(draft, [path for path, value in draft.values() if isinstance(value, dict) and path], 2):
        draft.style.closers[path] = '}">'


@fault("comments", "tokens", "heads tails")
def comments(draft: Draft) -> None:
    draft.style.indent = draft.style.indent or 2
    for path in _some(draft, _members(draft), 4):
        remark = draft.rng.choice(REMARKS)
        spelled = draft.rng.choice((f"// {remark}", f"/* {remark} */", f"# {remark}"))
        if draft.rng.random() < 0.5:
            draft.style.heads[path] = spelled
        else:
            draft.style.tails[path] = " " + spelled


@fault("single quotes", "tokens", "keys texts")
def single_quotes(draft: Draft) -> None:
    def spell(text: str) -> str:
        return "'" + quoted(text)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"

    draft.style.key = draft.style.text = spell


@fault("a Python dictionary", "tokens", "core keys texts literals commas closers heads tails")
def python_dict(draft: Draft) -> None:
    """What `print(answer)` shows."""
    width = draft.rng.choice((100_000, 110))
    draft.core = lambda draft, written: (
        repr(draft.said) if width == 100_000 else pprint.pformat(draft.said, width=width, sort_dicts=False)
    )


@fault("typographic quotes", "tokens", "keys texts")
def smart_quotes(draft: Draft) -> None:
    if any(mark in text for _, text in draft.strings() for mark in "“”"):
        raise Unfit
    draft.style.key = draft.style.text = lambda text: "“" + quoted(text)[1:-1] + "”"


@fault("keys without quotes", "tokens", "keys")
def bare_keys(draft: Draft) -> None:
    if any(not name.isidentifier() for path, _ in draft.values() for name in path if isinstance(name, str)):
        raise Unfit
    draft.style.key = lambda key: key


@fault("Python literals", "tokens", "literals")
def python_literals(draft: Draft) -> None:
    if not any(value is None or isinstance(value, bool) for _, value in draft.values()):
        raise Unfit
    draft.style.literal = repr


@fault("no number", "tokens", "literals said")
def no_number(draft: Draft) -> None:
    """A NaN or an infinity; the same or a null comes back."""
    if draft.kind.contract == "suite":
        raise Unfit
    value = draft.rng.choice((math.nan, math.inf, -math.inf))
    draft.full = draft.said = draft.full | {draft.kind.free: value}


@fault("unseen characters", "tokens", "colons before")
def unseen(draft: Draft) -> None:
    """A byte order mark, no-break and zero-width blanks where white space may stand."""
    draft.style.colon = draft.rng.choice((":\u00a0", ":\u200b ", ": "))
    draft.before.insert(0, draft.rng.choice(("\ufeff", "\u200b\ufeff")))


@fault("valid: key given twice", "valid", "heads")
def doubled_key(draft: Draft) -> None:
    """The last one counts."""
    path = draft.rng.choice([path for path, _ in draft.values() if path and isinstance(path[-1], str)])
    draft.style.heads[path] = quoted(str(path[-1])) + ': "",'
    draft.style.indent = draft.style.indent or 2


@fault("line numbers", "tokens", "core")
def line_numbers(draft: Draft) -> None:
    draft.style.indent = draft.style.indent or 2
    mark = draft.rng.choice(("{n:>4}  ", "{n}: ", "{n:>3} | "))
    draft.core = lambda draft, written: "\n".join(
        mark.format(n=number) + line for number, line in enumerate(written.text.split("\n"), start=1)
    )


@fault("diff or quote marks", "tokens", "core")
def line_marks(draft: Draft) -> None:
    draft.style.indent = draft.style.indent or 2
    mark = draft.rng.choice(("+", "> "))
    draft.core = lambda draft, written: "\n".join(mark + line for line in written.text.split("\n"))


@fault("wrapped", "tokens", "core")
def wrapped(draft: Draft) -> None:
    """The answer as a field of something else, or as the only item of a list."""
    shape = draft.rng.choice(('{"response": %s}', '{"status": "ok", "data": {"result": %s}}', "[%s]", '{"answer": %s}'))
    draft.core = lambda draft, written: shape.replace("%s", written.text)


@fault("a tool call", "tokens", "core keys texts")
def tool_call(draft: Draft) -> None:
    """The answer as arguments of a call, as an object or as a string."""
    form = draft.rng.randrange(3)

    def envelope(draft: Draft, written: Any) -> str:
        if form == 0:
            return json.dumps({"name": "submit", "arguments": written.text})
        if form == 1:
            return '{"type": "tool_use", "id": "call_1", "name": "submit", "input": ' + written.text + "}"
        call = {"id": "call_1", "type": "function", "function": {"name": "submit", "arguments": written.text}}
        return json.dumps({"role": "assistant", "content": None, "tool_calls": [call]}, indent=1)

    draft.core = envelope
