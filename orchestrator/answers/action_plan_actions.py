"""What stands below `## Action Plan` → actions: headings with a verb, fields, FIND and REPLACE, code blocks.

What a careful reader is sure of is accepted with a minor finding; what would have to be guessed is refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.answers.markdown import Block, Field, Piece, field_of, lines_of, looks_like_path, pieces_of, words
from orchestrator.answers.paths import path_in_info, path_of, split_lines
from orchestrator.core.action_plan import Action, Create, Delete, Edit, Execute, Move, Pair, Prune, Read, Verb, is_url
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.value import Value

NUMBER = re.compile(r"^(?:(?:step|action)\s*)?#?\d{1,3}\s*[.:)\-–—]\s*|^(?:step|action)\s*[:\-–—]\s*", re.IGNORECASE)
"""A number before a heading's words."""
MARKS = " \t:;.,*_`#-–—!→"
"""What stands around a verb and means nothing."""
_LATIN = re.compile(r"[A-Za-z]+")
_VERBS = ", ".join(f"`{verb}`" for verb in Verb)
_FIELDS = (
    "File Path", "Resource", "Description", "Overwrite", "Expected Outcome", "cwd", "env", "Timeout", "Allow Failure",
    "Target", "Command",
)  # fmt: skip
_SPELLED = {name.casefold(): name for name in _FIELDS} | {
    "path": "File Path", "file": "File Path", "filepath": "File Path", "filename": "File Path",
    "url": "Resource", "expected": "Expected Outcome", "working directory": "cwd", "environment": "env",
    "destination": "Target", "new path": "Target", "target path": "Target", "to": "Target", "from": "File Path",
}  # fmt: skip
"""Names of fields, as the format spells them and as models do."""
_TEXTS = frozenset({"Description", "Expected Outcome"})
"""Fields that may be of several lines."""
_TAKEN = {
    Verb.CREATE: {"File Path", "Description", "Overwrite"},
    Verb.EDIT: {"File Path", "Description"},
    Verb.READ: {"Resource", "Description"},
    Verb.PRUNE: {"Resource", "Description"},
    Verb.EXECUTE: {"Description", "Expected Outcome", "cwd", "env", "Timeout", "Allow Failure", "Command"},
    Verb.DELETE: {"File Path", "Description"},
    Verb.MOVE: {"File Path", "Target", "Description"},
}
_PAIRS = "Write `#### FIND:` with one block, then `#### REPLACE:` with one block, for each place."


class CutAction(Value):
    """An action that the end of the text cut off."""

    verb: Verb | None
    path: str
    """As far as it is known: a path, a resource, else ""."""
    line: int


class Actions(NamedTuple):
    """The actions of one plan; not to be used when a finding blocks."""

    actions: tuple[Action, ...]
    cut: CutAction | None
    findings: tuple[Finding, ...]


class Heading(NamedTuple):
    """A heading that names a verb."""

    verb: Verb
    rest: str
    """A path that stands behind it, else ""."""
    exact: bool
    """Whether it is written as the format says: the verb in backticks and nothing else."""


def action_heading(text: str) -> Heading | None:
    """Returns what a heading (its inline Markdown) says when it is an action's: a verb, at most a path behind it."""
    if text.startswith("`") and text.endswith("`") and text[1:-1] in Verb.__members__:
        return Heading(Verb(text[1:-1]), "", True)
    first, *others = pieces_of(NUMBER.sub("", text.strip(" *_"), count=1)) or [Piece("text", "")]
    spelled = _LATIN.match(first.text.lstrip(MARKS))
    verb = Verb.__members__.get(spelled[0].upper()) if spelled else None
    if spelled is None or verb is None or (first.kind != "text" and first.text.strip(MARKS) != spelled[0]):
        return None
    behind = first.text.lstrip(MARKS)[spelled.end() :]
    if behind[:1].isalnum() or behind[:1] == "_" or (behind[:1] in {"-", "'"} and behind[1:2].isalpha()):
        return None
    rest = [piece.text for piece in (Piece("text", behind), *others) if piece.kind != "text" or piece.text.strip(MARKS)]
    if not rest:
        return Heading(verb, "", False)
    path = rest[0].strip(" \t:;,*-–—`") if len(rest) == 1 else ""
    return Heading(verb, path.removeprefix("/"), False) if looks_like_path(path) else None


