"""What is known about package managers: their verbs, their options with values, and what may stand before them."""

from collections.abc import Mapping

_ADD = frozenset({"install", "i", "add"})
VERBS: Mapping[str, frozenset[str]] = {
    "pip": frozenset({"install", "download", "wheel"}),
    "easy_install": frozenset({""}),
    "pipx": frozenset({"install", "run", "inject", "upgrade"}),
    "pipenv": frozenset({"install", "upgrade"}),
    "poetry": frozenset({"add"}),
    "pdm": frozenset({"add"}),
    "rye": frozenset({"add", "install"}),
    "hatch": frozenset(),
    "uv": frozenset({"add"}),
    "uvx": frozenset({""}),
    "conda": frozenset({"install", "create", "update", "upgrade"}),
    "npm": _ADD
    | {"in", "ins", "inst", "insta", "instal", "isnt", "isnta", "isntal", "isntall", "install-test", "it", "link", "ln"}
    | {"exec", "x", "init", "create", "innit"},
    "pnpm": _ADD | {"dlx", "create", "link", "ln", "update", "up", "upgrade"},
    "yarn": frozenset({"add", "dlx", "create", "link", "up", "upgrade"}),
    "bun": _ADD | {"a", "x", "create", "link"},
    "deno": _ADD,
    "npx": frozenset({""}),
}
"""Tool → the verbs that bring packages; "" where the tool has none and names come at once."""
NPM_LIKE = frozenset({"npm", "pnpm", "yarn", "bun", "deno", "npx"})
ONE_ONLY = frozenset(
    {("npx", ""), ("npm", "exec"), ("npm", "x"), ("pnpm", "dlx"), ("yarn", "dlx"), ("bun", "x"), ("uvx", "")}
    | {("pipx", "run")}
)
"""Where only the first word is a package and the rest is what it is run with."""
RUNNERS = frozenset(
    {("poetry", "run"), ("uv", "run"), ("pipenv", "run"), ("hatch", "run"), ("pdm", "run"), ("rye", "run")}
    | {("conda", "run"), ("pnpm", "exec"), ("yarn", "exec")}
)
"""Where the rest is a command of its own."""
BINARIES: Mapping[str, str] = {
    "tsc": "typescript",
    "ng": "@angular/cli",
    "nest": "@nestjs/cli",
    "babel": "@babel/cli",
    "sequelize": "sequelize-cli",
    "vue": "@vue/cli",
    "playwright": "@playwright/test",
    "swc": "@swc/cli",
    "biome": "@biomejs/biome",
}
"""Commands that a package of another name brings."""
PACKAGE_OPTIONS = {True: frozenset({"-p", "--package"}), False: frozenset({"--with", "--from", "--spec"})}
"""Options whose value is a package: of what is like npm (True), and of Python's tools."""
OTHER_SOURCES = frozenset({"-i", "--index-url", "--extra-index-url", "--index", "-f", "--find-links", "--registry"})
_PYTHON_VALUED = frozenset(
    {"-r", "--requirement", "--requirements", "-c", "--constraint", "-e", "--editable", "-t", "--target", "-i", "-f"}
    | {"--index-url", "--extra-index-url", "--find-links", "--prefix", "--root", "--python", "--python-version", "-p"}
    | {"--platform", "--src", "--implementation", "--abi", "--group", "-G", "--cache-dir", "--log", "--proxy", "-d"}
    | {"--timeout", "--retries", "--cert", "--trusted-host", "--progress-bar", "--upgrade-strategy", "--no-binary"}
    | {"--only-binary", "--index", "--dest", "-w", "--wheel-dir", "--directory", "--project", "--extra", "--suffix"}
)
_CONDA_VALUED = frozenset({"-n", "--name", "-c", "--channel", "-p", "--prefix", "--file", "--solver"})
_NPM_VALUED = frozenset(
    {"--prefix", "--registry", "-w", "--workspace", "--cache", "-C", "--dir", "--filter", "-F", "--cwd", "--tag"}
    | {"--userconfig", "--loglevel", "-c", "--call"}
)
VALUED: Mapping[str, frozenset[str]] = {
    tool: _NPM_VALUED if tool in NPM_LIKE else _CONDA_VALUED if tool == "conda" else _PYTHON_VALUED for tool in VERBS
}
"""Tool → options that take the word behind them."""
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "su"})
INTERPRETERS = frozenset({"node", "nodejs"})
INTERPRETER_VALUED = frozenset({"-W", "-X", "-r", "--require", "--import"})
KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "RUN"})
WRAPPERS: Mapping[str, frozenset[str]] = {
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-T", "--user", "--group"}),
    "doas": frozenset({"-u", "-C"}),
    "env": frozenset({"-u", "-C", "--unset", "--chdir"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset({"-c", "-n"}),
    "timeout": frozenset({"-k", "-s", "--kill-after", "--signal"}),
    "xargs": frozenset({"-n", "-I", "-P", "-L", "-d", "-E", "-s", "-a"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "exec": frozenset({"-a"}),
    "corepack": frozenset(),
    "busybox": frozenset(),
    **dict.fromkeys(("time", "command", "builtin", "nohup", "setsid", "chronic"), frozenset()),
}
"""What runs the command behind it → its options with values."""
