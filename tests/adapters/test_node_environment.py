import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapters.node_environment import NodeEnvironments, linked
from orchestrator.adapters.npm_requirements import NpmRequirements, gather
from orchestrator.domain.testing import CommandResult
from orchestrator.settings.model import CommandSettings

PLAIN = {"dependencies": {"express": "^4.18.0", "@scope/tool": "1.x || >=2.0.0 <3", "old": "npm:new@^1.0.0"}}


def read(files: dict[str, Any], **more: Any) -> NpmRequirements:
    texts = {name: held if isinstance(held, str) else json.dumps(held) for name, held in files.items()}
    return gather(tuple(texts), texts.get, **more)


def locked(**entry: Any) -> dict[str, Any]:
    return {"package.json": PLAIN, "package-lock.json": {"packages": {"": {}, "node_modules/express": entry}}}


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": PLAIN},
        {"package.json": {**PLAIN, "overrides": {"a": {"b": "1.0.0", ".": "2.0.0"}, "express": "$express"}}},
        locked(resolved="https://registry.npmjs.org/express/-/express-4.18.0.tgz", version="4.18.0"),
        {"package.json": PLAIN, ".npmrc": "# ours\nsave-exact=true\nignore-scripts = true\nlegacy-peer-deps = true\n"},
    ],
)
def test_plain_packages_are_taken(files: dict[str, Any]) -> None:
    wanted = read(files)
    assert wanted.wanted
    assert wanted.refusals == ()
    assert wanted.settings == (("legacy-peer-deps = true",) if ".npmrc" in files else ())


@pytest.mark.parametrize(
    ("files", "told"),
    [
        *[
            ({"package.json": {"devDependencies": {"x": spec}}}, spec)
            for spec in ("git+https://a.org/x.git", "github:a/x", "a/x", "file:../x", "https://a.org/x.tgz", "link:./x")
        ],
        ({"package.json": {"dependencies": {"x": "workspace:*"}}}, "workspace:*"),
        ({"package.json": {"dependencies": {"x": "npm:git+ssh://a.org/x"}}}, "git+ssh"),
        ({"package.json": {"dependencies": {"../x": "1.0.0"}}}, "../x"),
        ({"package.json": {"dependencies": {"x": 1}}}, "no plain requirement"),
        ({"package.json": {"dependencies": ["x"]}}, "no object"),
        ({"package.json": {**PLAIN, "workspaces": ["packages/*"]}}, "workspaces"),
        ({"package.json": {**PLAIN, "overrides": {"a": {"b": "git://a.org/b"}}}}, "git://a.org/b"),
        ({"package.json": "{"}, "cannot be understood"),
        ({"package.json": "[" * 100_000}, "cannot be understood"),
        ({"package.json": PLAIN, "package-lock.json": "{"}, "package-lock.json"),
        (locked(resolved="https://elsewhere.example/express.tgz"), "elsewhere.example"),
        (locked(resolved="https://registry.npmjs.org@elsewhere.example/express.tgz"), "elsewhere.example"),
        (locked(resolved="git+ssh://git@github.com/a/x.git#1"), "git+ssh"),
        (locked(resolved="../x", link=True), "link"),
        (
            {"package.json": PLAIN, "package-lock.json": {"dependencies": {"x": {"version": "git+https://a.org/x"}}}},
            "git",
        ),
        ({"package.json": PLAIN, ".npmrc": "registry=https://elsewhere.example/\n"}, "registry"),
        ({"package.json": PLAIN, ".npmrc": "@a:registry=https://elsewhere.example/\n"}, "registry"),
        ({"package.json": PLAIN, ".npmrc": "//elsewhere.example/:_authToken=${SECRET}\n"}, "_authtoken"),
        ({"package.json": PLAIN, ".npmrc": "ignore-scripts=false\n"}, "ignore-scripts"),
        ({"package.json": PLAIN, ".npmrc": "save-prefix=${HOME}\n"}, "save-prefix"),
    ],
)
def test_what_is_no_plain_package_is_refused(files: dict[str, Any], told: str) -> None:
    refusals = read(files).refusals
    assert told in " ".join(refusals)


def test_a_mirror_that_is_configured_may_be_named_and_nothing_asked_for_is_nothing() -> None:
    files = locked(resolved="https://mirror.example/express.tgz")
    assert read(files).refusals
    assert read(files, hosts=("mirror.example",)).refusals == ()
    for nothing in ({}, {"README.md": ""}, {"package.json": {"scripts": {"x": "y"}, "dependencies": {}}}):
        assert not read(nothing).wanted
        assert read(nothing).refusals == ()


class Npm:
    """A runner that makes a folder in place of npm, or fails."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[str, ...], dict[str, str]]] = []
        self.exit_code = 0

    async def run(self, argv: Sequence[str], *, cwd: Path, **options: Any) -> CommandResult:
        self.calls.append((tuple(argv), options["env"]))
        if self.exit_code == 0:
            await asyncio.to_thread((cwd / "node_modules").mkdir)
        return CommandResult(argv=tuple(argv), exit_code=self.exit_code, output="npm said so\n")


async def test_packages_are_installed_once_per_manifest_and_lock(tmp_path: Path) -> None:
    npm, root = Npm(), tmp_path / "root"
    root.mkdir()
    variables = {"NPM_CONFIG_REGISTRY": "https://mirror.example/", "SECRET_KEY": "hidden"}
    environments = NodeEnvironments(tmp_path / "kept", npm, CommandSettings(), variables)
    assert (await environments.ensure(root, "US-1")).modules is None
    (root / "package.json").write_text(json.dumps(PLAIN))
    first = await environments.ensure(root, "US-1")
    assert first.modules == tmp_path / "kept" / "US-1" / "node_modules"
    assert (await environments.ensure(root, "US-1")) == first
    argv, env = npm.calls[0]
    assert argv[:3] == ("npm", "install", "--ignore-scripts")
    assert env == {"NPM_CONFIG_REGISTRY": "https://mirror.example/"}
    assert len(npm.calls) == 1
    (root / "package-lock.json").write_text('{"packages": {}}')
    await environments.ensure(root, "US-1")
    assert [call[0][1] for call in npm.calls] == ["install", "ci"]
    npm.exit_code = 1
    (root / "package.json").write_text(json.dumps({"dependencies": {"x": "9"}}))
    failed = await environments.ensure(root, "US-1")
    assert (failed.modules, failed.output) == (None, "npm said so\n")
    assert "exit code 1" in (failed.problem or "")
    npm.exit_code = 0
    assert (await environments.ensure(root, "US-1")).problem is None, "what is half made is made again"
    for key in ("..", "a/b", ""):
        with pytest.raises(ValueError, match="cannot name"):
            await environments.ensure(root, key)


async def test_the_link_comes_and_goes_and_never_takes_the_place_of_what_is_there(tmp_path: Path) -> None:
    modules, root = tmp_path / "modules", tmp_path / "root"
    modules.mkdir()
    root.mkdir()
    link = root / "node_modules"
    async with linked(root, None):
        assert not link.exists()
    link.symlink_to(modules)  # left by a process that was killed
    async with linked(root, modules):
        assert link.resolve() == modules
    assert list(root.iterdir()) == []
    async with linked(root, modules):
        link.unlink()
        link.mkdir()  # `npm install` in a command does so
    assert link.is_dir()
    async with linked(root, modules):
        assert not link.is_symlink()
    assert link.is_dir()
    assert modules.is_dir()