def mark_of(text: str) -> str | None:
    """Returns FIND or REPLACE for a line that says nothing else, None for any other."""
    said = re.sub(r"[\s(#]*\d{0,3}[\s):]*$", "", words(text).strip(MARKS)).strip(MARKS) if len(text) <= 60 else ""
    return {"find": "FIND", "search": "FIND", "replace": "REPLACE", "replace with": "REPLACE"}.get(said.casefold())


def place_at(line: int) -> Where:
    """Returns a place in the plan."""
    return Where(line=line)


class _CutOff(Exception):
    """The text ends before the action does."""


class _Refused(Exception):
    """The action cannot be known."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def actions_of(blocks: Sequence[Block], last: bool, line: int) -> Actions:
    """Returns the actions under `## Action Plan`; `last`: the text ends with them; `line`: where they begin."""
    findings: list[Finding] = []
    actions: list[Action] = []
    cut: CutAction | None = None
    groups = _groups(blocks, findings)
    for number, (heading, title, below) in enumerate(groups):
        body = _Body(heading, title.line, last and number == len(groups) - 1)
        if not heading.exact or title.level != 3:
            message = f"`{'#' * title.level} {title.text[:60]}` was read as the action {heading.verb}"
            fix = f"Write `### `{heading.verb}``."
            findings.append(minor("plan.heading_form", message, where=place_at(title.line), fix=fix))
        if number + 1 < len(groups) and not any(block.kind == "rule" for block in below):
            where = place_at(groups[number + 1][1].line)
            message, fix = "there is no `---` between two actions", "Write `---` between two actions."
            findings.append(minor("plan.separator", message, where=where, fix=fix))
        body.take(below)
        try:
            actions.append(_built(body))
        except _CutOff:
            cut = CutAction(verb=heading.verb, path=_subject(body), line=title.line)
        except _Refused as refused:
            body.say(refused.finding)
        findings += body.findings
    if not groups and not blocking(findings):
        fix = f"Write each action as `### ` and one of {_VERBS}."
        findings.append(major("plan.no_actions", "the plan has no action", where=place_at(line), fix=fix))
    return Actions(tuple(actions), cut, tuple(findings))


def _groups(blocks: Sequence[Block], findings: list[Finding]) -> list[tuple[Heading, Block, list[Block]]]:
    """Returns the blocks by action; headings that are none are reported, with what stands below them left aside."""
    groups: list[tuple[Heading, Block, list[Block]]] = []
    below: list[Block] | None = None
    for block in blocks:
        heading = action_heading(block.text) if block.kind == "heading" else None
        if heading is not None:
            below = []
            groups.append((heading, block, below))
        elif _is_lost(block):
            findings.append(_unknown_verb(block))
            below = []
        elif below is not None:
            below.append(block)
        elif block.kind == "fence":
            message, fix = "a code block stands before the first action", "Put every block below its action's heading."
            findings.append(major("plan.block", message, where=place_at(block.line), fix=fix))
        elif block.kind != "rule":
            message, fix = "words before the first action are no part of the plan", "Say them in `## Rationale`."
            findings.append(minor("plan.stray", message, where=place_at(block.line), fix=fix))
    return groups


def _is_lost(block: Block) -> bool:
    """Returns whether a heading names no action, or words that are no heading can only be meant as one."""
    if block.kind == "heading":
        return block.level <= 3 and mark_of(block.text) is None
    heading = action_heading(block.text) if block.kind in {"paragraph", "item"} else None
    return heading is not None and (heading.exact or block.text.strip("*_`: ") == heading.verb)


def _unknown_verb(block: Block) -> Finding:
    fix = f"Write each action as a heading `### ` with one of {_VERBS} and nothing else."
    return major(
        "plan.verb", f"`{words(block.text)[:60]}` is no heading of an action", where=place_at(block.line), fix=fix
    )


# `NAME=value`, `NAME: value`, `NAME = value`.
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:=|\s*:\s|\s*=\s)(.*)", re.DOTALL)


@dataclass
class _Body:
    """One action on its way: its heading, fields and blocks, and what was said about them."""

    heading: Heading
    line: int
    last: bool
    """Whether nothing stands behind it in the text."""
    fields: dict[str, Field] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    marked: list[tuple[str, Block]] = field(default_factory=list)
    """FIND, REPLACE and "block", as they come, each with its block."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def verb(self) -> Verb:
        """What the action does."""
        return self.heading.verb

    @property
    def fences(self) -> list[Block]:
        """Its code blocks."""
        return [block for mark, block in self.marked if mark == "block"]

    def raw(self, name: str) -> str:
        """Returns the inline Markdown of a field, "" without it."""
        return self.fields[name].raw if name in self.fields else ""

    def say(self, finding: Finding) -> None:
        """Notes why there is no action, or what was read otherwise than it stands."""
        self.findings.append(finding)

    def take(self, blocks: Sequence[Block]) -> None:
        """Sorts what stands under the heading."""
        inside_env = False
        for block in blocks:
            mark = mark_of(block.text) if self.verb is Verb.EDIT and block.kind not in {"fence", "rule"} else None
            if block.kind == "fence":
                self._fence(block)
            elif mark is not None:
                self._mark(mark, block)
            elif block.kind in {"item", "paragraph"}:
                if inside_env and block.depth > 1:
                    self._variables(block.text, block.line)
                else:
                    inside_env = self._lines(block) == "env"
            elif block.kind != "rule":
                self._stray(block.line)
        if self.heading.rest and self.verb is not Verb.EXECUTE and not self.fields.keys() & {"File Path", "Resource"}:
            name = "Resource" if self.verb in {Verb.READ, Verb.PRUNE} else "File Path"
            self.fields[name] = Field(name, f"`{self.heading.rest}`", self.line, True)

    def _mark(self, mark: str, block: Block) -> None:
        self.marked.append((mark, block))
        if block.kind != "heading" or block.level != 4 or words(block.text).rstrip(":") != mark:
            message, where = f"`{words(block.text)}` was read as `#### {mark}:`", place_at(block.line)
            self.say(minor("plan.mark_form", message, where=where, fix="Write `#### FIND:` and `#### REPLACE:`."))

    def _fence(self, block: Block) -> None:
        self.marked.append(("block", block))
        where, fix = place_at(block.line), "Begin the block at the left margin, with a bar of backticks."
        if not block.exact:
            message = f"the block at line {block.line} stands in a list, and its tabs cannot be told from the list's"
            self.say(major("plan.block_indent", message, where=where, fix=fix))
        elif block.depth or block.mark[0] == "~":
            form = "stands in a list" if block.depth else "has a bar of `~`"
            self.say(minor("plan.block_form", f"the block at line {block.line} {form}", where=where, fix=fix))

    def _lines(self, block: Block) -> str | None:
        """Takes the fields on the lines of a bullet or paragraph; returns the first one's name.

        Markdown adds the lines that follow without a blank one: fields, words or the value of one, or no part of it.
        """
        open_field: str | None = None
        names: list[str | None] = []
        for text, line in lines_of(block):
            found = field_of(text, line)
            name = self._name(found.key) if found is not None else None
            bullet = block.kind == "item" and line == block.line
            if found is not None and (name is not None or bullet):
                open_field = self._field(found, name, block.mark if bullet else "")
                names.append(open_field)
            elif open_field is not None and (open_field in _TEXTS or not self.fields[open_field].raw):
                known = self.fields[open_field]
                self.fields[open_field] = known._replace(raw=f"{known.raw}\n{text}".strip())
            elif text.strip():
                self._stray(line)
        return names[0] if names else None

    def _name(self, key: str) -> str | None:
        name = _SPELLED.get(" ".join(re.sub(r"[_\-()]", " ", key).split()).casefold())
        if name in {"File Path", "Resource"}:
            return "Resource" if self.verb in {Verb.READ, Verb.PRUNE} else "File Path"
        return name

    def _field(self, found: Field, name: str | None, bullet: str) -> str | None:
        where = place_at(found.line)
        if name is None or name not in _TAKEN[self.verb]:
            taken = sorted(_TAKEN[self.verb])
            message, fix = f"`{found.key}` is no field of {self.verb}", f"Fields of {self.verb}: {', '.join(taken)}."
            self.say(minor("plan.field_unknown", message, where=where, fix=fix))
            return None
        if bullet != "-" or not found.bold or found.key.casefold() != name.casefold():
            message = f"the field `{name}` is written otherwise: `{found.key}`"
            self.say(minor("plan.field_form", message, where=where, fix=f"Write `- **{name}:** …`."))
        if name == "env" and found.raw.strip():
            self._variables(found.raw, found.line)
        if self.fields.setdefault(name, found).raw != found.raw:
            message = f"the action at line {self.line} has the field `{name}` twice, with two values"
            self.say(major("plan.field_twice", message, where=where, fix="Give every field once."))
        return name

    def _variables(self, raw: str, line: int) -> None:
        """Takes `NAME=value`, plain or in a code span, or several code spans."""
        pieces = pieces_of(raw.strip())
        spans = [piece.text for piece in pieces if piece.kind == "code"]
        only_spans = spans and all(piece.kind == "code" or not piece.text.strip(" ,;") for piece in pieces)
        for text in spans if only_spans else [raw.strip()]:
            match = _VARIABLE.fullmatch(text)
            value = "" if match is None else match[2] if only_spans else match[2].strip("`* ")
            if match is None or self.env.get(match[1], value) != value:
                message = "a variable of `env` cannot be read" if match is None else f"`{match[1]}` is set twice"
                fix = "Write each variable as a bullet of its own: `NAME=value`."
                self.say(major("plan.field_value", message, where=place_at(line), fix=fix))
            else:
                self.env[match[1]] = value.replace("\0", "")

    def _stray(self, line: int) -> None:
        message = f"words in the action at line {self.line} are no part of the plan"
        fix = "Say such things in `## Rationale` or in a Description."
        self.say(minor("plan.stray", message, where=place_at(line), fix=fix))


