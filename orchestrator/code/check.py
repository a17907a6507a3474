"""One door to every parser: is this file well-formed in its own language?

Also what all languages share: the language of a file by its name and first line, what models leave in files (fences,
merge markers, diffs), the Python that a project promises, and the marks of template languages.
"""

import re
from collections.abc import Iterator
from posixpath import basename, splitext

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from orchestrator.code import grammar as code_grammar
from orchestrator.code.grammar import MOST, Node, Problem, below, parse, place
from orchestrator.code.javascript import tree
from orchestrator.code.javascript.tree import grammar_of
from orchestrator.code.sql.check import Project, check_sql
from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.value import Value

_FENCE = re.compile(r"\A\s*(```|~~~)[\w+#.-]*[ \t]*(?=\n)|(?<=\n)(```|~~~)[ \t]*\s*\Z")
_MARKERS = (re.compile(r"^<{7} ", re.M), re.compile(r"^={7}$", re.M), re.compile(r"^>{7} ", re.M))
_DIFF = re.compile(r"\A\s*(diff --git a/|--- \S[^\n]*\n\+\+\+ \S|@@ -\d+(,\d+)? \+\d+(,\d+)? @@)")
_SPELLED_OUT = re.compile(r"\A\s*(#|//|/\*|<|;).*?\\n.*?\\n.*?\\n")
_BETWEEN_TAGS = re.compile(r"[>}]\s*\\n|\\n\s*[<{]")
_FEWEST = 3
_QUOTES = re.compile(r"[\u201c\u201d\u2018\u2019\u201e]")
_ENTITY = re.compile(r"&(lt|gt|amp|quot|#39|apos);")
_PLUSES = 4
"""Fewest lines that make a diff out of leading plus signs."""


def slips(text: str, language: str) -> list[Problem]:
    """What stands in the text and is code in no language; [] when there is nothing of the kind."""
    return [problem for problem in (*_fences(text), *_merge(text), *_diff(text), *_line_ends(text, language))][:1]


def hint(line: str, language: str) -> str:
    """What in a line that does not parse is likely to be the cause; "" when nothing is."""
    if language not in {"HTML", "XML"} and (found := _ENTITY.search(line)):
        return f" (the line has the HTML entity `{found[0]}` where a character belongs)"
    if found := _QUOTES.search(line):
        return f" (the line has the typographic quote {found[0]})"
    return ""


def _fences(text: str) -> Iterator[Problem]:
    if ("```" in text or "~~~" in text) and (found := _FENCE.search(text)):
        at = found.start() + len(found[0]) - len(found[0].lstrip())
        line, column = place(text, at)
        fix = "Give the file's text alone, without the fence."
        yield Problem(line=line, column=column, message="a Markdown code fence stands in the file", fix=fix)


def _merge(text: str) -> Iterator[Problem]:
    if "<<<<<<< " not in text:
        return
    at = 0
    first = None
    for marker in _MARKERS:
        found = marker.search(text, at)
        if found is None:
            return
        first, at = first or found, found.end()
    if first is not None:
        fix = "Settle the conflict and leave the markers out."
        yield Problem(
            line=place(text, first.start())[0], column=1, message="a merge conflict is left in the file", fix=fix
        )


def _diff(text: str) -> Iterator[Problem]:
    added = text.count("\n+") + text.startswith("+")
    if _DIFF.match(text) or (added >= _PLUSES and added * 2 >= sum(1 for line in text.split("\n") if line.strip())):
        line = next((number for number, line in enumerate(text.split("\n"), 1) if line.strip()), 1)
        fix = "Give the whole file as it is to be, without + and - before its lines."
        yield Problem(line=line, column=1, message="this is a diff, not the file", fix=fix)


def _line_ends(text: str, language: str) -> Iterator[Problem]:
    if language.startswith("JSON") or "\n" in text.strip():
        return
    markup = language in {"HTML", "XML", "Vue", "Svelte", "Astro"}
    if len(_BETWEEN_TAGS.findall(text)) < _FEWEST if markup else not _SPELLED_OUT.match(text):
        return
    if not markup and re.match(r"\s*<", text):
        return
    column = text.index("\\n") + 1
    fix = "Write real line ends."
    yield Problem(line=1, column=column, message="line ends are written as the two characters \\n", fix=fix)


