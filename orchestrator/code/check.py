"""One door to every parser: is this file well-formed in its own language?

Also what all languages share: the language of a file by its name and first line, what models leave in files (fences,
merge markers, diffs, comments in place of code), and the Python that a project promises.
"""

import re
from collections.abc import Iterator
from posixpath import basename, splitext

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from orchestrator.code import data
from orchestrator.code import grammar as code_grammar
from orchestrator.code.grammar import MOST, Node, Problem, below, parse, problem_at
from orchestrator.code.javascript import tree
from orchestrator.code.javascript.tree import grammar_of
from orchestrator.code.python import source
from orchestrator.code.sql.check import Project, check_sql, check_tables
from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.paths import is_test_file
from orchestrator.core.value import Value

# Only at the very begin or end: a fence inside may be text of the file (a docstring, a README in a string).
_FENCE = re.compile(r"\A\s*(```|~~~)[\w+#.-]*[ \t]*(?=\n)|(?<=\n)(```|~~~)[ \t]*\s*\Z")
_OURS, _MIDDLE, _THEIRS = (re.compile(form, re.M) for form in (r"^<{7} ", r"^={7}$", r"^>{7} "))
# The heads of git, of `diff -u` and of a hunk alone.
_DIFF = re.compile(r"\A\s*(diff --git a/|--- \S[^\n]*\n\+\+\+ \S|@@ -\d+(,\d+)? \+\d+(,\d+)? @@)")
# A comment first, and three `\n` in the one line: one alone is often a string.
_SPELLED_OUT = re.compile(r"\A\s*(#|//|/\*|<|;).*?\\n.*?\\n.*?\\n")
# Markup and CSS: `\n` next to a tag or brace, where no string can stand.
_BETWEEN_TAGS = re.compile(r"[>}]\s*\\n|\\n\s*[<{]")
_FEWEST = 3
_QUOTES = re.compile(r"[\u201c\u201d\u2018\u2019\u201e]")
# What an answer that went through HTML holds in place of `<`, `>`, `&` and quotes.
_ENTITY = re.compile(r"&(lt|gt|amp|quot|#39|apos);")
_PLUSES = 4
"""Fewest lines that make a diff out of leading plus signs."""


def slips(text: str, language: str) -> list[Problem]:
    """What stands in the text and is code in no language; [] when there is nothing of the kind."""
    return [problem for problem in (*_fences(text), *_merge(text), *_diff(text), *_line_ends(text, language))][:1]


_TEXT_LIKE = frozenset({".md", ".mdx", ".txt", ".rst", ".html", ".htm", ".sql", ".ini", ".cfg", ".conf", ".env"})
_CALL_TAIL = re.compile(
    r"(?:^|\n)[ \t]*</?(?:content|parameter|invoke|function_calls?|tool_call|file_text)\b[^>\n]*>\s*"
    r"(?:</?(?:parameter|invoke|function_calls?|tool_call)\b[^`]{0,400})?\s*\Z"
)
_CALL_MARK = re.compile(r"<parameter name=|</parameter>|</invoke>|</function_calls?>|</tool_call>")


def _left_over(text: str) -> Iterator[Problem]:
    """Yields what no text ends with or consists of: line ends that are spelled out, the tail of a model's tool call."""
    spelled = text.count("\\n")
    if spelled > 1 and "\n" not in text.strip() and (text.rstrip().endswith("\\n") or "\\n\\n" in text):
        fix = "Write real line ends: in JSON one backslash before the n."
        yield problem_at(
            text, text.index("\\n"), "the file is one line in which line ends are spelled out as `\\n`", fix
        )
    tail = _CALL_TAIL.search(text, max(0, len(text) - 600))
    if tail is not None and _CALL_MARK.search(tail[0]):
        yield problem_at(
            text, tail.start() + 1, "the file ends with the tail of a tool call", "Give the file's text alone."
        )


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
        fix = "Give the file's text alone, without the fence."
        yield problem_at(text, at, "a Markdown code fence stands in the file", fix)


def _merge(text: str) -> Iterator[Problem]:
    # One search behind the other: one expression for all three takes the square of a hostile text.
    found = _OURS.search(text) if "<<<<<<< " in text else None
    middle = _MIDDLE.search(text, found.end()) if found else None
    if found and middle and _THEIRS.search(text, middle.end()):
        fix = "Settle the conflict and leave the markers out."
        yield problem_at(text, found.start(), "a merge conflict is left in the file", fix)


