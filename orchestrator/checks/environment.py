"""Whether a red run lies at the environment: something is missing that no file of the story can bring (pure).

The rules know the words in which Python, Node and the installers say so. Each failed test must say it, else the run is
an ordinary red one.
"""

import re
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import NamedTuple

from packaging.utils import canonicalize_name

from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.suite import LEFT_OUT, NO_ROOM, RunProblem, TestReport

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
# A shared library that this machine lacks.
_LIBRARY = re.compile(
    r"(?:^E\s+(?:ImportError|OSError): |error while loading shared libraries: )"
    r"(\S+\.so[.\d]*): cannot open shared object file",
    re.MULTILINE,
)
# A package of Node without its compiled part.
_NATIVE = re.compile(
    r"Could not locate the bindings file|No native build was found for|Could not load the \"\S+\" module using the"
    r"|was compiled against a different Node\.js version|Cannot find module '[^']+\.node'"
)
_TIME_LIMIT = "commands.install_timeout_s"
_CLOSED_HOST = re.compile(r"leads to the registries only; `([^`\n]+)` is not among them")
"""Our proxy's words."""
_UNBUILT = re.compile(rf"`([\w.-]+)` {LEFT_OUT}: ")
# A file that is missing is an ordinary failure; a program is missing where `subprocess` raised it.
_PROGRAM = re.compile(
    r"^E\s+FileNotFoundError: \[Errno 2\] No such file or directory: '([\w.+-]+)'"
    r"(?=[\s\S]*subprocess\.py:\d+: FileNotFoundError)",
    re.MULTILINE,
)
_SPAWNED = re.compile(r"\bspawn ([\w.+-]+) ENOENT")
# psycopg and libpq, redis-py, Node, MySQL; Landlock says EACCES where a port is not open.
_REFUSED = re.compile(
    r"port (\d+) failed: (?:Connection refused|Permission denied)|Error 1(?:11|3) connecting to [^\s:]+:(\d+)"
    r"|(?:ECONNREFUSED|connect EACCES) [^\s]*?:(\d+)\b"
    r"|Can't connect to MySQL server on '[^']+:?(\d*)"
)
# ENETUNREACH, and names that do not resolve, in the words of Python, Node and requests.
_NO_NETWORK = re.compile(
    r"\[Errno 101\] Network is unreachable|\[Errno -[23]\] (?:Temporary failure in name resolution|Name or service)"
    r"|\bgetaddrinfo (?:EAI_AGAIN|ENOTFOUND) \S+|\bconnect ENETUNREACH \S+|Failed to resolve '[^']+'"
)
# A path outside of the tree that the sandbox closes.
_CLOSED_PATH = re.compile(
    r"^E\s+(?:PermissionError: \[Errno 13\] Permission denied|OSError: \[Errno 30\] Read-only file system)"
    r": '(/(?:usr|etc|var|opt|root|home|srv|proc|sys|dev)(?:/[^']*)?)'"
    r"|\b(?:EACCES|EROFS): [^,\n]+, \w+ '(/(?:usr|etc|var|opt|root|home|srv|proc|sys|dev)(?:/[^']*)?)'",
    re.MULTILINE,
)
# A port that the sandbox closes.
_CLOSED_PORT = re.compile(
    r"\b(?:listen|connect) EACCES:? \S*|while attempting to bind on address \([^)]*\): permission"
)
_NO_MODULE = re.compile(r"^E\s+ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)
_NO_METADATA = re.compile(r"PackageNotFoundError: (?:No package metadata was found for )?['\"]?([\w.-]+)")
_RAISED_IN = re.compile(r"^([\w.@+-][\w./@+-]*\.py):\d+: ", re.MULTILINE)
"""Files of the project in a traceback: those of Python and of packages have absolute paths."""
# The messages of Poetry and pip.
_INTERPRETER = re.compile(
    r"the current Python version \(([\d.]+)\) does not satisfy Python([^\s,]+)"
    r"|requires a different Python: ([\d.]+) not in '([^']+)'"
)
_READ_ONLY = re.compile(r"\bEROFS\b|\bRead-only file system\b")
_DISK_FULL = re.compile(r"\bENOSPC\b|\bNo space left on device\b|\bDisk quota exceeded\b")
_DENIED = re.compile(
    r"Permission denied: '(/(?:usr|etc|var|opt|srv|proc|sys|dev|lib)(?:/[^']*)?)'"
    r"|\bEACCES: permission denied, \w+ '(?:/(?:usr|etc|var|opt|srv|proc|sys|dev|lib)|[^'\n]*/node_modules)(?:/[^']*)?'"
    r"|^[\w.-]+: [^:\n]*'?/(?:usr|etc|var|opt|srv|proc|sys|dev|lib)/[^:\n]*: Permission denied$",
    re.MULTILINE,
)
"""On what every sandbox mounts for reading: never a file of the project's own with the wrong mode."""
# The network, not the package, is at fault.
_UNREACHED = re.compile(
    r"\bCould not resolve host\b|\bTemporary failure in name resolution\b|\bNetwork is unreachable\b"
    r"|\bconnect ECONNREFUSED \S+:(?:80|443|3128|8080)\b|\bCould not connect to proxy\b"
)
_TOOL = (
    r"apt|apt\-get|aws|az|brew|bun|bundle|bunx|cargo|cc|clang|cmake|composer|conda|convert|createdb|curl|deno"
    r"|docker|docker\-compose|dotnet|ffmpeg|g\+\+|gcc|gcloud|gem|git|go|gradle|helm|java|javac|jq|kubectl"
    r"|magick|make|mongo|mongosh|mvn|mysql|mysqladmin|node|npm|npx|openssl|pdm|perl|pg_dump|php|pipenv|pnpm"
    r"|podman|poetry|protoc|psql|pyenv|redis\-cli|rsync|ruby|rustc|rustup|sqlite3|ssh|sudo|systemctl|terraform"
    r"|unzip|uv|uvx|wget|xvfb\-run|yarn|zip"
)
"""Programs of a machine. Any other that is missing may come with a package, which a manifest can name."""
_NOT_FOUND = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"(?:^|[:\s])({_TOOL}): (?:command )?not found$",
        rf"^(?:make|env): ['‘]?({_TOOL})['’]?: No such file or directory$",
        rf"\bspawn ({_TOOL}) ENOENT",
        rf"No such file or directory: '({_TOOL})'",
    )
)
_NO_ROOM = re.compile(rf"^{NO_ROOM} `[^`\n]+`", re.MULTILINE)
# The messages of uv, pip and npm.
_NO_REGISTRY = re.compile(
    r"dns error|tcp connect error|` could not be reached: |HTTP status server error|Failed to fetch: `"
    r"|Failed to establish a new connection|Max retries exceeded"
    r"|npm (?:ERR!|error) code (?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|ENETUNREACH)"
)


