"""The proof that a green suite can fail where it ran.

What runs in a test runner can report what it likes: a hook that calls every test good, code that patches the runner or
its assertions, an object that equals everything, a report written beforehand. So a suite that came back green is run
once more with the same command line, and all of its tests but one expect something else: they have to fail, and the
one that was left alone has to pass. Names, places and arguments are those of the first run, so code that fakes results
finds nothing to tell the runs apart by. Where the whole suite is quick, it is the run of that which counts, and its
second one has the story's tests and the older ones changed at once. Code shares its process with the runner, though:
what reads the texts of the tests, or recognises a second run, is not caught by this."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random, SystemRandom

from orchestrator.code.mutations import Mutation, node_mutations, python_mutations
from orchestrator.core.suite import CaseResult, ReportedCase, TestReport
from orchestrator.core.value import Value
from orchestrator.files.safe_files import read_text, write_below

_OTHER_TEST = """
;(globalThis.test ?? globalThis.it ?? {known})({title}, async () => {{
  (await import('node:assert')).strictEqual({less}, {more});
}});
"""
"""jest, mocha and vitest take no test that comes once the file has been read; what they do not make known, it imports.
"""
_NODE_TEST = """
;import('node:test').then(({{ test }}) => test({title}, async () => {{
  (await import('node:assert')).strictEqual({less}, {more});
}}));
"""
_JAVASCRIPT = re.compile(r"\.[cm]?[jt]sx?$")
_SHARED_PARAMETERS = re.compile(r"^pytestmark\b.*?parametrize\(\s*[\"']([\w, ]+)[\"']", re.MULTILINE | re.DOTALL)
"""Arguments that every test of a module has to take."""
_MOST = 40
"""Mutated tests of one file: pytest takes a quarter of a second to tell of each failure in a file of 7000 lines."""
_FAILED = frozenset({CaseResult.FAILED, CaseResult.ERROR})
_Key = tuple[str, str]
"""A test file and, as Mutation names it, one of its tests."""


class MutatedSuite(Value):
    """Test files in which some tests expect something else."""

    texts: dict[str, str]
    """By path, of the files that are changed."""
    mutated: frozenset[_Key]
    """Tests that have to fail."""
    kept: frozenset[_Key]
    """Tests that passed before and are as they were."""
    added: tuple[ReportedCase, ...] = ()
    """Tests that the files do not hold otherwise, because none of theirs could be mutated."""

    def accepted(self, report: TestReport) -> tuple[str, ...]:
        """Mutated tests that were reported as passed, sorted: whatever reports them so reports nothing."""
        passed = self._seen(report, CaseResult.PASSED)
        return tuple(sorted(f"{file}::{case}" for file, case in self.mutated & passed))

    def failed_in(self, report: TestReport) -> frozenset[str]:
        """Files in which a mutated test was reported as failed."""
        return frozenset(file for file, _ in self.mutated & self._seen(report, *_FAILED))

    def seen_in(self, report: TestReport) -> bool:
        """Returns whether every mutated test was reported, with whatever result."""
        return self.mutated <= self._seen(report, *CaseResult)

    def keeps_passing(self, report: TestReport) -> bool:
        """Returns whether one of the other tests passed again, if there are any."""
        return not self.kept or bool(self.kept & self._seen(report, CaseResult.PASSED))

    def _seen(self, report: TestReport, *results: CaseResult) -> frozenset[_Key]:
        return _by_test(report.cases, {file for file, _ in self.mutated | self.kept}, *results)


def mutate(
    texts: Mapping[str, str], cases: Sequence[ReportedCase], *, single: bool = False, secret: str | None = None
) -> MutatedSuite:
    """All tests of each file mutated but one, and no more than 40, picked by chance; with `single` the last one of all.

    Left alone is also what cannot be mutated, or did not pass in `cases`. A file with one test has that one mutated,
    and one in which none can be mutated gets a test more. With a `secret`, a file of the same text is mutated in the
    same way each time. Blocks.
    """
    passed = _by_test(cases, texts, CaseResult.PASSED) - _by_test(cases, texts, *_FAILED)
    chosen: dict[str, list[Mutation]] = {}
    added: list[ReportedCase] = []
    for file, text in texts.items():
        random = SystemRandom() if secret is None else Random(f"{secret}\0{file}\0{text}")
        names = sorted(case for there, case in passed if there == file)
        found = [one for one in _mutations_of(file, text, random) if one.case in names]
        if len(found) > 1 and not single:
            weaker = [mutation for mutation in found if not mutation.other_value]
            found.remove(random.choice(weaker or found))
            found = sorted(random.sample(found, min(len(found), _MOST)), key=lambda mutation: mutation.start)
        if not found and _takes_another(file, names):
            found = [_another(file, text, names, random)]
            name = found[0].case
            added.append(ReportedCase(name=name, id=f"{_dotted(file)}::{name}", file=file, result=CaseResult.FAILED))
        chosen[file] = found
    if single:
        last = next((file for file in reversed(chosen) if chosen[file]), None)
        chosen = {} if last is None else {last: chosen[last][-1:]}
    mutated = frozenset((file, mutation.case) for file, found in chosen.items() for mutation in found)
    changed = {file: _applied(texts[file], found) for file, found in chosen.items() if found}
    inherited = {(file, _method(case)) for file, case in mutated}
    return MutatedSuite(
        texts=changed,
        mutated=mutated,
        # A class that inherits a mutated test fails with it.
        kept=frozenset(key for key in passed - mutated if (key[0], _method(key[1])) not in inherited),
        added=tuple(case for case in added if case.file in chosen),
    )


def _another(file: str, text: str, names: Sequence[str], random: Random) -> Mutation:
    """A test that fails, behind the others and under a name like theirs, so that what selects those selects it."""
    words = sorted(set(re.findall(r"[a-z]+", " ".join(names).lower()))) or ["value"]
    first, space = random.choice(names).rpartition("::")[2].rpartition(" > ")[2], " "
    if file.endswith(".py"):
        first, space = first if first.isidentifier() else "test", "_"
    name = f"{first}{space}{random.choice(words)}"
    while name in names:
        name += f"{space}{random.choice(words)}"
    less, more = sorted(random.sample(range(100), 2))
    if file.endswith(".py"):
        shared = _SHARED_PARAMETERS.search(text)
        added = f"\n\ndef {name}({shared[1] if shared else ''}):\n    assert {less} == {more}\n"
    else:
        known = re.search(r"^\s*(it|test)\b", text, re.MULTILINE)
        form = _NODE_TEST if "node:test" in text else _OTHER_TEST
        added = form.format(title=json.dumps(name), less=less, more=more, known=known[1] if known else "it")
    place = len(text.encode())
    return Mutation(case=name, start=place, end=place, text=added)


def _method(case: str) -> str:
    return case.rpartition("::")[2]


def _mutations_of(file: str, text: str, random: Random) -> tuple[Mutation, ...]:
    """None for a language that nothing here can read."""
    if _JAVASCRIPT.search(file):
        return node_mutations(file, text, random)
    return python_mutations(text, random) if file.endswith(".py") else ()


def _takes_another(file: str, names: Sequence[str]) -> bool:
    """Returns whether a test can be added to its own; one whose name has dots is a doctest."""
    if file.endswith(".py"):
        return any("." not in name for name in names)
    return bool(names and _JAVASCRIPT.search(file))


def _applied(text: str, mutations: Sequence[Mutation]) -> str:
    content = text.encode()
    for mutation in sorted(mutations, key=lambda one: one.start, reverse=True):
        content = content[: mutation.start] + mutation.text.encode() + content[mutation.end :]
    return content.decode()


def _by_test(cases: Sequence[ReportedCase], files: Collection[str], *results: CaseResult) -> frozenset[_Key]:
    """Returns the tests of `files` that cases with one of the results stand for.

    A report of pytest names no files but modules, with the classes behind them.
    """
    modules = {_dotted(file): file for file in files if file.endswith(".py")}
    found: set[_Key] = set()
    for case in cases:
        if case.result not in results:
            continue
        if case.file in files and not case.file.endswith(".py"):
            found.add((case.file, case.name))
        place, classes = case.id.partition("::")[0], list[str]()
        while place and place not in modules:
            place, _, inner = place.rpartition(".")
            classes.insert(0, inner)
        if place:
            found.add((modules[place], "::".join([*classes, case.name])))
    return frozenset(found)


def _dotted(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".") if file.endswith(".py") else file


class Copies:
    """The texts of test files before a run. Its methods block, follow no link, and raise WorkspaceError."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._root = root
        self.texts = {file: text for file in files if (text := read_text(root, file)) is not None}

    def changed(self) -> tuple[str, ...]:
        """Returns the files that are not as they were."""
        return tuple(file for file, text in self.texts.items() if read_text(self._root, file) != text)

    def write(self, texts: Mapping[str, str]) -> None:
        """Puts other texts in place of some."""
        write_below(self._root, [(file, text.encode()) for file, text in texts.items()])

    def put_back(self) -> None:
        """Makes the files what they were."""
        self.write({file: self.texts[file] for file in self.changed()})
