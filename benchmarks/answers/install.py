"""Gets the peers, each optional: a virtual environment and a node folder below `.bench/`, versions as in peers.txt."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).parent / "peers.txt"
NEEDED = "# needed by them"
NPM = "npm:"


def wanted() -> dict[str, str]:
    """Package as in peers.txt, without extras → its line there."""
    lines = LIST.read_text(encoding="utf-8").partition(NEEDED)[0].splitlines()
    return {re.split(r"==|@|\[", line)[0]: line for line in lines if line and not line.startswith("#")}


@dataclass
class Bench:
    """The folder with what was installed, and what could not be."""

    folder: Path
    missing: dict[str, str] = field(default_factory=dict)
    """Package → why it is not there."""

    @property
    def python(self) -> Path:
        """The peers' interpreter."""
        return self.folder / "venv" / "bin" / "python"

    def environment(self) -> dict[str, str]:
        """What a worker needs to know."""
        return os.environ | {"BENCH_BAML": str(self.folder), "BENCH_NODE": str(self.folder / "node")}


def installed(folder: Path) -> Bench:
    """All peers that can be had, installed once per content of peers.txt."""
    bench = Bench(folder)
    stamp = folder / "installed.json"
    digest = hashlib.sha256(LIST.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists():
        said = json.loads(stamp.read_text(encoding="utf-8"))
        if said["digest"] == digest and not said["missing"]:
            return bench
    print("installing the peers into", os.path.relpath(folder), flush=True)
    shutil.rmtree(folder / "venv", ignore_errors=True)
    venv.create(folder / "venv", with_pip=True)
    pins = wanted()
    _python_packages(bench, {name: pin for name, pin in pins.items() if not name.startswith(NPM)})
    for name, pin in pins.items():
        if name.startswith(NPM):
            _node_package(bench, name, pin.removeprefix(NPM))
    if "baml-py" not in bench.missing:
        _baml_client(bench)
    stamp.write_text(json.dumps({"digest": digest, "missing": bench.missing}), encoding="utf-8")
    return bench


def _python_packages(bench: Bench, pins: dict[str, str]) -> None:
    """All at once; when that fails, one by one, so that one that cannot be had costs nobody else."""
    lines = (line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith(NPM))
    constraints = bench.folder / "constraints.txt"
    constraints.write_text("".join(re.sub(r"\[.*\]", "", line) + "\n" for line in lines), encoding="utf-8")
    pip = [str(bench.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(constraints)]
    if _told([*pip, *pins.values()], bench.folder):
        for name, pin in pins.items():
            why = _told([*pip, pin], bench.folder)
            if why:
                bench.missing[name] = why


def _node_package(bench: Bench, name: str, pin: str) -> None:
    folder = bench.folder / "node"
    folder.mkdir(exist_ok=True)
    if shutil.which("npm") is None or shutil.which("node") is None:
        bench.missing[name] = "node and npm are not there"
        return
    why = _told(["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(folder), pin], folder)
    if why:
        bench.missing[name] = why


def _baml_client(bench: Bench) -> None:
    source = bench.folder / "baml_src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(LIST.parent / "baml", source)
    why = _told([str(bench.folder / "venv" / "bin" / "baml-cli"), "generate", "--from", str(source)], bench.folder)
    if why:
        bench.missing["baml-py"] = why


def _told(argv: list[str], folder: Path) -> str:
    """The last line a command said when it failed, empty when it did not."""
    ended = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        return ""
    lines = (ended.stderr or ended.stdout).strip().splitlines()
    return lines[-1][:200] if lines else f"exit code {ended.returncode}"
