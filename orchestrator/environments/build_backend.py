"""Asks a project's build backend (PEP 517, PEP 660). Run by the interpreter of its build environment: standard library.

Arguments: backend (`module` or `module:object`), its path and the requirements that are installed (JSON lists), and the
folder for the editable wheel and for `answer.json`: the wheel's name, or a list of what the build requires besides."""

import functools
import importlib
import json
import os
import sys


def main() -> None:
    """Builds the wheel unless the backend requires more packages. Ends with a traceback if the backend fails."""
    named, path, installed, folder = sys.argv[1:]
    # maturin, meson and scikit-build call programs that came with what they require.
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    sys.path[:0] = [os.path.join(os.getcwd(), entry) for entry in json.loads(path)]
    module, _, inner = named.partition(":")
    backend = functools.reduce(getattr, filter(None, inner.split(".")), importlib.import_module(module))
    asked = getattr(backend, "get_requires_for_build_editable", None)
    required = [] if asked is None else [str(line) for line in asked(None)]
    more = [line for line in required if line not in json.loads(installed)]
    answer = more or backend.build_editable(folder, None)
    with open(os.path.join(folder, "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
