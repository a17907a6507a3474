"""Lock files follow their manifests: made by the real tools, from registries on loopback."""

import json
from pathlib import Path

from orchestrator.environments.lock_files import LockMaker
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.fetch_proxy import FetchNetwork
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from orchestrator.story.commands import locks_to_follow
from tests.package_index import Server, node_package, registry
from tests.sandboxes import CONFINED, PATH, sandbox
from tests.support import needs_node

LOCK = 'version = 1\nrequires-python = ">=3.11"\n'
PACKAGE = {"name": "shop", "version": "1.0.0", "scripts": {"preinstall": "exit 9"}}


def maker(folder: Path, server: Server) -> LockMaker:
    machine = {"HOME": str(folder), "PATH": PATH, "NPM_CONFIG_REGISTRY": f"{server.url}/npm/"}
    machine |= {"PIP_INDEX_URL": f"{server.url}/simple"}
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(CONFINED[0]), network=FetchNetwork(machine))
    return LockMaker(runner, CommandSettings(), machine, SandboxSettings())


@needs_node
async def test_a_lock_of_npm_follows_its_manifest(tmp_path: Path) -> None:
    with registry() as server:
        node_package(server, "left")
        node_package(server, "right", dependencies={"left": "1"})
        own = {"web/package.json": json.dumps({**PACKAGE, "dependencies": {"left": "1"}})}
        locks = maker(tmp_path, server)
        first = (await locks.follow(own, ("web/package-lock.json",))).files[0]
        assert {*json.loads(first.content)["packages"]} == {"", "node_modules/left"}
        own["web/package-lock.json"] = first.content
        assert (await locks.follow(own, ("web/package-lock.json",))).files == (), "nothing has changed"
        own["web/package.json"] = json.dumps({**PACKAGE, "dependencies": {"left": "1", "right": "^1.0.0"}})
        second = (await locks.follow(own, ("web/package-lock.json",))).files[0]
        assert json.loads(second.content)["packages"][""]["dependencies"] == {"left": "1", "right": "^1.0.0"}
        assert json.loads(first.content)["packages"]["node_modules/left"] in (
            json.loads(second.content)["packages"].values()
        )
        own["web/package.json"] = json.dumps({"dependencies": {"absent": "1"}})
        failed = await locks.follow(own, ("web/package-lock.json", "poetry.lock"))
        assert failed.files == ()
        assert ["failed" in failed.told[0], "E404" in failed.told[0]] == [True, True]
        assert failed.told[1] == "`poetry.lock` was left unchanged: poetry is not installed here"


async def test_a_lock_of_uv_follows_its_manifest(tmp_path: Path) -> None:
    page = b'<a href="/files/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>'
    with registry({"/simple/tiny/": page}) as server:
        server.files["/files/tiny-1.0-py3-none-any.whl"] = wheel_bytes(tmp_path)
        project = '[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.11"\n'
        texts = {"pyproject.toml": f'{project}dependencies = ["tiny"]\n', "uv.lock": LOCK}
        made = await maker(tmp_path, server).follow(texts, ("uv.lock",))
        assert made.told == ()
        assert 'name = "tiny"' in made.files[0].content


def wheel_bytes(folder: Path) -> bytes:
    from tests.environments.test_python_environment import wheel

    (folder / "links").mkdir()
    wheel(folder / "links", "tiny", "1.0", "")
    return next((folder / "links").glob("*.whl")).read_bytes()


def test_which_locks_are_to_follow() -> None:
    before = {"package.json": json.dumps(PACKAGE), "web/package.json": "{}", "pyproject.toml": "[project]\nname='a'\n"}
    paths = {"package-lock.json", "web/pnpm-lock.yaml", "uv.lock", "docs/uv.lock"}
    scripts = json.dumps({**PACKAGE, "scripts": {"test": "jest"}})
    assert locks_to_follow({"package.json": scripts}, before, paths) == (), "what it asks for is the same"
    more = {"web/package.json": json.dumps({"devDependencies": {"vite": "5"}})}
    assert locks_to_follow(more, before, paths) == ("package-lock.json", "web/pnpm-lock.yaml")
    more = {"pyproject.toml": "[project]\nname='a'\ndependencies=['x']\n"}
    assert locks_to_follow(more, before, paths) == ("uv.lock",)
