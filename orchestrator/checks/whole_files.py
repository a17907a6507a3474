"""What of an answer is a task's files: no sample of their use, no excerpt, nothing of an example or of the tester's."""

import ast
import builtins
import re
from collections.abc import Collection, Mapping, Sequence
from posixpath import basename, splitext
from types import MappingProxyType
from typing import Any

from orchestrator.checks.lost_exports import PYTHON, lost_exports, may_go
from orchestrator.checks.suite_place import is_suite
from orchestrator.code.javascript.tests import test_names
from orchestrator.code.javascript.tree import SUFFIXES as JAVASCRIPT
from orchestrator.code.outline import outline
from orchestrator.code.python.source import parse_python, walk
from orchestrator.code.python.tests import test_functions
from orchestrator.core.action_plan import Action, ActionPlan, Create, Edit
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import RepoPath, is_test_file, tidy, unsafe_reason

_GIVEN = frozenset(dir(builtins)) | {
    "__file__", "__name__", "__doc__", "__package__", "__spec__", "__loader__", "__path__", "__builtins__", "__class__",
    "__annotations__", "WindowsError", "reveal_type",
}  # fmt: skip
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
"""A word of a text or of a name: of `count_words` and `countWords` two."""
_NO_SUBJECT = frozenset({"example", "main", "test", "self", "init", "sample", "file", "code", "data", "value", "text"})
_NAME = re.compile(r"[^\W\d]\w*")
_DEFINED = re.compile(
    r"^[ \t]*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\*?|class|const|let|var|interface|type|enum|def)\s+"
    r"([\w$]+)",
    re.MULTILINE,
)
_IMPORTED = re.compile(r"^import\s+(?:type\s+)?([^'\"\n]{1,2000}?)\s+from\b", re.MULTILINE)
_LESS = re.compile(r"\b(?:remov|delet|drop|shorten|simplif|trim|rewrit|replac|clean|reduc)", re.IGNORECASE)
_LEAST_LINES = 5
_KEPT_CODE, _KEPT_TEXT = 0.5, 0.75
"""Shares of its lines below which a file that nobody asked to shorten is only a part of itself."""


def fits(path: str, text: str, about: str) -> bool:
    """Returns whether a block that names no path can be this file: it is about the task, and stands by itself.

    A sample of its use does not define what it uses, or imports it from the file that it would be.
    """
    told, defined = _words(about), _defined(path, text)
    spoken_of = set.union(*map(_words, defined)) if defined else _words(text)
    if not spoken_of & told:
        return False
    return not _uses_itself(path, text) and not _undefined(path, text)


def missing_parts(path: str, old: str, new: str, about: str) -> tuple[str, ...]:
    """Returns what shows that `new` is no whole text of a file that holds `old`; empty when nothing does.

    That is a name that it offered and that nobody asked to take away, one that `new` uses and only `old` defines, and
    most of its lines.
    """
    if unsafe_reason(path) is not None or not old.strip():
        return ()
    change = Delivery(story_id="", task_id="", files=(FileChange(path=path, content=new),))
    lost = [one.name for one in lost_exports(change, {path: old}, about)]
    methods = _methods(path, new)
    for owner, had in _methods(path, old).items():
        lacking = sorted(had - methods.get(owner, had))
        lost += [f"{owner}.{name}" for name in lacking if not may_go(about, name)]
    if path.lower().endswith(PYTHON):
        before, now = parse_python(old), parse_python(new)
        if before is not None and now is not None:
            lost += sorted(((_bound(before) - _bound(now)) & _used(now)) - _GIVEN)
    elif path.lower().endswith(JAVASCRIPT):
        gone = _script_names(old) - _script_names(new)
        lost += sorted(name for name in gone if re.search(rf"(?<![\w$.]){re.escape(name)}(?![\w$])", new))
    if lost:
        return tuple(f"`{name}`" for name in dict.fromkeys(lost))
    lines = [line for line in old.splitlines() if line.strip()]
    count = sum(bool(line.strip()) for line in new.splitlines())
    least = _KEPT_CODE if path.lower().endswith((*PYTHON, *JAVASCRIPT)) else _KEPT_TEXT
    if len(lines) < _LEAST_LINES or count >= least * len(lines) or _LESS.search(about):
        return ()
    return (f"{len(lines) - count} of {len(lines)} lines",)


def _methods(path: str, text: str) -> dict[str, set[str]]:
    """Returns the names of public methods by their classes."""
    found, owner = dict[str, set[str]](), ""
    for one in outline(text, path):
        if not one.signature.startswith(" "):
            owner = one.name
            found[owner] = set()
        elif not one.name.startswith(("_", "#")):
            found.setdefault(owner, set()).add(one.name)
    return found


MAX_LOST = 6
"""Names of what did not come that a message repeats."""


