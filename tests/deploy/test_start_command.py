"""The container's start command as the platform gives it: nothing but its variables, and a sprint from end to end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.recipe import ROOT, copied, healthcheck, railway, start_command, variables
from tests.git.git_samples import git, user_repo
from tests.support import ALL_PASS, Team, suite_text, write_backlog

TOKEN = "Zt7k3Rq9" * 5
KEY = "sk-ant-api03-" + "k3Rq9Zt7" * 5
STARTER = """#!{python}
import sys
sys.path.insert(0, {place!r})
from orchestrator.__main__ import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `orchestrator` and `python` in it, made of nothing but what the Dockerfile copies."""
    folder = tmp_path_factory.mktemp("image")
    for path in copied():
        for name in git(ROOT, "ls-files", path).splitlines():
            target = folder / "src" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=folder / "src", check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "place")
    for path in (folder / "place/orchestrator").rglob("*.py"):  # what is compiled already is not compiled again
        own = ROOT / path.relative_to(folder / "place")
        if (compiled := Path(cache_from_source(str(own)))).is_file():
            os.utime(path, ns=(own.stat().st_atime_ns, own.stat().st_mtime_ns))
            target = Path(cache_from_source(str(path)))
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(compiled.read_bytes())
    starter = folder / "bin/orchestrator"
    starter.parent.mkdir()
    starter.write_text(STARTER.format(python=sys.executable, place=str(folder / "place")))
    starter.chmod(0o755)
    (starter.parent / "python").symlink_to(sys.executable)
    return starter.parent


class Service:
    """The start command at work; `lines` are what it has printed."""

    def __init__(self, image: Path, volume: Path, **own: str) -> None:
        with socket.create_server(("", 0)) as found:
            self.port = found.getsockname()[1]
        path = variables()["PATH"].replace("/opt/orchestrator/bin", str(image)).replace("$PATH", "/usr/bin:/bin")
        given = {  # what the platform gives
            "PORT": str(self.port),
            "RAILWAY_VOLUME_MOUNT_PATH": str(volume),
            "RAILWAY_VOLUME_NAME": "orchestrator-volume",
            "RAILWAY_PROJECT_NAME": "p",
            "RAILWAY_ENVIRONMENT_NAME": "production",
            "RAILWAY_SERVICE_NAME": "orchestrator",
            "RAILWAY_REPLICA_ID": "r-1",
            "RAILWAY_DEPLOYMENT_ID": "d-1",
            "RAILWAY_RUN_UID": "0",
            "RAILWAY_GIT_COMMIT_SHA": "0" * 40,
        }
        self.environment = {**variables(), "PATH": path, **given, **own}
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            start_command(), cwd=volume, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in list(self.lines)]

    def told(self, name: str, **data: str) -> bool:
        """Whether there was such an event."""
        found = [event for event in self.events() if event["event"] == name]
        return any(all(event.get(key) == value for key, value in data.items()) for event in found)

    def until(self, what: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not what():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end, self.lines[-20:]
            time.sleep(0.05)

    def ask(self, path: str, *, host: str = "127.0.0.1", body: bytes | None = None, token: str = "") -> int:
        headers = {"Host": "healthcheck.railway.app"} | ({"Authorization": f"Bearer {token}"} if token else {})
        request = urllib.request.Request(
            f"http://{host}:{self.port}{path}", body, headers, method="PUT" if body else "GET"
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def end(self) -> tuple[int, str]:
        """SIGTERM; its exit code and what it printed on stderr, within the platform's patience."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(railway()["deploy"]["drainingSeconds"])
        self._reader.join(10)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def services() -> Iterator[list[Service]]:
    begun: list[Service] = []
    yield begun
    for service in begun:
        service.process.kill()
        service.process.communicate()


def settings_of(tmp_path: Path, team: Team, origin: Path) -> dict[str, str]:
    """What the user sets."""
    return {
        "ORCHESTRATOR_TOKEN": TOKEN,
        "ANTHROPIC_API_KEY": KEY,
        "ORCHESTRATOR_PROVIDER__SCRIPT": str(team.write(tmp_path / "team.jsonl")),
        "ORCHESTRATOR_SANDBOX__MODE": "plain",
        "ORCHESTRATOR_SERVE__REPO": f"file://{origin}",
        "ORCHESTRATOR_SERVE__PUSH_TO": "sprints/{sprint}",
    }


