"""Faults inside strings, and valid strings that look like faults."""

import json
import re
from functools import partial

from benchmarks.answers.draft import Draft, Unfit, fault
from benchmarks.answers.writer import quoted

LONE = re.compile(r"(?<!\\)\\(?=[^\"\\/bfnrtu'`$_<>&])")
"""A backslash before a character that no JSON escape has, and that nobody escapes without need."""
NEVER_ESCAPED = "'`$_<>&"


@fault("valid: code in strings", "valid", "")
def untouched(draft: Draft) -> None:
    """`${…}`, fences, braces, comment marks and quotes are nothing but text inside a string."""
    if not any(mark in text for _, text in draft.code() for mark in ("${", "```", "//", '"', "/*")):
        raise Unfit


@fault("valid: escapes everywhere", "valid", "texts")
def escaped(draft: Draft) -> None:
    """Every character that may be an escape is one."""

    def spell(text: str) -> str:
        return json.dumps(text).replace("/", "\\/").replace("<", "\\u003c").replace("'", "\\u0027")

    draft.style.text = draft.style.key = spell


@fault("valid: a document in a string", "valid", "said")
def document(draft: Draft) -> None:
    """A string that is JSON itself, or speaks of tags and fences, stays a string."""
    inner = json.dumps({draft.kind.items: [], "note": "<think>no</think>"}, indent=draft.rng.choice((None, 2)))
    text = draft.rng.choice((inner, f"Answer with\n```json\n{inner}\n```\nand nothing else", f"<think>{inner}</think>"))
    draft.full = draft.said = draft.full | {draft.kind.free: text}


@fault("quotes not escaped", "strings", "texts")
def bare_quotes(draft: Draft) -> None:
    """Some or all quotes inside code have no backslash."""
    share = draft.rng.choice((1.0, 1.0, 0.5, 0.1))

    def spell(text: str) -> str:
        spelled = re.sub(r'\\"', lambda _: '"' if draft.rng.random() < share else '\\"', quoted(text)[1:-1])
        return f'"{spelled}"'

    draft.respell(spell, lambda text: '"' in text and '\\"' not in text)
    # Chance decides here and now, so that a draft which it left without a fault can be told.
    texts = {path: spell(text) for path, text in draft.code() if draft.style.texts.get(path) is spell}
    if not any('"' in re.sub(r"\\.", "", spelled[1:-1]) for spelled in texts.values()):
        raise Unfit
    draft.style.texts.update({path: partial(_fixed, spelled) for path, spelled in texts.items()})


def _fixed(spelled: str, text: str) -> str:
    return spelled


@fault("raw line ends and tabs", "strings", "texts")
def raw_lines(draft: Draft) -> None:
    def spell(text: str) -> str:
        return json.dumps(text, ensure_ascii=False).replace("\\\\", "\0").replace("\\n", "\n").replace(
            "\\t", "\t").replace("\0", "\\\\")  # fmt: skip

    draft.respell(spell, lambda text: "\n" in text)


@fault("needless escapes", "strings", "texts")
def over_escaped(draft: Draft) -> None:
    """A backslash before a quote, a backquote, a dollar or a line that needs none."""
    marks = "".join(draft.rng.sample(NEVER_ESCAPED[:4], 2))

    def spell(text: str) -> str:
        return re.sub(f"[{re.escape(marks)}]", lambda hit: "\\" + hit[0], quoted(text))

    draft.respell(spell, lambda text: any(mark in text for mark in marks) and "\\" not in text)


@fault("backslashes not doubled", "strings", "texts")
def under_escaped(draft: Draft) -> None:
    r"""Regular expressions and paths as they stand in the code: `\d`, `\s`, `\w`."""

    def spell(text: str) -> str:
        return quoted(LONE.sub(lambda _: "\0", text)).replace("\\u0000", "\\")

    draft.respell(spell, lambda text: bool(LONE.search(text)) and not re.search(r"\\[\\'`$_<>&]", text))


@fault("backquoted, escaped", "strings", "texts")
def template(draft: Draft) -> None:
    """A JavaScript template literal where a JSON string should stand."""

    def spell(text: str) -> str:
        return "`" + text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${") + "`"

    draft.respell(spell, lambda text: "\n" in text)


@fault("backquoted, as it is", "strings", "texts")
def backquoted(draft: Draft) -> None:
    draft.respell(lambda text: f"`{text}`", lambda text: "\n" in text and "`" not in text and "\\" not in text)


@fault("triple quotes", "strings", "texts")
def triple(draft: Draft) -> None:
    marks = draft.rng.choice(('"""', '"""', "'''"))
    edge = draft.rng.choice(("", "\n"))
    draft.edges_free = True
    draft.respell(
        lambda text: f"{marks}{edge}{text}{marks}",
        lambda text: "\n" in text and marks not in text and "\\" not in text and text[-1] == "\n",
    )


@fault("a fenced block as value", "strings", "texts")
def fenced_value(draft: Draft) -> None:
    draft.edges_free = True
    language = draft.rng.choice(("", "python", "js", "text"))
    draft.respell(lambda text: f"```{language}\n{text}```", lambda text: text[-1:] == "\n" and "```" not in text)


@fault("concatenation", "strings", "texts")
def concatenated(draft: Draft) -> None:
    """A string per line, joined by plus signs."""

    def spell(text: str) -> str:
        lines = text.splitlines(keepends=True)
        return " +\n    ".join(quoted(line) for line in lines)

    draft.respell(spell, lambda text: text.count("\n") > 1)


@fault("entities", "strings", "core keys texts")
def entities(draft: Draft) -> None:
    """The whole answer went through an HTML escape."""

    def escape(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")

    draft.core = lambda draft, written: escape(written.text)


@fault("double encoding", "strings", "core keys texts")
def double(draft: Draft) -> None:
    draft.core = lambda draft, written: json.dumps(written.text)
