"""Ways around the closed world in Python sources, and sound code that looks a little like them."""

import json
from collections.abc import Mapping

import pytest

from orchestrator.code.check import check_syntax
from orchestrator.contract.enforce import check_diff
from orchestrator.contract.world import NOTHING_KNOWN
from orchestrator.core.contract import ArchitectureContract, Installed, InstalledPackages
from orchestrator.core.delivery import DiffEntry
from orchestrator.core.finding import Finding, Severity
from tests.contract.worlds import closed_world, judged

BASE = {"requirements.txt": "Flask>=2\nPyYAML\nnumpy\nCython\nclick\nnox\n"}
FILES = ("app/__init__.py", "app/plugins/__init__.py", "app/plugins/one.py", "app/store.py", *BASE)
NEW = (
    "app/new.py", "app/new.pyw", "app/new.pyx", "app/new.pxd", "app/new.pyi", "notes.ipynb", "x.pth", "noxfile.py",
    "sitecustomize.py", "setup.py", "tasks.py",
)  # fmt: skip


def world(
    *more: str,
    packages: tuple[str, ...] = ("rich",),
    manifests: Mapping[str, str] = BASE,
    new: tuple[str, ...] = NEW,
) -> ArchitectureContract:
    return closed_world((*new, *more), FILES, manifests, packages)


WORLD = world()


def said(
    text: str,
    path: str = "app/new.py",
    before: str | None = None,
    *,
    contract: ArchitectureContract = WORLD,
    installed: InstalledPackages = NOTHING_KNOWN,
) -> list[Finding]:
    return judged(contract, {path: text}, {} if before is None else {path: before}, installed)


ASKED = {
    "import evil": "evil",
    "import json, evil": "evil",
    "from evil import *": "evil",
    "import evil.json": "evil",
    "def f[T](x: T) -> T: ...\nimport evil": "evil",
    "\ufeffimport evil": "evil",
    "if 1:\n\timport evil as json": "evil",
    "import sqlalchemy\nimport evil": "sqlalchemy",
    "import cv2": "opencv-python",
}
"""Text → the package that the architect is asked about first."""


@pytest.mark.parametrize("text", ASKED)
def test_a_package_that_nothing_declares_is_a_question(text: str) -> None:
    found = said(text)
    assert {(f.code, f.severity, f.ask) for f in found} == {("contract.import", Severity.MINOR, True)}
    assert found[0].where.field == ASKED[text]
    assert said(text, before=text) == []


@pytest.mark.parametrize("text", ["def load():\n    import evil\n    return evil", "f = lambda: __import__('evil').x"])
def test_what_a_function_imports_when_it_runs_refuses_and_asks_nothing(text: str) -> None:
    assert not [f for f in said(text) if f.severity.blocks or f.ask]


MISSING = {
    "from app.nothere import x": "app.nothere",
    "import app.nothere.deep": "app.nothere.deep",
    "from .nothere import x": ".nothere",
    "from ..nothere import x": "..nothere",
    "def f():\n    from app.nothere import x": "app.nothere",
}


@pytest.mark.parametrize("text", MISSING)
def test_a_module_of_the_project_that_is_nowhere_is_refused(text: str) -> None:
    path = "app/plugins/new.py" if ".." in text else "app/new.py"
    found = said(text, path, contract=world(new=("app/new.py", "app/plugins/new.py")))
    told = [(f.code, f.severity, f.where.field) for f in found if f.code == "contract.missing_module"]
    assert told == [("contract.missing_module", Severity.MAJOR, MISSING[text])]


def test_what_is_planned_generated_or_ignored_is_not_missing() -> None:
    text = "from app.later import x\nfrom app.made.api import y\nfrom app import _version\nfrom app.build_pb2 import z"
    manifests = {**BASE, ".gitignore": "/app/made/\n*.log\n"}
    contract = world(new=("app/new.py", "app/later.py"), manifests=manifests)
    assert said(text, contract=contract) == []


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("native/kernel.c", False),  # pyrsistent: setup.py names the module
        ("tests/ext.c", True),  # datasette: a helper of its tests
        ("app/fast.pyx", True),  # peewee: Cython makes `app.fast` of it, and nothing else
    ],
)
def test_what_a_compiler_may_make_is_not_missing(source: str, missing: bool) -> None:
    contract = world(new=("app/new.py", source))
    assert bool(said("from app.kernel import run\n", contract=contract)) is missing


INSTALLED = InstalledPackages(
    python={
        "flask": Installed(modules=("flask",), requires=("werkzeug", "jinja2"), extras=("asgiref",)),
        "werkzeug": Installed(modules=("werkzeug",), requires=("markupsafe",)),
        "markupsafe": Installed(modules=("markupsafe",)),
        "asgiref": Installed(modules=("asgiref",)),
        "odd-name": Installed(modules=("plain",)),
    }
)