def submitted(service: Service, tmp_path: Path) -> None:
    """A backlog of one story is handed in from a laptop."""
    backlog = write_backlog(tmp_path / "backlog.csv", "US-001")
    assert service.ask("/api/v1/backlogs/b?format=csv", body=backlog.read_bytes(), token="another") == 401
    laptop = {"PATH": service.environment["PATH"], "ORCHESTRATOR_TOKEN": TOKEN}
    submit = ["orchestrator", "submit", str(backlog), "--url", f"http://127.0.0.1:{service.port}"]
    handed_in = subprocess.run(submit, cwd=tmp_path, env=laptop, capture_output=True, text=True, check=False)
    assert handed_in.returncode == 0, handed_in.stderr


def test_from_a_deployment_to_a_pushed_result_and_a_clean_end(
    image: Path, volume: Path, tmp_path: Path, services: list[Service]
) -> None:
    origin, team = user_repo(tmp_path / "origin", {"README.md": "hello\n"}), Team()
    team.good("US-001")
    # Its suite is run by pytest in `make soak`.
    tests = {"ORCHESTRATOR_TEST__CUSTOM": ALL_PASS.removeprefix("test.custom=")}
    service = Service(image, volume, **settings_of(tmp_path, team, origin), **tests)
    services.append(service)
    service.until(lambda: service.ask(railway()["deploy"]["healthcheckPath"]) == 200)
    assert [service.ask("/healthz", host=host) for host in ("127.0.0.1", "[::1]")] == [200, 200]
    assert [service.ask("/metrics", token=token) for token in ("", TOKEN)] == [401, 200]
    assert subprocess.run(healthcheck(), env=service.environment, check=False).returncode == 0
    submitted(service, tmp_path)
    service.until(lambda: service.told("sprint_ended"))
    assert service.end() == (0, "settings: the packaged ones\n")
    assert git(origin, "for-each-ref", "--format=%(refname:short)", "refs/heads/sprints") == "sprints/SP-001"
    assert git(origin, "show", "sprints/SP-001:us_001.py").startswith("def value()")
    assert {"timestamp", "level", "message", "event"} <= set.intersection(*(set(event) for event in service.events()))
    assert (volume / ".orchestrator/reports/SP-001/report.json").is_file()
    assert not [line for line in service.lines if TOKEN in line or KEY in line]
    assert sorted(os.listdir(volume)) == [".orchestrator"]


@pytest.mark.soak
def test_the_next_deployment_goes_on_with_a_database_service(
    image: Path, volume: Path, tmp_path: Path, services: list[Service], fresh_postgres: Callable[[], str]
) -> None:
    origin, team = user_repo(tmp_path / "origin", {"README.md": "hello\n"}), Team()
    team.plan("US-001", ["us_001.py"])
    team.deliver("US-001", 1, {"us_001.py": "def value():\n    return 1\n"}, latency_ms=4000)
    team.suite("US-001", suite_text("US-001", 1))
    own = {**settings_of(tmp_path, team, origin), "DATABASE_URL": fresh_postgres()}
    services.append(Service(image, volume, **own))
    services[0].until(lambda: services[0].ask("/readyz") == 200)
    submitted(services[0], tmp_path)
    services[0].until(lambda: services[0].told("turn_finished", purpose="breakdown"))
    assert services[0].end() == (0, "settings: the packaged ones\n")
    services.append(Service(image, volume, **own))
    services[1].until(lambda: services[1].told("sprint_ended"))
    assert services[1].end() == (0, "settings: the packaged ones\n")
    assert not services[1].told("turn_finished", purpose="breakdown")
    assert git(origin, "show", "sprints/SP-001:us_001.py").startswith("def value()")
    assert not list(volume.rglob("*.sqlite"))


@pytest.mark.soak
def test_without_a_token_it_does_not_begin(image: Path, volume: Path, services: list[Service]) -> None:
    model = {"ORCHESTRATOR_PROVIDER__NAME": "anthropic", "ORCHESTRATOR_PROVIDER__MODEL": "m", "ANTHROPIC_API_KEY": KEY}
    service = Service(image, volume, ORCHESTRATOR_SANDBOX__MODE="plain", **model)
    services.append(service)
    code = service.process.wait(60)
    assert service.process.stderr is not None
    told = service.process.stderr.read()
    assert (code, "ORCHESTRATOR_TOKEN" in told, KEY in told) == (2, True, False)
