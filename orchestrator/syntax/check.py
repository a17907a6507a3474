"""One door to every parser: is this file well-formed in its own language?"""

from posixpath import splitext

from orchestrator.domain.findings import Finding
from orchestrator.syntax import javascript_check, json_source, python_source
from orchestrator.syntax.sql_check import check_sql
from orchestrator.syntax.sql_dialect import Project

CHECKED_SUFFIXES = (".py", ".pyi", ".json", *javascript_check.SUFFIXES)
"""Languages whose parser here takes what is right and nothing else: SQL, with a grammar per database, is
checked too but is not among them. Other files are not judged."""


def check_syntax(
    path: str, text: str, *, code: str = "content.syntax", project: Project | None = None
) -> list[Finding]:
    """Major findings, of `code`, when `text` does not parse in the language of `path`'s suffix; [] otherwise.

    Never raises. Any other suffix than `.sql` and CHECKED_SUFFIXES gives []. SQL has more than
    one finding, minor ones among them; `project` tells its dialect.
    """
    suffix = splitext(path)[1].lower()
    if suffix == ".sql":
        return check_sql(text, path, code=code, project=project)
    found: Finding | None = None
    if suffix in {".py", ".pyi"}:
        found = python_source.problem(text, path, code=code)
    elif suffix in javascript_check.SUFFIXES:
        found = javascript_check.problem(text, path, code=code)
    elif suffix == ".json" and not json_source.allows_comments(path):
        found = json_source.problem(text, path, code=code)
    return [found] if found else []
