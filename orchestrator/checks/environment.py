"""Whether a red run or a failed command lies at the environment: something that no file of the story can bring (pure).

Few words of others are known: what the person and the failure analysis see in the output is left to them.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.suite import NO_ROOM, RunProblem, TestReport

PREFIX = "environment."
BASE = "environment.base"
_SAID = 1500
"""Characters of an installer's words: from their beginning, which names packages, and their end."""
_HEAD = 200
_END = 6000
"""Characters of a run's output that are looked at, where no test failed."""
_MESSAGES = 50
"""Different messages of failed tests that are judged."""
SERVICES = {
    "5432": "PostgreSQL",
    "3306": "MySQL",
    "6379": "Redis",
    "27017": "MongoDB",
    "5672": "RabbitMQ",
    "9092": "Kafka",
    "9200": "Elasticsearch",
    "11211": "memcached",
}
"""By the port that each has unless people choose another."""
_TIME_LIMIT = "commands.install_timeout_s"
_CLOSED_HOST = re.compile(r"leads to the registries only; `([^`\n]+)` is not among them")
"""Our proxy's words."""
# psycopg and libpq, redis-py, Node, MySQL; Landlock says EACCES where a port is not open.
_REFUSED = re.compile(
    r"port (\d+) failed: (?:Connection refused|Permission denied)|Error 1(?:11|3) connecting to [^\s:]+:(\d+)"
    r"|(?:ECONNREFUSED|connect EACCES) [^\s]*?:(\d+)\b"
    r"|Can't connect to MySQL server on '[^']+:?(\d*)"
)
# The messages of Poetry and pip.
_INTERPRETER = re.compile(
    r"the current Python version \(([\d.]+)\) does not satisfy Python([^\s,]+)"
    r"|requires a different Python: ([\d.]+) not in '([^']+)'"
)


class _Rule(NamedTuple):
    """Words, and what is said where they are found: `{1}` is the first group; the line that has them follows."""

    words: re.Pattern[str]
    code: str
    message: str
    fix: str


_OUTSIDE = r"/(?:usr|etc|var|opt|srv|proc|sys|dev|lib)/"
"""What every sandbox mounts for reading: never a file of the project's own with the wrong mode."""
_NO_NETWORK = (
    r"\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH)\b|\bTemporary failure in name resolution\b|\bName or service not known\b"
    r"|\bNetwork is unreachable\b|\bCould not resolve host\b|\bFailed to resolve '"
    r"|\bconnect ECONNREFUSED \S+:(?:80|443|3128|8080)\b"
)
_CLOSED = _Rule(
    re.compile(
        rf"{_NO_NETWORK}|\bEROFS\b|\bRead-only file system\b"
        rf"|^(?=.*'{_OUTSIDE}).*\b[Pp]ermission denied\b",
        re.MULTILINE,
    ),
    "environment.closed",
    "commands and tests have no network, and write only below the repository and in $TMPDIR",
    "say in the story that it must do without, then `replan`; what is fetched or made once is a command of "
    "environment.setup, with its hosts in environment.hosts; environment.services opens ports of what you started",
)
_TOOL = (
    r"apt|apt\-get|aws|az|brew|bun|bundle|bunx|cargo|cc|clang|cmake|composer|conda|convert|createdb|curl|deno"
    r"|docker|docker\-compose|dotnet|ffmpeg|g\+\+|gcc|gcloud|gem|git|go|gradle|helm|java|javac|jq|kubectl"
    r"|magick|make|mongo|mongosh|mvn|mysql|mysqladmin|node|npm|npx|openssl|pdm|perl|pg_dump|php|pipenv|pnpm"
    r"|podman|poetry|protoc|psql|pyenv|redis\-cli|rsync|ruby|rustc|rustup|sqlite3|ssh|sudo|systemctl|terraform"
    r"|unzip|uv|uvx|wget|xvfb\-run|yarn|zip"
)
"""Programs of a machine. Any other that is missing may come with a package, which a manifest can name."""
_NO_PROGRAM = _Rule(
    re.compile(
        rf"(?:^|[:\s])({_TOOL}): (?:command )?not found$|^(?:make|env): ['‘]?({_TOOL})['’]?: No such file or directory$"
        rf"|\bspawn ({_TOOL}) ENOENT|No such file or directory: '({_TOOL})'",
        re.MULTILINE,
    ),
    "environment.no_program",
    "this machine has no program `{1}`",
    "install it so that it is on PATH, then `reset` the story",
)
_DISK = _Rule(
    re.compile(rf"\bENOSPC\b|\bNo space left on device\b|\bDisk quota exceeded\b|^{NO_ROOM} `[^`\n]+`", re.MULTILINE),
    "environment.disk",
    "there is no disk space left",
    "free disk space there (commands.disk_mb limits what one command may write), then `reset` the story",
)
# The messages of uv, pip and npm.
_REGISTRY = _Rule(
    re.compile(
        rf"{_NO_NETWORK}|dns error|tcp connect error|` could not be reached: |HTTP status server error"
        r"|Failed to fetch: `|Failed to establish a new connection|Max retries exceeded"
        r"|npm (?:ERR!|error) code (?:ECONNREFUSED|ETIMEDOUT|ECONNRESET)"
    ),
    "environment.registry",
    "the packages' registry could not be reached",
    "make the registry reachable, or name another one in sandbox.registries, then `reset` the story",
)


