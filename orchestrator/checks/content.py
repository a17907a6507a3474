"""What is said of the contents of delivered files before anything is written: syntax, missing code, losses."""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, splitext

from orchestrator.checks.lost_exports import Lost, check_lost, lost_exports
from orchestrator.checks.paths import Around
from orchestrator.code.check import OLD, THING, check_syntax, is_program, stands_for_code, target_of, unchecked_language
from orchestrator.code.manifests.manifest import read_manifest
from orchestrator.code.python import source
from orchestrator.code.sql.check import Project
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import is_manifest, is_test_file
from orchestrator.core.value import hidden_characters

# "the rest stays as it is" in the languages in which models write it.
_ELSEWHERE = re.compile(
    r"(?:其余|其他|剩余|原有|现有|之前)的?(?:代码|内容|部分|逻辑|函数|方法|样式)|(?:代码|内容)?保持不变|此处省略|代码省略|省略.{0,4}代码"
    r"|(?:残り|既存)の(?:コード|部分|内容)|(?:コード|以下|以降)は?省略|変更なし"
    r"|^\W*(?:der |die |den )?(?:rest|restliche[rns]?|übrige[rns]?|bestehende[rns]?|vorhandene[rns]?) (?:des |der "
    r"|den )?"
    r"(?:codes?|dateien?|datei|funktionen|klasse|methoden|importe?|styles)(?: (?:bleibt|bleiben|unverändert"
    r"|wie bisher|hier)\b.{0,20})?\W*$"
    r"|^\W*(?:le |la )?reste (?:du|de la|des) (?:code|fichier|page|fonctions|classe)\b.{0,40}$"
    r"|^\W*code (?:existant|précédent|inchangé)\W*$"
    r"|^\W*(?:el )?resto del? (?:la )?(?:código|codigo|archivo|página|clase|funciones)\b.{0,40}$"
    r"|^\W*(?:código|codigo) (?:existente|anterior|sin cambios)\W*$"
    r"|^\W*(?:o )?rest(?:o|ante) do (?:código|codigo|arquivo)\b.{0,40}$"
    r"|^\W*(?:остальной|существующий|предыдущий) код\b.{0,40}$",
    re.IGNORECASE,
)
# Comments that stand in for missing code.
_UNDONE = re.compile(
    r"\b(?:TODO|FIXME)\b[:\s(-]*implement\b|^\W*(?:to be )?implement(?:ed)?(?: (?:this|it|me))? (?:later|here)\W*$"
    r"|^\W*implementation (?:here|later|pending)\W*$|^\W*(?:to be|not(?: yet)?) implemented(?: yet)?\W*$"
    rf"|^\W*(?:add |put |write )?your (?:\w+ )?{THING} (?:goes |comes )?here\W*$"
    rf"|\b{THING}(?: [\w ]{{1,40}})? goes here\W*$"
    r"|\bin a real(?:-world)? (?:app|application|implementation|system|project|world)\b,? .{0,40}\b(?:would|should)\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"^\s*(?:(?:\.\.\.|…)\s*(?:the )?(?:{OLD}|rest|same)\b[^,;(){{}}]*?\b{THING}\b[^,;(){{}}]*"
    rf"|(?:\.\.\.|…)\s+(?:{OLD}|rest|same)\b[^,;(){{}}]*|\[(?:{OLD}|rest of"
    rf"|same)\b[^\]=]{{0,30}}\b{THING}\b[^\]=]{{0,30}}\])\s*$",
    re.IGNORECASE,
)
"""A line that is no comment and stands for code all the same; `...rest,` is code itself."""


# How comments begin in the languages that have no tokenizer here; a string may look so too.
_COMMENT = re.compile(r"(?:^|\s)(?://|#|/\*|\*|<!--|--|\{/\*|;;|%)(?P<text>.*)$")
_COMMENT_CAP = 1000
"""Characters of a line that are looked at: longer ones are data, not comments."""
_PROSE = frozenset({".md", ".mdx", ".rst", ".txt", ".adoc", ".csv", ".json", ".svg", ".lock"})
_FIX = "Write the whole file, every line of it."


def placeholders(path: str, text: str, *, before: str = "") -> list[Finding]:
    """Findings on comments that stand for missing code; prose and data files are not looked at.

    Major for what elides the file itself, minor for what is still to be written. A line that stood in `before` already
    is not the delivery's.
    """
    if splitext(path)[1].lower() in _PROSE:
        return []
    old = {line.strip() for line in before.splitlines()}
    findings: list[Finding] = []
    for number, comment, line in _comments(path, text):
        where, said = Where(file=path, line=number), comment.strip()[:120]
        if line.strip() in old:
            continue
        if stands_for_code(comment) or _ELSEWHERE.search(comment):
            message = f"`{said}` stands for code that is not there"
            findings.append(major("delivery.placeholder", message, where=where, fix=_FIX))
        elif _UNDONE.search(comment):
            findings.append(minor("delivery.placeholder", f"`{said}` leaves work undone", where=where, fix=_FIX))
    return findings


def _tells(comment: str) -> bool:
    return stands_for_code(comment) or any(pattern.search(comment) for pattern in (_ELSEWHERE, _UNDONE))


def _comments(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """(line number, comment, whole line): by tokens where Python allows, else by the look of the line."""
    lines = text.split("\n")
    if splitext(path)[1].lower() in {".py", ".pyi"} and source.parse_python(text) is not None:
        # Tokens take most of the time, and hardly a text has such a comment at all.
        if not any(_tells(line[line.index("#") :][:_COMMENT_CAP]) for line in lines if "#" in line):
            return
        try:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    yield token.start[0], token.string[:_COMMENT_CAP], token.line
        except (tokenize.TokenError, SyntaxError):
            return  # it parsed, so at most the tail after the last statement is lost
        return
    for number, line in enumerate(lines, start=1):
        match = _COMMENT.search(line[:_COMMENT_CAP])
        if match:
            yield number, match["text"], line[:_COMMENT_CAP]
        elif _BARE.match(line[:_COMMENT_CAP]):
            yield number, f"... {line.strip()[:_COMMENT_CAP]}", line[:_COMMENT_CAP]


CODE = "delivery.manifest_loss"
_LOSS_FIX = "Keep what nobody asked to take away."


def manifest_losses(change: FileChange, before: str, task: str = "") -> Iterator[Finding]:
    """Findings on a manifest that `before` was and `change` makes poorer; never raises.

    Major where it cannot be read any more. Minor for a dependency or script that is gone, wherever it stood, unless
    `task` names it: what still imports a package is the contract's to say.
    """
    old, new = read_manifest(change.path, before), read_manifest(change.path, change.content)
    where = Where(file=change.path)
    yield from (problem.model_copy(update={"code": "delivery.syntax"}) for problem in new.problems if not old.problems)
    if new.problems:
        return
    for what, gone in (
        ("dependency", sorted(old.dependencies - new.dependencies)),
        ("script", sorted(old.scripts - new.scripts)),
    ):
        if gone := [name for name in gone if not _is_named(name, task)]:
            message = f"the manifest lost the {what} {', '.join(f'`{name}`' for name in gone)}"
            yield minor(CODE, message, where=where.model_copy(update={"field": what}), fix=_LOSS_FIX)


def _is_named(name: str, task: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", task, re.IGNORECASE))


SMALL_BEFORE = 500
"""Characters below which a file may lose any share of its text."""
KEPT_SHARE = 0.2
_MAY_BE_EMPTY = frozenset({"__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll"})


def check_content(
    delivery: Delivery,
    before: Mapping[str, str],
    around: Around | None = None,
    lost: Sequence[Lost] | None = None,
) -> list[Finding]:
    """Findings on the files' contents; `before` holds the present text of those that exist, `lost` what they lose.

    Syntax, SQL, omissions and placeholders, lost text, exports that others still use, and manifests that lose
    something; a minor one for code that has no parser here. Never raises.
    """
    findings: list[Finding] = []
    around = around or Around()
    project = Project(packages=around.packages, stack=around.stack)
    for change in delivery.files:
        old, target = before.get(change.path), target_of(around.runtime_at(change.path))
        broken = check_syntax(change.path, change.content, code="delivery.syntax", target=target, project=project)
        said = [*broken, *_unchecked(change)]
        said += placeholders(change.path, change.content, before=old or "")
        said += _shrunk(change, old)
        if old is not None and is_manifest(change.path):
            said += (
                one for one in manifest_losses(change, old, around.task) if not broken or one.code != "delivery.syntax"
            )
        findings += said
    lost = lost_exports(delivery, before, around.task) if lost is None else lost
    findings += check_lost(delivery, lost, around.others)
    return [one.placed(story=delivery.story_id, task=delivery.task_id) for one in findings]


def check_whole(delivery: Delivery, files: Sequence[str], before: Mapping[str, str]) -> list[Finding]:
    """Returns a finding for each of the task's `files` that neither exists yet nor is delivered."""
    there = {*delivery.paths, *before}
    return [
        major(
            "delivery.missing_file",
            f"`{path}` is a file of the task, does not exist yet and was not delivered",
            where=Where(file=path, story=delivery.story_id, task=delivery.task_id),
            fix=f"Deliver `{path}` too.",
        )
        for path in files
        if path not in there
    ]


def _unchecked(change: FileChange) -> Iterator[Finding]:
    """Code that nobody here can say anything about passes, with a note that says so."""
    if language := unchecked_language(change.path, change.content):
        message = f"`{change.path}` was not checked: there is no parser for {language} here"
        fix = "Nothing needs to be done; look at the file where it matters."
        yield minor("delivery.unchecked", message, where=Where(file=change.path), fix=fix)


def _shrunk(change: FileChange, before: str | None) -> Iterator[Finding]:
    where = Where(file=change.path)
    now, fix = change.content.strip(), "Give the whole file."
    if not now and (before or "").strip() and not is_manifest(change.path):  # its losses are told by name
        yield major("delivery.shrunk", "the file lost all of its content", where=where, fix=fix)
    elif not now and basename(change.path) not in _MAY_BE_EMPTY:
        yield minor("delivery.empty", "the file is empty", where=where, fix=fix)
    elif before and len(before) > SMALL_BEFORE and len(change.content) < KEPT_SHARE * len(before):
        message = f"the file shrank from {len(before)} to {len(change.content)} characters"
        yield minor("delivery.shrunk", message, where=where, fix=fix)


_REACHES_PYTEST = re.compile(
    r"\b_pytest\b|\bimport pytest\b|\bfrom pytest\b|\bsys\.modules\b|\bos\._exit\b|\bPYTEST_\w+|junitxml|"
    r"\bTestCase\.\w+\s*=(?!=)|\b__builtins__\b|\bbuiltins\.\w+\s*=(?!=)"
)
_REACHES_NODE = re.compile(
    r"\bprocess\.(?:execArgv|ppid)\b|\bNODE_TEST_CONTEXT\b|['\"]node:test['\"]|test-reporter|"
    r"\bassert(?:\.strict)?\.\w+\s*=(?![=>])"
)
_REACHES = {"py": _REACHES_PYTEST} | dict.fromkeys(("js", "mjs", "cjs", "ts", "mts", "cts"), _REACHES_NODE)
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")


def runner_reach(diff: str) -> list[Finding]:
    """One finding per line that a unified git diff adds to shipped code and that reaches into the runner.

    Code under test runs in the runner's process and can make a run look green. These are ways that were tried; each has
    honest uses as well, so they are shown to the reviewer and in the report, and refuse no delivery by themselves.
    """
    return [
        major(
            "delivery.reaches_runner",
            f"shipped code reaches into the test runner or its process: `{found}`",
            where=Where(file=path, line=line),
            fix="look whether the task needs it: code under test can make its own tests look green this way",
        )
        for path, line, text in _added(diff)
        if not is_test_file(path) and (found := _reach(path, text))
    ]


def hidden_text(diff: str) -> list[Finding]:
    """Returns a finding for each line of a program that a unified git diff adds and that has a control character."""
    return [
        minor(
            "delivery.hidden_text",
            f"a control character stands here, by which the line may read otherwise than it runs: {', '.join(found)}",
            where=Where(file=path, line=line),
            fix="look what the line does without it; it is drawn in brackets, as [U+202E]",
        )
        for path, line, text in _added(diff)
        if (found := hidden_characters(text)) and is_program(path)
    ]


def _reach(path: str, text: str) -> str:
    pattern = _REACHES.get(path.rpartition(".")[2])
    found = pattern.search(text) if pattern else None
    return found[0] if found else ""


def _added(diff: str) -> Iterator[tuple[str, int, str]]:
    """(path, line in the new file, text) of each added line."""
    path, line, in_hunk = "", 0, False
    for text in diff.split("\n"):
        if text.startswith("diff --git "):
            in_hunk = False
        elif not in_hunk and text.startswith("+++ "):
            path = text[4:].strip().removeprefix("b/")
        elif hunk := _HUNK.match(text):
            line, in_hunk = int(hunk[1]), True
        elif in_hunk and text.startswith("+"):
            yield path, line, text[1:]
            line += 1
        elif in_hunk and text.startswith(" "):
            line += 1
