"""Paths that stay inside the repository, and what a path is by its name: a test, a manifest, a secret. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_remembered = lru_cache(maxsize=8192)
"""Every story of a sprint asks the same of each path of its project, several times."""
MAX_PATH_BYTES = 400
MAX_SEGMENT_BYTES = 255
# Windows opens a device for these names, whatever suffix or blanks stand behind.
_RESERVED = re.compile(r"^(con|prn|aux|nul|clock\$|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\..*)?$", re.IGNORECASE)
# NTFS drops dots and blanks at the end of a name, and gives `.git` the short name `GIT~1`.
_GIT_DIR = re.compile(r"^(\.git|git~[0-9]+)[. ]*$", re.IGNORECASE)
_GIT_FILE = re.compile(r"^(gitmod|gitatt|gitign|gi[0-9a-f]{4})~[0-9]+[. ]*$", re.IGNORECASE)
"""Short names by which NTFS reaches `.gitmodules` and its like."""
_NOT_ON_WINDOWS = re.compile(r'[<>"|?*]')
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode categories that a reader does not see; HFS+ ignores several of them, so they could spell `.git`."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2065\u3164\uffa0")
"""Letters and marks by category, and yet nothing to be seen."""


def _segment_problem(segment: str) -> str | None:
    if segment == "..":
        return "it climbs out with `..`"
    if segment in {"", "."}:
        return "it has an empty or `.` segment"
    if _GIT_DIR.match(segment):
        return "it reaches into `.git`"
    if _GIT_FILE.match(segment):
        return f"`{segment}` is a short name of one of git's own files"
    if _RESERVED.match(segment):
        return f"`{segment}` is a reserved device name"
    if len(segment.encode("utf-8", "surrogatepass")) > MAX_SEGMENT_BYTES:
        return f"a segment is longer than {MAX_SEGMENT_BYTES} bytes"
    if segment != segment.strip() or segment.endswith("."):
        return f"the segment `{segment}` starts or ends with a blank, or ends with a dot"
    return None


def tidy(path: str) -> str:
    """Returns the path without the blanks around it and the `./` before it that mean nothing."""
    path = path.strip()
    while path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path


@_remembered
def suffix_of(path: str) -> str:
    """Returns the suffix of a path in lower case, with its dot; "" without one."""
    return PurePosixPath(path).suffix.lower()


def unsafe_reason(path: object) -> str | None:
    """Returns why `path` must never be written below a repository root, or None when it may.

    Judged by segments, so `a..b.js` is fine. A trailing slash is a directory and therefore no file path. Never raises.
    """
    if not isinstance(path, str):
        return "it is no string"
    return _path_problem(path) or next(
        (problem for segment in path.split("/") if (problem := _segment_problem(segment))), None
    )


def _path_problem(path: str) -> str | None:
    if not path or path != path.strip():
        return "it is empty or has blanks at its ends"
    # A shell makes `~` the home folder.
    if path.startswith(("/", "~")):
        return "it is absolute"
    if path.startswith("-"):
        return "it starts with `-`, which every tool takes for an option"
    if re.match(r"^[A-Za-z]:", path):
        return "it names a drive"
    return _char_problem(path)


def _char_problem(path: str) -> str | None:
    if "\\" in path:
        return "it has a backslash; use `/`"
    if any(0xD800 <= ord(char) <= 0xDFFF for char in path):
        return "it is not valid Unicode"
    if any(unicodedata.category(char) in _INVISIBLE or char in _BLANK_LETTERS for char in path):
        return "it has a control or invisible character"
    if ":" in path:
        return "it has a colon (a drive or a file stream)"
    if found := _NOT_ON_WINDOWS.search(path):
        return f"it has `{found[0]}`, which no file name may have everywhere"
    if len(path.encode("utf-8")) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    return None


def spelling(path: str) -> str:
    """What a file system that ignores case and how accents are composed takes the path for; for comparing only."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def parents(path: str) -> tuple[str, ...]:
    """Returns the folders that a path lies in, the outermost first."""
    parts = path.split("/")
    return tuple("/".join(parts[:end]) for end in range(1, len(parts)))


def folders_of(files: Iterable[str]) -> frozenset[str]:
    """Returns every folder above these files."""
    return frozenset(folder for path in files for folder in parents(path))