def _built(body: _Body) -> Action:
    """Returns the action. Raises _Refused and _CutOff."""
    if body.last and body.fences and not body.fences[-1].closed:
        raise _CutOff
    made = _MAKERS[body.verb](body)
    if body.verb not in {Verb.CREATE, Verb.EDIT, Verb.EXECUTE} and body.fences:
        where, fix = place_at(body.fences[0].line), "Leave the block out, or write another action for it."
        raise _Refused(major("plan.block", f"{body.verb} takes no code block", where=where, fix=fix))
    return made


def _subject(body: _Body) -> str:
    """Returns the path or resource that the action is about, as far as it is known."""
    known = next((name for name in ("File Path", "Resource") if name in body.fields), None)
    return path_of(body.raw(known)).path if known else path_in_info(body.fences[0]) if body.fences else ""


def _without(body: _Body, what: str, fix: str) -> Exception:
    """Without what it needs an action at the end of the text was cut off; another is faulty."""
    if body.last and not (what in _FIELDS and body.fences):
        return _CutOff()
    fix = f"Write the whole action. {fix}"
    return _Refused(major("plan.incomplete", f"{body.verb} has no {what}", where=place_at(body.line), fix=fix))


def _path(body: _Body, name: str) -> str:
    """Returns the path in a field, or behind the bar of the one block."""
    form = f"Write `- **{name}:** [path](/path)` with one path from the repository's root."
    if name not in body.fields:
        inside = path_in_info(body.fences[0]) if body.fences and name == "File Path" else ""
        if not inside:
            raise _without(body, name, form)
        message, where = f"the path `{inside}` stands behind the block's bar only", place_at(body.fences[0].line)
        body.say(minor("plan.path_form", message, where=where, fix=form))
        return inside
    where, found = place_at(body.fields[name].line), path_of(body.raw(name))
    if found.problem:
        raise _Refused(major("plan.path", f"`{name}` {found.problem}", where=where, fix=form))
    if not found.linked and name != "cwd" and not is_url(found.path):
        body.say(minor("plan.path_form", f"`{name}` is no link", where=where, fix=form))
    return found.path


