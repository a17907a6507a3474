"""pip's settings of this machine, as uv gets them."""

import ast
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.environments.kept import UNUSED_S
from orchestrator.environments.python_installer import Installer, as_uv, options_of, pip_settings
from orchestrator.environments.python_layers import NotInstalled, PythonLayers, notes_on
from orchestrator.environments.python_requirements import Requirements
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings
from tests.environments.test_python_environment import PATH, PYTEST, wheel
from tests.package_index import registry
from tests.sandboxes import plain

SECTIONS = ("global.", "install.", ":env:.")
FILE = """[global]
index-url = https://packages.example/simple
extra-index-url =
    https://one.example/simple
    https://two.example/simple
timeout = 5
[install]
timeout = 7
[download]
timeout = 9
"""


def as_pip_says(variables: dict[str, str]) -> dict[str, set[str]]:
    """What `pip config list` prints: of the section `install` before `global`, of variables before both. Newer ones
    print what every file says, by the files' names."""
    argv = [sys.executable, "-I", "-m", "pip", "config", "list"]
    told = subprocess.run(argv, env=variables, capture_output=True, text=True, check=True).stdout
    found: dict[str, dict[str, set[str]]] = {section: {} for section in SECTIONS}
    for name, _, value in (line.partition("=") for line in told.splitlines()):
        section = next((one for one in SECTIONS if name.startswith(one)), None)
        if section is not None:
            found[section].setdefault(name.removeprefix(section), set()).add(str(ast.literal_eval(value)))
    return {**found["global."], **found["install."], **found[":env:."]}


@pytest.mark.parametrize("named", [False, True])
def test_files_and_variables_are_read_as_pip_reads_them(named: bool, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    for place, text in {
        "xdg/pip/pip.conf": "[global]\nTIMEOUT = 1\nretries = 1\n",
        "home/.pip/pip.conf": "[global]\nretries = 2\ncert = /home.pem\n[install]\n--no_deps =\n",
        "home/.config/pip/pip.conf": FILE,
    }.items():
        (folder / place).parent.mkdir(parents=True)
        (folder / place).write_text(text)
    (folder / "named.conf").write_text("[global]\nretries = 3\nprefer-binary =\n")
    variables = {"HOME": str(folder / "home"), "XDG_CONFIG_DIRS": f"{folder}/xdg:/nowhere", "PIP_CERT": "/a b.pem"}
    variables |= {"PIP_CONFIG_FILE": str(folder / "named.conf")} if named else {}
    found = pip_settings(variables)
    said = {name: values for name, values in as_pip_says(variables).items() if values != {""}}
    assert found.keys() == said.keys()
    assert all(found[name] in said[name] for name in said)
    assert (found["retries"], found["cert"]) == ("3" if named else "2", "/a b.pem")
    assert pip_settings(variables | {"PIP_CONFIG_FILE": os.devnull}).keys() == {"cert", "config-file"}
    if not named:
        uv = as_uv(found)
        assert uv["UV_DEFAULT_INDEX"] == "https://packages.example/simple"
        assert (uv["UV_HTTP_TIMEOUT"], uv["SSL_CERT_FILE"]) == ("7", "/a b.pem")


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("index-url = https://packages.example/simple\n")
    with pytest.raises(ConfigError, match=r"pip's settings cannot be read: .* no section headers"):
        pip_settings({"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})


def test_what_uv_does_not_know_is_refused_and_what_decides_nothing_is_left() -> None:
    with pytest.raises(ConfigError, match="configuration has no-deps, which uv"):
        as_uv({"no-deps": "true"})
    assert as_uv({"progress-bar": "off", "pre": "1"}) == {"UV_PRERELEASE": "allow"}
    without = as_uv({"no-index": "1", "extra-index-url": "https://one.example/simple"})
    assert without == {"UV_DEFAULT_INDEX": "file:///nonexistent"}, "uv knows no variable for it"


def test_options_of_requirements_files_become_words() -> None:
    lines = ["--pre", "six==1 --hash=sha256:ab", "--require-hashes", "--only-binary :all:"]
    assert options_of(lines) == (["six==1 --hash=sha256:ab"], ["--prerelease", "allow", "--require-hashes"])


def test_the_registry_of_the_settings_comes_first(tmp_path: Path) -> None:
    variables = {"PIP_INDEX_URL": "https://other.example/simple", "HOME": str(tmp_path)}
    found = Installer(variables, {}, "https://own.example/simple").environment()
    assert found["UV_DEFAULT_INDEX"] == "https://own.example/simple"


async def test_a_layer_is_made_once_and_goes_when_nobody_asks_for_it(tmp_path: Path) -> None:
    wheel(tmp_path, "tiny", "1.0", "")
    wheel(tmp_path, "pytest", PYTEST, "")
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=plain())

    def layers() -> PythonLayers:  # each as in a process of its own
        return PythonLayers(tmp_path / "layers", runner, Installer(variables, {}, None), 100)

    wanted = Requirements(lines=("tiny",))
    first, second = await asyncio.gather(layers().ensure(wanted), layers().ensure(wanted))
    assert first == second
    assert isinstance(first, Path)
    assert [*await asyncio.to_thread(os.listdir, tmp_path / "layers")] == [first.name]
    old = time.time() - UNUSED_S - 60
    await asyncio.to_thread(os.utime, first / "made.json", (old, old))
    other = await layers().ensure(Requirements(lines=("tiny>=1",)))
    assert isinstance(other, Path)
    assert await asyncio.to_thread(os.listdir, tmp_path / "layers") == [other.name]


async def test_a_package_that_others_need_is_left_out_where_it_is_what_is_tested(tmp_path: Path) -> None:
    wheel(tmp_path, "tiny", "1.0", "")
    wheel(tmp_path, "other", "1.0", "", needs="tiny>=3")
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=plain())
    installer = Installer({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}, {}, None)
    layers = PythonLayers(tmp_path / "layers", runner, installer, 100)
    found = await layers.ensure(Requirements(lines=("other",), without=("tiny",), runner=False))
    assert isinstance(found, Path)
    packages = next(found.glob("venv/lib/python*/site-packages"))
    assert (packages / "other").exists()
    assert not (packages / "tiny").exists()


async def test_what_development_asks_for_is_left_aside_where_it_does_not_go_together(tmp_path: Path) -> None:
    for name, version, needs in (("tiny", "1.0", ""), ("tiny", "2.0", ""), ("other", "1.0", "tiny<2")):
        wheel(tmp_path, name, version, "", needs=needs)
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=plain())
    installer = Installer({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}, {}, None)
    layers = PythonLayers(tmp_path / "layers", runner, installer, 100)
    wanted = Requirements(lines=("tiny>1", "other", "absent"), besides=("other", "absent"), runner=False)
    found = await layers.ensure(wanted)
    assert isinstance(found, Path)
    [note] = (await asyncio.to_thread(notes_on, found)).told
    assert note.startswith("the requirements for development that conflict")
    refused = await layers.ensure(Requirements(lines=("tiny>1", "other"), runner=False))
    assert isinstance(refused, NotInstalled), "what the project itself needs is never ignored"


