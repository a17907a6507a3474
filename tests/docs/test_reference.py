"""The pages of reference name what the code has: commands, options, settings, requests, exit codes."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import typer
import yaml

from orchestrator.cli.common import Exit
from orchestrator.cli.main import COMMANDS, app
from orchestrator.core.errors import ConfigError
from orchestrator.settings import load
from tests.docs.blocks import PAGES, ROOT, WITHOUT_COMMANDS

TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in PAGES
    if str(path.relative_to(ROOT)) not in WITHOUT_COMMANDS
}
EVERY = {"--config", "--set", "--json", "--help"}
"""Options of nearly every command, which configuration.md and commands.md tell once."""
FOREIGN = {
    *("--install-completion", "--version", "--help"),  # of the program, before a command
    *("--renew-screenshots", "--stories", "--latency-ms", "--database", "--docs", "--quick"),  # of make
    *(
        "--user",
        "--cap-add",
        "--thin",
        "--collect-only",
        "--compile-bytecode",
        "--wheel",
        "--test",
    ),  # of other programs
}
FILES = (".json", ".md", ".yaml", ".py", ".csv")
BUILT = {"test.no_typescript", "test.tampered"}
"""Codes of findings that the code puts together from parts, in the section of a setting."""
SETTINGS = load(None, (), {})[0]


def options() -> Iterator[tuple[str, str]]:
    """Yields command and long option, of all."""
    top: Any = typer.main.get_command(app)
    for name in COMMANDS:
        command = top.get_command(None, name)
        below = getattr(command, "commands", {})
        for one, of in ((command, name), *((sub, f"{name} {word}") for word, sub in below.items())):
            yield from ((of, text) for param in one.params for text in param.opts if text.startswith("--"))


def keys(values: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, value in values.items():
        inner = isinstance(value, Mapping) and value and path.count(".") < 2
        yield from keys(value, f"{path}{name}.") if inner else [f"{path}{name}"]


def is_setting(name: str) -> bool:
    try:
        load(None, [f"{name}=[]"], {})
    except ConfigError as error:
        return not error.message.startswith("unknown")
    return True


def test_commands_are_those_of_the_table() -> None:
    table = TEXTS["docs/commands.md"].partition("| command | does |")[2].partition("\n\n")[0]
    named = re.findall(r"`([a-z]+)[ `]", "\n".join(line.split("|")[1] for line in table.splitlines() if "`" in line))
    assert set(named) == set(COMMANDS)


def test_every_option_is_told_on_a_page_and_no_other() -> None:
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(TEXTS.values())))
    known = {option for _, option in options()}
    assert [f"{command} {option}" for command, option in options() if option not in told | EVERY] == []
    spans = re.findall(r"`([^`\n]+)`", "\n".join(TEXTS.values()))
    named = {option for span in spans for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", span)}
    assert named - known - FOREIGN == set()


def test_every_setting_is_in_the_packaged_file_and_every_one_that_is_named_exists() -> None:
    written = set(keys(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))))
    assert {name for name in keys(SETTINGS.model_dump()) if name not in written} == set()
    sections = "|".join(SETTINGS.model_dump())
    named = {
        (page, name)
        for page, text in TEXTS.items()
        for name in re.findall(rf"`((?:{sections})\.[a-z_][a-z_.]*)[`:]", text)
    }
    assert len(named) > 100
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "orchestrator").rglob("*.py"))
    others = {(page, name) for page, name in named if f'"{name}"' not in code and not name.endswith(FILES)}
    others = {(page, name) for page, name in others if name not in written}
    assert {(page, name) for page, name in others if name not in BUILT and not is_setting(name)} == set()


def test_every_request_is_in_the_table() -> None:
    paths = json.loads((ROOT / "contracts/openapi.json").read_text(encoding="utf-8"))["paths"]
    served = {
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for path, methods in paths.items()
        if path.startswith("/api/v1/")
        for method in methods
    }
    assert set(re.findall(r"^\| `([A-Z]+ /\S+)` \|", TEXTS["docs/http.md"], re.MULTILINE)) == served
    for path in re.findall(r"localhost:8080(/[^\s'?]*)", TEXTS["docs/http.md"]):
        shape = re.sub(r"/(SP-001|US-003|team-a)(?=/|$)", "/{}", path)
        assert shape in {re.sub(r"\{\w+\}", "{}", known) for known in paths}, path


def test_every_exit_code_is_explained() -> None:
    table = TEXTS["docs/commands.md"].partition("| exit code | meaning |")[2].partition("\n\n")[0]
    told = {int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in cell.split(", ")}
    assert told == {*Exit, 70}, "70: daemon/serve.py"
