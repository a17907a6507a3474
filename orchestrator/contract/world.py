"""A contract made ready for many look-ups."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from posixpath import basename, dirname, join, normpath, splitext

from pathspec import GitIgnoreSpec

from orchestrator.code.manifests.manifest import read_manifest
from orchestrator.code.manifests.npm import Aliases, aliases, filled, is_import_map, local_modules, names_modules
from orchestrator.code.python.imports import MODULES
from orchestrator.core.contract import ArchitectureContract, InstalledPackages
from orchestrator.core.paths import folders_of, is_manifest, spelling

_PYTHON_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_SCRIPT = re.compile(r"(\.d)?\.([cm]?[jt]sx?|json|vue|svelte|astro)$")
# Bundlers and frameworks whose settings are programs: what aliases they make cannot be read.
_BUILDS = re.compile(
    r"(^|/)((vite|vitest|webpack|rollup|rspack|rsbuild|babel|metro|next|nuxt|craco)\.config\.\w+|\.babelrc)$"
)
"""Programs that may give folders of the project names of their own."""
_CONFIGURES = re.compile(r"(^|/)(ts|js)config[\w.-]*\.json$")
NOTHING_KNOWN = InstalledPackages()
"""No environment: names alone say what a package brings."""
# Sources of extension modules.
_COMPILED = re.compile(r"(\.(f90|rs|c|cc|cpp|cxx|cu)|(^|/)(CMakeLists\.txt|meson\.build))$")
_NOT_BUILT = re.compile(r"(^|/)(tests?|testing|docs?|examples?|samples?|fixtures|benches|benchmarks?)/")
"""Folders whose sources are no part of what a build makes: datasette's `tests/ext.c` excuses no import of datasette."""
_PYTHON_PROJECT = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})


