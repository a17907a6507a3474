"""Shared by the tests of environments and test runners: trees of files, and runners of projects as they are wired."""

import os
from pathlib import Path

from orchestrator.environments.node import NodeEnvironments
from orchestrator.environments.python import PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings, TestSettings
from orchestrator.settings.sections import SandboxSettings
from orchestrator.test_runners.node import NodeRunner
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.suite_runner import ProjectRunner


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def project_runner(
    folder: Path,
    run: LimitedCommandRunner,
    tests: TestSettings | None = None,
    variables: dict[str, str] | None = None,
    *,
    path: str = os.defpath,
    rules: SandboxSettings | None = None,
    tries: bool = True,
) -> ProjectRunner:
    """What runs a project of any kind, with environments in `folder`."""
    commands, tests, variables = CommandSettings(), tests or TestSettings(), variables or {}
    venvs = PythonEnvironments(folder / "python", folder / "layers", run, commands, variables)
    node = NodeEnvironments(folder / "node", run, commands, variables, rules)
    runners = PytestRunner(run, venvs, tests, path), NodeRunner(run, node, tests)
    return ProjectRunner(*runners, tests, path, tries=tries)
