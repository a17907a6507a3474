"""Runs tests of unittest or of a Django project and writes JUnit XML.

Never imported: it is run by its path with a project's own Python (3.8 or newer), so it uses the standard library alone.
Its one argument is JSON, see `unittest_runner.UnittestOrder`."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import sys
import traceback
import types
import unittest
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

ORDER: dict[str, Any] = json.loads(sys.argv[1]) if __name__ == "__main__" else {}
ROOT = ORDER.get("root", "")
RUNNER = "orchestrator_tests"
"""Name of the module in which Django finds its runner."""
_CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""
_HOLDER = re.compile(r"(?:setUp|tearDown)(?:Class|Module) \((.+)\)")
"""unittest's names for a failed setup of a class or a module."""
_WEIGHT = ["passed", "skipped", "error", "failure"]


class Records:
    """Results of tests, by place and name."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], tuple[str, str]] = {}
        self.planned: list[Any] = []
        self.broken: dict[str, tuple[str, str]] = {}
        self.ended = False

    def add(self, test: Any, result: str, message: str = "") -> None:
        """Keeps a result; the worst of a test counts."""
        if holder := _HOLDER.fullmatch(test.id()):
            self.broken[holder[1]] = (result, message)
        else:
            self.put(_place(test), result, message)

    def put(self, key: tuple[str, str, str], result: str, message: str) -> None:
        """Keeps a result of what stands at `key`."""
        earlier = self.found.get(key, ("passed", ""))
        if key not in self.found or _WEIGHT.index(result) > _WEIGHT.index(earlier[0]):
            self.found[key] = (result, message)

    def write(self) -> None:
        """Writes the report."""
        # If a class or module cannot be set up, none of its tests starts: each is reported with the reason.
        for name, told in self.broken.items():
            those = [test for test in self.planned if name in (type(test).__module__, _class_of(test))]
            for place in [_place(test) for test in those if _place(test) not in self.found] or [("", name, "tearDown")]:
                self.put(place, *told)
        lines = ["<testsuite>"]
        for (file, classname, name), (result, message) in self.found.items():
            attributes = f"file={_quoted(file)} classname={_quoted(classname)} name={_quoted(name)}"
            held = "" if result == "passed" else f"<{result}>{_escaped(message)}</{result}>"
            lines.append(f"<testcase {attributes}>{held}</testcase>")
        with open(ORDER["report"], "w", encoding="utf-8") as report:
            report.write("\n".join([*lines, "</testsuite>"]))


def _escaped(text: str) -> str:
    return escape(_CONTROL.sub("?", text.replace(ROOT + os.sep, "")))


def _quoted(text: str) -> str:
    return quoteattr(_CONTROL.sub("?", text))


def _class_of(test: Any) -> str:
    return f"{type(test).__module__}.{type(test).__qualname__}"


def _place(test: Any) -> tuple[str, str, str]:
    """File, module with the class, and name, told from the root as pytest tells them."""
    kind = type(test)
    if hasattr(test, "_dt_test"):  # a doctest, which `load_tests` adds
        file = _inside(getattr(test._dt_test, "filename", None) or "")
        return file, _dotted(file), test.id()
    if kind.__module__ == "unittest.loader":  # what could not be loaded
        name = test._testMethodName
        file = name.replace(".", "/") + ".py"
        return file if os.path.exists(os.path.join(ROOT, file)) else "", "", name
    file = _inside(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")
    name = getattr(test, "_testMethodName", None) or test.id().rpartition(".")[2]
    return file, ".".join(filter(None, (_dotted(file), kind.__qualname__))), name


def _inside(file: str) -> str:
    path = os.path.relpath(os.path.realpath(file), ROOT) if file else ""
    return "" if path.startswith("..") else path


def _dotted(file: str) -> str:
    return (file[:-3] if file.endswith(".py") else file).replace("/", ".")


def _records_into(records: Records, base: Any) -> Any:
    """Returns a class of results that keeps them as well."""

    class Result(base):  # type: ignore[misc]
        def addSuccess(self, test: Any) -> None:
            super().addSuccess(test)
            records.add(test, "passed")

        def addError(self, test: Any, err: Any) -> None:
            super().addError(test, err)
            records.add(test, "error", _told(err))

        def addFailure(self, test: Any, err: Any) -> None:
            super().addFailure(test, err)
            records.add(test, "failure", _told(err))

        def addSkip(self, test: Any, reason: str) -> None:
            super().addSkip(test, reason)
            records.add(test, "skipped", reason)

        def addExpectedFailure(self, test: Any, err: Any) -> None:
            super().addExpectedFailure(test, err)
            records.add(test, "skipped", "expected to fail")

        def addUnexpectedSuccess(self, test: Any) -> None:
            super().addUnexpectedSuccess(test)
            records.add(test, "failure", "passed, which it was not expected to")

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            super().addSubTest(test, subtest, err)
            if err is not None:
                kind = "failure" if issubclass(err[0], test.failureException) else "error"
                records.add(test, kind, f"{subtest._subDescription()}\n{_told(err)}")

    return Result


def _told(err: Any) -> str:
    """Like unittest's, without its own frames."""
    kind, value, trace = err
    while trace and "__unittest" in trace.tb_frame.f_globals:
        trace = trace.tb_next
    lines = traceback.format_exception(kind, value, trace)
    return "".join(line for line in lines if "/unittest/" not in line.partition("\n")[0])