_Rule = tuple[Sequence[re.Pattern[str]], Finding]
"""What is looked for, and what is said then: `{1}` is the first group, and the line that was found is put behind."""
_LIBRARY_RULE: _Rule = (
    (_LIBRARY,),
    major(
        "environment.no_library",
        "this machine has no shared library `{1}`",
        fix="install the system package that has it, then `reset` the story; sandbox.readable names libraries that lie "
        "in an unusual place",
    ),
)
_NO_PROGRAM = major(
    "environment.no_program",
    "this machine has no program `{1}`",
    fix="install it so that it is on PATH, then `reset` the story",
)
_PLACE_RULES: Sequence[_Rule] = (
    (
        (_DISK_FULL,),
        major(
            "environment.disk",
            "there is no disk space left",
            fix="free disk space there (commands.disk_mb limits what one command may write), then `reset` the story",
        ),
    ),
    (
        (_READ_ONLY, _DENIED),
        major(
            "environment.closed",
            "commands may write only below the repository and in $TMPDIR",
            fix="say in the story that it must do without this command, then `replan`; what is made once, outside the "
            "repository or with a network, is a command of environment.setup",
        ),
    ),
)
_UNREACHED_RULE: _Rule = (
    (_NO_NETWORK, _UNREACHED, _NO_REGISTRY),
    major(
        "environment.closed",
        "commands have no network",
        fix="packages that manifests declare are installed before commands run; what else is fetched is a command of "
        "environment.setup with its hosts in environment.hosts; environment.services opens ports of what you started",
    ),
)
_CLOSED_RULE: _Rule = (
    (_NO_NETWORK, _CLOSED_PATH, _CLOSED_PORT),
    major(
        "environment.closed",
        "the sandbox keeps tests from what they want to reach",
        fix="say in the story that its tests must do without it, then `replan`; sandbox.readable opens further paths, "
        "environment.services the ports of what you started",
    ),
)
_INSTALLING: Sequence[_Rule] = (
    (
        (_NO_ROOM,),
        major(
            "environment.disk", "the environment could not be made", fix="free disk space there, then `reset` the story"
        ),
    ),
    (
        (_NO_REGISTRY,),
        major(
            "environment.registry",
            "the packages' registry could not be reached",
            fix="make the registry reachable, or name another one in sandbox.registries, then `reset` the story",
        ),
    ),
)


