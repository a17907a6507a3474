"""Whether a red run lies at the environment, told by what Python, Node and the installers really print."""

import pytest

from orchestrator.checks.environment import avoidable, build_failed, command_cause, environment_cause
from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport

RUN = "    def run():\n>       raise child_exception_type(errno_num, err_msg, err_filename)\n"
SAID = {
    "no_program": f"{RUN}E               FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'\n\n"
    "/usr/lib/python3.11/subprocess.py:1950: FileNotFoundError",
    "no_service": 'E   psycopg.OperationalError: connection failed: connection to server at "127.0.0.1", port 5432 '
    "failed: Connection refused\nE   \tIs the server running on that host and accepting TCP/IP connections?",
    "closed": ">       for res in _socket.getaddrinfo(host, port, family, type, proto, flags):\n"
    "E       socket.gaierror: [Errno -3] Temporary failure in name resolution\n\n"
    "/usr/lib/python3.11/socket.py:962: gaierror",
}
MORE = (
    # Landlock's word for a port that is not open.
    (
        "no_service",
        'psycopg.OperationalError: connection to server at "127.0.0.1", port 5432 failed: Permission denied',
    ),
    (
        "no_program",
        "Error: spawn convert ENOENT\n    at ChildProcess._handle.onexit (node:internal/child_process:286:19)",
    ),
    (
        "no_service",
        "Error: connect ECONNREFUSED 127.0.0.1:27017\n    at TCPConnectWrap.afterConnect (node:net:1595:16)",
    ),
    ("closed", "E   PermissionError: [Errno 13] Permission denied: '/etc/tides.conf'"),
)
ORDINARY = (
    "E   assert 2 == 1",
    "E   FileNotFoundError: [Errno 2] No such file or directory: 'tides.csv'\n\ntests/test_b.py:11: FileNotFoundError",
    "E   ConnectionRefusedError: [Errno 111] Connection refused",
    "Error: connect ECONNREFUSED 127.0.0.1:41733",
    "tests/test_us_1.py:1: in <module>\n    import tidebook.other\n"
    "E   ModuleNotFoundError: No module named 'tidebook.other'",
    "src/tidebook/about.py:1: in <module>\n    import httpx\nE   ModuleNotFoundError: No module named 'httpx'",
    "E   ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "E   OSError: [Errno 28] No space left on device: 'journal'",
    "src/tidebook/gen.py:1: in <module>\n    from tidebook.new import x\nE   ModuleNotFoundError: No module named "
    "'tidebook.new'",
    "E   PermissionError: [Errno 13] Permission denied: '/tmp/x/tides.csv'",
)  # fmt: skip


def red(*messages: str) -> TestReport:
    cases = [
        ReportedCase(name=f"t{n}", id=f"x::t{n}", result=CaseResult.FAILED, message=text)
        for n, text in enumerate(messages)
    ]
    return TestReport(cases=(*cases, ReportedCase(name="t", id="x::t", result=CaseResult.PASSED)), exit_code=1)


@pytest.mark.parametrize(("code", "text"), [*SAID.items(), *MORE])
def test_what_is_missing_is_named_in_its_own_words(code: str, text: str) -> None:
    found = environment_cause(red(text, text))
    assert found is not None
    assert found.code == f"environment.{code}"
    assert found.message.rpartition(": ")[2] in text
    assert avoidable(found)


@pytest.mark.parametrize("text", ORDINARY)
def test_what_the_storys_files_can_mend_is_an_ordinary_red_run(text: str) -> None:
    assert environment_cause(red(text)) is None


def test_one_other_failure_beside_it_makes_it_an_ordinary_red_run() -> None:
    assert environment_cause(red(SAID["no_program"], "E   assert 2 == 1")) is None
    assert environment_cause(red()) is None


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "interpreter",
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because the current Python version (3.11.7) "
            "does not satisfy Python>=3.12 and tides==2.0 depends on Python>=3.12, we can conclude ...",
        ),
        ("registry", "error: Failed to fetch: `https://packages.example/simple/flask/`\n  Caused by: dns error"),
        ("registry", "npm error code ECONNREFUSED\nnpm error syscall connect"),
    ],
)
def test_an_installation_says_why_it_failed(code: str, text: str) -> None:
    report = TestReport(problem=RunProblem.INSTALL_FAILED, output=text)
    found = environment_cause(report)
    assert found is not None
    assert (found.code, avoidable(found)) == (f"environment.{code}", False)
    assert environment_cause(report.model_copy(update={"output": "no version of leftpad==99"})) is None


def test_what_could_not_be_built_names_the_address_that_it_wanted() -> None:
    closed = "the network of this step leads to the registries only; `nodejs.org:443` is not among them: add it to"
    found = build_failed(f"sqlite3: gyp ERR!\n[{closed} environment.hosts]")
    assert found.code == "environment.hosts"
    assert "environment.hosts: [nodejs.org]" in found.fix


def test_packages_whose_build_the_time_limit_ended_name_packages_and_setting_before_any_closed_address() -> None:
    told = "sqlite3, ended by commands.install_timeout_s: " + "warning: this may fall through\n" * 90
    told += "[the network of this step leads to the registries only; `github.com:443` is not among them]"
    found = build_failed(told)
    assert found.code == "environment.install_script"
    assert found.message.startswith("packages could not be built in time: sqlite3, ended by commands.install_timeout_s")
    assert "raise commands.install_timeout_s" in found.fix


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("closed", "touch: cannot touch '/opt/tides/x': Read-only file system"),
        ("closed", "Error: EROFS: read-only file system, mkdir '/w/node_modules/.prisma'"),
        ("closed", "npm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules/typescript'"),
        ("closed", "mkdir: cannot create directory '/opt/tides': Permission denied"),
        ("closed", "PermissionError: [Errno 13] Permission denied: '/etc/tides.conf'"),
        ("disk", "Error: ENOSPC: no space left on device, write"),
        ("disk", "dd: error writing 'big': No space left on device"),
        ("no_program", "sh: 1: docker: not found"),
        ("no_program", "/bin/bash: line 3: psql: command not found"),
        ("no_program", "make: cargo: No such file or directory\nmake: *** [Makefile:2: test] Error 127"),
        ("no_program", "env: \u2018php\u2019: No such file or directory"),
        ("no_program", "FileNotFoundError: [Errno 2] No such file or directory: 'git'"),
        ("closed", "curl: (6) Could not resolve host: example.org"),
        ("closed", "npm error code EAI_AGAIN\nnpm error request to https://registry.example.org/left-pad failed"),
        ("closed", "Error: getaddrinfo ENOTFOUND fonts.example.org"),
        ("closed", "Error: connect ECONNREFUSED 127.0.0.1:3128"),
        ("no_service", "Error: connect ECONNREFUSED 127.0.0.1:5432"),
    ],
)  # fmt: skip
def test_what_a_command_lacks_is_named(code: str, output: str) -> None:
    found = command_cause(output)
    assert found is not None
    assert found.code == f"environment.{code}"
    assert found.message.rpartition(": ")[2] in output
