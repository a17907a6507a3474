"""Which packages the plain shell commands of a text install: no shell is interpreted, what is dressed up is unclear."""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from posixpath import basename
from typing import NamedTuple

from packaging.utils import canonicalize_name

INSTALLERS = frozenset(
    {"pip", "setuptools", "wheel", "npm", "uv", "poetry", "pdm", "pipenv", "pipx", "hatch", "rye", "pip-tools"}
    | {"virtualenv", "build", "twine", "pnpm", "yarn", "corepack"}
)
"""What manages or builds packages may be installed whatever else is allowed: no program imports it."""
_PYTHON: Mapping[str, str] = {
    "pip": "install", "easy_install": "", "pipx": "install inject", "pipenv": "install", "poetry": "add", "pdm": "add",
    "rye": "add", "uv": "add", "uv pip": "install", "uv tool": "install", "conda": "install create", "pixi": "add",
}  # fmt: skip
_NODE: Mapping[str, str] = {
    "npm": "install i add", "pnpm": "add install i", "yarn": "add", "bun": "add install i a", "deno": "add install",
}  # fmt: skip
_OTHER: Mapping[str, str] = {
    "cargo": "add install", "go": "get install", "gem": "install i", "bundle": "add", "composer": "require",
    "luarocks": "install", "cpanm": "",
}  # fmt: skip
_SYSTEM: Mapping[str, str] = {
    "apt": "install", "apk": "add", "dnf": "install", "zypper": "install in", "brew": "install", "choco": "install",
    "snap": "install", "winget": "install", "scoop": "install", "port": "install",
}  # fmt: skip
_VERBS = {tool: frozenset(verbs.split(" ")) for tool, verbs in {**_PYTHON, **_NODE, **_OTHER, **_SYSTEM}.items()}
_SAME = {
    "mamba": "conda", "micromamba": "conda", "apt-get": "apt", "aptitude": "apt", "yum": "dnf", "microdnf": "dnf",
    "bundler": "bundle",
}  # fmt: skip
_GROUPS = {("uv", "pip"): "uv pip", ("uv", "tool"): "uv tool", ("yarn", "global"): "yarn", ("poetry", "self"): "poetry"}
_RUNNERS = frozenset(
    {("npx", ""), ("pnpx", ""), ("bunx", ""), ("uvx", ""), ("uv", "run"), ("uv tool", "run"), ("poetry", "run")}
    | {("pdm", "run"), ("rye", "run"), ("pipenv", "run"), ("pipx", "run"), ("hatch", "run"), ("pixi", "run")}
    | {("conda", "run"), ("bundle", "exec"), ("npm", "exec"), ("npm", "x"), ("pnpm", "exec"), ("pnpm", "dlx")}
    | {("yarn", "exec"), ("yarn", "run"), ("yarn", "dlx"), ("bun", "x"), ("bun", "run")}
)
"""What stands behind them is a command of its own; options up to it are the runner's."""
_BROUGHT = {"npx": {"-p", "--package"}, "npm": {"-p", "--package"}, "uvx": {"--with", "--from"}, "pipx": {"--spec"}}
_VALUED = frozenset(
    {"-r", "--requirement", "--requirements", "-c", "--constraint", "-t", "--target", "-i", "-f", "--find-links", "-p"}
    | {"--prefix", "--root", "--python", "--python-version", "--platform", "--src", "--abi", "--group", "-G", "-n"}
    | {"--cache-dir", "--log", "--proxy", "--timeout", "--retries", "--cert", "--trusted-host", "--progress-bar", "-v"}
    | {"--upgrade-strategy", "--no-binary", "--only-binary", "--directory", "--project", "--extra", "-C", "--source"}
    | {"--config-settings", "--only-group", "--no-group", "--exclude-newer", "--index-strategy", "--link-mode", "-F"}
    | {"--env-file", "--package", "--name", "--channel", "--file", "--solver", "-o", "--option", "--virtual", "-w"}
    | {"--repository", "-X", "--version", "--features", "--git", "--path", "--branch", "--tag", "--rev", "--registry"}
    | {"--target-release", "--filter", "--workspace", "--cwd", "--dir", "--with-requirements", "--report", "-d", "-m"}
    | {
        "--manifest-path",
        "--profile",
        "--resolution",
        "--torch-backend",
        "--dest",
        "--user-agent",
        "--call",
        "--suffix",
    }
)
"""Options that take the word behind them, of any tool."""
_FLAGS = re.compile(
    r"--(no-.+|save(-(dev|exact|prod|optional|peer|bundle))?|global|dev|production|force|legacy-.+|ignore-.+|silent"
    r"|quiet|verbose|yes|prefer-.+|frozen-.+|exact|peer|optional|workspace-root|workspaces|recursive|offline|audit|fund"
    r"|package-lock(-only)?|dry-run|json|if-present|strict-.+|immutable|latest|unsafe-perm|progress|foreground-scripts)"
)
"""Long options of npm's kind without a value; any other takes the next word, as npm itself reads it."""
_INDEXES = frozenset({"--index-url", "--extra-index-url", "--index", "--default-index", "-i", "-f", "--find-links"})
_EDITABLE = frozenset({"-e", "--editable"})
_WRAPPERS: Mapping[str, frozenset[str]] = {
    "sudo": frozenset({"-u", "-g"}), "env": frozenset({"-u", "-C"}), "nice": frozenset({"-n"}), "doas": frozenset(),
    "timeout": frozenset({"-k", "-s"}), "xargs": frozenset({"-n", "-I", "-P", "-L", "-d"}), "time": frozenset(),
    "exec": frozenset({"-a"}), "nohup": frozenset(), "command": frozenset(), "builtin": frozenset(), "if": frozenset(),
    "call": frozenset(), "then": frozenset(), "else": frozenset(), "elif": frozenset(), "while": frozenset(),
    "until": frozenset(), "do": frozenset(), "!": frozenset(), "{": frozenset(), "setarch": frozenset(),
}  # fmt: skip
"""What may stand before a command → its options with values."""
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "su"})
_PLAIN = re.compile(r"@?[A-Za-z0-9_][\w.+/-]*")
_ADDRESS = re.compile(r"(git\+)?\w+://|git\+|git@|github:")
_ARCHIVE = re.compile(r"\.(whl|tgz|tar\.\w+|zip|deb|rpm|gem|vsix|egg)$")
_DEPTH = 8
_PIECE = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*+)\"|\\\r?\n|\\(?P<escaped>.)"
    r"|[$<>]\((?P<inner>(?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+)\)|`(?P<ticks>[^`]*)`"
    r"|(?P<variable>\$\{[^{}\n]*+\}|\$[\w@*#?!$-]?)|(?P<bare>[^\s'\"\\;&|()<>`$]+)|(?P<stray>['\"`\\])",
    re.DOTALL,
)
_INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_SIGN = re.compile(r"&&|\|\||\|&|;;|[;&|\n()]")
_REDIRECTION = re.compile(r"\d*(?:&>>?|>>|>\||>&|<&|<<<|<>|>|<)(?!\()")
_HERE = re.compile(r"<<-?[ \t]*(['\"]?)(?P<end>\w+)\1")
_LONE = re.compile(r"^[ \t]*(\w+)[ \t]*$", re.MULTILINE)
"""Lines of one word: where a here-document may end."""