class Place(NamedTuple):
    """What is known of the project beside the run."""

    before: Collection[str]
    """Paths of all files before the story."""
    own: Collection[str]
    """Paths of the story's files, its suite's included."""


def environment_cause(report: TestReport, place: Place) -> Finding | None:
    """What the environment lacks, in a finding `environment.…`; None when anything else may be the reason."""
    if report.problem is RunProblem.SETUP_FAILED:
        return major(
            "environment.setup",
            f"the project could not be set up: {report.output.splitlines()[-1][:300]}",
            fix="make environment.setup work (`orchestrator doctor --repo` tells), then `reset` the story",
        )
    if report.problem is RunProblem.INSTALL_FAILED:
        return installing_cause(report.output[-_END:])
    said = [*dict.fromkeys(case.message for case in report.failing)][:_MESSAGES] or [report.output[-_END:]]
    found = [*takewhile(bool, (_cause(text, report.output, place) for text in said))]
    return found[0] if len(found) == len(said) and not report.green else None


def command_cause(output: str) -> Finding | None:
    """Returns what a command lacked that no file brings, by what it printed; None when it may be anything else."""
    return (
        _first(_PLACE_RULES, output)
        or _first(((_NOT_FOUND, _NO_PROGRAM), _LIBRARY_RULE), output)
        or _service(output)
        or _first((_UNREACHED_RULE,), output)
    )


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


def _cause(text: str, run: str, place: Place) -> Finding | None:
    """By what a test said, in a run that printed `run`."""
    return (
        _first((_LIBRARY_RULE,), text)
        or _native(text, run)
        or _left_out(text, run)
        or _first((((_PROGRAM, _SPAWNED), _NO_PROGRAM),), text)
        or _service(text)
        or _first((_CLOSED_RULE,), text)
        or _own_package(text, place)
    )


def installing_cause(text: str) -> Finding | None:
    """What keeps every package from being installed, by what an installer printed; None when it may be this one."""
    if (found := _INTERPRETER.search(text)) is not None:
        here, wanted = found[1] or found[3], found[2] or found[4]
        return major(
            "environment.interpreter",
            f"the project asks for Python {wanted}, and this is {here}: {_line(text, found)}",
            fix="install a Python that the project supports, and name it in environment.python",
        )
    return _first(_INSTALLING, text)


