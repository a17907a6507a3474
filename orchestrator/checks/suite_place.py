"""Where a story's tests belong: the test file that covers its subject, else one named as its neighbours. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import takewhile
from posixpath import basename, dirname, join, splitext
from typing import NamedTuple

from orchestrator.core.paths import is_manifest, is_test_file, unsafe_reason

_FAMILIES = (frozenset({".py"}), frozenset({".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"}))
_JS = _FAMILIES[1]
# As pytest and unittest, node, jest, mocha and vitest, Go and RSpec name their files: what stands around the subject.
_NAMED = re.compile(
    r"^(?P<before>test[_-])?(?P<subject>.*?)(?P<behind>(?:[._-](?:test|tests|spec|unit|e2e-spec))?)(?P<end>\.\w+)$",
    re.I,
)
_HELPERS = re.compile(
    r"^(conftest|__init__|_?(test_?)?(helpers?|utils?|support|fixtures?|common|setup|factories|harness|mocks?))\.\w+$",
    re.I,
)
_OF_TYPES = re.compile(r"[._-](?:test|spec)-d\.[cm]?tsx?$", re.I)
"""Tests of types, as vitest and tsd name them: they are compiled and never run."""
_WHOLE_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "src", "lib", "unit", "python"})
"""Folders that say nothing of a subject."""
_PACKAGE_FILES = frozenset({"__init__", "index", "mod", "main", "__main__"})
_PYTHON_TEST = re.compile(r"^(tests?(_[\w.-]*)?|[\w.-]+_tests?)\.py$")
_NODE_TEST = re.compile(
    r"(^|/)([\w.-]+[._-](test|spec)|test(-[\w.-]+)?|__tests__/([\w.-]+/)*[\w.-]+|tests?/([\w.-]+/)*[\w.-]+)"
    r"\.[cm]?[jt]sx?$"
)
"""By their names as node and the others look for them, or of any name where jest and mocha look for tests."""
_NOT_COLLECTED = frozenset({"build", "dist", "node_modules", "venv", "cvs", "_darcs", "{arch}"})
_QUOTED = re.compile(r"`([^`\s]+)`")
_A_TEST = re.compile(r"^\s*(?:async\s+)?def test|^\s*(?:it|test|describe)(?:\.\w+)*\(", re.MULTILINE)
_NO_NAMES: Mapping[str, Sequence[str]] = {}
_OF_THE_WHOLE = frozenset({"e2e", "integration", "functional", "acceptance", "perf", "typing"})
"""Folders of tests that are not of one module."""
_COVERS = 50
"""Score from which a test file is the one that covers a source."""
MOST_HELPERS = 4
_USED, _MOST_USED = 5, 60
"""What a test that uses an exported name scores, and all of them together."""
_SHORT = 3
"""Names of so few letters may be anybody's."""
_TOLD, _MOST_TOLD = 4, 12
"""What each word of a test's name scores that the story says as well, and all of them together."""


class Place(NamedTuple):
    """Where the tests of a story go."""

    file: str
    """Path of the test file; "" where nothing can be said."""
    there: bool
    """Whether it is there already, to be extended."""
    near: tuple[str, ...] = ()
    """Existing tests nearest to the story's files, the nearest first, then the helpers that they use."""


class _Test(NamedTuple):
    path: str
    before: str
    subject: str
    behind: str
    end: str