def _one_block(body: _Body, what: str) -> Block:
    if not body.fences:
        raise _without(body, "code block", f"Write {what} in one code block.")
    if len(body.fences) > 1:
        lines = ", ".join(str(block.line) for block in body.fences)
        message = f"{body.verb} has {len(body.fences)} code blocks, at lines {lines}"
        fix = f"Write {what} in one code block, whose bar is longer than any run of backticks inside."
        raise _Refused(major("plan.block", message, where=place_at(body.fences[1].line), fix=fix))
    return body.fences[0]


def _switch(body: _Body, name: str) -> bool:
    if name not in body.fields:
        return False
    said, where = words(body.raw(name)).strip(" *_.`\"'").casefold(), place_at(body.fields[name].line)
    if said in {"yes", "no"}:
        message = f"`{name}` was read as true or false"
        body.say(minor("plan.value_form", message, where=where, fix="Write `true`."))
    elif said not in {"true", "false"}:
        fix = f"Write `- **{name}:** true` or leave it out."
        raise _Refused(major("plan.field_value", f"`{name}` is neither true nor false", where=where, fix=fix))
    return said in {"true", "yes"}


def _create(body: _Body) -> Action:
    path, block, overwrite = _path(body, "File Path"), _one_block(body, "the whole file"), _switch(body, "Overwrite")
    inside = path_in_info(block)
    if inside and inside != path and not path.endswith(f"/{inside}"):
        message = f"the block's bar names `{inside}`, the File Path is `{path}`"
        fix = "Name one path in the field File Path, and none behind the bar."
        raise _Refused(major("plan.path", message, where=place_at(block.line), fix=fix))
    text = body.raw("Description")
    return Create(line=body.line, description=text, path=path, content=block.text, overwrite=overwrite)


