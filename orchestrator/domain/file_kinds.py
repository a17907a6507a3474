"""What a path is by its name alone: a test, a manifest, a binary file. Pure rules that several rooms share."""

import re

_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "__mocks__", "__snapshots__"})
_TEST_NAMES = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "test.py", "tests.py"}
)
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
    """Whether a change to this file says what runs with a project's rights, or holds such rights."""
    return _FOR_PEOPLE.search(path.lower()) is not None


def is_test_file(path: str) -> bool:
    """Whether `path` belongs to the tester: a test, its helpers, or what configures the test runner.

    Judged by folder (`tests/`, `__tests__/`, `spec/` …) and by name (`test_x.py`, `x.spec.ts`, `conftest.py` …), not
    by case, so that a file system without case is no way around it.
    """
    *folders, name = path.lower().split("/")
    return name in _TEST_NAMES or not _TEST_FOLDERS.isdisjoint(folders) or bool(_TEST_PATTERN.match(name))


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
    """Whether the suffix says that no text editor writes this file."""
    return bool(_BINARY.search(path.lower()))
