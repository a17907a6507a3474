"""One action from what stands under its heading, or why there is none.

Stage 2 of reading a plan, first half: what stands under one action's heading, sorted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rapidfuzz import process

from orchestrator.answers.action_plan_document import (
    Block,
    Field,
    Heading,
    Mark,
    field_of,
    lines_of,
    looks_like_path,
    mark_of,
    path_of,
    pieces_of,
    seconds_of,
    switch_of,
    variable_of,
    variables_of,
)
from orchestrator.core.action_plan import Action, Create, Delete, Edit, Execute, Move, Pair, Prune, Read, Verb, is_url
from orchestrator.core.finding import Finding, Where, major, minor

LIKELY = 80
"""Per cent of likeness from which a field's name counts as another's, written wrongly."""
_WORDS = frozenset({None, "Description", "Expected Outcome"})
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


@dataclass
class Body:
    """One action on its way: its heading, fields and blocks, and what was said about them."""

    heading: Heading
    line: int
    last: bool
    """Whether nothing stands behind it in the text."""
    fields: dict[str, Field] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    marked: list[tuple[Mark | None, Block]] = field(default_factory=list)
    """Marks and blocks as they come: (mark, its block) and (None, fence)."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def verb(self) -> Verb:
        """What the action does."""
        return self.heading.verb

    @property
    def fences(self) -> list[Block]:
        """Its code blocks."""
        return [block for mark, block in self.marked if mark is None]

    @property
    def open(self) -> bool:
        """Whether its last block was cut off."""
        return bool(self.fences) and not self.fences[-1].closed

    def value(self, name: str) -> str:
        """The inline Markdown of a field, "" without it."""
        return self.fields[name].raw if name in self.fields else ""

    def say(self, finding: Finding) -> None:
        """Note a finding."""
        self.findings.append(finding)


def place_at(line: int) -> Where:
    """A place in the plan."""
    return Where(line=line)


def body_of(heading: Heading, title: Block, blocks: Sequence[Block], last: bool) -> Body:
    """What stands under an action's heading."""
    body = Body(heading, title.line, last)
    parent: Field | None = None
    for block in blocks:
        if block.kind == "fence":
            _fence(body, block)
        elif (mark := _mark(body, block)) is not None:
            body.marked.append((mark, block))
        elif block.kind == "item":
            parent = _item(body, block, parent)
        elif block.kind == "paragraph":
            _paragraph(body, block)
        elif block.kind != "rule":
            _stray(body, block)
    if (path := heading.rest) and not body.fields.keys() & {"File Path", "Resource"}:
        name = "Resource" if heading.verb in {Verb.READ, Verb.PRUNE} else "File Path"
        if heading.verb is not Verb.EXECUTE:
            body.fields[name] = Field(name, name, f"`{path}`", title.line, True)
    return body


def _mark(body: Body, block: Block) -> Mark | None:
    """FIND and REPLACE mean something in an EDIT only."""
    if body.verb is not Verb.EDIT or block.kind not in {"heading", "paragraph", "item"}:
        return None
    mark = mark_of(block.text)
    if mark is None:
        return None
    exact = mark.exact and block.kind == "heading" and block.level == 4
    if not exact:
        message = f"`{' '.join(block.text.split())}` was read as `#### {'FIND' if mark.find else 'REPLACE'}:`"
        fix = "Write `#### FIND:` and `#### REPLACE:`."
        body.say(minor("plan.mark_form", message, where=place_at(block.line), fix=fix))
    return mark._replace(exact=exact)


def _fence(body: Body, block: Block) -> None:
    body.marked.append((None, block))
    if not block.exact:
        message = f"the block at line {block.line} stands in a list, and its tabs cannot be told from the list's"
        fix = "Begin the block's bars at the left margin."
        body.say(major("plan.block_indent", message, where=place_at(block.line), fix=fix))
    form = ""
    if block.depth:
        form = "stands in a list"
    elif block.mark[0] == "~":
        form = "has a bar of `~`"
    if form:
        message = f"the block at line {block.line} {form}"
        fix = "Begin the block at the left margin, with a bar of backticks."
        body.say(minor("plan.block_form", message, where=place_at(block.line), fix=fix))


def _item(body: Body, block: Block, parent: Field | None) -> Field | None:
    """A field, or a variable below the field `env`."""
    if block.depth > 1 and parent is not None and parent.name == "env":
        _variable(body, variable_of(block.text), block.line)
        return parent
    found = field_of(block.text, block.line)
    if found is None:
        _stray(body, block)
        return None if block.depth == 1 else parent
    if "\n" in found.raw and found.name not in _WORDS:
        found = _first_line(body, block, found)
    form = []
    if block.mark != "-":
        form.append(f"the bullet is `{block.mark}`")
    if not found.bold:
        form.append("its name is not bold")
    _field(body, found, form)
    return found