def obstacle_at(path: str, kinds: Mapping[str, str], folders: Mapping[str, str]) -> str | None:
    """Returns why no text can be written at a safe path, or None.

    `kinds`: what is no plain file or folder, by path (`a link`, `a submodule`, `no text of UTF-8`); `folders`: the
    project's folders by their `spelling`.
    """
    for above in parents(path):
        if above in kinds:
            return f"lies below `{above}`, which is {kinds[above]}"
        if folders.get(spelling(above), above) != above:
            return f"lies in `{above}`, a folder that is called `{folders[spelling(above)]}`"
    return f"is {kinds[path]}" if path in kinds else None


def no_text(data: bytes) -> str | None:
    """Returns `no text of UTF-8 (byte 0xe9 in line 3)` of such a file, None of a text."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"no text of UTF-8 (byte 0x{data[error.start]:02x} in line {line})"
    return None


class RepoPath(str):
    """A relative POSIX path below the repository root; building one of anything else raises ValueError with the reason.

    A string in every other respect: compares, hashes and is written as one.
    """

    __slots__ = ()

    def __new__(cls, path: str) -> Self:
        """Returns the checked path."""
        reason = unsafe_reason(path)
        if reason is not None:
            raise ValueError(f"unsafe path {path!r}: {reason}")
        return super().__new__(cls, path)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Strings only, checked; written as plain strings."""
        return core_schema.no_info_after_validator_function(
            cls, core_schema.str_schema(strict=True), serialization=core_schema.to_string_ser_schema()
        )


_TEST_FOLDERS = frozenset({"__tests__", "__mocks__", "__snapshots__"})
_TEXT_FOLDERS = frozenset({"doc", "docs", "documentation"})
_TEXTS = (".md", ".mdx", ".rst", ".adoc", ".txt")
_SPEC = re.compile(r"^(.+\.rb|.*spec\.[cm]?[jt]sx?|(.+/)?(support|helpers)/.+\.([cm]?[jt]sx?|json))$")
"""Below `spec/`, what Jasmine and RSpec take: `shopSpec.js`, `support/jasmine.mjs`, `spec_helper.rb`."""
_TEST_NAMES = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "test.py", "tests.py"}
)
_AVA = re.compile(r"test\.[cm]?[jt]s")
"""At the root AVA's tests; in `commands/` it may be a command of that name."""
# pytest, jest and its like, Go, RSpec; then the settings by which a runner chooses its tests.
_TEST_PATTERN = re.compile(
    r"^(test_.+\.pyi?|.+_test\.pyi?|.+\.(test|spec|cy|e2e-spec|e2e|test-d)\.[cm]?[jt]sx?|.+_test\.go|.+_spec\.rb"
    r"|(jest|vitest|karma|mocha|playwright|cypress)\.(config|conf|setup)\.[a-z]+|\.mocharc(\..+)?)$"
)
_REQUIREMENTS = re.compile(r"^(.+[-_.])?requirements.*\.(txt|in)$")
_ENVIRONMENT = re.compile(r"^(conda[-_])?environment([-_.].+)?\.ya?ml$")
_MANIFESTS = frozenset({"package.json", "pyproject.toml", "setup.cfg", "setup.py", "pipfile", "pixi.toml"})
_BINARY = re.compile(
    r"\.(png|jpe?g|gif|bmp|ico|webp|avif|tiff?|psd|pdf|zip|t?gz|bz2|xz|zst|7z|rar|tar|[jw]ar|whl|egg|exe|dll|so|dylib|a|o"
    r"|obj|lib|bin|dat|class|py[cod]|wasm|woff2?|ttf|otf|eot|mp[34]|wav|ogg|flac|avi|mov|mkv|webm|db|sqlite3?|mdb"
    r"|parquet|pkl|pickle|np[yz]|h5|docx?|xlsx?|pptx?|od[ts]|iso|dmg|deb|rpm|apk|ipa|keystore|p12|pfx)$"
)
LOCKS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("npm-shrinkwrap.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock"), frozenset({"package.json"})
    ),
    **dict.fromkeys(("uv.lock", "poetry.lock", "pdm.lock"), frozenset({"pyproject.toml"})),
    "Pipfile.lock": frozenset({"Pipfile"}),
}
"""Names of lock files that follow their manifests, by whose names."""

_FOR_PEOPLE = re.compile(
    r"(^|/)(\.github/(workflows|actions)/.+|\.circleci/.+|\.buildkite/.+|\.gitlab-ci\.ya?ml|\.travis\.yml|jenkinsfile"
    r"|azure-pipelines[\w.-]*\.ya?ml|bitbucket-pipelines\.yml|\.drone\.ya?ml|cloudbuild\.ya?ml|appveyor\.yml"
    r"|codeowners|\.pypirc|\.releaserc(\.\w+)?|\.goreleaser\.ya?ml|\.netrc|id_(rsa|ed25519|ecdsa)|credentials\.json"
    r"|secrets\.(ya?ml|json|toml)|[^/]+\.(pem|key))$"
)
"""Pipelines, publishing and credentials."""