_SHELLS = (".sh", ".bash", ".bats")
_BY_SUFFIX = {
    **dict.fromkeys((".py", ".pyi"), "Python"),
    **dict.fromkeys(tree.JAVASCRIPT, "JavaScript"),
    **dict.fromkeys(tree.TYPESCRIPT, "TypeScript"),
    **dict.fromkeys((".json", ".webmanifest", ".geojson", ".ipynb"), "JSON"),
    **dict.fromkeys((".jsonc", ".code-workspace"), "JSON with comments"),
    ".json5": "JSON5",
    **dict.fromkeys((".jsonl", ".ndjson"), "JSON lines"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "HTML"),
    ".css": "CSS",
    ".scss": "SCSS",
    ".less": "Less",
    **dict.fromkeys((".yaml", ".yml"), "YAML"),
    ".toml": "TOML",
    **dict.fromkeys(_SHELLS, "Shell"),
    ".go": "Go",
    ".java": "Java",
    ".rs": "Rust",
    ".vue": "Vue",
    ".svelte": "Svelte",
    ".astro": "Astro",
    **dict.fromkeys((".xml", ".svg", ".xsd", ".xsl", ".csproj", ".fxml"), "XML"),
}
_BY_NAME = {
    **dict.fromkeys((".bashrc", ".bash_profile", ".profile"), "Shell"),
    **dict.fromkeys(("pipfile", "poetry.lock", "cargo.lock", "uv.lock", "pdm.lock"), "TOML"),
    **dict.fromkeys((".babelrc", ".eslintrc", ".jshintrc", ".swcrc"), "JSON with comments"),
    **dict.fromkeys((".prettierrc", ".stylelintrc", ".clang-format", ".clang-tidy"), "YAML"),
    "setup.cfg": "INI",
    "tox.ini": "INI",
    "pytest.ini": "INI",
    "mypy.ini": "INI",
    "alembic.ini": "INI",
    ".flake8": "INI",
    ".coveragerc": "INI",
    ".pylintrc": "INI",
}
_WITH_COMMENTS = re.compile(
    r"(^|/)((ts|js)config[^/]*|\.?devcontainer|tslint|\.?(eslintrc|swcrc|oxlintrc|markdownlint|jshintrc|babelrc)|babel\.config"
    r"|turbo|biome|rome|deno|angular|nx|project|typedoc|tsdoc|tsup|api-extractor[^/]*|jsdoc|pyrightconfig|cspell|renovate"
    r"|language-configuration|\.renovaterc|\.luarc|wrangler|jest\.config|nodemon|\.mocharc|\.c8rc|\.nycrc|\.hintrc"
    r"|appsettings[^/]*|launchSettings)\.json$"
    r"|(^|/)(\.vscode|\.devcontainer|\.zed|\.cursor|tsconfigs?)/[^/]*\.json$"
)
"""`.json` files that their tools read with comments."""
_OTHER_LANGUAGES = """
    Ruby .rb | PHP .php | C .c .h | C++ .cc .cpp .cxx .hpp .hh | C# .cs | Kotlin .kt .kts | Swift .swift |
    Scala .scala | Elixir .ex .exs | Erlang .erl | Lua .lua | Perl .pl .pm | R .r | Julia .jl |
    Dart .dart | Groovy .groovy | Gradle .gradle | Clojure .clj .cljs | Haskell .hs | OCaml .ml | F# .fs |
    Visual Basic .vb | Objective-C .mm | Zig .zig | Nim .nim | Solidity .sol | Zsh .zsh .ksh |
    Fish .fish | PowerShell .ps1 | Batch .bat .cmd | Sass .sass | Stylus .styl | CoffeeScript .coffee |
    HCL .tf .hcl | GraphQL .graphql .gql | Protocol Buffers .proto | Prisma .prisma | Nix .nix |
    Make .mk |
    a template language .j2 .jinja .jinja2 .njk .twig .liquid .ejs .erb .hbs .handlebars |
    a template language .mustache .pug .haml .jsp .cshtml .razor .heex |
    MDX .mdx
"""
_UNCHECKED = {
    suffix: entry.partition(" .")[0].strip()
    for entry in _OTHER_LANGUAGES.split("|")
    for suffix in entry.split()
    if suffix[0] == "."
}
"""Suffix → language, of code that no parser here judges."""
_UNCHECKED_NAMES = re.compile(
    r"^((gnu)?makefile|(docker|container)file(\..*)?|jenkinsfile|justfile|vagrantfile|rakefile|gemfile)$"
)
_OTHER_SHELL = re.compile(r"#!.*\b(zsh|fish|t?csh|m?ksh|nu|pwsh)\b")
"""The first line of a script that only looks like one of bash by its name."""
_SHEBANGS = (("python", "Python"), ("node", "JavaScript"), ("bash", "Shell"), ("/dash", "Shell"), ("/sh", "Shell"))
CHECKED_SUFFIXES = tuple(suffix for suffix, language in _BY_SUFFIX.items() if language != "Shell")
"""Suffixes of the languages that have a parser here."""