def _diff(text: str) -> Iterator[Problem]:
    added = text.count("\n+") + text.startswith("+")
    if _DIFF.match(text) or (added >= _PLUSES and added * 2 >= sum(1 for line in text.split("\n") if line.strip())):
        line = next((number for number, line in enumerate(text.split("\n"), 1) if line.strip()), 1)
        fix = "Give the whole file as it is to be, without + and - before its lines."
        yield Problem(line=line, column=1, message="this is a diff, not the file", fix=fix)


def _line_ends(text: str, language: str) -> Iterator[Problem]:
    if language.startswith("JSON") or "\n" in text.strip():
        return
    markup = language in {"HTML", "XML"}
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
    **dict.fromkeys((".jsonl", ".ndjson"), "JSON lines"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "HTML"),
    ".css": "CSS",
    **dict.fromkeys((".yaml", ".yml"), "YAML"),
    ".toml": "TOML",
    **dict.fromkeys(_SHELLS, "Shell"),
    ".go": "Go",
    ".java": "Java",
    ".rs": "Rust",
    **dict.fromkeys((".xml", ".svg", ".xsd", ".xsl", ".csproj", ".fxml"), "XML"),
}
_BY_NAME = {
    **dict.fromkeys((".bashrc", ".bash_profile", ".profile"), "Shell"),
    **dict.fromkeys(("pipfile", "poetry.lock", "cargo.lock", "uv.lock", "pdm.lock"), "TOML"),
    **dict.fromkeys((".babelrc", ".eslintrc", ".jshintrc", ".swcrc"), "JSON with comments"),
    **dict.fromkeys((".prettierrc", ".stylelintrc", ".clang-format", ".clang-tidy"), "YAML"),
    **dict.fromkeys(("setup.cfg", "tox.ini", "pytest.ini", "mypy.ini", "alembic.ini"), "INI"),
    **dict.fromkeys((".flake8", ".coveragerc", ".pylintrc"), "INI"),
}
_WITH_COMMENTS = re.compile(
    r"(^|/)(([^/]*[.-])?(ts|js)config[^/]*|\.?devcontainer|tslint|\.?(eslintrc|swcrc|oxlintrc|markdownlint|jshintrc|babelrc)|(babel|jest)\.config|asv\.conf"
    r"|turbo|biome|rome|deno|angular|nx|project|typedoc|tsdoc|tsup|api-extractor[^/]*|jsdoc|pyrightconfig|cspell|renovate"
    r"|language-configuration|\.renovaterc|\.luarc|wrangler|nodemon|\.mocharc|\.c8rc|\.nycrc|\.hintrc"
    r"|appsettings[^/]*|launchSettings)\.json$"
    r"|(^|/)(\.vscode|\.devcontainer|\.codesandbox|\.zed|\.cursor|tsconfigs?)/[^/]*\.json$"
)
"""`.json` files that their tools read with comments."""
_OTHER_LANGUAGES = """
    Ruby .rb | PHP .php | C .c .h | C++ .cc .cpp .cxx .hpp .hh | C# .cs | Kotlin .kt .kts | Swift .swift |
    Scala .scala | Elixir .ex .exs | Erlang .erl | Lua .lua | Perl .pl .pm | R .r | Julia .jl |
    Dart .dart | Groovy .groovy | Gradle .gradle | Clojure .clj .cljs | Haskell .hs | OCaml .ml | F# .fs |
    Visual Basic .vb | Objective-C .mm | Zig .zig | Nim .nim | Solidity .sol | Zsh .zsh .ksh |
    Fish .fish | PowerShell .ps1 | Batch .bat .cmd | Sass .sass | Stylus .styl | CoffeeScript .coffee |
    HCL .tf .hcl | GraphQL .graphql .gql | Protocol Buffers .proto | Prisma .prisma | Nix .nix |
    Make .mk | Vue .vue | Svelte .svelte | Astro .astro | SCSS .scss | Less .less |
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
# Files that are known by their names, whatever stands in them.
_UNCHECKED_NAMES = re.compile(
    r"^((gnu)?makefile|(docker|container)file(\..*)?|jenkinsfile|justfile|vagrantfile|rakefile|gemfile)$"
)
# bash would refuse what these shells read.
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


_TEXTS = frozenset(
    {
        "JSON",
        "JSON with comments",
        "JSON lines",
        "HTML",
        "CSS",
        "YAML",
        "TOML",
        "XML",
        "INI",
        "a template language",
        "MDX",
    }
)
"""Languages of data, of texts for people and of locales."""


def is_program(path: str, text: str = "") -> bool:
    """Returns whether this is a program's source: what stands in it runs, and is read as code."""
    language = language_of(path, text) or unchecked_language(path, text)
    return language is not None and language not in _TEXTS


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


