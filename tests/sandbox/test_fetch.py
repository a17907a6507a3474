"""What steps that fetch can reach and see: real sockets on loopback, real installers, in every tier."""

import asyncio
import contextlib
import json
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import Access, CommandResult, Tier
from orchestrator.environments.node import NodeEnvironments
from orchestrator.environments.python_installer import Installer
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.fetch_proxy import Connections, FetchNetwork, NotOpen, is_public
from orchestrator.sandbox.fetch_sources import Place, npm_variables, read_sources
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import EnvironmentSettings
from tests.environments.test_python_environment import wheel
from tests.package_index import basic, certificate_in, node_package, proxy_to, registry
from tests.sandboxes import PATH, TIERS, sandbox

FETCH = Access(fetch=True)
NPM = shutil.which("npm")


def runner(tier: Tier, variables: Mapping[str, str] | None = None, hosts: tuple[str, ...] = ()) -> LimitedCommandRunner:
    network = FetchNetwork(variables or {}, hosts)
    return LimitedCommandRunner(CommandSettings(timeout_s=60), PATH, sandbox=sandbox(tier), network=network)


async def install(runner: LimitedCommandRunner, variables: Mapping[str, str], target: Path) -> CommandResult:
    """`tiny`, for an environment of its own in `target`."""
    installer = Installer({"HOME": "/nonexistent", **variables}, {}, None)
    env = await asyncio.to_thread(installer.environment)
    await runner.run([sys.executable, "-m", "venv", "--without-pip", "venv"], cwd=target)
    python = target / "venv" / "bin" / "python"
    return await runner.run(installer.install(python, "tiny"), cwd=target, env=env, access=FETCH)


SOAK_PLAIN = (*TIERS[:2], pytest.param(TIERS[2], marks=pytest.mark.soak))


@pytest.mark.parametrize("tier", SOAK_PLAIN)
@pytest.mark.parametrize("scheme", ["https", pytest.param("http", marks=pytest.mark.soak)])
async def test_a_registry_gets_the_credentials_that_the_step_never_sees(
    tier: Tier, scheme: str, tmp_path: Path
) -> None:
    wheel(tmp_path, "tiny", "1.0", "VALUE = 1\n")
    certificate = certificate_in(tmp_path) if scheme == "https" else None
    with registry(authorization=basic("me", "s3cret/"), certificate=certificate) as index:
        index.add_wheel(next(tmp_path.glob("*.whl")), "tiny")
        url = f"{scheme}://me:s3cret%2F@{index.place}/simple"
        pip = {"PIP_INDEX_URL": url, "PIP_CERT": str(tmp_path / "certificate.pem") if certificate else ""}
        fetching, target = runner(tier), tmp_path / "target"
        target.mkdir()
        done = await install(fetching, {name: value for name, value in pip.items() if value}, target)
        assert done.ok, done.output
        assert [*target.glob("venv/lib/*/site-packages/tiny/__init__.py")]
        assert {shown for _, shown in index.asked} == {basic("me", "s3cret/")}
        told = await fetching.run(["env"], cwd=target, env={"UV_INDEX": url, "A": "b"}, access=FETCH)
    assert "A=b\n" in told.output
    assert "s3cret" not in told.output
    assert index.place in told.output