def language_of(path: str, text: str = "") -> str | None:
    """Returns the language whose parser judges this file; None when there is none for it."""
    lowered = path.lower()
    name = basename(lowered)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if _WITH_COMMENTS.search(lowered):
        return "JSON with comments"
    suffix = splitext(name)[1]
    if suffix:
        language = _BY_SUFFIX.get(suffix)
        return None if language == "Shell" and _OTHER_SHELL.match(text) else language
    return _by_first_line(text) if not _UNCHECKED_NAMES.match(name) else None


def unchecked_language(path: str, text: str = "") -> str | None:
    """The language of a file of code that no parser here judges; None for prose, data, pictures and what is judged."""
    name = basename(path.lower())
    if _UNCHECKED_NAMES.match(name):
        return "Dockerfile" if name.startswith(("docker", "container")) else "Make" if "make" in name else name
    if language_of(path, text) is not None:
        return None
    suffix = splitext(name)[1]
    if text.startswith("#!") and (not suffix or suffix in _SHELLS):
        return shebang if (shebang := re.split(r"[/\s]", text.split("\n", 1)[0].strip())[-1]) else None
    return _UNCHECKED.get(suffix)


def _by_first_line(text: str) -> str | None:
    first = text.split("\n", 1)[0] if text.startswith("#!") else ""
    return next((language for word, language in _SHEBANGS if word in first), None)


_NEWEST = 40
"""Minor versions of Python 3 that are looked at."""
_STATED = re.compile(r"requires-python\s+([^;]+)")


class Target(Value):
    """What the code must parse for."""

    python: tuple[int, int] | None = None
    """The oldest Python the project promises; None when it says nothing: then the running one decides."""


ANY = Target()
"""The project says nothing."""


def target_of(runtime: str) -> Target:
    """The target in the facts that a project scan gives on the runtime, such as `requires-python >=3.11; node >=20`."""
    stated = _STATED.search(runtime)
    return Target(python=oldest_python(stated[1])) if stated else ANY


def oldest_python(specifier: str) -> tuple[int, int] | None:
    """The oldest Python 3 that a `requires-python` allows; None when it names no lower bound or cannot be read."""
    try:
        allowed = SpecifierSet(specifier.strip())
    except InvalidSpecifier:  # an invalid specifier restricts nothing
        return None
    patches = sorted({0, 99, *(int(patch) for patch in re.findall(r"3\.\d+\.(\d+)", specifier)[:8])})
    oldest = next(
        (minor for minor in range(_NEWEST) if any(allowed.contains(f"3.{minor}.{patch}") for patch in patches)), None
    )
    return None if oldest in {None, 0} else (3, oldest or 0)


_MARKS = re.compile(
    r"\{\{(?:(?!\{\{|\}\}).)*\}\}|\{%(?:(?!\{%|%\}).)*%\}|\{#(?![{\w])(?:(?!\{#|#\}).)*#\}|<%(?:(?!<%|%>).)*%>"
    r"|<\?(?!xml).*?(\?>|\Z)",
    re.DOTALL,
)
_STEERING = re.compile(
    r"\{%|<%(?![=-])|<\?(?!xml)|\{\{[~-]?\s*([#/^>]|(if|range|end|else|each|with|block|define|template|unless)\b)"
)
"""What may open an element in one branch and close it in another, or bring a part from elsewhere."""
_STATEMENT = re.compile(
    r"\{%[-+~]?\s*(end)?(if|for|block|macro)\b(?:(?!%\}).)*%\}|\{%[-+~]?\s*(raw|verbatim|comment)\b", re.DOTALL
)
_RAW = re.compile(r"(\{#(?![{\w]).*?#\})|\{%[-+~]?\s*(raw|verbatim|comment)\b.*?\{%[-+~]?\s*end\2\b.*?%\}", re.DOTALL)

_RAW_END = re.compile(r"#\}|\{%[-+~]?\s*end(raw|verbatim|comment)\b")


def is_steered(text: str) -> bool:
    """Returns whether a template's conditions and loops stand in the text: its elements cannot be matched then."""
    return _STEERING.search(text) is not None


def has_template(text: str) -> bool:
    """Returns whether anything of a template stands in the text."""
    return _MARKS.search(text) is not None


def is_generated(path: str, text: str) -> bool:
    """Returns whether a tool fills this file in before anybody parses it: it is in a folder of templates and is one."""
    *folders, name = path.lower().split("/")
    # cookiecutter and its like put marks into the paths as well.
    among = "{{" in path or any("template" in folder or folder == "skeleton" for folder in folders) or ".tmpl" in name
    return among and has_template(text)


def masked(text: str) -> str:
    """Returns the text with letters where a template puts something in; every other character keeps its place."""
    return _MARKS.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)


