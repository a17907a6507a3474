"""A chain of commands taken apart, and the step that failed."""

import subprocess

import pytest

from orchestrator.code.shell import failed_step, packages_ready, script, steps


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("a && b && c", ["a", "b", "c"]),
        ("cd app && npm ci\n# note\necho done; b", ["cd app", "npm ci", "echo done", "b"]),
        ("echo 'a && b' && c", ["echo 'a && b'", "c"]),
        ('echo "a; \\" b" ; c # d; e', ['echo "a; \\" b"', "c # d; e"]),
        ("a || b && c\nd", ["a || b && c", "d"]),
        ("echo $(a && b) && (c; d)", ["echo $(a && b)", "(c; d)"]),
        ("a \\\n  && b", ["a", "b"]),
        ("a > f 2>&1 && b | c", ["a > f 2>&1", "b | c"]),
        ("a & b", ["a & b"]),
        ("if a\nthen b\nfi", ["if a\nthen b\nfi"]),
        ("cat <<E\nx && y\nE", ["cat <<E\nx && y\nE"]),
        ("f() { a; }\nf", ["f() { a; }\nf"]),
    ],
)
def test_steps(command: str, expected: list[str]) -> None:
    assert list(steps(command)) == expected


@pytest.mark.parametrize(
    ("command", "code", "step", "output"),
    [
        ("true && false && echo no\necho no", 1, "false", ""),
        ("printf hi\nexit 3", 3, "exit 3", "hi"),
        ("cd / && pwd && [ -e /none ]", 1, "[ -e /none ]", "/\n"),
        ("A=1\nexport A; [ $A = 2 ]", 1, "[ $A = 2 ]", ""),
        ("false || false", 1, "false || false", ""),
        ("if true; then false; fi", 1, "if true; then false; fi", ""),
        ("false || echo fine", 0, "", "fine\n"),
    ],
)
def test_the_step_that_failed_is_named(command: str, code: int, step: str, output: str) -> None:
    argv = ["/bin/sh", "-c", script(command, "TOKEN")]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == code
    assert failed_step(command, "TOKEN", done.stdout) == (step, output)


@pytest.mark.parametrize(
    ("step", "ready"),
    [
        ("npm install", True),
        ("npm ci --omit=dev", True),
        ("yarn", True),
        ("npm install express", False),
        ("npm i -g", False),
        ("npm install --prefix web", False),
        ("npm run build", False),
        ("npm install $(cat names)", False),
    ],
)
def test_an_install_of_what_is_declared_is_done_before_the_command(step: str, ready: bool) -> None:
    assert (packages_ready(step) != step) is ready
    assert "npm test" in script(f"{step} && npm test", "x")
    assert (f"\n{step}\n" in script(step, "x")) is not ready
    assert f"\n{step}\n" in script(f"cd web && {step}", "x"), "nothing is known of another folder's packages"


def test_an_installation_in_a_folder_below_is_run() -> None:
    assert "npm ci" in script("npm ci && npm test", "T", at_root=False).splitlines()
    assert "npm ci" not in script("npm ci && npm test", "T").splitlines()