def _first_line(body: Body, block: Block, found: Field) -> Field:
    """A value is one line; Markdown adds the lines that follow without a blank one, which are fields or words."""
    value, *others = [line for line in lines_of(block) if line[0].strip()]
    begun = field_of(value[0], value[1])
    if begun is not None and not begun.raw and others:
        begun = begun._replace(raw=others.pop(0)[0].strip())
    for text, line in others:
        other = field_of(text, line)
        if other is not None and other.name:
            _field(body, other, ["it is no bullet"])
        else:
            _stray(body, block._replace(line=line))
    return begun or found


def _paragraph(body: Body, block: Block) -> None:
    """Fields without bullets; else words that are no part of the plan."""
    found = [field_of(text, line) for text, line in lines_of(block)]
    if all(one is not None and one.name for one in found):
        for one in found:
            if one is not None:
                _field(body, one, ["it is no bullet"])
    else:
        _stray(body, block)


def _field(body: Body, found: Field, form: list[str]) -> None:
    name = found.name
    if body.verb in {Verb.READ, Verb.PRUNE} and name == "File Path":
        name = "Resource"
    elif body.verb is not Verb.READ and body.verb is not Verb.PRUNE and name == "Resource":
        name = "File Path"
    if name is None or name not in _TAKEN[body.verb]:
        _unknown(body, found)
        return
    if found.key not in {name, name.upper(), name.capitalize()} or (found.key != name and " " in name):
        form = [*form, f"it is called `{found.key}`"]
    if form:
        message = f"the field `{name}` is written otherwise: {', '.join(form)}"
        fix = f"Write `- **{name}:** …`."
        body.say(minor("plan.field_form", message, where=place_at(found.line), fix=fix))
    if name == "env":
        for variable in variables_of(found.raw):
            _variable(body, variable, found.line)
    earlier = body.fields.setdefault(name, found)
    if earlier.raw != found.raw:
        message = f"the action at line {body.line} has the field `{name}` twice, with two values"
        body.say(major("plan.field_twice", message, where=place_at(found.line), fix="Give every field once."))


def _variable(body: Body, variable: tuple[str, str] | None, line: int) -> None:
    if variable is None or body.env.get(variable[0], variable[1]) != variable[1]:
        message = "a variable of `env` cannot be read" if variable is None else f"`{variable[0]}` is set twice"
        fix = "Write each variable as a bullet of its own: `NAME=value`."
        body.say(major("plan.field_value", message, where=place_at(line), fix=fix))
    else:
        body.env[variable[0]] = variable[1]


def _unknown(body: Body, found: Field) -> None:
    taken = sorted(_TAKEN[body.verb])
    fix = f"Fields of {body.verb}: {', '.join(taken)}."
    meant = process.extractOne(found.key, taken, processor=str.casefold, score_cutoff=LIKELY)
    if meant is not None:
        message = f"`{found.key}` is no field of {body.verb}; is `{meant[0]}` meant?"
        body.say(major("plan.field_unknown", message, where=place_at(found.line), fix=fix))
    else:
        message = f"`{found.key}` is no field of {body.verb} and is not read"
        body.say(minor("plan.field_unknown", message, where=place_at(found.line), fix=fix))


def _stray(body: Body, block: Block) -> None:
    behind = body.last and bool(body.fences)
    place = "behind the last action" if behind else f"in the action at line {body.line}"
    message = f"words {place} are no part of the plan"
    fix = "Say such things in `## Rationale` or in a Description."
    body.say(minor("plan.stray", message, where=place_at(block.line), fix=fix))


class Unfinished(NamedTuple):
    """The text ends before the action does."""

    path: str


def built(body: Body) -> Action | Unfinished | None:
    """The action; None when a finding says why there is none, Unfinished when the text ends inside it."""
    if body.open and body.last:
        return Unfinished(_named(body))
    made = _MAKERS[body.verb](body)
    if made is not None and body.verb not in {Verb.CREATE, Verb.EDIT, Verb.EXECUTE} and body.fences:
        message = f"{body.verb} takes no code block"
        fix = "Leave the block out, or write another action for it."
        body.say(major("plan.block", message, where=place_at(body.fences[0].line), fix=fix))
    return made


def _named(body: Body) -> str:
    """What the action is about, as far as it is known."""
    for name in ("File Path", "Resource"):
        if name in body.fields:
            return path_of(body.value(name)).path
    return _path_in_info(body.fences[0]) if body.fences else ""