def blank(match: re.Match[str]) -> str:
    """Blanks in the room of a match, its line ends kept."""
    return re.sub(r"[^\n]", " ", match[0])


def open_blocks(text: str) -> list[Problem]:
    """`{% if %}`, `{% for %}`, `{% block %}` and `{% macro %}` without their end, or an end without its begin."""
    waiting: list[tuple[str, int]] = []
    held = _RAW.sub(blank, text) if _RAW_END.search(text) else text
    for match in _STATEMENT.finditer(held):
        name = match[2]
        if name is None:
            return []  # text that is not read as a template, and whose end is not there
        if not match[1]:
            waiting.append((name, match.start()))
        elif waiting and waiting[-1][0] == name:
            waiting.pop()
        else:
            opened = waiting.pop() if waiting else None
            return [_unmatched(text, opened) if opened else _closes_nothing(text, name, match.start())]
    return [_unmatched(text, waiting[-1])] if waiting else []


def _unmatched(text: str, opened: tuple[str, int]) -> Problem:
    line, column = place(text, opened[1])
    message = f"`{{% {opened[0]} %}}` of line {line} has no `{{% end{opened[0]} %}}`"
    return Problem(line=line, column=column, message=message, fix=f"End it with `{{% end{opened[0]} %}}`.")


def _closes_nothing(text: str, name: str, at: int) -> Problem:
    line, column = place(text, at)
    return Problem(line=line, column=column, message=f"`{{% end{name} %}}` ends nothing")


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
        fix = problem.fix if problem.fix else "Write the whole file again, so that it parses."
        found.append(major(code, f"{language} does not parse: {what}", where=place, fix=fix))
    return found


def is_well_formed(path: str, text: str) -> bool:
    """Returns whether `check_syntax` finds nothing, at less cost: it does not say what that would find."""
    language = None if path.lower().endswith(".sql") else language_of(path, text)
    if language not in ("JavaScript", "TypeScript") or is_generated(path, text):
        return not check_syntax(path, text)
    from orchestrator.code.javascript import tree

    return not slips(text, language) and not tree.is_broken(text, grammar_of(path))


def _problems(language: str, path: str, text: str, target: Target) -> list[Problem]:
    """By the parser of the language; each is imported when it is needed first."""
    match language:
        case "Python":
            from orchestrator.code.python import source

            return source.problems(text, path, target.python)
        case "JavaScript" | "TypeScript":
            from orchestrator.code.javascript import tree

            return tree.problems(text, grammar_of(path))
        case "Go" | "Java" | "Rust":
            return problems(text, language.lower())
        case "YAML" | "TOML" | "XML" | "INI":
            from orchestrator.code import data

            return data.FORMS[language](text)
        case "CSS" | "SCSS" | "Less":
            from orchestrator.code import markup

            return markup.css_problems(text, language)
        case "HTML" | "Vue" | "Svelte" | "Astro":
            from orchestrator.code import markup

            return markup.problems(text, language)
        case "Shell":  # bash itself judges it where runs happen: checks/shell_syntax
            return []
        case _:
            from orchestrator.code import data

            return data.JSON_FORMS[language](text)


_NOT_IN_GRAMMAR = re.compile(r"\btry!(?=\s*\()|~")
"""Rust of older editions, and a sign that only macros take: other signs stand for them when the grammar is asked."""
_LISTS = frozenset({"literal_value", "argument_list", "parameter_list", "type_parameter_list"})


def problems(text: str, grammar: str) -> list[Problem]:
    """At most three, the first place first; [] when the text parses by `grammar`. Never raises."""
    tree = parse(grammar, text)
    if tree.has_error and grammar == "rust":
        tree = parse(grammar, _NOT_IN_GRAMMAR.sub(lambda match: "+" if match[0] == "~" else "tri+", text))
    said = code_grammar.problems(tree, text)
    return said or (_last_commas(tree, text)[:MOST] if grammar == "go" else [])


def _last_commas(tree: Node, text: str) -> list[Problem]:
    """Go: a list whose closing bracket stands in a line of its own ends with a comma, which the grammar lets pass."""
    lines = text.split("\n")
    found = []
    for node in below(tree):
        if node.type not in _LISTS or node.child_count < 3:
            continue
        parts = [child for child in node.children if child.type != "comment"]
        last, closing = parts[-2], parts[-1]
        if last.type not in {",", "(", "{", "["} and last.end_point.row < closing.start_point.row:
            line = last.end_point.row + 1
            message = "`,` is missing before the line end"
            found.append(
                Problem(line=line, column=len(lines[line - 1].rstrip()) + 1, message=message, fix="Add the comma.")
            )
    return found
