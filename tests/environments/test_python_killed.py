"""Environments whose making was killed, that ran out of disk, or that two wanted at once: the next one is whole."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.checks.environment import environment_cause
from orchestrator.core.suite import RunProblem, TestReport
from tests.environments.environment_driver import ensure
from tests.environments.test_python_environment import PYTEST, wheel
from tests.environments.test_python_project import BACKEND, project
from tests.package_index import Server, registry
from tests.support import plain_environment
from tests.zygote import ROOT, Forked, zygote

LARGE = 8 << 20
"""Bytes of one of the packages."""
TINY = "tiny-1.0-py3-none-any.whl"
CODE = (
    "import importlib.metadata, subprocess, tiny; from itself._version import version as v; assert v == '0.0.0';"
    "assert importlib.metadata.version('itself') == v; assert tiny.VALUE == 5;"
    "assert subprocess.run([{itself!r}], capture_output=True).stdout == b'main\\n'"
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A registry with a few packages."""
    folder = tmp_path_factory.mktemp("wheels")
    wheel(folder, "tiny", "1.0", "VALUE = 5\n")
    wheel(folder, "pytest", PYTEST, "")
    wheel(folder, "large", "1.0", f"VALUE = {'0' * LARGE!r}\n")
    with registry() as server:
        for name in ("tiny", "pytest", "large"):
            server.add_wheel(next(folder.glob(f"{name}-*.whl")), name)
        yield server


@pytest.fixture(scope="module")
def expected(index: Server, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What is kept after nobody disturbed it."""
    folder = tmp_path_factory.mktemp("calm")
    root = project(folder)
    found = asyncio.run(ensure(folder / "kept", root, index.url))
    assert (found.problem, found.note) == (None, "")
    assert any("tiny/__pycache__/" in name for name in files(folder / "kept")), "compiled once, for all"
    return files(folder / "kept")


@pytest.fixture(autouse=True)
def undisturbed(index: Server) -> Iterator[None]:
    yield
    index.before = lambda _path: None


def files(kept: Path) -> list[str]:
    """All paths below a folder."""
    return sorted(str(path.relative_to(kept)) for path in kept.rglob("*"))


def started(kept: Path, root: Path, index: Server, *moment: str) -> Forked:
    words = [str(kept), str(root), index.url, *moment]
    return zygote().start("tests.environments.environment_driver", words, cwd=ROOT, env=plain_environment())


def killed(child: Forked, kept: Path) -> None:
    """Wait for its death, and for that of what it has started."""
    if child.returncode is None:
        child.communicate(timeout=60)
    assert child.returncode == -9
    while any(str(kept).encode() in command for command in commands()):
        time.sleep(0.01)


def commands() -> Iterator[bytes]:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield place.read_bytes()
        except OSError:
            continue


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_killed_again_and_again(index: Server, expected: list[str], tmp_path: Path) -> None:
    kept, root = tmp_path / "kept", project(tmp_path)

    def torment(event: int) -> bool:
        """Whether it ended by itself; else the next one begins with what is left."""
        child = started(kept, root, index, *[r"kept/"] * event)
        child.communicate(timeout=60)
        if child.returncode == 0:
            assert files(kept) == expected
            shutil.rmtree(kept)
        else:
            killed(child, kept)
        return child.returncode == 0

    ended = [await asyncio.to_thread(torment, event) for event in range(1, 2000, 17)]
    assert any(ended)
    assert not all(ended)
    await is_whole(kept, root, index)
    assert files(kept) == expected


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Callable[[], object]]:
    """What makes it larger."""
    place.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(place), "-o"]
    mounted = subprocess.run([*mount, f"size={LARGE // 2}"], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr}")
    try:
        yield lambda: subprocess.run([*mount, f"remount,size={LARGE * 16}"], check=True)
    finally:
        subprocess.run(["umount", "-l", place], check=True)


async def is_whole(kept: Path, root: Path, index: Server) -> None:
    """A further process gets a whole environment."""
    found = await ensure(kept, root, index.url)
    assert (found.problem, found.note) == (None, "")
    assert found.python is not None
    code = CODE.format(itself=str(found.python.with_name("itself")))
    done = await asyncio.create_subprocess_exec(found.python, "-c", code, env={}, stderr=asyncio.subprocess.PIPE)
    said = (await done.communicate())[1]
    assert done.returncode == 0, said.decode()


async def test_killed_while_the_project_is_built(index: Server, expected: list[str], tmp_path: Path) -> None:
    kept, root = tmp_path / "kept", project(tmp_path)
    made, half = root / "src" / "itself" / "_version.py", "    (here / 'src/itself/_version.py').write_text('vers')\n"
    wait = "    import time\n    while (here / 'wait').exists():\n        time.sleep(0.01)\n"
    start = "    here = pathlib.Path.cwd()\n"
    (root / "backend.py").write_text(BACKEND.replace(start, start + half + wait))
    (root / "wait").touch()

    def kill() -> None:
        child = started(kept, root, index)
        while not (made.exists() and made.read_text() == "vers"):
            assert child.poll() is None
            time.sleep(0.01)
        child.kill()
        killed(child, kept)

    await asyncio.to_thread(kill)
    (root / "wait").unlink()
    await is_whole(kept, root, index)
    assert files(kept) == expected
    made.unlink()  # as a reset of the tree does
    moment = [r"^os\.rename .*, '_version\.py'"]
    await asyncio.to_thread(lambda: killed(started(kept, root, index, *moment), kept))
    assert not made.exists(), "half of it has another name"
    await is_whole(kept, root, index)


@pytest.mark.parametrize("part", ["layers", pytest.param("environments", marks=pytest.mark.soak)])
async def test_a_full_disk_is_named_and_nothing_half_is_left(part: str, index: Server, tmp_path: Path) -> None:
    kept, root = tmp_path / "kept", project(tmp_path)
    (root / "requirements.txt").write_text("large\n")
    with small_disk(kept / part) as grow:
        if part == "environments":  # where nothing large is ever put
            with contextlib.suppress(OSError), (kept / part / "filling").open("wb") as file:
                while True:
                    file.write(bytes(4096))
        found = await ensure(kept, root, index.url)
        report = TestReport(problem=RunProblem.INSTALL_FAILED, output=f"{found.problem}\n{found.output}")
        cause = environment_cause(report)
        assert cause is not None, found
        assert cause.code == "environment.disk"
        assert f"disk that holds `{kept / part}" in cause.message
        assert all((layer / "made.json").exists() for layer in (kept / "layers").iterdir())
        grow()
        await is_whole(kept, root, index)


async def test_two_sprints_that_want_the_same_at_once_get_one_layer(index: Server, tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    roots = [project(tmp_path / name) for name in ("one", "two")]
    both = threading.Barrier(2)

    def meet(path: str) -> None:
        if path.endswith(TINY):
            both.wait(60)

    index.before = meet

    def run() -> list[str]:
        for root in roots:
            (root.parent / "kept").mkdir()
            (root.parent / "kept" / "layers").symlink_to(tmp_path / "layers")
        children = [started(root.parent / "kept", root, index) for root in roots]
        return [child.communicate(timeout=60)[0] for child in children]

    said = await asyncio.to_thread(run)
    assert said == [f"{root.parent}/kept/environments/US-1/venv/bin/python\n" for root in roots]
    index.before = lambda _path: None
    for root in roots:
        await is_whole(root.parent / "kept", root, index)
    assert len(await asyncio.to_thread(os.listdir, tmp_path / "layers")) == 2, "one for the build, one to run with"