def is_for_people(path: str) -> bool:
    """Returns whether a change to this file says what runs with a project's rights, or holds such rights."""
    return _FOR_PEOPLE.search(path.lower()) is not None


# What Python reads at its start, what pytest reads before any test, and modules that would stand in for the runner: at
# the root or in a folder of sources, which are searched before the installed packages. `sitecustomize.py` is a setting
# of the runner (`code.shell.runner_settings`).
_UNASKED = re.compile(
    r"(^|/)[^/]+\.pth$"
    r"|^conftest\.py$|^((src|lib)/)?((pytest|unittest|pluggy|xdist)(\.py|/__init__\.py)|_pytest(\.py|/.+))$"
)


def runs_unasked(path: str) -> bool:
    """Returns whether this file runs, or stands in for the test runner, although no source names it."""
    return _UNASKED.search(path.lower()) is not None


@_remembered
def is_test_file(path: str) -> bool:
    """Returns whether `path` belongs to the tester: a test, its helpers, or what configures the test runner.

    Judged by name (`test_x.py`, `x.spec.ts`, `conftest.py` …), and by the folders that runners search: `__tests__/`,
    `tests/`, `test/`, which inside of a Python package is a module as any other (`django/test/client.py`), and of
    `spec/` what is named so: `docs/specs/api.md` and `app/spec/loader.py` are no tests. Not judged by case, so that a
    file system without case is no way around it.
    """
    *folders, name = path.lower().split("/")
    if name in _TEST_NAMES or _TEST_PATTERN.match(name) or not _TEST_FOLDERS.isdisjoint(folders):
        return True
    if not folders:
        return _AVA.fullmatch(name) is not None
    if name.endswith(_TEXTS) and folders[0] in _TEXT_FOLDERS:
        return False
    if "tests" in folders or folders[0] == "test":
        return True
    if "test" in folders:
        return not name.endswith((".py", ".pyi", *_TEXTS))
    return folders[0] == "spec" and _SPEC.match("/".join((*folders[1:], name))) is not None


@_remembered
def is_manifest(path: str) -> bool:
    """Whether we read `path` for dependencies: package.json, requirements*.txt, pyproject.toml, setup.cfg, setup.py,
    Pipfile, environment.yml, pixi.toml.

    Text files below a folder called `requirements` count as requirement files.
    """
    *folders, name = path.lower().split("/")
    if name in _MANIFESTS or _REQUIREMENTS.match(name) or _ENVIRONMENT.match(name):
        return True
    return "requirements" in folders and name.endswith((".txt", ".in"))


def is_binary_file(path: str) -> bool:
    """Returns whether the suffix says that no text editor writes this file."""
    return bool(_BINARY.search(path.lower()))


# Files that hold secrets, by name.
_NAMES = re.compile(
    r"^(\.env(\..+)?|.+\.env|\.envrc|\.netrc|_netrc|\.pgpass|\.htpasswd|\.pypirc|\.npmrc|\.git-credentials|\.dockercfg"
    r"|id_(rsa|dsa|ecdsa|ed25519)(\..+)?|.+\.(pem|key|p12|pfx|jks|keystore|kdbx?|ppk|ovpn|asc|gpg|age)"
    r"|credentials(\.(json|ya?ml|toml|ini|csv))?|client_secret.*\.json|service[-_]?account.*\.json"
    r"|secrets?\.(json|ya?ml|toml|ini|env|txt)|master\.key|terraform\.tfstate(\..+)?|.+\.tfvars)$"
)
# `.env.example` holds no secret, `id_rsa.pub` is public.
_SAMPLES = re.compile(r"(^|[._-])(example|sample|template|dist|defaults?|pub)([._-]|$)")
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")


def is_private_file(path: str) -> bool:
    """Returns whether the name marks a private file; `.env.example` and public keys are not private."""
    name = path.lower().rpartition("/")[2]
    return bool(_NAMES.match(name)) and not _SAMPLES.search(name)


def holds_private_key(text: str) -> bool:
    """Returns whether a private key in the usual armour stands in the text."""
    return bool(_KEY_BLOCK.search(text))