def _missing(body: Body, what: str, fix: str) -> Unfinished | None:
    """Without what it needs an action at the end of the text was cut off; another is faulty."""
    if body.last:
        return Unfinished(_named(body))
    body.say(major("plan.incomplete", f"{body.verb} has no {what}", where=place_at(body.line), fix=fix))
    return None


def _path(body: Body, name: str) -> str | Unfinished | None:
    """The path in a field, with what is to be said of it."""
    if name not in body.fields:
        inside = _path_in_info(body.fences[0]) if body.fences and name == "File Path" else ""
        if inside:
            message = f"the path `{inside}` stands behind the block's bar only"
            fix = f"Write `- **File Path:** [{inside}](/{inside})`."
            body.say(minor("plan.path_form", message, where=place_at(body.fences[0].line), fix=fix))
            return inside
        if body.fences:
            message, fix = f"{body.verb} has no {name}", f"Write `- **{name}:** [path](/path)` under the heading."
            body.say(major("plan.incomplete", message, where=place_at(body.line), fix=fix))
            return None
        return _missing(body, name, f"Write `- **{name}:** [path](/path)` under the heading.")
    line = body.fields[name].line
    found = path_of(body.value(name))
    if found.problem:
        fix = f"Write `- **{name}:** [path](/path)` with one path from the repository's root."
        body.say(major("plan.path", f"`{name}` {found.problem}", where=place_at(line), fix=fix))
        return None
    if not found.linked and name != "cwd" and not is_url(found.path):
        message = f"`{name}` is no link"
        body.say(minor("plan.path_form", message, where=place_at(line), fix=f"Write `- **{name}:** [path](/path)`."))
    return found.path


def _path_in_info(block: Block) -> str:
    """The one path that stands behind a block's bar: ```` ```python src/a.py ````, ```` ```src/a.py ````."""
    found = [
        word for word in block.info.replace(":", " ").replace("=", " ").split() if looks_like_path(word.strip("\"'"))
    ]
    return found[0].strip("\"'").removeprefix("./").removeprefix("/") if len(found) == 1 else ""


def _one_block(body: Body, what: str) -> Block | Unfinished | None:
    if not body.fences:
        return _missing(body, "code block", f"Write {what} in one code block.")
    if len(body.fences) > 1:
        lines = ", ".join(str(block.line) for block in body.fences)
        message = f"{body.verb} has {len(body.fences)} code blocks, at lines {lines}"
        fix = f"Write {what} in one code block, whose bar is longer than any run of backticks inside."
        body.say(major("plan.block", message, where=place_at(body.fences[1].line), fix=fix))
        return None
    return body.fences[0]


def _switch(body: Body, name: str) -> bool:
    if name not in body.fields:
        return False
    known, line = switch_of(body.value(name)), body.fields[name].line
    if known.value is None:
        message = f"`{name}` is neither true nor false"
        body.say(
            major("plan.field_value", message, where=place_at(line), fix=f"Write `- **{name}:** true` or leave it out.")
        )
    elif not known.exact:
        message = f"`{name}` was read as {str(known.value).lower()}"
        body.say(minor("plan.value_form", message, where=place_at(line), fix="Write `true` or `false`."))
    return bool(known.value)


def _create(body: Body) -> Action | Unfinished | None:
    block, path = _one_block(body, "the whole file"), _path(body, "File Path")
    overwrite = _switch(body, "Overwrite")
    if not isinstance(block, Block) or not isinstance(path, str):
        return _worse(block, path)
    inside = _path_in_info(block)
    if inside and inside != path and not path.endswith(f"/{inside}"):
        message = f"the block's bar names `{inside}`, the File Path is `{path}`"
        fix = "Name one path in the field File Path, and none behind the bar."
        body.say(major("plan.path", message, where=place_at(block.line), fix=fix))
        return None
    return Create(
        line=body.line, description=body.value("Description"), path=path, content=block.text, overwrite=overwrite
    )


def _worse(*parts: object) -> Unfinished | None:
    """What becomes of an action of which a part is missing: a fault counts more than a cut."""
    if any(part is None for part in parts):
        return None
    return next((part for part in parts if isinstance(part, Unfinished)), None)


def _edit(body: Body) -> Action | Unfinished | None:
    path = _path(body, "File Path")
    pairs = _pairs(body)
    if not isinstance(path, str) or not isinstance(pairs, tuple) or isinstance(pairs, Unfinished):
        return _worse(path, pairs)
    return Edit(line=body.line, description=body.value("Description"), path=path, pairs=pairs)