class Installs(NamedTuple):
    """What the commands of a text install, each name once and in order."""

    packages: tuple[str, ...] = ()
    """Normalised names of packages of programming languages; addresses and foreign indexes as they stand."""
    system: tuple[str, ...] = ()
    """Packages of an operating system."""
    unclear: tuple[str, ...] = ()
    """Commands that install what cannot be known from their words."""


class _Word(NamedTuple):
    text: str
    plain: bool = True
    """Whether no shell would make something else of it."""


class _Command(NamedTuple):
    words: tuple[_Word, ...]
    piped: bool = False
    body: str = ""
    """The here-document that it reads."""


def read_installs(text: str) -> Installs:
    """Returns what the shell commands in `text` install: an installing verb of a known tool and plain names behind it.

    Never raises. Options belong to the tool in front of them. Comments and here-documents are no commands.
    """
    reader = _Reader()
    reader.read(text, 0)
    return Installs(tuple(reader.packages), tuple(reader.system), tuple(reader.unclear))


class _Reader:
    def __init__(self) -> None:
        self.packages: dict[str, None] = {}
        self.system: dict[str, None] = {}
        self.unclear: dict[str, None] = {}

    def read(self, text: str, depth: int) -> None:
        if depth > _DEPTH:
            return
        before: Sequence[_Word] = ()
        for command in _commands(text, depth):
            words = _unwrapped(command.words)
            if words and basename(words[0].text) in _SHELLS:
                self._shell(command, words, before, depth)
            elif words and words[0].text == "eval":
                self.read(" ".join(word.text for word in words[1:]), depth + 1)
            else:
                self._run(words, shown=command.words, depth=depth)
            before = words

    def _shell(self, command: _Command, words: Sequence[_Word], before: Sequence[_Word], depth: int) -> None:
        given = [two.text for one, two in pairwise(words) if re.fullmatch(r"-\w*c", one.text)]
        self.read(given[0] if given else command.body, depth + 1)
        if command.piped and not given and before and before[0].text in {"curl", "wget"}:
            self._doubt([*before, _Word("|"), *command.words])

    def _run(self, words: Sequence[_Word], *, shown: Sequence[_Word], depth: int) -> None:
        """Reads one command without what was before it; `shown` is the whole of it, for messages."""
        if not words or depth > _DEPTH:
            return
        tool, rest = _tool(words[0]), list(words[1:])
        module = next((at for at, word in enumerate(rest[:4]) if word.text == "-m"), None)
        if module is not None and module + 1 < len(rest) and (not words[0].plain or tool.startswith("py")):
            self._run(rest[module + 1 :], shown=shown, depth=depth + 1)
            return
        known = tool in _VERBS or (tool, "") in _RUNNERS
        if not known:
            if not words[0].plain and rest and tool != "make":
                self._behind_variable(rest, shown, depth)
            return
        verb, rest = _verb(tool, rest)
        if (tool, verb) not in _RUNNERS and (group := _GROUPS.get((tool, verb))):
            tool = group
            verb, rest = _verb(tool, rest)
        elif (tool, verb) == ("yarn", "workspace"):
            verb, rest = _verb(tool, rest[1:])
        if (tool, verb) in _RUNNERS:
            self._runner(tool, rest, shown, depth)
        elif verb in _VERBS.get(tool, ()):
            self._names(tool, rest, shown)

    def _behind_variable(self, rest: Sequence[_Word], shown: Sequence[_Word], depth: int) -> None:
        """`$SUDO apt-get install x` runs what stands behind; `$P install x` may be anything."""
        if _tool(rest[0]) in _VERBS:
            self._run(rest, shown=shown, depth=depth + 1)
        elif rest[0].text in {"install", "add", "i"} and len(rest) > 1 and not rest[1].text.startswith("-"):
            self._doubt(shown)

    def _runner(self, tool: str, rest: Sequence[_Word], shown: Sequence[_Word], depth: int) -> None:
        brings = _BROUGHT.get("uvx" if tool.startswith("uv") else "npx" if tool in {"pnpx", "bunx"} else tool, set())
        at = 0
        while at < len(rest) and rest[at].text.startswith("-") and rest[at].text != "--":
            option, _, value = rest[at].text.partition("=")
            takes = not value and (option in brings or option in _VALUED)
            if option in brings:
                word = _Word(value, rest[at].plain) if value else rest[at + 1] if at + 1 < len(rest) else _Word("")
                for name in word.text.split(","):
                    self._name(
                        "npm" if tool in {"npx", "npm", "pnpx", "bunx"} else "pip", _Word(name, word.plain), shown
                    )
            at += 2 if takes else 1
        at += at < len(rest) and rest[at].text == "--"
        self._run(_unwrapped(rest[at:]), shown=shown, depth=depth + 1)

    def _names(self, tool: str, rest: Sequence[_Word], shown: Sequence[_Word]) -> None:
        at, named, literal = 0, False, False
        while at < len(rest):
            word, option = rest[at], rest[at].text.partition("=")[0]
            literal = literal or word.text == "--"
            if literal or not word.text.startswith("-") or word.text == "-":
                if word.text not in {"--", "-"}:
                    named = True
                    self._name(tool, word, shown)
                at += 1
                continue
            value = _Word(word.text.partition("=")[2], word.plain) if "=" in word.text else None
            takes = value is None and _takes_value(tool, option)
            value = rest[at + 1] if takes and at + 1 < len(rest) else value
            named = named or value is not None
            if value is not None and tool in _PYTHON and tool != "conda":
                self._option(option, value)
            at += 2 if takes else 1
        if not named and shown[0].text == "xargs":
            self._doubt(shown)

    def _option(self, option: str, value: _Word) -> None:
        """Sources that pip gets by options: an index, a requirement elsewhere."""
        if option in _INDEXES and _ADDRESS.match(value.text):
            self.packages[f"{option} {value.text}"] = None
        elif option in _EDITABLE | {"-r", "--requirement"} and _ADDRESS.match(value.text):
            self.packages[value.text] = None

    def _name(self, tool: str, word: _Word, shown: Sequence[_Word]) -> None:
        text = word.text.strip()
        if not text or text.startswith((".", "/", "~", "file:")) or (_ARCHIVE.search(text) and "://" not in text):
            return
        node = tool in _NODE
        if _ADDRESS.search(text) or (node and not text.startswith("@") and re.match(r"[\w.-]+/[\w.-]+(#|$)", text)):
            self.packages[text] = None
            return
        text = re.sub(r"^(.+@)?(npm|jsr):", "", text) if node else text
        name = re.split(r"(?<!^)[@=<>~!:;\[\s^]", text, maxsplit=1)[0]
        if tool in _PYTHON and "/" in name:
            return
        if not _PLAIN.fullmatch(name):
            self._doubt(shown)
        elif tool in _SYSTEM:
            self.system[name] = None
        else:
            self.packages[str(canonicalize_name(name)) if tool in _PYTHON else name.lower() if node else name] = None

    def _doubt(self, words: Sequence[_Word]) -> None:
        self.unclear[" ".join(word.text for word in words)[:160]] = None


