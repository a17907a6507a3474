"""Importing our modules does nothing, and commands import only what they need."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import typer

from orchestrator.cli.main import COMMANDS, app
from orchestrator.core.sprint import SprintRecord
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_table import connected, prepare
from orchestrator.storage.state_folder import StateFolder
from tests.support import plain_environment

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "orchestrator").rglob("*.py")
    if path.name != "__main__.py"
)
WATCH = """
import importlib, json, os, sys, threading

# What the libraries do when they are imported is theirs: they come first, without our watch.
for name in json.loads(sys.argv[2]):
    importlib.import_module(name)
seen = []
WATCHED = {"socket.connect", "socket.bind", "subprocess.Popen", "os.mkdir", "os.rename", "os.remove", "os.putenv",
           "os.system", "os.fork", "os.posix_spawn", "shutil.rmtree", "os.chdir", "sqlite3.connect", "signal.signal"}

def hook(event, args):
    # Most events are none of these, and their arguments cost much to be written out.
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        seen.extend([f"open {args[0]}"] if "__pycache__" not in str(args[0]) else [])
    elif event in WATCHED and "__pycache__" not in str(args):
        seen.append(f"{event} {args}")

environment, threads, files = dict(os.environ), threading.active_count(), sorted(os.listdir())
sys.addaudithook(hook)
for name in json.loads(sys.argv[1]):
    before = len(seen)
    importlib.import_module(name)
    seen[before:] = [f"{name}: {what}" for what in seen[before:]]
if dict(os.environ) != environment:
    seen.append("the environment changed")
if threading.active_count() != threads:
    seen.append("a thread was started")
if sorted(os.listdir()) != files:
    seen.append("files were made")
print(json.dumps(seen))
"""
LIBRARIES = ["dbos", "sqlalchemy", "sqlalchemy.dialects.postgresql", "pydantic", "typer", "rich.live", "yaml"]
LIBRARIES += [
    "rapidfuzz.process",
    "tenacity",
    "packaging.requirements",
    "tree_sitter",
    "tree_sitter_javascript",
    "tree_sitter_typescript",
    "tree_sitter_python",
    "tree_sitter_go",
    "tree_sitter_java",
    "tree_sitter_rust",
]
LIBRARIES += ["anthropic.resources.messages", "openai.resources.chat"]


def python(code: str, *args: str, cwd: Path, **variables: str) -> str:
    """What a fresh interpreter prints."""
    env = plain_environment(PYTHONPATH=str(ROOT), PYTHONDONTWRITEBYTECODE="1", **variables)
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_everything_has_no_side_effects(tmp_path: Path) -> None:
    printed = python(WATCH, json.dumps(MODULES), json.dumps(LIBRARIES), cwd=tmp_path)
    assert json.loads(printed) == []


LOADED = """
import json, sys
from orchestrator.cli.main import main
for line in json.loads(sys.argv[1]):
    sys.argv = ["orchestrator", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (line, end.code)
    print()
    print("loaded", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded_by(commands: list[str], cwd: Path, **variables: str) -> list[set[str]]:
    """The packages that are loaded after each command, all in one fresh interpreter."""
    lines = python(LOADED, json.dumps(commands), cwd=cwd, **variables).splitlines()
    return [set(line.split()[1:]) for line in lines if line.startswith("loaded ")]


def test_what_help_says_of_a_command_is_what_it_says_of_itself() -> None:
    commands = typer.main.get_group(app)
    for name, (_, told) in COMMANDS.items():
        own = " ".join(commands.get_command(typer.Context(commands), name).help.split())
        assert own.startswith(told.rstrip(".")), name


def test_light_commands_load_no_engine_no_provider_and_the_grammar_at_hand_only(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text('{"a": 1}')
    (tmp_path / "delivery.txt").write_text('{"files": [{"path": "a.go", "content": "package a\\n"}]}')
    shown = loaded_by(["--help", "--version"], tmp_path)
    assert all(loaded.isdisjoint({"pydantic", "sqlalchemy", "dbos", "anthropic", "openai"}) for loaded in shown)
    light = ["--help", "run --help", "extract answer.txt"]
    loaded = loaded_by([*light, "check delivery delivery.txt --repo ."], tmp_path)
    assert len(loaded) == 4
    assert loaded[1].isdisjoint({"tree_sitter", "sqlglot"})
    assert "orchestrator" in loaded[-1]
    assert loaded[-1].isdisjoint({"dbos", "anthropic", "openai"})
    assert {name for name in loaded[-1] if name.startswith("tree_sitter")} == {"tree_sitter", "tree_sitter_go"}


def test_looking_at_a_sprint_of_the_state_folder_loads_no_sqlalchemy_and_no_engine(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / ".orchestrator")
    folder.make()
    prepare(connected(sqlite_url(folder.event_database), writes=True, pooled=False))
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    folder.save(SprintRecord(sprint="S", backlog="b", repo="r", base="", story_ids=("A",), started_at=begun))
    for loaded in loaded_by(["status", "status --json", "show A", "logs"], tmp_path):
        assert "pydantic" in loaded
        assert loaded.isdisjoint({"sqlalchemy", "dbos", "anthropic", "openai", "tree_sitter"})
