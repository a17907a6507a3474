"""`make fuzz`: every target for a while, guided by the coverage of orchestrator.answers; a finding ends it with 1."""

import argparse
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.fuzz.seeds import write_seeds
from tests.fuzz.targets import TARGETS, Broken

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".fuzz"
AT_ONCE = 2
SLOW_S = 60
"""libFuzzer's own limit for one input; the target `linear` is much stricter."""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; all when none is named")
    parser.add_argument("--seconds", type=int, default=60, metavar="S", help="for each target")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run a finding again, without the fuzzer")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
    return options


def _missing() -> str:
    try:
        import atheris  # noqa: F401
    except ImportError as error:
        return f"nothing was fuzzed: atheris is not there for Python {sys.version.split()[0]} ({error})"
    return ""


def _fuzz(name: str, seconds: int) -> int:
    """In this process, which libFuzzer ends."""
    import atheris

    work, findings = FOLDER / "corpus" / name, FOLDER / "findings"
    write_seeds(name, work)
    findings.mkdir(parents=True, exist_ok=True)
    arguments = [
        f"-max_total_time={seconds}",
        f"-timeout={SLOW_S}",
        f"-artifact_prefix={findings}/{name}-",
        "-max_len=1200",
        "-print_final_stats=1",
        "-verbosity=0",
        str(work),
    ]
    atheris.instrument_imports(include=["orchestrator.answers"])
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()
    return 0


def _child(name: str, seconds: int) -> tuple[str, bool, str]:
    command = [sys.executable, "-m", "tests.fuzz", "--child", "--seconds", str(seconds), name]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    return name, ended.returncode == 0, ended.stdout + ended.stderr


def _known() -> set[Path]:
    return set((FOLDER / "findings").glob("*"))


def shrunk(fails: Callable[[bytes], object], data: bytes) -> bytes:
    """A smaller input that fails as well, by leaving out ever smaller pieces until no single byte can go."""
    size = max(1, len(data) // 2)
    while True:
        at, before = 0, data
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            data, at = (shorter, at) if fails(shorter) else (data, at + size)
        if size == 1 and data == before:
            return data
        size = max(1, size // 2)


def broken(name: str, data: bytes) -> str:
    """Why the target fails on `data`, empty when it does not."""
    try:
        TARGETS[name](data)
    except Broken as why:
        return str(why)
    return ""


def _replay(file: Path) -> int:
    name = file.name.partition("-")[0]
    why = broken(name, file.read_bytes())
    print(f"{name}: {why or 'nothing is broken'}")
    return bool(why)


def _told(fresh: list[Path]) -> None:
    for file in fresh:
        name = file.name.partition("-")[0]
        small = file.read_bytes()
        if broken(name, small):
            small = shrunk(partial(broken, name), small)
        file.write_bytes(small)
        print(f"\n{name}: {broken(name, small) or 'the finding does not show without the fuzzer'}")
        print(f'  again: make fuzz ARGS="--replay {file.relative_to(ROOT)}"')


def main() -> int:
    """0 when nothing was found, 1 when something was, 2 when the fuzzer is not there."""
    options = _options()
    if options.replay:
        return _replay(options.replay)
    missing = _missing()
    if missing:
        print(missing, file=sys.stderr)
        return 2
    names = options.targets or list(TARGETS)
    if options.child:
        return _fuzz(names[0], options.seconds)
    known = _known()
    good = True
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, well, said in pool.map(lambda one: _child(one, options.seconds), names):
            runs = next((line.split()[-1] for line in said.splitlines() if "number_of_executed_units" in line), "?")
            print(f"{name}: {runs} inputs, {'nothing found' if well else 'FAILED'}", flush=True)
            good = good and well
            if not well and not _known() - known:
                print(said[-3000:])
    _told(sorted(_known() - known))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