def _takes_value(tool: str, option: str) -> bool:
    if option in _VALUED | _INDEXES | _EDITABLE and not (
        tool in _NODE and option in {"-p", "-c", "-f", "-d", "-e", "-i"}
    ):
        return True
    return tool in {"npm", "pnpm"} and option.startswith("--") and not _FLAGS.fullmatch(option)


def _tool(word: _Word) -> str:
    """Returns the tool that a command's first word names: `/usr/bin/pip3.11`, `npm.cmd`, `$(PIP)`, `${NPM:-npm}`."""
    name = basename(word.text.replace("\\", "/")).lower()
    if "$" in name:
        found = re.fullmatch(r"\$[({]?(\w+?)(?:[:?-][^)}]*)?[)}]?", name)
        name = found[1] if found else ""
    name = re.sub(r"\.(exe|cmd|bat|phar)$", "", name)
    name = re.sub(r"^(pip|gem)[\d.]+$", r"\1", name)
    return _SAME.get(name, name)


def _verb(tool: str, rest: Sequence[_Word]) -> tuple[str, list[_Word]]:
    """Returns the first word that is no option's, and what stands behind it; options before it are the tool's."""
    if "" in _VERBS.get(tool, ()) or (tool, "") in _RUNNERS:
        return "", list(rest)
    at = 0
    while at < len(rest) and rest[at].text.startswith(("-", "+")):
        at += 2 if "=" not in rest[at].text and _takes_value(tool, rest[at].text) else 1
    return (rest[at].text, list(rest[at + 1 :])) if at < len(rest) else ("", [])