_PAIRS = "Write `#### FIND:` with one block, then `#### REPLACE:` with one block, for each place."


def _pairs(body: Body) -> tuple[Pair, ...] | Unfinished | None:
    """FIND, block, REPLACE, block, and so on."""
    found: list[Block] = []
    begun = 0
    for number, (mark, block) in enumerate(body.marked):
        wanted = ("FIND", "block", "REPLACE", "block")[number % 4]
        came = "block" if mark is None else "FIND" if mark.find else "REPLACE"
        if came != wanted:
            what = "a code block" if came == "block" else came
            where = "a code block" if wanted == "block" else wanted
            message = f"{what} stands where {where} belongs"
            if number == 0 and came == "block":
                message += "; a whole file is a CREATE with `- **Overwrite:** true`"
            body.say(major("plan.pairs", message, where=place_at(block.line), fix=_PAIRS))
            return None
        begun = block.line if wanted == "FIND" else begun
        if mark is None:
            found.append(block)
    if not found or len(body.marked) % 4:
        return _missing(body, "FIND and REPLACE" if not found else "end: a REPLACE or a block is missing", _PAIRS)
    marks = [block.line for mark, block in body.marked if mark is not None and mark.find]
    return tuple(
        Pair(find=find.text, replace=replace.text, line=line)
        for find, replace, line in zip(found[::2], found[1::2], marks, strict=True)
    )


def _resource(body: Body) -> Action | Unfinished | None:
    found = _path(body, "Resource")
    if not isinstance(found, str):
        return found
    kind = Read if body.verb is Verb.READ else Prune
    return kind(line=body.line, description=body.value("Description"), resource=found)


def _delete(body: Body) -> Action | Unfinished | None:
    path = _path(body, "File Path")
    if not isinstance(path, str):
        return path
    return Delete(line=body.line, description=body.value("Description"), path=path)


def _move(body: Body) -> Action | Unfinished | None:
    path, target = _path(body, "File Path"), _path(body, "Target")
    if not isinstance(path, str) or not isinstance(target, str):
        return _worse(path, target)
    return Move(line=body.line, description=body.value("Description"), path=path, target=target)


def _execute(body: Body) -> Action | Unfinished | None:
    command = _command(body)
    allow_failure, timeout, cwd = _switch(body, "Allow Failure"), _timeout(body), _cwd(body)
    if not isinstance(command, str) or cwd is None:
        return _worse(command, cwd)
    return Execute(
        line=body.line,
        description=body.value("Description"),
        command=command,
        cwd=cwd,
        env=body.env,
        expected_outcome=body.value("Expected Outcome"),
        timeout_s=timeout,
        allow_failure=allow_failure,
    )


def _command(body: Body) -> str | Unfinished | None:
    """The block, or where there is none the one code span of a field."""
    spans = [piece for piece in pieces_of(body.value("Command")) if piece.kind == "code"]
    if body.fences or not spans:
        block = _one_block(body, "the command")
        return block.text if isinstance(block, Block) else block
    line = body.fields["Command"].line
    if len(spans) > 1:
        fix = "Write the command in one code block."
        body.say(major("plan.block", "`Command` holds more than one command", where=place_at(line), fix=fix))
        return None
    message = "the command stands in a field"
    body.say(minor("plan.block_form", message, where=place_at(line), fix="Write the command in a code block."))
    return spans[0].text


def _timeout(body: Body) -> float | None:
    if "Timeout" not in body.fields:
        return None
    known, line = seconds_of(body.value("Timeout")), body.fields["Timeout"].line
    if known.value is None:
        fix = "Write `- **Timeout:** 60`, in seconds."
        body.say(major("plan.field_value", "`Timeout` is no number of seconds", where=place_at(line), fix=fix))
    elif not known.exact:
        message = f"`Timeout` was read as {known.value:g} seconds"
        body.say(minor("plan.value_form", message, where=place_at(line), fix="Write the number of seconds alone."))
    return known.value


def _cwd(body: Body) -> str | None:
    raw = body.value("cwd").strip("`* ")
    if raw in {"", ".", "/", "./"}:
        return "."
    found = _path(body, "cwd")
    return found.rstrip("/") if isinstance(found, str) else None


_MAKERS: Mapping[Verb, Callable[[Body], Action | Unfinished | None]] = {
    Verb.CREATE: _create,
    Verb.EDIT: _edit,
    Verb.READ: _resource,
    Verb.PRUNE: _resource,
    Verb.DELETE: _delete,
    Verb.MOVE: _move,
    Verb.EXECUTE: _execute,
}
