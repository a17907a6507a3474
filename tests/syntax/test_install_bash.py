"""What a real bash runs is what is read: generated lines, with installers in PATH that only log their words."""

import os
import random
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.syntax.install import install_targets

LINES = 300
PACKAGES = ("left-pad", "evil", "numpy")
CALLS = ("pip install {}", "npm i {}", "pip install -q {}", "npm install --save-dev {}", "pip --quiet install {}")
Dress = Callable[[random.Random, str], str]


def quoted(r: random.Random, line: str) -> str:
    """The same words, with quotes and backslashes a shell takes away again."""
    return " ".join("".join(r.choice((c, f"'{c}'", f'"{c}"', f"\\{c}", f"$'{c}'", f"''{c}")) for c in word)
                    for word in line.split(" "))  # fmt: skip


def ansi(r: random.Random, line: str) -> str:
    pick = [lambda c: f"\\x{ord(c):02x}", lambda c: f"\\{ord(c):03o}", lambda c: f"\\u{ord(c):04x}", lambda c: c]
    return " ".join(f"$'{''.join(r.choice(pick)(c) for c in word)}'" for word in line.split(" "))


def variables(r: random.Random, line: str) -> str:
    words = line.split(" ")
    place = r.randrange(len(words))
    value, words[place] = words[place], r.choice(("$V", "${V}", '"$V"', "${V:-x}", "${W:-$V}", "${W-$V}", "${V:+$V}"))
    return f"V={quoted(r, value)}{r.choice(('; ', chr(10), ' && '))}{' '.join(words)}"


def split_variable(r: random.Random, line: str) -> str:
    return r.choice((
        f"V={shlex.quote(line)}; $V", f"A=({line}); \"${{A[@]}}\"", f"set -- {line}; \"$@\"", f"set -- {line}; $*",
        f"V=; V+={shlex.quote(line)}; $V", f"read -r V <<< {shlex.quote(line)}; $V", line.replace(" ", "${IFS}"),
        f"IFS=,; V={line.replace(' ', ',')}; $V", f"printf -v V %s {shlex.quote(line)}; $V",
    ))  # fmt: skip


def braces(r: random.Random, line: str) -> str:
    return r.choice((f"{{{line.replace(' ', ',')}}}", line.replace("install", "in{stall,}").replace("npm", "{npm,}")))


def evaluated(r: random.Random, line: str) -> str:
    q = shlex.quote(line)
    return r.choice((
        f"eval {q}", f"eval {line}", f"sh -c {q}", f"bash -ec {q}", f"bash -c {q} x y", f"bash +o posix -c {q}",
        f"bash -c '\"$@\"' _ {line}", f"sh -c '$0 \"$@\"' {line}", f"trap {q} EXIT", f"env -S {q}", f"exec bash -c {q}",
    ))  # fmt: skip


def fed(r: random.Random, line: str) -> str:
    q = shlex.quote(line)
    return r.choice((
        f"echo {q} | sh", f"printf '%s\\n' {q} | bash", f"printf {q} | bash -s", f"bash <<< {q}",
        f"sh <<'E'\n{line}\nE",
        f"bash <<-E\n\t{line}\n\tE\n", f"echo {q} | {{ read -r L; $L; }}", f"echo {q} | (bash)", f"bash <(echo {q})",
        f". <(echo {q})", f"cat <<E | sh\n{line}\nE", f"echo {q} > f; sh f", f"cat > f <<E\n{line}\nE\n. ./f",
        f"echo {q} | env bash -", f"echo {q} | while read -r L; do eval \"$L\"; done", f"bash < <(echo {q})",
    ))  # fmt: skip


