"""Asks a project's build backend (PEP 517, PEP 660). Run by the interpreter of its build environment: standard library.

Arguments: backend (`module` or `module:object`), its path as a JSON list, `requires` or `build`, and the folder for the
wheel and for `answer.json`: what more the build requires, or the name of the editable wheel.
"""

import functools
import importlib
import json
import os
import sys


def main() -> None:
    """Ask one question. Ends with a traceback where the backend cannot answer it."""
    named, path, what, folder = sys.argv[1:]
    sys.path[:0] = [os.path.join(os.getcwd(), entry) for entry in json.loads(path)]
    module, _, inner = named.partition(":")
    backend = functools.reduce(getattr, filter(None, inner.split(".")), importlib.import_module(module))
    answer: object
    if what == "build":
        answer = backend.build_editable(folder, None)
    else:
        asked = getattr(backend, "get_requires_for_build_editable", None)
        answer = [] if asked is None else [str(line) for line in asked(None)]
    with open(os.path.join(folder, "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