def _first(rules: Sequence[_Rule], text: str) -> Finding | None:
    """What the first of these rules says that finds its words."""
    for patterns, told in rules:
        found = next((match for pattern in patterns if (match := pattern.search(text))), None)
        if found is not None:
            message = f"{told.message.format(found[0], *found.groups())}: {_line(text, found)}"
            return told.model_copy(update={"message": message})
    return None


def _native(text: str, run: str) -> Finding | None:
    if (found := _NATIVE.search(text)) is None:
        return None
    late = _TIME_LIMIT in run
    if not late and (hosts := closed_hosts(run)):
        return _not_fetched(f"a package has no build for this machine: {_line(text, found)}", hosts, Where())
    message = "a package has no build for this machine, for its install script failed or was not run"
    can = (
        f"raise {_TIME_LIMIT}, which ended the script, then `reset` the story"
        if late
        else "name the package in environment.install_scripts (`orchestrator doctor --repo` tells why it failed), "
        "then `reset` the story; or take one whose build comes with it, then `replan`"
    )
    return major("environment.install_script", f"{message}: {_line(text, found)}", fix=can)


def _left_out(text: str, run: str) -> Finding | None:
    """Returns the finding on a module of a package that has no wheel here and was not built."""
    missing = _NO_MODULE.search(text)
    module = missing[1].partition(".")[0] if missing is not None else ""
    packages = [name for name in _UNBUILT.findall(run) if canonicalize_name(module) == canonicalize_name(name)]
    if missing is None or not packages:
        return None
    start = run.index(f"`{packages[0]}` {LEFT_OUT}")
    told = f"{_line(text, missing)}: {run[start : start + _SAID].partition(f'{chr(10)}`')[0]}"
    if hosts := closed_hosts(told):
        return _not_fetched(told, hosts, Where())
    return major(
        "environment.install_script",
        told,
        fix=f"install what its build lacks, or name `{packages[0]}` in environment.install_scripts where it says so, "
        "then `reset` the story; or take a package that is ready-made, then `replan`",
    )


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


def _own_package(text: str, place: Place) -> Finding | None:
    """A module that is neither in the repository nor the story's, missed by a file that the story has not touched."""
    frames = _RAISED_IN.findall(text)
    if not frames or frames[-1] in place.own:
        return None
    missing = _NO_MODULE.search(text)
    if missing is not None and _generated(missing[1], place):
        return major(
            "environment.not_built",
            f"the project's own module `{missing[1]}` is in no commit, and nothing has made it: {_line(text, missing)}",
            fix="make sure that the project's build writes it (`orchestrator doctor --repo` tells), or commit it",
        )
    missing = _NO_METADATA.search(text)
    if missing is not None and canonicalize_name(missing[1]) in map(canonicalize_name, _packages(place.before)):
        return major(
            "environment.not_installed",
            f"the project itself is not installed as `{missing[1]}`: {_line(text, missing)}",
            fix="make sure that the project can be built (`orchestrator doctor --repo` tells why it cannot)",
        )
    return None


def _generated(module: str, place: Place) -> bool:
    """Returns whether `module` lies in a package of the repository and was never a file of it."""
    first, _, rest = module.partition(".")
    paths = {f"{root}{module.replace('.', '/')}{end}" for root in ("", "src/") for end in (".py", "/__init__.py")}
    return bool(rest) and first in _packages(place.before) and paths.isdisjoint({*place.before, *place.own})


def _packages(paths: Collection[str]) -> set[str]:
    """Top-level folders with an `__init__.py`, of the root or `src`."""
    inner = (path.removeprefix("src/").split("/") for path in paths)
    return {parts[0] for parts in inner if len(parts) == 2 and parts[1] == "__init__.py"}


def _line(text: str, found: re.Match[str]) -> str:
    """Returns the line that says so, without pytest's mark."""
    start = text.rfind("\n", 0, found.end() - 1) + 1
    end = text.find("\n", found.end())
    return re.sub(r"^E\s+", "", text[start : end if end >= 0 else None]).strip()[:300]