def check_parts(delivery: Delivery, texts: Mapping[str, str], there: Collection[str], about: str) -> list[Finding]:
    """Returns a major finding for each file that came in part, and for each that is there and was not shown.

    `texts` are those that were shown, of the files that are `there`.
    """
    found = []
    for change in delivery.files:
        path, where = change.path, Where(file=change.path, story=delivery.story_id, task=delivery.task_id)
        if path in there and path not in texts:
            message = f"`{path}` was not shown in this turn, so nobody can know what it holds now"
            found.append(major("plan.unread", message, where=where, fix=f"Leave `{path}` as it is, or READ it."))
        elif lost := missing_parts(path, texts.get(path, ""), change.content, about):
            more = f" and {len(lost) - MAX_LOST} more" if len(lost) > MAX_LOST else ""
            message = f"`{path}` is not whole: {', '.join(lost[:MAX_LOST])}{more} of it did not come"
            fix = f"Write `{path}` whole, from its first line to its last."
            found.append(major("delivery.shrunk", message, where=where, fix=fix))
    return found


def _words(text: str) -> set[str]:
    """Returns the words of a text that tell what it is about, a plural like its singular."""
    found = {word.casefold().rstrip("s") for word in _PART.findall(text)} | {
        name.casefold() for name in _NAME.findall(text)
    }
    return {word for word in found if len(word) > 2} - _NO_SUBJECT


def _defined(path: str, text: str) -> set[str]:
    tree = parse_python(text) if path.lower().endswith(PYTHON) else None
    if tree is None:
        return set(_DEFINED.findall(text))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def _uses_itself(path: str, text: str) -> bool:
    """Returns whether a text imports the module that it would be."""
    stem = re.escape(splitext(basename(path))[0])
    module = rf"^\s*from\s+(?:[\w.]+\.)?{stem}\s+import\b|^\s*import\s+(?:[\w.]+\.)?{stem}\b"
    script = rf"(?:from|require\(|import\()\s*['\"][./\w-]*/{stem}(?:\.\w+)?['\"]"
    return bool(re.search(module if path.lower().endswith(PYTHON) else script, text, re.MULTILINE))


def _undefined(path: str, text: str) -> set[str]:
    """Returns the names that a Python text uses and nothing in it defines; a star import may bring any."""
    tree = parse_python(text) if path.lower().endswith(PYTHON) else None
    if tree is None or any(isinstance(node, ast.alias) and node.name == "*" for node in walk(tree)):
        return set()
    return _used(tree) - _bound(tree) - _GIVEN