def environment_cause(report: TestReport) -> Finding | None:
    """What the environment lacks, in a finding `environment.…`; None when anything else may be the reason.

    Each failed test must say it, else the run is an ordinary red one.
    """
    if report.problem is RunProblem.SETUP_FAILED:
        return major(
            "environment.setup",
            f"the project could not be set up: {report.output.splitlines()[-1][:300]}",
            fix="make environment.setup work (`orchestrator doctor --repo` tells), then `reset` the story",
        )
    if report.problem is RunProblem.INSTALL_FAILED:
        return installing_cause(report.output[-_END:])
    said = [*dict.fromkeys(case.message for case in report.failing)][:_MESSAGES] or [report.output[-_END:]]
    found = [*takewhile(bool, (_first((_NO_PROGRAM, _CLOSED), text) or _service(text) for text in said))]
    return found[0] if len(found) == len(said) and not report.green else None


def command_cause(output: str) -> Finding | None:
    """Returns what a command lacked that no file brings, by what it printed; None when it may be anything else."""
    return _first((_DISK, _CLOSED, _NO_PROGRAM), output) or _service(output)


def installing_cause(text: str) -> Finding | None:
    """What keeps every package from being installed, by what an installer printed; None when it may be this one."""
    if (found := _INTERPRETER.search(text)) is not None:
        here, wanted = found[1] or found[3], found[2] or found[4]
        return major(
            "environment.interpreter",
            f"the project asks for Python {wanted}, and this is {here}: {_line(text, found)}",
            fix="install a Python that the project supports, and name it in environment.python",
        )
    return _first((_DISK, _REGISTRY), text)


def avoidable(cause: Finding) -> bool:
    """Returns whether the story's files could do without what is missing, so that they are asked for once more."""
    return cause.code.removeprefix(PREFIX) in {"closed", "no_program", "no_service"}


def broken_base(reason: str, base: str) -> Finding:
    """Returns the tester's word that the environment is at fault, where nothing can be run without the story either."""
    return major(
        "environment.base",
        f"{reason} (at the base commit: {base})",
        fix="make the base commit's tests run (`orchestrator doctor --repo` tells), then `reset` the story",
    )


def only_environment(reason: str) -> Finding:
    """Returns the tester's word, given twice, that the environment is at fault and no file of the story."""
    return major(
        "environment.only",
        f"the tester says twice that no file can mend it: {reason}",
        fix="look at the tests' output (`show`): a person has to set up what they need, then `reset` the story",
    )


def _first(rules: Sequence[_Rule], text: str) -> Finding | None:
    """What the first of these rules says that finds its words."""
    for rule in rules:
        if (found := rule.words.search(text)) is not None:
            message = rule.message.format(found[0], next(filter(None, found.groups()), ""))
            return major(rule.code, f"{message}: {_line(text, found)}", fix=rule.fix)
    return None


def closed_hosts(text: str) -> tuple[str, ...]:
    """Hosts that an installation was kept from, as `environment.hosts` names them, by what our proxy said."""
    places = dict.fromkeys(_CLOSED_HOST.findall(text))
    return tuple(place.removesuffix(":443").removesuffix(":80") for place in places)


def script_refused(names: Sequence[str], setting: str, where: Where) -> Finding:
    """Packages that a plan brings may not run their code."""
    one = len(names) == 1
    return major(
        "environment.install_script",
        f"{', '.join(f'`{name}`' for name in names)} {'runs' if one else 'run'} code while being installed, and "
        "environment.install_scripts does not allow it, or not in so young a version",
        where=where,
        fix=f"Take a package that needs no install script, or do without. Only a person can allow it, with "
        f"`{setting}` in config.yaml, and then `reset` the story.",
    )


def build_failed(told: str, where: Where | None = None) -> Finding:
    """Packages could not be built here, by what their installation printed."""
    where = where or Where()
    said = told if len(told) <= _SAID else f"{told[:_HEAD]} … {told[-_SAID + _HEAD :]}"
    late = _TIME_LIMIT in told
    if not late and (hosts := closed_hosts(told)):
        return _not_fetched(f"packages could not be built: {said}", hosts, where)
    can = f"raise {_TIME_LIMIT}" if late else "install what its build lacks"
    return major(
        "environment.install_script",
        f"packages could not be built {'in time' if late else 'on this machine'}: {said}",
        where=where,
        fix=f"Take a package that is ready-made for this machine, or do without. A person can {can}, and then `reset` "
        "the story.",
    )


def _not_fetched(message: str, hosts: Sequence[str], where: Where) -> Finding:
    return major(
        "environment.hosts",
        f"the installation wanted {', '.join(hosts)}, which is not open: {message}",
        where=where,
        fix="Take a package that comes whole from the registry, or do without. Only a person can open the address, "
        f"with `environment.hosts: [{', '.join(hosts)}]` in config.yaml, and then `reset` the story.",
    )


def _service(text: str) -> Finding | None:
    found = _REFUSED.search(text)
    name = SERVICES.get(next(filter(None, found.groups()), ""), "") if found is not None else ""
    if found is None or not name:
        return None
    return major(
        "environment.no_service",
        f"no {name} answers where the tests look for it: {_line(text, found)}",
        fix="start it and name its address in environment.services (commands and tests have a loopback of their own), "
        "then `reset` the story; or say in the story that its tests must not need it, then `replan`",
    )


def _line(text: str, found: re.Match[str]) -> str:
    """Returns the line that says so, without pytest's mark."""
    start = text.rfind("\n", 0, found.end() - 1) + 1
    end = text.find("\n", found.end())
    return re.sub(r"^E\s+", "", text[start : end if end >= 0 else None]).strip()[:300]
