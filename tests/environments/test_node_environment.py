"""Packages of Node projects: installed by a real npm from a registry on loopback, linked into trees."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from orchestrator.checks.environment import closed_hosts
from orchestrator.core.suite import Access, Tier
from orchestrator.environments.node import NodeEnvironments, NodePackages
from orchestrator.environments.node_layers import linked
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.fetch_proxy import FetchNetwork
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import EnvironmentSettings
from tests.environments.projects import write_tree
from tests.package_index import Server, node_package, registry
from tests.sandboxes import CONFINED, PATH, TIERS, sandbox
from tests.support import needs_node

HOSTILE = r"""
const fs = require('fs'), http = require('http'), path = require('path')
const told = {environment: process.env, found: []}
const {SOURCES, OUTSIDE, PORT, http_proxy} = process.env
const home = path.dirname(OUTSIDE)
const tries = {
  sources: () => fs.readFileSync(SOURCES),
  keys: () => fs.readFileSync(path.join(home, '.netrc')),
  processes: () => fs.readdirSync('/proc').filter(name => /^\d+$/.test(name))
    .some(pid => { try { return fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes('SOME_API_KEY') } catch { } }),
  signals: () => { process.kill(Number(process.env.OTHER), 0); return true },
  outside: () => fs.writeFileSync(path.join(OUTSIDE, 'left'), 'x') ?? true,
  cache: () => fs.mkdirSync(path.join(home, 'layers', '.npm-cache', 'x')) ?? true,
  builds: () => fs.mkdirSync(path.join(home, 'layers', '.builds', 'x'), {recursive: true}) ?? true,
  layers: () => fs.readdirSync(path.join(home, 'layers')).includes('other'),
}
for (const [name, attempt] of Object.entries(tries)) {
  try { if (attempt()) told.found.push(name) } catch { }
}
try { fs.writeFileSync('../left/index.js', 'changed') } catch { }
const get = (name, options) => new Promise(done => {
  const asked = http.get({timeout: 3000, ...options}, answer => {
    if (answer.statusCode < 400) told.found.push(name)
    done()
  })
  asked.on('error', done).on('timeout', () => { asked.destroy(); done() })
})
const proxy = http_proxy && new URL(http_proxy)
const by = proxy && {
  host: proxy.hostname, port: proxy.port,
  headers: {'proxy-authorization': 'Basic ' + Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64')},
}
Promise.all([
  get('loopback', {host: '127.0.0.1', port: PORT}),
  by && get('loopback by the proxy', {...by, path: `http://127.0.0.1:${PORT}/`}),
  by && get('private by the proxy', {...by, path: 'http://169.254.169.254/latest/meta-data/'}),
]).then(() => fs.writeFileSync('told.json', JSON.stringify(told)))
"""


def environments(
    folder: Path, server: Server, tier: Tier, own: EnvironmentSettings | None = None, **variables: str
) -> NodeEnvironments:
    machine = {"HOME": str(folder), "PATH": PATH, "NPM_CONFIG_REGISTRY": f"{server.url}/npm/", **variables}
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier), network=FetchNetwork(machine))
    handed_on = CommandSettings(install_env=("NPM_CONFIG_REGISTRY", "SOURCES", "OUTSIDE", "PORT", "OTHER"))
    return NodeEnvironments(folder / "layers", runner, handed_on, machine, own=own)


def ran(found: NodePackages, package: str) -> bool:
    assert found.problem is None, f"{found.problem}\n{found.output}"
    assert found.modules is not None
    return (found.modules / package / "ran").exists()


@needs_node
async def test_packages_are_installed_once_for_all_who_ask_for_the_same(tmp_path: Path) -> None:
    with registry() as server:
        for name in ("left", "right"):
            node_package(server, name)
        first = write_tree(tmp_path / "first", {"package.json": json.dumps({"dependencies": {"left": "^1.0.0"}})})
        second = write_tree(tmp_path / "second", {"package.json": json.dumps({"dependencies": {"left": "^1.0.0"}})})
        packages = environments(tmp_path, server, CONFINED[0])
        one, two = await asyncio.gather(packages.ensure(first), packages.ensure(second))
        assert one == two
        assert one.modules is not None
        asked = len(server.asked)
        assert (await environments(tmp_path, server, CONFINED[0]).ensure(first)) == one
        assert len(server.asked) == asked
        (second / "package.json").write_text(json.dumps({"dependencies": {"left": "^1.0.0", "right": "1"}}))
        other = await packages.ensure(second)
        fetched = [path for path, _ in server.asked[asked:]]
        assert "/npm/right/-/right-1.0.0.tgz" in fetched
        assert "/npm/left/-/left-1.0.0.tgz" not in fetched, "it is in npm's cache"
        assert other.modules is not None
        assert (other.modules / "right").is_dir()
        assert not (one.modules / "right").exists()
        (second / "package.json").write_text(json.dumps({"dependencies": {"absent": "1"}}))
        failed = await packages.ensure(second)
        assert failed.problem == "`npm install` could not install the packages (exit code 1)."
        assert "E404" in failed.output
        assert len(os.listdir(tmp_path / "layers")) == 3, "two layers and the cache; nothing half-made is left"


@needs_node
async def test_a_workspaces_projects_find_each_other_and_tools_have_room_for_caches(tmp_path: Path) -> None:
    files = {
        "package.json": json.dumps({"workspaces": ["packages/*"], "devDependencies": {"tool": "1"}}),
        "packages/a/package.json": json.dumps({"name": "@x/a", "version": "1.0.0", "bin": "cli.js"}),
        "packages/a/index.js": "module.exports = require('left')\n",
        "packages/a/cli.js": "#!/usr/bin/env node\nconsole.log('of a')\n",
        "packages/b/package.json": json.dumps({"name": "b", "dependencies": {"@x/a": "1.0.0", "left": "1"}}),
        "packages/b/index.js": "console.log(require('@x/a'), require('left'))\n",
    }
    root = write_tree(tmp_path / "root", files)
    (root / "packages/a/cli.js").chmod(0o755)
    with registry() as server:
        node_package(server, "left")
        node_package(server, "tool", {"tool.js": "#!/usr/bin/env node\nconsole.log('tool')\n"}, bin={"tool": "tool.js"})
        found = await environments(tmp_path, server, CONFINED[0]).ensure(root)
        assert found.problem is None, found.output
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(CONFINED[0]))
    command = (
        "node packages/b/index.js; cd node_modules; .bin/tool; .bin/a; mkdir .cache && touch .cache/x && echo kept"
    )
    async with linked(root, found.modules):
        argv = ["/bin/sh", "-c", command]
        done = await runner.run(argv, cwd=root, access=Access(readable=found.folders))
        touched = await runner.run(
            ["/bin/sh", "-c", "echo x > node_modules/left/index.js"], cwd=root, access=Access(readable=found.folders)
        )
    assert done.output == "left left\ntool\nof a\nkept\n"
    assert not touched.ok, "what others share is not written to"
    assert {*os.listdir(root), *os.listdir(root / "packages/b")} == {"package.json", "packages", "index.js"}


@needs_node
async def test_install_scripts_run_where_people_or_the_list_allow_them(tmp_path: Path) -> None:
    script = {"install": "node -e \"require('fs').writeFileSync('ran', '')\""}
    with registry() as server:
        for name in ("sqlite3", "left"):
            node_package(server, name, scripts=script)
        node_package(server, "sharp", scripts=script, born="2999-01-01")
        node_package(server, "bcrypt", scripts={"install": "echo no compiler; exit 3"})
        # `canvas` is no other's, whatever it is called here; one that fails keeps nothing else from being there.
        more = {"canvas": "npm:left@1", "bcrypt": "1"}
        wanted = {"sqlite3": "1", "left": "1", "sharp": "1"}
        root = write_tree(tmp_path / "root", {"package.json": json.dumps({"dependencies": wanted | more})})
        found = await environments(tmp_path, server, CONFINED[0]).ensure(root)
        assert [ran(found, name) for name in ("sqlite3", "left", "sharp", "canvas")] == [True, False, False, False]
        assert "an install script failed: bcrypt: " in found.note
        assert "no compiler" in found.note
        assert "install scripts were not run of: left (environment.install_scripts)" in found.note
        assert "install scripts were not run of: sharp 1.0.0, less than 30 days old" in found.note
        (root / "package.json").write_text(json.dumps({"dependencies": wanted}))
        named = EnvironmentSettings(install_scripts=("left", "sharp"))
        found = await environments(tmp_path, server, CONFINED[0], named).ensure(root)
        assert [ran(found, name) for name in ("sqlite3", "left", "sharp")] == [False, True, True]


@needs_node
async def test_packages_that_a_plan_brings_are_tried_with_their_scripts(tmp_path: Path) -> None:
    script = {"install": "node -e \"require('fs').writeFileSync('ran', String(Math.random()))\""}
    asks = "curl -sS https://downloads.example.org/bcrypt.node || exit 3"
    with registry() as server:
        for name in ("sqlite3", "left"):
            node_package(server, name, scripts=script)
        node_package(server, "right", dependencies={"left": "1"})
        node_package(server, "bcrypt", scripts={"install": asks})
        root = write_tree(tmp_path / "root", {"package.json": json.dumps({"dependencies": {"left": "1"}})})
        empty = write_tree(tmp_path / "empty", {"package.json": "{}"})
        packages = environments(tmp_path, server, CONFINED[0])
        assert (await packages.check_new(root, {"right": "1"})).had, "its dependency is there already"
        assert (await packages.check_new(empty, {"right": "1", "sqlite3": "1"})).closed == ("left",)
        assert (await packages.check_new(empty, {"sqlite3": "1"})).had
        wanted = {"dependencies": {"sqlite3": "1", "right": "1"}}
        (root / "package.json").write_text(json.dumps(wanted))
        assert ran(await packages.ensure(root), "sqlite3")
        made = [path.read_text() for path in tmp_path.glob("layers/*/node_modules/sqlite3/ran")]
        assert len(made) == 2
        assert len({*made}) == 1, "what the script made is taken for the next layer"
        failed = await packages.check_new(empty, {"bcrypt": "1"})
        assert failed.failed.startswith("bcrypt: "), failed
        assert closed_hosts(failed.failed) == ("downloads.example.org",)


@needs_node
@pytest.mark.parametrize("tier", [TIERS[0], *(pytest.param(tier, marks=pytest.mark.soak) for tier in TIERS[1:])])
async def test_a_hostile_install_script_gets_nothing(tier: Tier, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "layers" / "other").mkdir(parents=True)
    (tmp_path / "layers" / ".npm-cache").mkdir()
    (tmp_path / ".netrc").write_text("password")
    wanted = {"dependencies": {"evil": "1", "left": "1"}}
    root = write_tree(tmp_path / "root", {"package.json": json.dumps(wanted), "secret.js": "x"})
    other = await asyncio.create_subprocess_exec("sleep", "600", env={"PATH": PATH, "SOME_API_KEY": "of another"})
    try:
        with registry() as server, registry({"/": b"private"}) as private:
            node_package(server, "evil", {"evil.js": HOSTILE}, scripts={"postinstall": "node evil.js"})
            node_package(server, "left")
            own, machine = EnvironmentSettings(install_scripts=("evil",)), {"SOURCES": str(root / "secret.js")}
            machine |= {"OUTSIDE": str(outside), "PORT": private.place.partition(":")[2], "SOME_API_KEY": "hidden"}
            found = await environments(tmp_path, server, tier, own, OTHER=str(other.pid), **machine).ensure(root)
    finally:
        other.kill()
        await other.wait()
    assert found.modules is not None, found.output
    assert found.failed == ""
    told = json.loads((found.modules / "evil" / "told.json").read_text())
    assert "SOME_API_KEY" not in told["environment"]
    assert (found.modules / "left" / "index.js").read_text() == "module.exports = 'left'\n", "each has its own copy"
    if tier is Tier.PLAIN:  # so these are what the others keep it from
        assert {"sources", "keys", "layers", "loopback"} <= {*told["found"]}
        return
    # Folders on the way to what is mounted are the sandbox's own.
    assert set(told["found"]) <= {"builds"}
    assert not (tmp_path / "layers" / ".builds" / "x").exists()
    assert private.asked == []
    assert list(outside.iterdir()) == []