def _used(tree: ast.Module) -> set[str]:
    return {node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _bound(tree: ast.Module) -> set[str]:
    """Returns every name that a module binds, wherever in it."""
    names: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            names.update([node.name] if node.name else [])
        elif isinstance(node, ast.MatchMapping):
            names.update([node.rest] if node.rest else [])
        elif node.__class__.__name__ in {"TypeVar", "ParamSpec", "TypeVarTuple"}:  # from Python 3.12 on
            names.add(str(getattr(node, "name", "")))
    return names


def _script_names(text: str) -> set[str]:
    imported = (name for clause in _IMPORTED.findall(text) for name in _NAME.findall(clause))
    return {*_DEFINED.findall(text), *imported} - {"as", "type"}


def own_actions(
    plan: ActionPlan, task: Sequence[str], there: Collection[str]
) -> tuple[ActionPlan, tuple[Finding, ...]]:
    """Returns a plan without actions on files of the prompt's example and on new tests, where files of the task stand
    beside them and need none of those."""
    texts = [_text_of(action) for action in plan.actions if _path_of(action) in task]
    foreign = {path for action in plan.actions if (path := _path_of(action)) and _is_foreign(path, task, there)}
    left = {path for path in foreign if texts and not any(_names(text, path) for text in texts)}
    if not left:
        return plan, ()
    kept = tuple(action for action in plan.actions if _path_of(action) not in left)
    return plan.model_copy(update={"actions": kept}), tuple(map(_left_out, sorted(left)))


def own_files(delivery: Delivery, task: Sequence[str], there: Collection[str]) -> tuple[Delivery, tuple[Finding, ...]]:
    """Returns a delivery with the task's files under their paths, and without what `own_actions` leaves out.

    A folder before a task's path that the project does not have, as `project/words.py` for `words.py`, means nothing.
    """
    came = {change.path for change in delivery.files}
    files: list[FileChange] = []
    told: list[Finding] = []
    for change in delivery.files:
        head, _, tail = change.path.partition("/")
        moved = tail in task and tail not in came and change.path not in task
        moved = moved and not any(path.startswith(f"{head}/") for path in (*there, *task))
        if moved:
            fix = f"Deliver it under exactly its path: `{tail}`."
            message = f"`{change.path}` was read as `{tail}`: there is no folder `{head}`"
            told.append(minor("delivery.left_out", message, where=Where(file=tail), fix=fix))
        files.append(FileChange(path=RepoPath(tail), content=change.content) if moved else change)
    if len({change.path for change in files}) < len(files):  # two texts for one path
        return delivery, ()
    texts = [change.content for change in files if change.path in task]
    left = {
        change.path
        for change in files
        if _is_foreign(change.path, task, there) and texts and not any(_names(text, change.path) for text in texts)
    }
    kept = tuple(change for change in files if change.path not in left)
    told += map(_left_out, sorted(left))
    return (delivery.model_copy(update={"files": kept}) if told else delivery), tuple(told)


def _is_foreign(path: str, task: Sequence[str], there: Collection[str]) -> bool:
    """Returns whether a file is the example's `<path>`, or a new test; what changes how older tests run is refused."""
    return path not in task and (path.startswith("<") or (is_suite(path) and is_test_file(path) and path not in there))


def _names(text: str, path: str) -> bool:
    """Returns whether a text speaks of a file, by its name or as a module."""
    return re.search(rf"(?<![\w]){re.escape(splitext(basename(path))[0])}(?![\w])", text) is not None


def _path_of(action: Action) -> str:
    return action.path if isinstance(action, Create | Edit) else ""


def _text_of(action: Action) -> str:
    if isinstance(action, Edit):
        return "\n".join(pair.replace for pair in action.pairs)
    return action.content if isinstance(action, Create) else ""


def _left_out(path: str) -> Finding:
    message = f"`{path}` was left out: it is no file of the task, and nothing of the task's files needs it"
    fix = "Deliver the task's files only."
    return minor("delivery.left_out", message, where=Where(file=path), fix=fix)


# ---- a suite that came as a file and nothing else

_CRITERION = re.compile(r"\bcriterion\s+#?(\d{1,3})\b", re.IGNORECASE)


def holds_tests(path: str, text: str) -> bool:
    """Returns whether a text holds tests that the runner of this file collects."""
    return bool(test_functions(text) if path.endswith(".py") else test_names(text, path))


def suite_of_files(
    value: Mapping[str, Any],
    older: Collection[str],
    criteria: Sequence[str],
    so_far: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, Any] | None, Sequence[Finding]]:
    """Returns the suite in an answer of whole files as JSON: one file with tests, beside it older ones to change.

    The suite `so_far`, a path and its text, stays where only older ones came.
    """
    files = {tidy(str(file["path"])): str(file["content"]) for file in value["files"]}
    own = [path for path in files if path not in older and holds_tests(path, files[path])]
    if not own and not files.keys().isdisjoint(older):
        own, files = [*so_far], {**so_far, **files}
    if len(own) != 1:
        fix = "Answer with one file that holds the tests."
        return None, [major("suite.shape", f"a suite is one file with tests, {len(own)} came", fix=fix)]
    (path,) = own
    changed = [{"path": name, "content": text} for name, text in files.items() if name in older]
    cases = _cases(path, files[path], criteria)
    as_json = {"test_file": path, "test_content": files[path], "test_cases": cases}
    return {**as_json, **({"changed_tests": changed} if changed else {})}, ()


def with_file_name(value: Any, test_file: str) -> tuple[Any, Sequence[Finding]]:
    """Returns a suite as JSON under `test_file` where it names none that a runner collects; its cases may be left out.

    What is named well is kept: the project's own place for tests is better than ours.
    """
    if not isinstance(value, dict) or not isinstance(content := value.get("test_content"), str):
        return value, ()
    cases = value["test_cases"] if isinstance(value.get("test_cases"), list) else []
    named = value.get("test_file")
    path = tidy(named) if isinstance(named, str) else ""
    if (path and unsafe_reason(path) is None and is_suite(path) and is_test_file(path)) or not holds_tests(
        test_file, content
    ):
        return ({**value, "test_cases": cases} if holds_tests(path or test_file, content) else value), ()
    message = f"the test file `{path[:200]}` is now `{test_file}`" if path else f"the test file is `{test_file}`"
    where, fix = Where(file=test_file), f'Give "test_file": "{test_file}".'
    renamed = {**value, "test_file": test_file, "test_cases": cases}
    return renamed, [minor("suite.file_name", message, where=where, fix=fix)]


def _cases(path: str, text: str, criteria: Sequence[str]) -> list[dict[str, str]]:
    """Returns the tests with the criteria that comments number; a single criterion is shown by all of them."""
    names = test_functions(text) if path.endswith(".py") else test_names(text, path)
    cases, begin = [], 0
    for name in names:
        at = text.find(name.rsplit(" > ", 1)[-1], begin)
        if at < 0:
            at = begin
        line_end = text.find("\n", at)
        behind = text[line_end + 1 :].lstrip()[:200] if line_end >= 0 else ""
        docstring = behind.split("\n", 1)[0] if behind[:1] in {'"', "'"} else ""
        said = [*_CRITERION.findall(text[begin:at])[-1:], *_CRITERION.findall(docstring)[:1]]
        number = int(said[0]) if said else 1 if len(criteria) == 1 else 0
        cases.append({"name": name, "criterion": criteria[number - 1] if 0 < number <= len(criteria) else ""})
        begin = at + len(name)
    return cases