def _edit(body: _Body) -> Action:
    path, pairs = _path(body, "File Path"), _pairs(body)
    return Edit(line=body.line, description=body.raw("Description"), path=path, pairs=tuple(pairs))


def _pairs(body: _Body) -> list[Pair]:
    """Returns the pairs of FIND, block, REPLACE, block, and so on."""
    for number, (came, block) in enumerate(body.marked):
        wanted = ("FIND", "block", "REPLACE", "block")[number % 4]
        if came != wanted:
            whole = "; a whole file is a CREATE with `- **Overwrite:** true`" if number == 0 and came == "block" else ""
            message = f"{came} stands where {wanted} belongs{whole}"
            raise _Refused(major("plan.pairs", message, where=place_at(block.line), fix=_PAIRS))
    if not body.marked or len(body.marked) % 4:
        what = "FIND and REPLACE" if not body.marked else "end: a REPLACE or a block is missing"
        raise _without(body, what, _PAIRS)
    found = [block for _, block in body.marked]
    return [
        Pair(find=find.text, replace=replace.text, line=mark.line)
        for mark, find, replace in zip(found[::4], found[1::4], found[3::4], strict=True)
    ]


def _read(body: _Body) -> Action:
    resource, said = _path(body, "Resource"), body.raw("Description")
    path = resource if is_url(resource) else split_lines(resource)[0]
    if body.verb is Verb.PRUNE:
        return Prune(line=body.line, description=said, resource=path)
    return Read(line=body.line, description=said, resource=path, lines=resource[len(path) :])


def _delete(body: _Body) -> Action:
    return Delete(line=body.line, description=body.raw("Description"), path=_path(body, "File Path"))


def _move(body: _Body) -> Action:
    path, target = _path(body, "File Path"), _path(body, "Target")
    return Move(line=body.line, description=body.raw("Description"), path=path, target=target)


def _execute(body: _Body) -> Action:
    is_root = body.raw("cwd").strip("`* ") in {"", ".", "/", "./"}
    return Execute(
        line=body.line,
        description=body.raw("Description"),
        command=_command(body),
        cwd="." if is_root else _path(body, "cwd").rstrip("/"),
        env=body.env,
        expected_outcome=body.raw("Expected Outcome"),
        timeout_s=_timeout(body),
        allow_failure=_switch(body, "Allow Failure"),
    )


def _command(body: _Body) -> str:
    """Returns the block or, where there is none, the one code span of a field."""
    spans = [piece.text for piece in pieces_of(body.raw("Command")) if piece.kind == "code"]
    if body.fences or not spans:
        return _one_block(body, "the command").text
    where, fix = place_at(body.fields["Command"].line), "Write the command in one code block."
    if len(spans) > 1:
        raise _Refused(major("plan.block", "`Command` holds more than one command", where=where, fix=fix))
    body.say(minor("plan.block_form", "the command stands in a field", where=where, fix=fix))
    return spans[0]


def _timeout(body: _Body) -> float | None:
    if "Timeout" not in body.fields:
        return None
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(?:s|sec|seconds?)?", words(body.raw("Timeout")).strip(" *_.`\"'"))
    if match is None or not float(match[1]):
        where, fix = place_at(body.fields["Timeout"].line), "Write `- **Timeout:** 60`, in seconds."
        raise _Refused(major("plan.field_value", "`Timeout` is no number of seconds", where=where, fix=fix))
    return float(match[1])


_MAKERS: Mapping[Verb, Callable[[_Body], Action]] = {
    Verb.CREATE: _create,
    Verb.EDIT: _edit,
    Verb.READ: _read,
    Verb.PRUNE: _read,
    Verb.DELETE: _delete,
    Verb.MOVE: _move,
    Verb.EXECUTE: _execute,
}