def test_layers_differ_by_where_packages_come_from_and_not_by_who_asks(tmp_path: Path) -> None:
    def sources(index: str, **more: str) -> str:
        return Installer({"PIP_INDEX_URL": index, "HOME": str(tmp_path), **more}, {}, None).sources()

    own = sources("https://me:secret@own.example/simple")
    assert own == sources("https://you:other@own.example/simple", PIP_PROXY="http://proxy.example:3128")
    assert "secret" not in own
    assert own != sources("https://other.example/simple")
    assert own != sources("https://own.example/simple", PIP_EXTRA_INDEX_URL="https://other.example/simple")


async def test_a_lock_is_kept_where_a_registry_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    wheel(tmp_path / "links", "tiny", "1.0", "")
    paths = {f"/simple/{file.name}": file.read_bytes() for file in (tmp_path / "links").iterdir()}
    paths["/simple/tiny/"] = b"<a href='../tiny-1.0-py3-none-any.whl'>tiny-1.0-py3-none-any.whl</a>"
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=plain())
    with registry(paths) as server:
        variables = {"PIP_INDEX_URL": f"{server.url}/simple", "UV_HTTP_RETRIES": "0", "HOME": str(tmp_path)}
        layers = PythonLayers(tmp_path / "layers", runner, Installer(variables, variables, None), 100)
        lines = ("tiny", "elsewhere @ http://127.0.0.1:9/x-1-py3-none-any.whl")
        found = await layers.ensure(Requirements(lines=lines, locked=("tiny==2.0",), runner=False))
    assert isinstance(found, NotInstalled)
    assert "127.0.0.1:9" in found.output