DIRECT = """
import socket, sys
def tried(kind, port):
    try:
        with socket.socket(socket.AF_INET, *kind) as one:
            if "fast" in sys.argv:
                return one.sendto(b"x", 0x20000000, ("127.0.0.1", port))
            one.connect(("127.0.0.1", port))
            return "connected"
    except OSError as error:
        return error.strerror or error
for kind in ((socket.SOCK_STREAM,), (socket.SOCK_STREAM, 262)):
    print(tried(kind, int(sys.argv[1])))
"""
THROUGH = """
import os, sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=20).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
    except OSError as error:
        print(error)
sys.exit(3)
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_nothing_else_is_reached_read_or_left(tier: Tier, tmp_path: Path) -> None:
    (tmp_path / "step").mkdir()
    (tmp_path / "source.py").write_text("a project's")
    with registry({"/x": b"index"}) as index, registry({"/x": b"secret"}) as other:
        env = {"UV_DEFAULT_INDEX": f"{index.url}/simple"}
        fetching = runner(tier)
        argv = [sys.executable, "-c", THROUGH, f"{index.url}/x", f"{other.url}/x", f"https://{other.place}/"]
        seen = await fetching.run(argv, cwd=tmp_path / "step", env=env, access=FETCH)
        told = f"leads to the registries only; `{other.place}` is not among them: add it to environment.hosts"
        assert "index\n403 the network" in seen.output
        assert seen.output.count(told) == 2, f"to the program, and once at the end: {seen.output}"
        assert not other.asked
        direct = [sys.executable, "-c", DIRECT, other.place.partition(":")[2]]
        for more in ([], ["fast"]):
            seen = await fetching.run([*direct, *more], cwd=tmp_path / "step", access=FETCH)
            reached = {"connected", "1"} & set(seen.output.split())
            assert bool(reached) == (tier is Tier.PLAIN), seen.output
        seen = await fetching.run(["cat", str(tmp_path / "source.py")], cwd=tmp_path / "step", access=FETCH)
        assert seen.ok == (tier is Tier.PLAIN)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("tier", TIERS)
async def test_a_step_that_is_cancelled_takes_its_proxy_with_it(tier: Tier, tmp_path: Path) -> None:
    code = "import os; open('address', 'w').write(os.environ['HTTP_PROXY'])\nwhile True: pass"
    step = asyncio.ensure_future(runner(tier).run([sys.executable, "-c", code], cwd=tmp_path, access=FETCH))
    while not (tmp_path / "address").exists() or not (address := (tmp_path / "address").read_text()):
        await asyncio.sleep(0.01)
    step.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await step
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))):
        pass


async def test_hosts_of_the_settings_are_open_and_names_that_lead_inside_are_not(tmp_path: Path) -> None:
    with registry({"/x": b"more"}) as more:
        port = more.place.partition(":")[2]
        hosts = EnvironmentSettings(hosts=(more.place, f"localhost:{port}", "packages.example")).hosts
        step = runner(Tier.PLAIN, hosts=hosts)
        argv = [sys.executable, "-c", THROUGH, f"{more.url}/x", f"http://localhost:{port}/x"]
        seen = await step.run(argv, cwd=tmp_path, access=FETCH)
    assert seen.output.startswith("more\n403 ")
    assert "which is no public address" in seen.output
    assert len(more.asked) == 1
    for wrong in ("https://packages.example", "a/b", "me@packages.example", ""):
        with pytest.raises(ValueError):
            EnvironmentSettings(hosts=(wrong,))


async def test_a_name_is_resolved_once_and_no_address_of_it_may_be_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def resolve(host: object, port: int, **_: object) -> list[object]:
        asked.append(host)
        return [(0, 0, 0, "", (address, port)) for address in ("8.8.8.8", "169.254.169.254")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    connections = Connections(read_sources({}, {}, ("packages.example",)))
    with pytest.raises(NotOpen, match=r"leads to 169\.254\.169\.254"):
        await connections.tunnel(Place("packages.example", 443))
    with pytest.raises(NotOpen, match="is not among them"):
        await connections.tunnel(Place("packages.example", 22))
    assert asked == ["packages.example"]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *((text, True) for text in ("8.8.8.8", "2606:4700::1111", "64:ff9b::808:808")),
        *(
            (text, False)
            for text in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0")
        ),
        *(
            (text, False)
            for text in ("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1")
        ),
        *((text, False) for text in ("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fec0::1", "ff02::1")),
    ],
)
def test_addresses_of_the_internet(address: str, public: bool) -> None:
    assert is_public(address) == public


@pytest.mark.parametrize("tier", [TIERS[0], *(pytest.param(tier, marks=pytest.mark.soak) for tier in TIERS[1:])])
async def test_the_machines_own_proxy_is_gone_through_with_its_credentials(tier: Tier, tmp_path: Path) -> None:
    wheel(tmp_path, "tiny", "1.0", "")
    (tmp_path / "target").mkdir()
    with registry() as index, proxy_to(index.place) as (place, asked):
        index.add_wheel(next(tmp_path.glob("*.whl")), "tiny")
        index.files["/simple/tiny/"] = index.files["/simple/tiny/"].replace(index.url.encode(), b"")
        machine = {name: f"http://us:pa%40ss@{place}" for name in ("HTTP_PROXY", "https_proxy")}
        step = runner(tier, machine)
        pip = {"PIP_INDEX_URL": "http://packages.example/simple"}  # nobody resolves that here
        done = await install(step, pip, tmp_path / "target")
        assert done.ok, done.output
        assert ("GET", "http://packages.example/simple/tiny/", basic("us", "pa@ss")) in asked
        argv = [sys.executable, "-c", THROUGH, "https://pypi.org/"]
        seen = await step.run(argv, cwd=tmp_path, access=FETCH)
        assert asked[-1] == ("CONNECT", "pypi.org:443", basic("us", "pa@ss"))
        assert "pa@ss" not in seen.output
        spared = read_sources({}, {**machine, "no_proxy": "localhost, .example"})
        assert spared.upstream("http", Place("packages.example", 80)) is None
        assert spared.upstream("https", Place("pypi.org", 443)) is not None
    with pytest.raises(ConfigError, match="one of socks5: only those"):
        read_sources({"ALL_PROXY": "socks5://127.0.0.1:9"}, {})


@pytest.mark.skipif(NPM is None, reason="npm is not installed on this machine")
@pytest.mark.parametrize("tier", [TIERS[0], pytest.param(TIERS[1], marks=pytest.mark.soak)])
async def test_npm_fetches_by_its_users_settings_and_does_not_see_its_token(tier: Tier, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with registry(authorization="Bearer t0ken", certificate=certificate_in(tmp_path)) as index:
        node_package(index, "tiny")
        lines = [f"registry={index.url}/npm/", f"//{index.place}/npm/:_authToken=${{TOKEN}}"]
        lines += [f"cafile={tmp_path}/certificate.pem", "ignore-scripts=false"]
        (tmp_path / ".npmrc").write_text("\n".join(lines))
        (root / "package.json").write_text(json.dumps({"dependencies": {"tiny": "^1.0.0"}}))
        variables = {"HOME": str(tmp_path), "TOKEN": "t0ken"}
        packages = NodeEnvironments(tmp_path / "kept", runner(tier), CommandSettings(), variables)
        made = await packages.ensure(root)
        assert made.problem is None, made.output
        assert made.modules is not None
        assert (made.modules / "tiny" / "package.json").exists()
    given = await asyncio.to_thread(npm_variables, variables)
    assert "NPM_CONFIG_IGNORE_SCRIPTS" not in given
    assert "t0ken" not in str((await asyncio.to_thread(read_sources, given, {})).variables)
