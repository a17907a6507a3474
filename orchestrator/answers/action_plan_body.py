"""Stage 2 of reading a plan, first half: what stands under one action's heading, sorted."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rapidfuzz import process

from orchestrator.answers.action_plan_document import Block
from orchestrator.answers.action_plan_fields import Field, field_of, lines_of, variable_of, variables_of
from orchestrator.answers.action_plan_words import Heading, Mark, mark_of
from orchestrator.domain.action_plan import Verb
from orchestrator.domain.findings import Finding, Where, major, minor

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


def at(line: int) -> Where:
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
        body.say(minor("plan.mark_form", message, where=at(block.line), fix=fix))
    return mark._replace(exact=exact)


def _fence(body: Body, block: Block) -> None:
    body.marked.append((None, block))
    if not block.exact:
        message = f"the block at line {block.line} stands in a list, and its tabs cannot be told from the list's"
        fix = "Begin the block's bars at the left margin."
        body.say(major("plan.block_indent", message, where=at(block.line), fix=fix))
    form = ""
    if block.depth:
        form = "stands in a list"
    elif block.mark[0] == "~":
        form = "has a bar of `~`"
    if form:
        message = f"the block at line {block.line} {form}"
        fix = "Begin the block at the left margin, with a bar of backticks."
        body.say(minor("plan.block_form", message, where=at(block.line), fix=fix))


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
        body.say(minor("plan.field_form", message, where=at(found.line), fix=fix))
    if name == "env":
        for variable in variables_of(found.raw):
            _variable(body, variable, found.line)
    earlier = body.fields.setdefault(name, found)
    if earlier.raw != found.raw:
        message = f"the action at line {body.line} has the field `{name}` twice, with two values"
        body.say(major("plan.field_twice", message, where=at(found.line), fix="Give every field once."))


def _variable(body: Body, variable: tuple[str, str] | None, line: int) -> None:
    if variable is None or body.env.get(variable[0], variable[1]) != variable[1]:
        message = "a variable of `env` cannot be read" if variable is None else f"`{variable[0]}` is set twice"
        fix = "Write each variable as a bullet of its own: `NAME=value`."
        body.say(major("plan.field_value", message, where=at(line), fix=fix))
    else:
        body.env[variable[0]] = variable[1]


def _unknown(body: Body, found: Field) -> None:
    taken = sorted(_TAKEN[body.verb])
    fix = f"Fields of {body.verb}: {', '.join(taken)}."
    meant = process.extractOne(found.key, taken, processor=str.casefold, score_cutoff=LIKELY)
    if meant is not None:
        message = f"`{found.key}` is no field of {body.verb}; is `{meant[0]}` meant?"
        body.say(major("plan.field_unknown", message, where=at(found.line), fix=fix))
    else:
        message = f"`{found.key}` is no field of {body.verb} and is not read"
        body.say(minor("plan.field_unknown", message, where=at(found.line), fix=fix))


def _stray(body: Body, block: Block) -> None:
    behind = body.last and bool(body.fences)
    place = "behind the last action" if behind else f"in the action at line {body.line}"
    message = f"words {place} are no part of the plan"
    fix = "Say such things in `## Rationale` or in a Description."
    body.say(minor("plan.stray", message, where=at(block.line), fix=fix))
