"""One action from what stands under its heading, or why there is none."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from orchestrator.answers.action_plan_body import Body, at
from orchestrator.answers.action_plan_document import Block, pieces_of
from orchestrator.answers.action_plan_fields import path_of, seconds_of, switch_of
from orchestrator.answers.action_plan_words import looks_like_path
from orchestrator.domain.action_plan import (
    Action,
    Create,
    Delete,
    Edit,
    Execute,
    Move,
    Pair,
    Prune,
    Read,
    Verb,
    is_url,
)
from orchestrator.domain.findings import major, minor


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
        body.say(major("plan.block", message, where=at(body.fences[0].line), fix=fix))
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
    body.say(major("plan.incomplete", f"{body.verb} has no {what}", where=at(body.line), fix=fix))
    return None


def _path(body: Body, name: str) -> str | Unfinished | None:
    """The path in a field, with what is to be said of it."""
    if name not in body.fields:
        inside = _path_in_info(body.fences[0]) if body.fences and name == "File Path" else ""
        if inside:
            message = f"the path `{inside}` stands behind the block's bar only"
            fix = f"Write `- **File Path:** [{inside}](/{inside})`."
            body.say(minor("plan.path_form", message, where=at(body.fences[0].line), fix=fix))
            return inside
        if body.fences:
            message, fix = f"{body.verb} has no {name}", f"Write `- **{name}:** [path](/path)` under the heading."
            body.say(major("plan.incomplete", message, where=at(body.line), fix=fix))
            return None
        return _missing(body, name, f"Write `- **{name}:** [path](/path)` under the heading.")
    line = body.fields[name].line
    found = path_of(body.value(name))
    if found.problem:
        fix = f"Write `- **{name}:** [path](/path)` with one path from the repository's root."
        body.say(major("plan.path", f"`{name}` {found.problem}", where=at(line), fix=fix))
        return None
    if not found.linked and name != "cwd" and not is_url(found.path):
        message = f"`{name}` is no link"
        body.say(minor("plan.path_form", message, where=at(line), fix=f"Write `- **{name}:** [path](/path)`."))
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
        body.say(major("plan.block", message, where=at(body.fences[1].line), fix=fix))
        return None
    return body.fences[0]


def _switch(body: Body, name: str) -> bool:
    if name not in body.fields:
        return False
    known, line = switch_of(body.value(name)), body.fields[name].line
    if known.value is None:
        message = f"`{name}` is neither true nor false"
        body.say(major("plan.field_value", message, where=at(line), fix=f"Write `- **{name}:** true` or leave it out."))
    elif not known.exact:
        message = f"`{name}` was read as {str(known.value).lower()}"
        body.say(minor("plan.value_form", message, where=at(line), fix="Write `true` or `false`."))
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
        body.say(major("plan.path", message, where=at(block.line), fix=fix))
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
            body.say(major("plan.pairs", message, where=at(block.line), fix=_PAIRS))
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
        body.say(major("plan.block", "`Command` holds more than one command", where=at(line), fix=fix))
        return None
    message = "the command stands in a field"
    body.say(minor("plan.block_form", message, where=at(line), fix="Write the command in a code block."))
    return spans[0].text


def _timeout(body: Body) -> float | None:
    if "Timeout" not in body.fields:
        return None
    known, line = seconds_of(body.value("Timeout")), body.fields["Timeout"].line
    if known.value is None:
        fix = "Write `- **Timeout:** 60`, in seconds."
        body.say(major("plan.field_value", "`Timeout` is no number of seconds", where=at(line), fix=fix))
    elif not known.exact:
        message = f"`Timeout` was read as {known.value:g} seconds"
        body.say(minor("plan.value_form", message, where=at(line), fix="Write the number of seconds alone."))
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