def _unwrapped(words: Sequence[_Word]) -> list[_Word]:
    """Returns the command without assignments, keywords and programs such as `sudo` and `timeout 60` before it."""
    rest, wrapper = list(words), ""
    while rest:
        text = basename(rest[0].text).lstrip("@")
        if re.match(r"\w+\+?=", text) or (wrapper == "timeout" and re.fullmatch(r"[\d.]+[smhd]?", text)):
            rest.pop(0)
        elif text in _WRAPPERS:
            wrapper = text
            rest.pop(0)
            while rest and rest[0].text.startswith("-"):
                option = rest.pop(0).text
                if wrapper == "command" and option in {"-v", "-V"}:
                    return []
                rest = rest[1:] if option in _WRAPPERS[wrapper] else rest
        else:
            return rest
    return rest


def _commands(text: str, depth: int) -> Iterator[_Command]:
    """Yields the simple commands of a text, and those of its substitutions behind each."""
    text = text.replace("\r\n", "\n")
    words: list[_Word] = []
    inner: list[str] = []
    at, piped, body, skip_word = 0, False, "", False
    ends: dict[str, deque[re.Match[str]]] = {}
    for lone in _LONE.finditer(text) if "<<" in text else ():
        ends.setdefault(lone[1], deque()).append(lone)
    behind: dict[int, int] = {}  # end of a line → end of the here-document that begins there
    while at < len(text):
        if found := _HERE.match(text, at):
            line = end if (end := text.find("\n", at)) >= 0 else len(text)
            lones = ends.get(found["end"], deque())
            while lones and lones[0].start() <= line:
                lones.popleft()
            if lones:
                body, behind[line] = text[line + 1 : lones[0].start()], lones[0].end()
            at = found.end()
        elif text[at] in " \t\r" or text.startswith("\\\n", at):
            at += 2 if text[at] == "\\" else 1
        elif text[at] == "#":
            at = end if (end := text.find("\n", at)) >= 0 else len(text)
        elif found := _REDIRECTION.match(text, at):
            at, skip_word = found.end(), True
        elif found := _SIGN.match(text, at):
            if words or found[0] != "\n":
                yield _Command(tuple(words), piped, body)
                yield from _inner(inner, depth)
                piped = found[0] in {"|", "|&"}
                words, inner, body, skip_word = [], [], "", False
            at = behind.get(at, found.end())
        else:
            word, at = _word(text, at, inner)
            words += [] if skip_word else [word]
            skip_word = False
    yield _Command(tuple(words), piped, body)
    yield from _inner(inner, depth)


def _inner(texts: Sequence[str], depth: int) -> Iterator[_Command]:
    if depth < _DEPTH:
        for text in texts:
            yield from _commands(text, depth + 1)


def _word(text: str, at: int, inner: list[str]) -> tuple[_Word, int]:
    """Returns the word at `at` without its quotes, and where it ends; texts of substitutions go to `inner`."""
    parts: list[str] = []
    plain, start = True, at
    while found := _PIECE.match(text, at):
        kind, piece = found.lastgroup, found[found.lastgroup] if found.lastgroup else ""
        if kind in {"inner", "ticks"}:
            inner.append(piece)
            # `$(PIP)` of a Makefile keeps its name.
            piece = f"$({piece})" if re.fullmatch(r"\w+", piece) else "$(…)"
        elif kind == "double":
            inner += [one or other for one, other in _INNER.findall(piece)]
            piece = piece.replace("\\\n", "")
        plain = (
            plain and kind not in {"inner", "ticks", "variable", "stray"} and not (kind == "double" and "$" in piece)
        )
        parts.append(piece)
        at = found.end()
    return _Word("".join(parts), plain), max(at, start + 1)
