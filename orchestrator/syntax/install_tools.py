"""What is known about package managers: their verbs, their options with values, and what kind of names they take."""

from collections.abc import Mapping

_ADD = frozenset({"install", "i", "add"})
_SYSTEM = frozenset({"install", "reinstall", "build-dep", "groupinstall", "localinstall"})
VERBS: Mapping[str, frozenset[str]] = {
    "pip": frozenset({"install", "download", "wheel"}),
    "easy_install": frozenset({""}),
    "pipx": frozenset({"install", "run", "inject", "upgrade", "runpip"}),
    "pipenv": frozenset({"install", "upgrade"}),
    "poetry": frozenset({"add"}),
    "pdm": frozenset({"add", "install"}),
    "rye": frozenset({"add", "install"}),
    "hatch": frozenset(),
    "pixi": frozenset({"add", "install", "exec", "x"}),
    "uv": frozenset({"add", "sync"}),
    "pip-sync": frozenset({""}),
    "uvx": frozenset({""}),
    "conda": frozenset({"install", "create", "update", "upgrade"}),
    "npm": _ADD
    | {"in", "ins", "inst", "insta", "instal", "isnt", "isnta", "isntal", "isntall", "install-test", "it", "link", "ln"}
    | {"exec", "x", "init", "create", "innit", "ci"},
    "pnpm": _ADD | {"dlx", "create", "link", "ln", "update", "up", "upgrade"},
    "yarn": frozenset({"add", "dlx", "create", "link", "up", "upgrade", "import", "install"}),
    "bun": _ADD | {"a", "x", "create", "link"},
    "deno": _ADD | {"run", "x", "cache", "serve"},
    "npx": frozenset({""}),
    "volta": frozenset({"install", "pin"}),
    "bower": frozenset({"install"}),
    "lerna": frozenset({"add"}),
    "ng": frozenset({"add"}),
    "expo": frozenset({"install"}),
    "cargo": frozenset({"add", "install", "binstall"}),
    "go": frozenset({"get", "install", "run"}),
    "gem": frozenset({"install", "i", "exec"}),
    "bundle": frozenset({"add"}),
    "composer": frozenset({"require", "req", "create-project"}),
    "dotnet": frozenset({"package", "install"}),
    "add-apt-repository": frozenset({""}),
    "nuget": frozenset({"install"}),
    "luarocks": frozenset({"install"}),
    "cpan": frozenset({""}),
    "cpanm": frozenset({""}),
    "pecl": frozenset({"install"}),
    "pear": frozenset({"install"}),
    "opam": frozenset({"install"}),
    "cabal": frozenset({"install"}),
    "mix": frozenset({"archive.install", "escript.install"}),
    "apt": _SYSTEM,
    "apk": frozenset({"add"}),
    "brew": frozenset({"install", "reinstall", "upgrade", "tap"}),
    "dnf": _SYSTEM,
    "zypper": frozenset({"install", "in"}),
    "pacman": frozenset(),
    "nix-env": frozenset(),
    "nix-shell": frozenset(),
    "port": frozenset({"install"}),
    "snap": frozenset({"install"}),
    "flatpak": frozenset({"install"}),
    "choco": _SYSTEM,
    "winget": frozenset({"install", "add"}),
    "scoop": frozenset({"install"}),
    "asdf": frozenset({"plugin-add", "add"}),
}
"""Tool → the verbs that bring packages; "" where the tool has none and names come at once."""
SAME_AS: Mapping[str, str] = {
    "mamba": "conda", "micromamba": "conda", "pnpx": "npx", "bunx": "npx", "apt-get": "apt", "aptitude": "apt",
    "yum": "dnf", "microdnf": "dnf", "tdnf": "dnf", "gem3": "gem", "bundler": "bundle", "yay": "pacman",
    "paru": "pacman", "chocolatey": "choco", "yarnpkg": "yarn", "composer.phar": "composer", "npm.cmd": "npm",
    "npx.cmd": "npx", "pip.exe": "pip", "pip3.exe": "pip", "npm.exe": "npm", "uv.exe": "uv",
}  # fmt: skip
NPM_LIKE = frozenset({"npm", "pnpm", "yarn", "bun", "deno", "npx", "volta", "bower", "lerna", "ng", "expo"})
PYTHON_LIKE = frozenset(
    {"pip", "easy_install", "pipx", "pipenv", "poetry", "pdm", "rye", "hatch", "uv", "uvx", "pip-sync", "conda", "pixi"}
)
VERSION_SIGNS: Mapping[str, str] = {
    "cargo": "@", "go": "@", "composer": ":@=", "apt": "=/", "apk": "=<>~@", "gem": ":", "dotnet": "", "brew": "",
}  # fmt: skip
"""Where a name ends for tools that are neither npm's kind nor Python's; "=@" for those not listed."""
ONE_ONLY = frozenset(
    {("npx", ""), ("npm", "exec"), ("npm", "x"), ("pnpm", "dlx"), ("yarn", "dlx"), ("bun", "x"), ("uvx", "")}
    | {("pipx", "run"), ("pixi", "exec"), ("pixi", "x"), ("deno", "x"), ("gem", "exec"), ("yarn", "import")}
)
"""Where only the first word is a package and the rest is what it is run with."""
FAR_ONLY = frozenset({("deno", "run"), ("deno", "cache"), ("deno", "serve"), ("go", "run")})
"""Where the first word is mostly a file of the project, and a package only by its look."""
NO_NAMES = frozenset({("npm", "ci"), ("uv", "sync"), ("yarn", "install"), ("pdm", "install")})
"""What takes no names, but says where packages come from."""
FILES_ONLY = frozenset({"pip-sync"})
"""Tools whose words are requirement files."""
RUNNERS = frozenset(
    {("poetry", "run"), ("uv", "run"), ("pipenv", "run"), ("hatch", "run"), ("pdm", "run"), ("rye", "run")}
    | {("conda", "run"), ("pnpm", "exec"), ("yarn", "exec"), ("pixi", "run"), ("bundle", "exec"), ("volta", "run")}
)
"""Where the rest is a command of its own."""
GROUPS: Mapping[tuple[str, str], int] = {
    ("yarn", "global"): 0, ("yarn", "workspace"): 1, ("yarn", "workspaces"): 1, ("yarn", "plugin"): 0,
    ("composer", "global"): 0,
    ("pixi", "global"): 0, ("poetry", "self"): 0, ("pdm", "self"): 0, ("hatch", "env"): 0, ("dotnet", "tool"): 0,
    ("dotnet", "add"): 0, ("asdf", "plugin"): 0, ("uv", "tool"): 0, ("volta", "tool"): 0,
}  # fmt: skip
"""Words before the verb → how many words belong to them."""
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
PACKAGE_OPTIONS: Mapping[bool, frozenset[str]] = {
    True: frozenset({"-p", "--package"}),
    False: frozenset({"--with", "-w", "--from", "--spec", "--with-editable", "--preinstall"}),
}
"""Options whose value is a package: of what is like npm (True), and of Python's tools."""
_PYTHON_VALUED = frozenset(
    {"-r", "--requirement", "--requirements", "-c", "--constraint", "-e", "--editable", "-t", "--target", "-i", "-f"}
    | {"--index-url", "--extra-index-url", "--find-links", "--prefix", "--root", "--python", "--python-version", "-p"}
    | {"--platform", "--src", "--implementation", "--abi", "--group", "-G", "--cache-dir", "--log", "--proxy"}
    | {"--timeout", "--retries", "--cert", "--trusted-host", "--progress-bar", "--upgrade-strategy", "--no-binary"}
    | {"--only-binary", "--index", "--dest", "--wheel-dir", "--directory", "--project", "--extra", "--suffix", "-C"}
    | {"--default-index", "--source", "--with-requirements", "--env-file", "--config-settings", "--global-option"}
    | {"--only-group", "--no-group", "--cwd", "--no-binary-package", "--exclude-newer", "--index-strategy", "--env"}
    | {"--link-mode", "--color", "--config-file", "--only", "--without", "--use-feature", "--exists-action", "--report"}
)
_PIP_VALUED = _PYTHON_VALUED | {"-w", "-d"}
_CONDA_VALUED = frozenset({"-n", "--name", "-c", "--channel", "-p", "--prefix", "--file", "--solver"})
_NPM_VALUED = frozenset(
    {"--prefix", "--registry", "-w", "--workspace", "--cache", "-C", "--dir", "--filter", "-F", "--cwd", "--tag"}
    | {"--userconfig", "--globalconfig", "--loglevel", "-c", "--call", "--config", "--omit", "--include", "--root"}
)
_OTHER_VALUED = frozenset(
    {"-t", "--virtual", "-X", "--repository", "-o", "--option", "-v", "--version", "-s", "--source", "-F", "--features"}
    | {"-p", "--package", "--git", "--path", "--branch", "--tag", "--rev", "--registry", "--index", "--manifest-path"}
    | {"-C", "-d", "--working-dir", "--root", "--target", "--rename", "--group", "-g", "--require", "--config-file"}
    | {"--target-release", "--vers", "--profile", "-modfile", "-tags", "-ldflags", "--require-version"}
)
_APK_VALUED = frozenset({"-t", "--virtual", "-X", "--repository", "-p", "--root"})
_APT_VALUED = frozenset({"-t", "--target-release", "-o", "--option", "-c", "--config-file"})
_NONE: frozenset[str] = frozenset()
_OWN_VALUED: Mapping[str, frozenset[str]] = {
    "pip": _PIP_VALUED, "conda": _CONDA_VALUED, "apk": _APK_VALUED, "apt": _APT_VALUED, "brew": _NONE, "dnf": _NONE,
    "pacman": _NONE,
    "nix-shell": _NONE,
    "go": frozenset({"-modfile", "-tags", "-ldflags", "-C", "-o"}), "snap": frozenset({"--channel"}),
}  # fmt: skip


def _valued(tool: str) -> frozenset[str]:
    if tool in _OWN_VALUED:
        return _OWN_VALUED[tool]
    return _NPM_VALUED if tool in NPM_LIKE else _PYTHON_VALUED if tool in PYTHON_LIKE else _OTHER_VALUED


VALUED: Mapping[str, frozenset[str]] = {tool: _valued(tool) for tool in VERBS}
"""Tool → options that take the word behind them."""

SYSTEM = frozenset({"apt", "apk", "dnf", "zypper", "pacman", "brew", "choco"})
"""Tools that bring programs and libraries of a machine, of no language's own registry."""
MANAGERS = frozenset(
    {"uv", "poetry", "pdm", "pipenv", "hatch", "rye", "pip-tools", "virtualenv", "build", "twine"}
    | {"pnpm", "yarn", "corepack"}
)
"""Packages that manage or publish packages, and that no program imports."""
INSTALLERS = frozenset({"pip", "setuptools", "wheel", "npm"})
"""What brings packages may renew itself, whatever else is allowed."""
