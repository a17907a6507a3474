"""Whether a red run lies at the environment: something is missing that no file of the story can bring (pure).

The rules know the words in which Python, Node and the installers say so. Each failed test must say it, else the run is
an ordinary red one.
"""

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

from packaging.utils import canonicalize_name

from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.testing import NO_ROOM, RunProblem, TestReport

PREFIX = "environment."
BASE = "environment.base"
_END = 6000
"""Characters of a run's output that are looked at, where no test failed."""
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
_LIBRARY = re.compile(
    r"(?:^E\s+(?:ImportError|OSError): |error while loading shared libraries: )"
    r"(\S+\.so[.\d]*): cannot open shared object file",
    re.MULTILINE,
)
_NATIVE = re.compile(
    r"Could not locate the bindings file|No native build was found for|Could not load the \"\S+\" module using the"
    r"|was compiled against a different Node\.js version|Cannot find module '[^']+\.node'"
)
_PROGRAM = re.compile(r"^E\s+FileNotFoundError: \[Errno 2\] No such file or directory: '([\w.+-]+)'", re.MULTILINE)
_STARTED = re.compile(r"subprocess\.py:\d+: FileNotFoundError")
_SPAWNED = re.compile(r"\bspawn ([\w.+-]+) ENOENT")
_REFUSED = re.compile(
    r"port (\d+) failed: Connection refused|Error 111 connecting to [^\s:]+:(\d+)|ECONNREFUSED [^\s]*?:(\d+)\b"
    r"|Can't connect to MySQL server on '[^']+:?(\d*)"
)
_NO_NETWORK = re.compile(
    r"\[Errno 101\] Network is unreachable|\[Errno -[23]\] (?:Temporary failure in name resolution|Name or service)"
    r"|\bgetaddrinfo (?:EAI_AGAIN|ENOTFOUND) \S+|\bconnect ENETUNREACH \S+|Failed to resolve '[^']+'"
)
_CLOSED_PATH = re.compile(
    r"^E\s+(?:PermissionError: \[Errno 13\] Permission denied|OSError: \[Errno 30\] Read-only file system)"
    r": '(/(?:usr|etc|var|opt|root|home|srv|proc|sys|dev)(?:/[^']*)?)'"
    r"|\b(?:EACCES|EROFS): [^,\n]+, \w+ '(/(?:usr|etc|var|opt|root|home|srv|proc|sys|dev)(?:/[^']*)?)'",
    re.MULTILINE,
)
_CLOSED_PORT = re.compile(
    r"\b(?:listen|connect) EACCES:? \S*|while attempting to bind on address \([^)]*\): permission"
)
_NO_MODULE = re.compile(r"^E\s+ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)
_NO_METADATA = re.compile(r"PackageNotFoundError: (?:No package metadata was found for )?['\"]?([\w.-]+)")
_RAISED_IN = re.compile(r"^([\w.@+-][\w./@+-]*\.py):\d+: ", re.MULTILINE)
"""Files of the project in a traceback: those of Python and of packages have absolute paths."""
_INTERPRETER = re.compile(
    r"the current Python version \(([\d.]+)\) does not satisfy Python([^\s,]+)"
    r"|requires a different Python: ([\d.]+) not in '([^']+)'"
)
_NO_ROOM = re.compile(rf"^{NO_ROOM} `[^`\n]+`", re.MULTILINE)
_NO_REGISTRY = re.compile(
    r"dns error|tcp connect error|` could not be reached: |HTTP status server error|Failed to fetch: `"
    r"|Failed to establish a new connection|Max retries exceeded"
    r"|npm (?:ERR!|error) code (?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|ENETUNREACH)"
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
    ids = report.failing_ids
    said = [case.message for case in report.cases if case.id in ids] or [report.output[-_END:]]
    found = [_cause(text, place) for text in said]
    return found[0] if found and all(found) and not report.green else None


def avoidable(cause: Finding) -> bool:
    """Whether the story's files could do without what is missing, so that they are asked for once more."""
    return cause.code.removeprefix(PREFIX) in {"closed", "no_program", "no_service"}


def broken_base(reason: str, base: str) -> Finding:
    """The tester's word that the environment is at fault, where nothing can be run without the story either."""
    return major(
        "environment.base",
        f"{reason} (at the base commit: {base})",
        fix="make the base commit's tests run (`orchestrator doctor --repo` tells), then `reset` the story",
    )


def _cause(text: str, place: Place) -> Finding | None:
    rules: tuple[Callable[[str], Finding | None], ...] = (
        _library, _native, _program, _service, _closed, lambda said: _own_package(said, place)
    )  # fmt: skip
    return next((found for rule in rules if (found := rule(text)) is not None), None)


def installing_cause(text: str) -> Finding | None:
    """What keeps every package from being installed, by what an installer printed; None when it may be this one."""
    if (found := _INTERPRETER.search(text)) is not None:
        here, wanted = found[1] or found[3], found[2] or found[4]
        return major(
            "environment.interpreter",
            f"the project asks for Python {wanted}, and this is {here}: {_line(text, found)}",
            fix="install a Python that the project supports, and name it in environment.python",
        )
    if (found := _NO_ROOM.search(text)) is not None:
        return major(
            "environment.disk",
            f"the environment could not be made: {_line(text, found)}",
            fix="make room there, then `reset` the story",
        )
    if (found := _NO_REGISTRY.search(text)) is not None:
        return major(
            "environment.registry",
            f"the packages' registry could not be reached: {_line(text, found)}",
            fix="make the registry reachable, or name another one in sandbox.registries, then `reset` the story",
        )
    return None


def _library(text: str) -> Finding | None:
    if (found := _LIBRARY.search(text)) is None:
        return None
    return major(
        "environment.no_library",
        f"this machine has no shared library `{found[1]}`: {_line(text, found)}",
        fix="install the system package that has it, then `reset` the story; sandbox.readable names libraries that lie "
        "in an unusual place",
    )


def _native(text: str) -> Finding | None:
    if (found := _NATIVE.search(text)) is None:
        return None
    return major(
        "environment.install_script",
        f"a package has no build for this machine, for its install script failed or was not run: {_line(text, found)}",
        fix="name the package in environment.install_scripts (`orchestrator doctor --repo` tells why it failed), then "
        "`reset` the story; or take one whose build comes with it, then `replan`",
    )


def script_refused(told: str, where: Where) -> Finding:
    """A package that a plan brings may not run its code."""
    fix = "Take a package that needs none; or people name it in environment.install_scripts."
    return major("environment.install_script", told, where=where, fix=fix)


def _program(text: str) -> Finding | None:
    found = (_PROGRAM.search(text) if _STARTED.search(text) else None) or _SPAWNED.search(text)
    if found is None:
        return None
    return major(
        "environment.no_program",
        f"this machine has no program `{found[1]}`: {_line(text, found)}",
        fix="install it so that it is on PATH, then `reset` the story",
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


def _closed(text: str) -> Finding | None:
    found = _NO_NETWORK.search(text) or _CLOSED_PATH.search(text) or _CLOSED_PORT.search(text)
    if found is None:
        return None
    return major(
        "environment.closed",
        f"the sandbox keeps tests from what they want to reach: {_line(text, found)}",
        fix="say in the story that its tests must do without it, then `replan`; sandbox.readable opens further paths",
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
    if missing is not None and _folder(missing[1]) in {_folder(name) for name in _packages(place.before)}:
        return major(
            "environment.not_installed",
            f"the project itself is not installed as `{missing[1]}`: {_line(text, missing)}",
            fix="make sure that the project can be built (`orchestrator doctor --repo` tells why it cannot)",
        )
    return None


def _generated(module: str, place: Place) -> bool:
    """Whether `module` lies in a package of the repository and was never a file of it."""
    first, _, rest = module.partition(".")
    paths = {f"{root}{module.replace('.', '/')}{end}" for root in ("", "src/") for end in (".py", "/__init__.py")}
    return bool(rest) and first in _packages(place.before) and paths.isdisjoint({*place.before, *place.own})


def _packages(paths: Collection[str]) -> set[str]:
    """Top-level folders with an `__init__.py`, of the root or `src`."""
    inner = (path.removeprefix("src/").split("/") for path in paths)
    return {parts[0] for parts in inner if len(parts) == 2 and parts[1] == "__init__.py"}


def _folder(name: str) -> str:
    return canonicalize_name(name)


def _line(text: str, found: re.Match[str]) -> str:
    """The line that says so, without pytest's mark."""
    start = text.rfind("\n", 0, found.end() - 1) + 1
    end = text.find("\n", found.end())
    return re.sub(r"^E\s+", "", text[start : end if end >= 0 else None]).strip()[:300]