# Jinja and its like, ERB and its like, PHP; `{#` before a word is Svelte, `<?xml` opens XML. Each mark ends before the
# next one begins, so that a text full of openings costs no more than its length.
_MARKS = re.compile(
    r"\{\{(?:(?!\{\{|\}\}).)*\}\}|\{%(?:(?!\{%|%\}).)*%\}|\{#(?![{\w])(?:(?!\{#|#\}).)*#\}|<%(?:(?!<%|%>).)*%>"
    r"|<\?(?!xml).*?(\?>|\Z)",
    re.DOTALL,
)


def is_generated(path: str, text: str) -> bool:
    """Whether a tool fills this file in before anybody parses it: it lies among templates and is one."""
    *folders, name = path.lower().split("/")
    # cookiecutter and its like put marks into the paths as well.
    among = "{{" in path or any("template" in folder or folder == "skeleton" for folder in folders) or ".tmpl" in name
    return among and _MARKS.search(text) is not None


def check_syntax(
    path: str, text: str, *, code: str = "content.syntax", target: Target = ANY, project: Project | None = None
) -> list[Finding]:
    """Major findings, of `code`, when `text` does not parse in the language of `path`: at most three, the cause first.

    Never raises. A file in a language without a parser gives []: `unchecked_language` names it. `target` says which
    Python the project promises, `project` which database's SQL it speaks; of SQL there may be more findings, and minor
    ones.
    """
    if splitext(path.lower())[1] in _TEXT_LIKE or basename(path).startswith(".env"):
        slip = next(_left_over(text), None)
        if slip is not None:
            place = Where(file=path, line=slip.line, column=slip.column)
            return [major(code, slip.message, where=place, fix=slip.fix or "")]
    if path.lower().endswith(".sql"):
        if (deep := code_grammar.too_deep(text)) is not None:
            place = Where(file=path, line=deep.line, column=deep.column)
            return [major(code, f"SQL: {deep.message}", where=place, fix=deep.fix)]
        return check_sql(text, path, code=code, project=project)
    language = language_of(path, text)
    if language is None:
        return []
    said = slips(text, language) or _problems(language, path, text, target)
    if said and language != "YAML" and is_generated(path, text):
        said = slips(text, language)
    lines = text.split("\n")
    found = []
    for problem in said:
        line = lines[problem.line - 1] if problem.line and problem.line <= len(lines) else ""
        what = problem.message + hint(line, language)
        place = Where(file=path, line=problem.line, column=problem.column)
        fix = problem.fix if problem.fix else "Write the whole file again, so that it parses."
        found.append(major(code, f"{language} does not parse: {what}", where=place, fix=fix))
    if not found and language in {"Python", "JavaScript", "TypeScript"} and not is_test_file(path):
        return check_tables(text, path, code=code)
    return found


def is_well_formed(path: str, text: str) -> bool:
    """Whether `check_syntax` finds nothing, at less cost: what it would find is not worked out."""
    language = None if path.lower().endswith(".sql") else language_of(path, text)
    if language not in ("JavaScript", "TypeScript") or is_generated(path, text):
        return not check_syntax(path, text)
    return not slips(text, language) and not tree.is_broken(text, grammar_of(path))


_BY_GRAMMAR = frozenset({"JavaScript", "TypeScript", "Go", "Java", "Rust"})


def _problems(language: str, path: str, text: str, target: Target) -> list[Problem]:
    """Returns what the parser of the language says."""
    if language in _BY_GRAMMAR and (deep := code_grammar.too_deep(text)) is not None:
        return [deep]
    match language:
        case "Python":
            return source.problems(text, path, target.python)
        case "JavaScript" | "TypeScript":
            return tree.problems(text, grammar_of(path))
        case "Go" | "Java" | "Rust":
            return _grammar_problems(text, language.lower())
        case "HTML" | "CSS":  # browsers forgive, and the reviewer reads them
            return []
        case "Shell":  # bash itself judges it where runs happen: checks/shell_syntax
            return []
        case _:
            return data.FORMS[language](text)


# All are right Rust, and the grammar has none: see below how they are written for it.
_NOT_IN_GRAMMAR = re.compile(r"\btry!(?=\s*\()|~|\bpub(?= type \w+;)")
"""Rust of older editions, a sign that only macros take, and types from elsewhere that are public."""
_WRITTEN_SO = {"try!": "tri+", "~": "+", "pub": "   "}
_LISTS = frozenset({"literal_value", "argument_list", "parameter_list", "type_parameter_list"})


def _grammar_problems(text: str, grammar: str) -> list[Problem]:
    """At most three, the first place first; [] when the text parses by `grammar`. Never raises."""
    root = parse(grammar, text)
    if root.has_error and grammar == "rust":
        root = parse(grammar, _NOT_IN_GRAMMAR.sub(lambda match: _WRITTEN_SO[match[0]], text))
    said = code_grammar.problems(root, text)
    return said or (_last_commas(root, text)[:MOST] if grammar == "go" else [])


