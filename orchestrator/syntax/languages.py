"""Which language a file is in, by its name and its first line; and which of them have a parser here."""

import re
from posixpath import basename, splitext

from orchestrator.syntax import javascript_tree

_SHELLS = (".sh", ".bash", ".bats")
_BY_SUFFIX = {
    **dict.fromkeys((".py", ".pyi"), "Python"),
    **dict.fromkeys(javascript_tree.JAVASCRIPT, "JavaScript"),
    **dict.fromkeys(javascript_tree.TYPESCRIPT, "TypeScript"),
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
_UNCHECKED = {
    ".rb": "Ruby",
    ".php": "PHP",
    **dict.fromkeys((".c", ".h"), "C"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), "C++"),
    ".cs": "C#",
    **dict.fromkeys((".kt", ".kts"), "Kotlin"),
    ".swift": "Swift",
    ".scala": "Scala",
    **dict.fromkeys((".ex", ".exs"), "Elixir"),
    ".erl": "Erlang",
    ".lua": "Lua",
    **dict.fromkeys((".pl", ".pm"), "Perl"),
    ".r": "R",
    ".jl": "Julia",
    ".dart": "Dart",
    ".groovy": "Groovy",
    ".gradle": "Gradle",
    **dict.fromkeys((".clj", ".cljs"), "Clojure"),
    ".hs": "Haskell",
    ".ml": "OCaml",
    ".fs": "F#",
    ".vb": "Visual Basic",
    ".mm": "Objective-C",
    ".zig": "Zig",
    ".nim": "Nim",
    ".sol": "Solidity",
    **dict.fromkeys((".zsh", ".ksh"), "Zsh"),
    ".fish": "Fish",
    ".ps1": "PowerShell",
    **dict.fromkeys((".bat", ".cmd"), "Batch"),
    ".sass": "Sass",
    ".styl": "Stylus",
    ".coffee": "CoffeeScript",
    **dict.fromkeys((".tf", ".hcl"), "HCL"),
    **dict.fromkeys((".graphql", ".gql"), "GraphQL"),
    ".proto": "Protocol Buffers",
    ".prisma": "Prisma",
    ".nix": "Nix",
    ".mk": "Make",
    **dict.fromkeys((".j2", ".jinja", ".jinja2", ".njk", ".twig", ".liquid"), "a template language"),
    **dict.fromkeys((".ejs", ".erb", ".hbs", ".handlebars", ".mustache", ".pug", ".haml"), "a template language"),
    **dict.fromkeys((".jsp", ".cshtml", ".razor", ".heex"), "a template language"),
    ".mdx": "MDX",
}
_UNCHECKED_NAMES = re.compile(
    r"^((gnu)?makefile|(docker|container)file(\..*)?|jenkinsfile|justfile|vagrantfile|rakefile|gemfile)$"
)
_OTHER_SHELL = re.compile(r"#!.*\b(zsh|fish|t?csh|m?ksh|nu|pwsh)\b")
"""The first line of a script that only looks like one of bash by its name."""
_SHEBANGS = (("python", "Python"), ("node", "JavaScript"), ("bash", "Shell"), ("/dash", "Shell"), ("/sh", "Shell"))
CHECKED_SUFFIXES = tuple(suffix for suffix, language in _BY_SUFFIX.items() if language != "Shell")
"""Suffixes of the languages that have a parser here."""


def language_of(path: str, text: str = "") -> str | None:
    """The language whose parser judges this file; None when there is none for it."""
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