def test_the_environment_says_who_brings_a_module_and_who_requires_it() -> None:
    text = "import flask, werkzeug.http, markupsafe, asgiref\nimport plain"
    found = said(text, installed=INSTALLED)
    assert [(f.code, f.where.field, f.ask) for f in found] == [
        ("contract.transitive", "werkzeug", False),
        ("contract.transitive", "markupsafe", False),
        ("contract.transitive", "asgiref", False),
        ("contract.import", "odd-name", True),
    ]
    assert said("import plain", contract=world(packages=("odd-name",)), installed=INSTALLED) == []


SOUND = [
    "try:\n    import evil\nexcept ImportError:\n    evil = None",
    "try:\n    import tomllib\nexcept ModuleNotFoundError:\n    import evil as tomllib",
    "from contextlib import suppress\nwith suppress(ImportError):\n    import evil",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from evil import Name",
    "import importlib\nimportlib.import_module('evil')",
    "from importlib.metadata import entry_points, version\nversion('evil')\nentry_points(group='app.plugins')",
    "import re\nP = re.compile('import evil')\nQ = re.compile(r'^from (\\w+) import')",
    "print('import evil')\nTEXT = 'import evil'",
    "raise ImportError('run: pip install evil')",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from _typeshed import StrPath",
    "import __future__",
    "from __future__ import annotations",
    "\ufefffrom flask import Flask\n",
    "# -*- coding: utf-8 -*-\nimport json\n",
    "# coding: latin-1\nX = 'é'\n",
    "import yaml.constructor\nfrom flask import Flask as import_module_\n",
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_imports_pass_without_a_word(text: str) -> None:
    assert said(text) == []


def notebook(*cells: str, language: str = "python") -> str:
    found = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    markdown = {"cell_type": "markdown", "source": ["import evil\n", "!pip install evil"]}
    return json.dumps({"metadata": {"kernelspec": {"language": language}}, "cells": [markdown, *found]})


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("app/new.pyw", "import evil", "import"),
        ("app/new.pyi", "from evil import x", "import"),
        ("notes.ipynb", notebook("import json", "import evil"), "import"),
        ("notes.ipynb", notebook("%%time\nimport evil"), "import"),
        ("notes.ipynb", notebook("import evil\nevil?"), "import"),
        ("x.pth", "import evil; evil.run()\n./lib", "import"),
        ("sitecustomize.py", "import sys", "test_settings"),
        ("setup.py", "import evil\nfrom setuptools import setup\nsetup()", "import"),
    ],
)
def test_python_in_other_files(path: str, text: str, code: str) -> None:
    found = said(text, path)
    assert {f.code.removeprefix("contract.") for f in found} == {code}, found
    assert all("evil" in (f.where.field or "evil") for f in found)
    assert said(text, path, before=text) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("notes.ipynb", "{"),
        ("app/new.py", "def f(:"),
        ("app/new.py", "# coding: utf-7\nimport json"),
        ("app/new.py", "#!/usr/bin/python\n# vim: set fileencoding=unicode_escape :\n#\\x0aimport evil"),
    ],
)
def test_python_that_cannot_be_read_is_told_once_and_never_passes(path: str, text: str) -> None:
    assert said(text, path) == []
    assert check_syntax(path, text)
    entry = DiffEntry(path=path, status="A", old_mode="000000", new_mode="100644")
    told = check_diff(WORLD, [entry], {path: text}, {}, frozenset())
    assert "contract.unreadable" in {found.code for found in told}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("app/new.pyw", "import flask, app.store"),
        (
            "app/new.pyx",
            "cimport cython\nimport numpy as np\ncimport numpy as cnp\nfrom libc.math cimport sqrt\n"
            "from .store cimport x\ncdef class A:\n    '''\n    import evil\n    '''\n    cdef int x  # import evil",
        ),
        ("app/new.pxd", "cdef extern from 'math.h':\n    double sin(double x)\n"),
        ("notes.ipynb", notebook("%matplotlib inline\n%load_ext autoreload\n%autoreload 2", "import numpy as np\nnp?")),
        ("notes.ipynb", notebook("!ls\n!pip list\n%pip install flask", "%%html\n<b>import evil</b>", "await x()")),
        ("notes.ipynb", notebook("library(evil)\nx <- 1", language="R")),
        ("notes.ipynb", notebook()),
        (
            "notes.ipynb",
            notebook("x = 5 \\\n    % 3\ny = '''\n'''", "%%time\nsum(range(9))", "%timeit -n 10 sum(range(9))"),
        ),
        ("x.pth", "./lib\n# import evil\nsrc\n"),
        (
            "setup.py",
            "from setuptools import setup\nimport pkg_resources\nsetup(name='x')",
        ),
        ("setup.py", "from distutils.core import setup\nfrom Cython.Build import cythonize\nsetup()"),
    ],
)
def test_sound_python_in_other_files(path: str, text: str) -> None:
    assert said(text, path) == []