def wrapped(r: random.Random, line: str) -> str:
    return r.choice((
        "env X=1 {}", "nohup {}", "nice -n 3 {}", "timeout 5 {}", "timeout -s KILL 5 {}", "command {}",
        "builtin command {}",
        "! {}", "time {}", "({})", "{{ {}; }}", "if true; then {}; fi", "while {}; do break; done", "X=1 Y=2 {}",
        "true && {}", "false || {}", "for i in 1 2; do {}; done", "case x in x) {} ;; esac", "true | {}", "{} &\nwait",
        "$({})", "echo \"$({})\"", "echo `{}`", "X=$({})", "cat <({}) <&-", "cat <<E\n$({})\nE\n", "stdbuf -o0 {}",
        "f() {{ {}; }}; f", "function f {{ {}\n}}\nf", "setsid -w {}", "find . -maxdepth 0 -exec {} \\;", "exec {}",
        "echo | xargs {}", "shopt -s expand_aliases\nalias p='{}'\np", "coproc {}\nwait", "# x\n{} # y", "ls;{}>f 2>&1",
    )).format(line)  # fmt: skip


def called(r: random.Random, line: str) -> str:
    *head, last = line.split(" ")
    return r.choice((
        f"f() {{ {' '.join(head)} \"$1\"; }}; f {last}", f"f() {{ {' '.join(head)} $*; }}\nf {last}",
        f"for p in {last}; do {' '.join(head)} $p; done", f"echo {last} | xargs {' '.join(head)}",
        f"P={last}; {' '.join(head)} \"${{P}}\"", f"{' '.join(head)} $(echo {last})",
        f"{' '.join(head)} `printf {last}`",
        f"f() {{ shift; \"$@\"; }}; f x {line}", f"{head[0]} {' '.join(head[1:])} \\\n  {last}",
    ))  # fmt: skip


ONE_LINE: tuple[Dress, ...] = (quoted, ansi, braces)
DRESSES: tuple[Dress, ...] = (quoted, ansi, variables, split_variable, braces, evaluated, fed, wrapped, called)


def generated(r: random.Random) -> str:
    line = r.choice(CALLS).format(r.choice(PACKAGES))
    for dress in r.choices((called, evaluated, wrapped, fed), k=r.randint(0, 1)) + r.choices(DRESSES, k=1):
        line = dress(r, line)
    return line if r.random() < 0.5 else r.choice((evaluated, fed))(r, line)


@pytest.fixture
def logged(tmp_path: Path) -> Callable[[str], list[list[str]]]:
    """Runs a line with a bash whose installers only log their words; → the words of every call."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash on this machine")
    tools, log = tmp_path / "tools", tmp_path / "log"
    tools.mkdir()
    for tool in ("pip", "npm"):
        (tools / tool).write_text(f'#!/bin/sh\n{{ printf "%s\\0" {tool} "$@"; printf "\\n"; }} >> {log}\n')
        (tools / tool).chmod(0o755)
    environment = {"PATH": f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path)}

    def run(line: str) -> list[list[str]]:
        log.unlink(missing_ok=True)
        work = tmp_path / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        subprocess.run(
            [bash, "-c", line], env=environment, cwd=work, timeout=20, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        text = log.read_text() if log.exists() else ""
        return [entry.split("\0")[:-1] for entry in text.split("\n") if entry]

    return run


def packages(calls: list[list[str]]) -> set[str]:
    """What the logged calls install: of those whose first word that is no option says so."""
    verbs = ([word for word in words[1:] if not word.startswith("-")] for words in calls)
    return {word for words in verbs if words[:1] in (["install"], ["i"]) for word in words} & set(PACKAGES)


def test_whatever_bash_installs_is_named(logged: Callable[[str], list[list[str]]]) -> None:
    r = random.Random(os.environ.get("SHELL_SEED", "1"))
    ran = unnamed = 0
    for _ in range(int(os.environ.get("SHELL_LINES", LINES))):
        line = generated(r)
        installed = packages(logged(line))
        told = set(install_targets(line))
        ran += bool(installed)
        assert installed <= told or any(" " in name or "$" in name for name in told), (line, installed, told)
        unnamed += not installed <= told
    assert ran > LINES * 0.6, "the generator makes lines that bash really runs"
    assert unnamed < LINES * 0.15, "mostly the package itself is told, not that it cannot be known"