def _flat(suite: Any) -> Iterator[Any]:
    for test in suite:
        if isinstance(test, unittest.BaseTestSuite):
            yield from _flat(test)
        elif test is not None:
            yield test


def _wanted(suite: Any) -> list[Any]:
    """Returns the tests that are asked for."""
    only = {tuple(one) for one in ORDER["only"]}
    return [test for test in _flat(suite) if not only or _place(test)[1:] in only]


def _module_of(file: str) -> str:
    """Returns the dotted name of a file's module, below the folder that holds its outermost package."""
    folder, name = os.path.split(os.path.join(ROOT, file))
    parts = [name[:-3]]
    while os.path.exists(os.path.join(folder, "__init__.py")) and folder != ROOT:
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return ".".join(parts)


def _loaded(records: Records, file: str) -> unittest.TestSuite:
    """Returns the tests of one file; a file that cannot be loaded is reported as an error."""
    try:
        module = importlib.import_module(_module_of(file))
        if os.path.realpath(module.__file__ or "") != os.path.realpath(os.path.join(ROOT, file)):
            raise ImportError(f"another module has the name of {file}: {module.__file__}")
        return unittest.defaultTestLoader.loadTestsFromModule(module)
    except unittest.SkipTest as skipped:
        records.put((file, "", _dotted(file)), "skipped", str(skipped))
    except (Exception, SystemExit):  # noqa: BLE001 - a project's module, which raises what it likes
        records.put((file, "", _dotted(file)), "error", traceback.format_exc())
    return unittest.TestSuite()


def run_unittest(records: Records) -> int:
    """Returns the tests of the files that are named."""
    tests = _wanted(unittest.TestSuite(_loaded(records, file) for file in ORDER["files"]))
    if ORDER["collect"]:
        return _collected(tests)
    records.planned = tests
    runner = unittest.TextTestRunner(verbosity=2, resultclass=_records_into(records, unittest.TextTestResult))
    runner.run(unittest.TestSuite(tests))
    records.ended = True
    return 0 if all(result in {"passed", "skipped"} for result, _ in records.found.values()) else 1


def run_django(records: Records) -> int:
    """Returns the tests of a Django project, whose own runner makes the databases."""
    module = types.ModuleType(RUNNER)
    vars(module)["__getattr__"] = lambda name: _django_runner(records) if name == "Runner" else _unknown(name)
    sys.modules[RUNNER] = module
    labels = [_module_of(file) for file in ORDER["files"]] or ORDER["labels"]
    words = ["test", "--noinput", f"--testrunner={RUNNER}.Runner", "-v", "2", *labels]
    manage = ORDER["manage"]
    if ORDER["settings"]:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", ORDER["settings"])
    sys.path.insert(0, os.path.dirname(os.path.join(ROOT, manage)))
    if manage:
        sys.argv = [os.path.join(ROOT, manage), *words]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        sys.argv = ["django-admin", *words]
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    return 0


def _unknown(name: str) -> Any:
    raise AttributeError(name)


def _django_runner(records: Records) -> Any:
    from django.conf import settings
    from django.test.runner import DiscoverRunner
    from django.test.utils import get_runner

    base = get_runner(settings, settings.TEST_RUNNER)
    if not issubclass(base, DiscoverRunner):
        sys.exit(f"TEST_RUNNER names {settings.TEST_RUNNER}, which is no DiscoverRunner: set test.custom")

    class Runner(base):  # type: ignore[misc, valid-type]
        def get_resultclass(self) -> Any:
            return _records_into(records, super().get_resultclass() or unittest.TextTestResult)

        def build_suite(self, *args: Any, **kwargs: Any) -> Any:
            records.planned = _wanted(super().build_suite(*args, **kwargs))
            return unittest.TestSuite(records.planned)

        def run_tests(self, *args: Any, **kwargs: Any) -> Any:
            if ORDER["collect"]:
                self.build_suite(*args, **kwargs)
                return _collected(records.planned)
            failed = super().run_tests(*args, **kwargs)
            records.ended = True
            return failed

    return Runner


def _collected(tests: list[Any]) -> int:
    print(f"{len(tests)} tests collected")
    return 0


def main() -> None:
    """Runs what is ordered; the exit code is 1 where a test failed."""
    records = Records()
    for path in reversed(ORDER["paths"]):
        sys.path.insert(0, path)
    code = 1
    try:
        code = (run_django if ORDER["django"] else run_unittest)(records)
    finally:
        # Without a run that ended there is no report: what broke it off shows nothing.
        if records.ended:
            records.write()
    sys.exit(code)


if __name__ == "__main__":
    main()
