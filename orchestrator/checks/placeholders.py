"""Comments that stand where code should stand: "rest of the code unchanged", "TODO: implement"."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from posixpath import splitext

from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax import python_source
from orchestrator.syntax.elision import OLD, THING, stands_for_code

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
_UNDONE = re.compile(
    r"\b(?:TODO|FIXME)\b[:\s(-]*implement\b|^\W*(?:to be )?implement(?:ed)?(?: (?:this|it|me))? (?:later|here)\W*$"
    r"|^\W*implementation (?:here|later|pending)\W*$|^\W*(?:to be|not(?: yet)?) implemented(?: yet)?\W*$"
    rf"|^\W*(?:add |put |write )?your (?:\w+ )?{THING} (?:goes |comes )?here\W*$"
    rf"|\b{THING}(?: [\w ]{{1,40}})? goes here\W*$"
    r"|\bin a real(?:-world)? (?:app|application|implementation|system|project|world)\b,? .{0,40}\b(?:would|should)\b",
    re.IGNORECASE,
)
_THROWN = re.compile(
    r"\bthrow new (?:\w*Error|\w*Exception)\(\s*[\"'`][^\"'`]{0,40}\bnot (?:yet )?implemented\b"
    r"|\b(?:todo|unimplemented)!\(|\bpanic\(\"(?:todo|not implemented|unimplemented)|\b(?-i:TODO)\(\)",
    re.IGNORECASE,
)
"""Code that only says that it is not written."""
_BARE = re.compile(
    rf"^\s*(?:(?:\.\.\.|…)\s*(?:the )?(?:{OLD}|rest|same)\b[^,;(){{}}]*?\b{THING}\b[^,;(){{}}]*"
    rf"|(?:\.\.\.|…)\s+(?:{OLD}|rest|same)\b[^,;(){{}}]*|\[(?:{OLD}|rest of"
    rf"|same)\b[^\]=]{{0,30}}\b{THING}\b[^\]=]{{0,30}}\])\s*$",
    re.IGNORECASE,
)
"""A line that is no comment and stands for code all the same; `...rest,` is code itself."""


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
    return [*findings, *_not_written(path, text, old)]


def _not_written(path: str, text: str, old: set[str]) -> Iterator[Finding]:
    """Functions whose code only says that they are not written. A class's method may leave that to its heirs."""
    lines = text.split("\n")
    if splitext(path)[1].lower() in {".py", ".pyi"}:
        tree = python_source.parse(text) if "NotImplementedError" in text else None
        numbers = [
            node.body[-1].lineno
            for node in (tree.body if tree is not None else ())
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and all(map(_says_nothing, node.body))
            if isinstance(node.body[-1], ast.Raise)
        ]
    else:
        numbers = [at for at, line in enumerate(lines, start=1) if _THROWN.search(line[:_COMMENT_CAP])]
    for number in numbers:
        said = lines[number - 1].strip()
        if said not in old:
            where = Where(file=path, line=number)
            yield minor("delivery.placeholder", f"`{said[:120]}` leaves work undone", where=where, fix=_FIX)


def _tells(comment: str) -> bool:
    return stands_for_code(comment) or any(pattern.search(comment) for pattern in (_ELSEWHERE, _UNDONE))


def _says_nothing(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    is_doc = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_doc or (isinstance(name, ast.Name) and name.id == "NotImplementedError")


def _comments(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """(line number, comment, whole line): by tokens where Python allows, else by the look of the line."""
    lines = text.split("\n")
    if splitext(path)[1].lower() in {".py", ".pyi"} and python_source.parse(text) is not None:
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
