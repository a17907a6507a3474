"""One door to every parser: is this file well-formed in its own language?"""

from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax.javascript_tree import grammar_of
from orchestrator.syntax.languages import CHECKED_SUFFIXES, language_of, unchecked_language
from orchestrator.syntax.problem import Problem
from orchestrator.syntax.slips import hint, slips
from orchestrator.syntax.sql_check import check_sql
from orchestrator.syntax.sql_dialect import Project
from orchestrator.syntax.target import ANY, Target
from orchestrator.syntax.templates import is_generated, open_blocks

__all__ = ["CHECKED_SUFFIXES", "check_syntax", "is_well_formed", "unchecked_language"]

_OWN_LOOK = frozenset({"HTML", "Vue", "Svelte", "Astro", "YAML"})
"""Languages whose readers look at templates themselves."""


def check_syntax(
    path: str, text: str, *, code: str = "content.syntax", target: Target = ANY, project: Project | None = None
) -> list[Finding]:
    """Major findings, of `code`, when `text` does not parse in the language of `path`: at most three, the cause first.

    Never raises. A file in a language without a parser gives []: `unchecked_language` names it. `target` says which
    Python the project promises, `project` which database's SQL it speaks; of SQL there may be more findings, and minor
    ones. Parsers are loaded when the first text of their language comes.
    """
    if path.lower().endswith(".sql"):
        return check_sql(text, path, code=code, project=project)
    language = language_of(path, text)
    if language is None:
        return []
    said = slips(text, language) or _problems(language, path, text, target)
    if said and language not in _OWN_LOOK and is_generated(path, text):
        said = slips(text, language) or open_blocks(text)
    lines = text.split("\n")
    found = []
    for problem in said:
        line = lines[problem.line - 1] if problem.line and problem.line <= len(lines) else ""
        what = problem.message + hint(line, language)
        place = Where(file=path, line=problem.line, column=problem.column)
        fix = problem.fix if problem.fix else "Write the whole file anew, so that it parses."
        found.append(major(code, f"{language} does not parse: {what}", where=place, fix=fix))
    return found


def is_well_formed(path: str, text: str) -> bool:
    """Whether `check_syntax` finds nothing, at less cost: nothing is told of what it would find."""
    language = None if path.lower().endswith(".sql") else language_of(path, text)
    if language not in ("JavaScript", "TypeScript") or is_generated(path, text):
        return not check_syntax(path, text)
    from orchestrator.syntax import javascript_check

    return not slips(text, language) and not javascript_check.is_broken(text, grammar_of(path))


def _problems(language: str, path: str, text: str, target: Target) -> list[Problem]:
    """By the parser of the language; each is imported when it is needed first."""
    match language:
        case "Python":
            from orchestrator.syntax import python_check

            return python_check.problems(text, path, target.python)
        case "JavaScript" | "TypeScript":
            from orchestrator.syntax import javascript_check

            return javascript_check.problems(text, grammar_of(path))
        case "Go" | "Java" | "Rust":
            from orchestrator.syntax import compiled_check

            return compiled_check.problems(text, language.lower())
        case "YAML" | "TOML" | "XML" | "INI":
            from orchestrator.syntax import data_check

            return data_check.FORMS[language](text)
        case "CSS" | "SCSS" | "Less":
            from orchestrator.syntax import css_check

            return css_check.problems(text, language)
        case "HTML" | "Vue" | "Svelte" | "Astro":
            from orchestrator.syntax import markup_check

            return markup_check.problems(text, language)
        case "Shell":  # bash itself judges it where runs happen: checks/shell_syntax
            return []
        case _:
            from orchestrator.syntax import json_check

            return json_check.FORMS[language](text)