def tests_of(files: Iterable[str], sources: Sequence[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the test files in the language of the sources; one named like a helper only where its text has tests."""
    family = _family(sources)
    inside = (path for path in files if family and splitext(path)[1].lower() in family)
    return tuple(path for path in inside if _is_test(path) and _holds_tests(path, texts))


def place_of(
    story_id: str,
    sources: Sequence[str],
    files: Collection[str],
    texts: Mapping[str, str],
    exports: Mapping[str, Sequence[str]] = _NO_NAMES,
    planned: str = "",
    story: str = "",
) -> Place:
    """Returns the place for tests of the `sources`, the story's files in their order, most telling first.

    A test file that is there and that the plan's words for the tests (`planned`) name goes first, the first of several;
    then one in backticks that is not there. `texts` are those of test files, as far as they are known: beside the names
    it counts which of them import a source and use what it exports (`exports`), and say words of the `story`.
    """
    family = _family(sources)
    own = [path for path in sources if splitext(path)[1].lower() in family and not is_test_file(path)]
    if not own:
        return Place("", there=False)
    tests = [_parsed(path) for path in sorted(tests_of(files, own, texts))]
    wanted = (path for path in _QUOTED.findall(planned) if splitext(path)[1].lower() in family and path not in files)
    wanted_new = next((path for path in wanted if _is_place(path)), "")
    if not tests and wanted_new:
        return Place(wanted_new, there=False)
    if not tests:
        return Place(test_file_of(story_id, own[:1]) if family in _FAMILIES else "", there=False)
    named = [(at, test.path) for test in tests if (at := _first_mention(test.path, planned)) >= 0]
    if named:
        path = min(named)[1]
        return Place(path, there=True, near=(path, *_helpers(path, files, texts)))
    if wanted_new:
        nearest = max(tests, key=lambda test: _common(dirname(test.path), dirname(wanted_new)))
        return Place(wanted_new, there=False, near=(nearest.path, *_helpers(wanted_new, files, texts)))
    modules = {path for path in files if splitext(path)[1].lower() in family and not is_test_file(path)} | {*own}
    said = frozenset(_words(f"{story} {planned}").split("_"))
    ranked = sorted(_ranked(own, tests, modules, texts, exports, said), key=lambda one: (-one[0], one[1], one[2].path))
    near = [*dict.fromkeys(test.path for _, _, test in ranked[:3])]
    score, _, best = ranked[0]
    if score >= _COVERS:
        return Place(best.path, there=True, near=(best.path, *_helpers(best.path, files, texts)))
    subject = next((path for path in own if _stem(path) not in _PACKAGE_FILES), own[0])
    new = _beside(subject, tests, modules)
    if new in modules or not _is_test(new):
        return Place(best.path, there=True, near=(best.path, *_helpers(best.path, files, texts)))
    return Place(new, there=new in files, near=(*near[:1], *_helpers(new, files, texts)))


def _is_place(path: str) -> bool:
    """Returns whether a suite would be taken under a new path: a plan may also quote a pattern, or tools' files."""
    return (
        _is_test(path)
        and is_suite(path, any_language=not _same(splitext(path)[1]))
        and not (unsafe_reason(path) or is_passed_over(path))
    )


def _first_mention(path: str, text: str) -> int:
    found = re.search(rf"(?<![\w./-]){re.escape(path)}(?!\w)", text)
    return found.start() if found else -1


def is_suite(path: str, *, any_language: bool = False) -> bool:
    """Returns whether a file is named like tests that can be checked and run here, or like tests of any language."""
    known = _PYTHON_TEST.match(basename(path)) or _NODE_TEST.search(path)
    return bool(known or (any_language and is_test_file(path)))


def is_passed_over(path: str) -> bool:
    """Returns whether the runner that a file is for looks for no tests in its folders."""
    folders = path.lower().split("/")[:-1]
    if path.endswith(".py"):
        return any(name.startswith(".") or name in _NOT_COLLECTED for name in folders)  # pytest's own `norecursedirs`
    return "node_modules" in folders  # all that the runners of JavaScript have in common: `examples/.test/` is searched


def beside(path: str, story_id: str) -> str:
    """Returns a name for a file of new tests beside one that is there."""
    test = _parsed(path)
    return join(dirname(path), f"{test.before}{test.subject}_{_identifier(story_id)}{test.behind}{test.end}")


def _family(sources: Sequence[str]) -> frozenset[str]:
    ends = [splitext(path)[1].lower() for path in sources if not is_test_file(path) and not is_manifest(path)]
    found = (family for end in ends for family in _FAMILIES if end in family)
    return next(found, next((frozenset({end}) for end in ends if end in {".go", ".rb"}), frozenset()))


def _is_test(path: str) -> bool:
    name = basename(path)
    if {"node_modules", "fixtures", "__fixtures__", "__mocks__"} & {*path.split("/")} or name == "conftest.py":
        return False
    if _OF_TYPES.search(name):
        return False
    if "/" not in path and name.startswith("test."):
        return True
    if not is_test_file(path):
        return False
    match = _NAMED.match(name)
    named = match is not None and bool(match["before"] or match["behind"])
    if path.endswith(".py"):
        return named or name in {"test.py", "tests.py"}
    return named or not {"test", "tests", "__tests__", "spec"}.isdisjoint(path.split("/")[:-1])


def _holds_tests(path: str, texts: Mapping[str, str]) -> bool:
    return not _HELPERS.match(basename(path)) or bool(_A_TEST.search(texts.get(path, "")))


def _parsed(path: str) -> _Test:
    match = _NAMED.match(basename(path))
    assert match is not None  # every name with a suffix matches
    return _Test(path, match["before"] or "", match["subject"], match["behind"] or "", match["end"])


def _stem(path: str) -> str:
    return splitext(basename(path))[0]


@lru_cache(maxsize=8192)
def _words(text: str) -> str:
    """Returns `http_client` for HttpClient, httpClient, http-client and _http_client."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return "_".join(re.findall(r"[a-z0-9]+", parted.lower()))


def _folders(path: str) -> list[str]:
    return [_words(part) for part in dirname(path).split("/") if part and part.lower() not in _WHOLE_FOLDERS]


class _Source:
    """A source as tests may name and import it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folders = _folders(path)
        self.stem = _stem(path)
        self.is_package = self.stem in _PACKAGE_FILES
        self.subject = (self.folders[-1] if self.folders else "") if self.is_package else _words(self.stem)

    @cached_property
    def names(self) -> frozenset[str]:
        """Its subject, alone and behind the names of its folders."""
        return frozenset("_".join([*self.folders[at:], self.subject]) for at in range(len(self.folders) + 1))

    @cached_property
    def imported_as(self) -> frozenset[str]:
        """Dotted names under which Python imports it; paths without suffix under which JavaScript does."""
        if not self.path.endswith(".py"):
            return frozenset({_without_suffix(self.path), *([dirname(self.path)] if self.stem == "index" else [])})
        parts = splitext(self.path)[0].split("/")
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        roots = [at for at, part in enumerate(parts) if part in {"src", "lib", "python"}]
        return frozenset(".".join(parts[at:]) for at in {0, *(at + 1 for at in roots)} if parts[at:])

    def named_by(self, test: _Test, taken: Collection[str]) -> int:
        """Returns how well a test's name fits, up to 100; `taken` are the subjects of all sources."""
        subject, told = self.subject, _words(test.subject)
        if not subject or not told:
            return 0
        if told in self.names:
            return 100 if not self.is_package else 80
        if told.rstrip("s") == subject.rstrip("s"):
            return 85
        if told.startswith(f"{subject}_") or (len(told) > _SHORT and subject.startswith(told) and told not in taken):
            return 55
        if told.endswith(f"_{subject}"):
            return 40
        return 50 if (self.folders and told == self.folders[-1]) or subject in _inside(dirname(test.path)) else 0


@lru_cache(maxsize=1024)
def _inside(folder: str) -> frozenset[str]:
    """Returns what the folders of a test name."""
    return frozenset(_words(_parsed(f"{part}.x").subject) for part in folder.split("/") if part)


_source = lru_cache(maxsize=8192)(_Source)
"""Each story of a sprint asks for the same of each module of its project."""


def _ranked(
    sources: Sequence[str],
    tests: Sequence[_Test],
    modules: Collection[str],
    texts: Mapping[str, str],
    exports: Mapping[str, Sequence[str]],
    said: Collection[str],
) -> Iterable[tuple[float, int, _Test]]:
    """Returns score, place of the source, test for each pair."""
    own = [_source(path) for path in sources]
    project = [_source(path) for path in modules]
    taken = {source.subject for source in project}
    imports = {test.path: _imports(test.path, texts[test.path]) for test in tests if test.path in texts}
    words = {path: frozenset(re.findall(r"\w+", text)) for path, text in texts.items() if path in imports}
    importable = frozenset(name for source in project for name in source.imported_as)
    for rank, source in enumerate(own):
        names = frozenset(name for name in exports.get(source.path, ()) if len(name) > _SHORT)
        for test in tests:
            score = float(source.named_by(test, taken))
            if test.path in imports:
                score += _imported(source, test.path, imports[test.path], importable)
                if imports[test.path]:
                    score += min(_MOST_USED, _USED * len(names & words[test.path]))
            if score:
                told = {word for word in _words(test.subject).split("_") if len(word) > _SHORT and word in said}
                score += min(_MOST_TOLD, _TOLD * len(told - {*source.subject.split("_")}))
                there = {part.lower() for part in dirname(test.path).split("/")}
                same = [part for part in _folders(test.path) if part in source.folders]
                score += 2 * min(len(same), 4)
                score += 6 * (dirname(test.path) in {dirname(source.path), join(dirname(source.path), "__tests__")})
                # Tests of the whole and of speed are not where one function's tests belong.
                score -= 12 * bool(there & _OF_THE_WHOLE)
                score -= 30 * ("bench" in basename(test.path))
                score -= 30 * (source.is_package and len(own) > 1)
            yield score, rank, test


_PY_IMPORT = re.compile(
    r"^\s*(?:from\s+(?P<module>\.*[\w.]*)\s+import\s+(?P<names>\([^)]*\)|[^\n#]*)|import\s+(?P<plain>[\w., ]+))", re.M
)
_JS_IMPORT = re.compile(r"(?:from\s*|import\s*\(?\s*|require\(\s*)['\"]([^'\"\n]+)['\"]")


def _imports(path: str, text: str) -> frozenset[str]:
    """Returns dotted names that a Python test imports, or paths without suffix that a JavaScript test does."""
    if not path.endswith(".py"):
        found = _JS_IMPORT.findall(text)
        return frozenset(
            _without_suffix(_joined(dirname(path), one)) for one in found if one.startswith((".", "@/", "~/"))
        )
    names: set[str] = set()
    for match in _PY_IMPORT.finditer(text):
        if match["plain"]:
            names |= {part.split(" as ")[0].strip() for part in match["plain"].split(",")}
            continue
        module = match["module"].lstrip(".")
        parts = (part.split(" as ")[0].strip("() \n\t") for part in match["names"].split(","))
        names |= {module, *(f"{module}.{part}".strip(".") for part in parts if part)}
    return frozenset(filter(None, names))


def _joined(folder: str, path: str) -> str:
    parts: list[str] = [] if path.startswith(("@/", "~/")) else folder.split("/")
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in {".", "@", "~"}:
            parts.append(part)
    return "/".join(filter(None, parts))


def _without_suffix(path: str) -> str:
    head, end = splitext(path)
    return head if end in _JS else path


def _imported(source: _Source, test: str, imports: frozenset[str], importable: frozenset[str]) -> float:
    """Returns how much an import of the source says: most where it is the only module of the project."""
    direct = bool(source.imported_as & imports)
    if not direct and not test.endswith(".py"):
        direct = any(one.endswith(f"/{_without_suffix(source.path)}") for one in imports)
    return 38 + 16 / max(1, len(imports & importable)) if direct else 0


def _helpers(path: str, files: Collection[str], texts: Mapping[str, str]) -> list[str]:
    """Returns conftest files above a test, and helpers beside it."""
    folder, end = dirname(path), splitext(path)[1].lower()
    above = {"", folder}
    parts = folder.split("/")
    above |= {"/".join(parts[:at]) for at in range(1, len(parts) + 1)}
    found = [
        one
        for one in files
        if dirname(one) in above
        and _HELPERS.match(basename(one))
        and splitext(one)[1].lower() in (*_same(end), end)
        and is_test_file(one)
        and basename(one) != "__init__.py"
        and not (basename(one) != "conftest.py" and _A_TEST.search(texts.get(one, "")))
    ]
    return sorted(found, key=lambda one: (-one.count("/"), one))[:MOST_HELPERS]


def _same(end: str) -> frozenset[str]:
    return next((family for family in _FAMILIES if end in family), frozenset())


def _beside(source: str, tests: Sequence[_Test], modules: Collection[str]) -> str:
    """Returns the path of a new test file for a source, made as that of its nearest neighbour."""
    subjects: dict[str, list[str]] = {}
    for path in sorted(modules):
        subjects.setdefault(_source(path).subject, []).append(path)
    pairs = [(other, test) for test in tests for other in subjects.get(_words(test.subject), ()) if other != source]
    here = dirname(source)
    stem = _stem(source) if _stem(source) not in _PACKAGE_FILES or not here else basename(here)
    pairs = [pair for pair in pairs if not here or _common(dirname(pair[0]), here)]
    if not pairs:
        folder, _ = Counter(dirname(test.path) for test in tests).most_common(1)[0]
        return _named(join(folder, ""), stem, _usual(tests, folder), source)
    other, test = max(
        pairs,
        key=lambda pair: (
            _OF_THE_WHOLE.isdisjoint(pair[1].path.lower().split("/")),
            _shared(dirname(pair[0]), here),
            _shared(dirname(pair[1].path), here),
        ),
    )
    return _named(f"{_moved(dirname(other), dirname(test.path), here)}/".lstrip("/"), stem, test, source)


def _usual(tests: Sequence[_Test], folder: str) -> _Test:
    """Returns a test that is named as most in a folder are."""
    inside = [test for test in tests if dirname(test.path) == folder]
    style, _ = Counter((bool(test.before), test.behind) for test in inside).most_common(1)[0]
    return next(test for test in inside if (bool(test.before), test.behind) == style)


def _named(folder: str, stem: str, as_: _Test, source: str) -> str:
    end = as_.end
    if end in _JS and splitext(source)[1] in {".ts", ".tsx", ".mts", ".cts"} and end in {".ts", ".tsx"}:
        end = splitext(source)[1]
    stem = stem.lstrip("_") if as_.end == ".py" else stem
    return f"{folder}{as_.before}{stem}{as_.behind}{end}"


def _moved(source: str, test: str, here: str) -> str:
    """Returns the folder for tests of `here`, where those of `source` are in `test`."""
    if source == here or not source:
        return test
    if test == source or test.startswith(f"{source}/"):  # beside the source, or in a folder below
        return f"{here}{test[len(source) :]}"
    theirs, ours, tests = source.split("/"), here.split("/"), test.split("/")
    for count in range(min(len(theirs), len(tests)), 0, -1):
        if theirs[-count:] == tests[-count:]:
            root = theirs[:-count]
            rest = ours[len(root) :] if ours[: len(root)] == root else ours[-1:]
            return "/".join([*tests[:-count], *rest])
    return test


def _common(one: str, two: str) -> int:
    """Returns the number of leading folders that two folders share."""
    pairs = zip(one.split("/"), two.split("/"), strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])


def _shared(one: str, two: str) -> int:
    return 2 * _common(one, two) - len(one.split("/"))


def test_file_of(story_id: str, files: Collection[str]) -> str:
    """Returns the path that a story's suite has where nothing better is named, in the language of its files."""
    ends = [splitext(path)[1].lower() for path in files]
    scripts = sorted((end for end in ends if end in _JS), key=lambda end: "ts" not in end)
    if scripts and ".py" not in ends:
        return f"tests/{_identifier(story_id)}.test{scripts[0].rstrip('x')}"
    return f"tests/test_{_identifier(story_id)}.py"


test_file_of.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def _identifier(story_id: str) -> str:
    return re.sub(r"\W+", "_", story_id.lower()).strip("_")