def _last_commas(root: Node, text: str) -> list[Problem]:
    """Go: a list whose closing bracket stands in a line of its own ends with a comma, which the grammar lets pass."""
    lines = text.split("\n")
    found = []
    for node in below(root):
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


# ---- comments in place of code: "rest of the code unchanged", "... existing code ..."

THING = (
    r"(?:code|file|functions?|class|classes|methods?|module|implementations?|imports?|logic|routes?|styles?|html|css"
    r"|jsx"
    r"|script|tests?|handlers?|components?|fields?|config|configuration|definitions?|page|schema|template|content"
    r"|document"
    r"|body|markup|layout|migrations?|queries|statements?|settings|sections?|properties|endpoints?|exports?|models?"
    r"|views?"
    r"|services?|dependencies|variables|constants|types|tables|columns|rules|dockerfile|program|elements?|steps|jobs)"
)
OLD = r"(?:existing|previous|original|remaining|unchanged|omitted|other)"
_SAME = (
    r"(?:unchanged|omitted"
    r"|(?:stays?|remains?|is|are) (?:exactly )?(?:the same|unchanged|as (?:is|before|it (?:is|was))))"
)
_LEFT_OUT = r"(?:existing|previous|other|remaining|rest|same|unchanged|omitted|truncated)"
_DOTS = r"(?:\.\.\.(?!\w+[\])}])|…)"
"""`{...rest}` and `[...rest]` are code, in a comment too."""
_NO_VERB = (
    r"[ ,/&]+(?!(?:is|are|was|were|be|may|might|can|could|must|should|will|would|has|have|had|does?|did|needs?"
    r"|uses?|pass|gets?|comes?|wins?|raises?|returns?|calls?|that|which|who|because|when|if|by|with|to)\b)\w+"
)
"""A further word of a noun."""
# Each form is the whole comment, or has a mark that people do not write about code that is there: measured on the
# comments of some hundred projects.
_OMISSION = re.compile(
    rf"^\W*(?:(?:keep|add|include|insert|and|continue with) )?(?:the )?(?:rest|remainder) of (?:\w+ ){{0,3}}{THING}"
    rf"(?: (?:{_SAME}|as (?:before|above)|goes here|here))?\W*$"
    rf"|^\W*(?:the )?(?:rest|everything else|all (?:the )?(?:rest|other \w+)) {_SAME}"
    # Behind dots a noun without a verb: "... other callers may pass None" and "the rest is computed" are sentences.
    rf"|{_DOTS}\s*(?:the )?{_LEFT_OUT}(?:{_NO_VERB}){{0,2}}\W*$"
    rf"|{_DOTS}\s*(?:the )?{_LEFT_OUT}(?:{_NO_VERB}){{0,4}} {THING}(?:{_NO_VERB}){{0,3}}\W*$"
    rf"|{_DOTS}\s*(?:the )?{_LEFT_OUT}(?:{_NO_VERB}){{0,4}} (?:{_SAME}|as (?:before|above|is)|goes here)\W*$"
    rf"|{_DOTS}\s*(?:the )?{_LEFT_OUT}(?: \w+)? here\W*$"
    rf"|^\W*{_DOTS}\s*(?:the )?{_LEFT_OUT}\b[^.…]{{0,80}}(?:\.\.\.|…)\W*$"
    rf"|^\W*(?:keep )?(?:the |all )?{OLD} (?:\w+ )?{THING}"
    rf"\s*(?:\.\.\.|…|as is|here|{_SAME}|as (?:before|above))\W*$"
    r"|^\W*(?:code|implementation|methods|functions|imports|routes) (?:unchanged|omitted|continues)\W*$"
    r"|\b(?:omitted|truncated|shortened|abbreviated|skipped) for brevity\b"
    r"|^\W*same (?:implementation|code|logic) as before\W*$|^\W*\(?(?:code|file) continues\)?\W*$"
    rf"|^\W*[(\[<{{]\W*(?:(?:the )?(?:rest|remainder) of|{OLD}) (?:\w+ ){{0,2}}{THING}\W*[)\]>}}]\W*$"
    r"|^\W*(?:-{2,}|={2,}|\.{3}|…)\s*unchanged\b\W*$|^\W*no changes? (?:(?:to|in) the rest\b|below\b)",
    re.IGNORECASE,
)


def stands_for_code(comment: str) -> bool:
    """Returns whether a comment, without its marks, says that code was left out where it stands."""
    return _OMISSION.search(comment) is not None