class World:
    """The allowed files and dependencies of one contract as sets, each built once."""

    def __init__(
        self,
        contract: ArchitectureContract,
        texts: Mapping[str, str] | None = None,
        *,
        removed: Iterable[str] = (),
        complete: bool = False,
        installed: InstalledPackages = NOTHING_KNOWN,
    ) -> None:
        """`texts` are those of changed files; `complete` when there are no others; `installed` is the environment.

        A file of `removed` is there no more: another one may have its name in another spelling.
        """
        self.contract = contract
        self.installed = installed
        self.texts, self.complete = texts or {}, complete
        self.story_id = contract.story_id
        self.files = contract.allowed_files.difference(removed)
        self.baseline = frozenset(contract.baseline_files).difference(removed)
        self.dependencies = contract.allowed_dependencies

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """`spelling` of a path → the allowed path; one that was there already goes before a new one."""
        ordered = (*sorted(self.files - self.baseline, reverse=True), *sorted(self.baseline, reverse=True))
        return {spelling(path): path for path in ordered}

    @cached_property
    def folders(self) -> frozenset[str]:
        """Folders that have an allowed file somewhere below."""
        return folders_of(self.files)

    def tests_below(self, folders: Sequence[str]) -> bool:
        """Returns whether every Python test that was there lies below one of `folders`."""
        prefixes = tuple("" if folder in {".", "./"} else f"{folder.rstrip('/')}/" for folder in folders)
        return all(path.startswith(prefixes) for path in self.contract.baseline_files if _PYTHON_TEST.search(path))

    @cached_property
    def python_folders(self) -> frozenset[str]:
        """Folders that hold a Python file somewhere below: packages, also those without `__init__`."""
        return folders_of(path for path in self.files if splitext(path)[1] in MODULES)

    @cached_property
    def python_roots(self) -> tuple[str, ...]:
        """Folders of Python projects inside the repository, with the `/` behind them; "" is the repository itself."""
        homes = {dirname(path) for path in self.baseline if basename(path) in _PYTHON_PROJECT}
        return tuple(sorted(f"{home}/" if home else "" for home in homes))

    @cached_property
    def python_reached(self) -> frozenset[str]:
        """Distributions that the allowed ones require, as far as they are installed."""
        return self.installed.python_reached(self.dependencies)

    @cached_property
    def node_reached(self) -> frozenset[str]:
        """The same for packages of Node."""
        return self.installed.node_reached(self.dependencies)

    @cached_property
    def _python_stems(self) -> frozenset[str]:
        """Every Python module without its suffix, every package as its folder, and each end of these paths."""
        stems = {splitext(path)[0].removesuffix("/__init__") for path in self.files if splitext(path)[1] in MODULES}
        parts = [stem.split("/") for stem in stems]
        return frozenset("/".join(names[start:]) for names in parts for start in range(len(names)))

    def ends_with_module(self, inside: str) -> bool:
        """Returns whether a Python file of the project, wherever it lies, is called so."""
        return inside in self._python_stems

    def is_package(self, folder: str) -> bool:
        """Returns whether a folder of the project is a Python package with an `__init__`."""
        return f"{folder}/__init__.py" in self.files

    def compiles(self, path: str) -> bool:
        """Returns whether a compiler makes modules in the Python project of this file, named by its build alone.

        A module of Cython has its source's name, and stands there as a file.
        """
        return self._python_root(path) in self._compiled

    def _python_root(self, path: str) -> str:
        return max((root for root in self.python_roots if path.startswith(root)), key=len, default="")

    @cached_property
    def _compiled(self) -> frozenset[str]:
        """The Python projects of the repository in which a compiler makes modules: their folders."""
        sources = (path for path in self.files if _COMPILED.search(path) and not _NOT_BUILT.search(path))
        return frozenset(self._python_root(path) for path in sources)

    def makes(self, path: str) -> bool:
        """Whether a build may make a file of this path: git ignores it, or its source has the same name."""
        stem = splitext(path)[0]
        return self._ignored.match_file(path) or self._starts_a_name(stem)

    @cached_property
    def _ignored(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self.contract.ignored)

    @property
    def own_packages(self) -> frozenset[str]:
        """Names of packages that the project was made of when the contract was frozen."""
        return frozenset(name for name in self.contract.local_names if not name.endswith("*"))

    def is_local_module(self, module: str) -> bool:
        """Returns whether a JavaScript module that is named by no path is one of the project's own.

        By the names and aliases that were frozen; or by those that the texts at hand bring, or a folder for bare names,
        where a file is found by them. Where the story brings such a configuration whose text is not at hand, a file
        of the contract that the module's name ends in is enough: the whole story is judged with every text at hand.
        """
        own = self.contract.local_names
        if any(_covers(name, module) for name in own) or any(_covers(name, module) for name in self._named_here):
            return True
        roots = {*self.contract.module_roots, *(root for found in self._aliases for root in found.roots)}
        paths = [normpath(join(root, module)) for root in roots]
        paths += [path for found in self._aliases for path in filled(found.patterns, module)]
        return any(self._is_module(path) for path in paths) or self._may_be_local(module)

    @cached_property
    def _aliases(self) -> tuple[Aliases, ...]:
        return tuple(aliases(path, text) for path, text in self.texts.items() if names_modules(path))

    @cached_property
    def _named_here(self) -> frozenset[str]:
        """Names of the project's packages, and keys of import maps, that the texts at hand bring."""
        new = [path for path in self.texts if path in self.files - self.baseline and is_manifest(path)]
        maps = [path for path in self.texts if is_import_map(path)]
        own = {name for path in new for name in read_manifest(path, self.texts[path]).local}
        return frozenset(own | {name for path in maps for name in local_modules(path, self.texts[path])})

    @cached_property
    def _unseen(self) -> frozenset[str]:
        """Configurations that the story brings and whose texts are not at hand."""
        declared = frozenset() if self.complete else frozenset(self.contract.declared_files)
        return declared - self.texts.keys()

    def _may_be_local(self, module: str) -> bool:
        """Returns whether a configuration that is not at hand, or a program, may make this a module of the project."""
        if module[:1] in "@~$" and any(_BUILDS.search(path) for path in self.files) and self._ends_stem(module[1:]):
            return True
        own = [basename(dirname(path)) for path in self._unseen if basename(path) == "package.json"]
        scope = 2 if module.startswith("@") else 1
        if module.split("/")[scope - 1 : scope] and module.split("/")[scope - 1] in own:
            return True
        if not any(_CONFIGURES.search(path) for path in self._unseen):
            return False
        rest = module.split("/")[1:] if module[:1] in "@~$" else module.split("/")
        return bool(rest) and self._ends_stem("/".join(rest))

    def _ends_stem(self, name: str) -> bool:
        """Returns whether a file of the project is called so, folders before it left out."""
        wanted = f"/{_SCRIPT.sub('', name)}"
        return any(f"/{stem}".endswith(wanted) for stem in self._modules)

    def is_script_module(self, path: str) -> bool:
        """Whether a path, with or without its suffix, is a file of the project, a folder, or stands for such a file."""
        return self._is_module(path) or path in self.folders or self._starts_a_name(path)

    def _starts_a_name(self, path: str) -> bool:
        """`./style` of `style.css`: a bundler may complete any name."""
        return basename(path) in self._beginnings.get(dirname(path), ())

    @cached_property
    def _beginnings(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for path in self.files:
            parts = basename(path).split(".")
            found.setdefault(dirname(path), set()).update(".".join(parts[:end]) for end in range(1, len(parts)))
        return {folder: frozenset(names) for folder, names in found.items()}

    def _is_module(self, path: str) -> bool:
        return path in self.files or _SCRIPT.sub("", path) in self._modules

    @cached_property
    def _modules(self) -> frozenset[str]:
        """Every file of JavaScript and its like without its suffix, and the folder of each index."""
        stems = {_SCRIPT.sub("", path) for path in self.files if _SCRIPT.search(path)}
        return frozenset(stems | {stem.removesuffix("/index") for stem in stems})


def _covers(name: str, module: str) -> bool:
    return module.startswith(name[:-1]) if name.endswith("*") else module == name or module.startswith(f"{name}/")
