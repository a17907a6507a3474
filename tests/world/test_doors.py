"""What lies in a repository is data until its user says otherwise."""

import base64
import json
import os
import pickle
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from dbos import DBOS
from dbos._serialization import DBOSPortableJSON, deserialize_value

from orchestrator.app.trust import load_settings
from orchestrator.contract.enforce import FOR_PEOPLE, check_diff
from orchestrator.core.errors import ConfigError
from orchestrator.core.secrets import Masks, redact
from orchestrator.engine.database import EngineDatabase
from orchestrator.sandbox.fetch_sources import archives_in, read_sources, without_credentials
from orchestrator.server.login import TRIES, TRIES_S, LoginTries
from orchestrator.settings import load
from orchestrator.storage.event_file import sqlite_url
from tests.contract.test_contract import contract, entry
from tests.support import git, plain_environment, run_cli
from tests.world.case import Case, table

KEY = "sk-proj-4kQ9vT2mX7bR1nL8cW5yZ3aD6fG0hJ"
SETTINGS = "provider: {name: openai, base_url: 'http://127.0.0.1:9/v1', model: m}\n"
BACKLOG = "Story_ID,Title,Acceptance_Criteria\nA-1,Add a function,It adds\n"


# ---- a state folder that a repository brought


def force_add(clone: Path) -> None:
    (clone / ".orchestrator").mkdir()
    (clone / ".orchestrator" / "place.json").write_text("{}")
    git(clone, "add", "--force", ".orchestrator")


def link_out(clone: Path) -> None:
    (clone.parent / "empty").mkdir()
    (clone / ".orchestrator").symlink_to("../empty")
    git(clone, "add", "--force", ".orchestrator")


def link_to_own_folder(clone: Path) -> None:
    (clone / "docs").mkdir()
    (clone / "docs" / "a.md").write_text("x")
    (clone / ".orchestrator").symlink_to("docs")
    git(clone, "add", "docs/a.md")


def add_one_file(clone: Path) -> None:
    (clone / ".orchestrator" / "daemon").mkdir(parents=True)
    (clone / ".orchestrator" / "daemon" / "id").write_text("x")
    (clone / ".orchestrator" / "mask.key").write_bytes(b"k" * 32)
    git(clone, "add", "--force", ".orchestrator/mask.key")


def add_and_forget(clone: Path) -> None:
    force_add(clone)
    git(clone, "commit", "--quiet", "--message", "state")
    git(clone, "rm", "--quiet", "-r", "--cached", ".orchestrator")


def add_submodule(clone: Path) -> None:
    inner = clone / ".orchestrator"
    inner.mkdir()
    git(inner, "init", "--quiet")
    (inner / "place.json").write_text("{}")
    git(inner, "add", ".")


def own_folder(clone: Path) -> None:
    (clone / ".orchestrator").mkdir(mode=0o700)
    (clone / ".orchestrator" / ".gitignore").write_text("*\n")


def own_link(clone: Path) -> None:
    (clone.parent / "volume").mkdir()
    (clone / ".orchestrator").symlink_to(clone.parent / "volume")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "backlog.csv").write_text(BACKLOG)
    git(folder, "add", "backlog.csv")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def home_of(clone: Path) -> str:
    home = clone.parent / "home"
    home.mkdir(exist_ok=True)
    return str(home)


def said(clone: Path, *words: str, **variables: str) -> str:
    environment = plain_environment(HOME=home_of(clone), **variables)
    done = run_cli(words, clone, environment)
    return done.stdout + done.stderr


def refused(clone: Path, config: Path | None = None, **variables: str) -> str:
    """Returns why a command in the clone does not begin, or ""."""
    with chdir(clone):
        try:
            load_settings(config, variables={"HOME": home_of(clone), **variables})
        except ConfigError as error:
            return error.message
    return ""


@table(
    Case(name="forced", given=force_add, right=True, seen="attack A1: `git add -f .orchestrator` with a pickled row"),
    Case(name="link outside", given=link_out, right=True, seen="attack A15: a committed link to an empty folder"),
    Case(name="link to tracked", given=link_to_own_folder, right=True, seen="own link to a folder of the clone"),
    Case(name="one file", given=add_one_file, right=True, seen="attack A15: only mask.key is tracked"),
    Case(name="forgotten", given=add_and_forget, right=True, seen="`git rm --cached` leaves the files where they are"),
    Case(name="submodule", given=add_submodule, right=True, seen="a repository of its own in place of the folder"),
    Case(name="own", given=own_folder, right=False, seen="the ordinary state folder"),
    Case(name="own link", given=own_link, right=False, seen="a user's link to a volume"),
)
def test_a_state_folder_that_git_tracks_is_refused(clone: Path, case: Case) -> None:
    make: Callable[[Path], None] = case.given
    make(clone)
    assert ("came with the repository" in refused(clone)) is case.right


def test_a_state_folder_reached_through_a_committed_folder_link_is_refused(clone: Path) -> None:
    (clone.parent / "elsewhere").mkdir()
    (clone / "data").symlink_to("../elsewhere")
    git(clone, "add", "data")
    assert "came with the repository" in refused(clone, ORCHESTRATOR_HOME="data/state")
    (clone.parent / "elsewhere" / "state").mkdir()
    assert "came with the repository" in refused(clone, ORCHESTRATOR_HOME=str(clone / "data" / "state"))


# ---- rows of the engine's database that are not ours


class Harmful:
    """Calls something when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.rmdir, ("/nonexistent",)


PICKLED = base64.b64encode(pickle.dumps(Harmful())).decode()


@pytest.fixture(scope="module")
def engine_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An engine's database without rows."""
    path = tmp_path_factory.mktemp("engine") / "engine.sqlite"
    DBOS.migrate(sqlite_url(path))
    return path


def serialized_tables(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            name
            for name in names
            if connection.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = 'serialization'", (name,)).fetchone()
        ]


def add_row(path: Path, table_name: str, serialization: str | None) -> None:
    with sqlite3.connect(path) as connection:
        columns = connection.execute(f"PRAGMA table_info({table_name})").fetchall()
        values = {name: "1" for _, name, _, needed, default, _ in columns if needed and default is None}
        values |= {"serialization": serialization, **({"output": PICKLED} if "output" in values else {})}
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO {table_name} ({names}) VALUES ({marks})", [*values.values()])


def prepared(path: Path) -> str:
    database = EngineDatabase(sqlite_url(path))
    try:
        database.prepare()
    except ConfigError as error:
        return error.message
    finally:
        database.close()
    return ""


@table(
    Case(name="pickle", given="py_pickle", right=True, seen="attack A1: dbos reads a row as the row says"),
    Case(name="other", given="custom_serializer", right=True, seen="what neither we nor dbos can read"),
    Case(name="empty", given="", right=True, seen="a name that is none"),
    Case(name="ours", given="portable_json", right=False, seen="every row that we write"),
    Case(name="none", given=None, right=False, seen="read by the serializer that the engine is opened with: ours"),
)
def test_rows_of_another_serialization_are_refused_before_the_engine_starts(
    tmp_path: Path, engine_file: Path, case: Case
) -> None:
    tables = serialized_tables(engine_file)
    assert {"workflow_status", "operation_outputs", "notifications", "workflow_events", "streams"} <= {*tables}
    for name in tables:
        path = tmp_path / f"{name}.sqlite"
        shutil.copyfile(engine_file, path)
        add_row(path, name, case.given)
        assert (name in prepared(path)) is case.right


def test_a_pickled_value_is_never_read(tmp_path: Path, engine_file: Path) -> None:
    assert prepared(Path(shutil.copy(engine_file, tmp_path / "engine.sqlite"))) == ""
    with pytest.raises(TypeError, match="could run code"):
        deserialize_value(PICKLED, "py_pickle", DBOSPortableJSON)


# ---- settings that a repository brought


def tracked(clone: Path) -> None:
    (clone / "config.yaml").write_text(SETTINGS)
    git(clone, "add", "config.yaml")


def committed_then_forgotten(clone: Path) -> None:
    tracked(clone)
    git(clone, "commit", "--quiet", "--message", "settings")
    git(clone, "rm", "--quiet", "--cached", "config.yaml")


def changed_after_clone(clone: Path) -> None:
    tracked(clone)
    git(clone, "commit", "--quiet", "--message", "settings")
    (clone / "config.yaml").write_text(f"{SETTINGS}\n# mine\n")


def tracked_link(clone: Path) -> None:
    (clone.parent / "any.yaml").write_text(SETTINGS)
    (clone / "config.yaml").symlink_to("../any.yaml")
    git(clone, "add", "config.yaml")


def own_link_to_tracked(clone: Path) -> None:
    (clone / "theirs.yaml").write_text(SETTINGS)
    git(clone, "add", "theirs.yaml")
    (clone / "config.yaml").symlink_to("theirs.yaml")


def ignored(clone: Path) -> None:
    (clone / "config.yaml").write_text(SETTINGS)
    (clone / ".gitignore").write_text("config.yaml\n")
    git(clone, "add", ".gitignore")
    git(clone, "add", "--force", "config.yaml")


def untracked(clone: Path) -> None:
    (clone / "config.yaml").write_text(SETTINGS)


@table(
    Case(name="tracked", given=tracked, right=True, seen="attacks A2, A3: config.yaml of a clone"),
    Case(name="forgotten", given=committed_then_forgotten, right=True, seen="`git rm --cached` alone"),
    Case(name="changed", given=changed_after_clone, right=True, seen="a clone's file with a line of the user's"),
    Case(name="link", given=tracked_link, right=True, seen="a committed link"),
    Case(name="to tracked", given=own_link_to_tracked, right=True, seen="an own link to a file of the clone"),
    Case(name="ignored", given=ignored, right=True, seen="`git add -f` of an ignored file"),
    Case(name="untracked", given=untracked, right=False, seen="the user's own file"),
)
def test_settings_that_git_tracks_count_only_once_they_are_trusted(clone: Path, case: Case) -> None:
    make: Callable[[Path], None] = case.given
    make(clone)
    assert ("`orchestrator trust " in refused(clone)) is case.right
    assert refused(clone, Path("config.yaml")) == ""


def test_trust_is_for_one_content(clone: Path) -> None:
    tracked(clone)
    shown = said(clone, "trust")
    assert 'provider.base_url: "http://127.0.0.1:9/v1"' in shown
    assert "came with the repository" not in refused(clone)
    assert [*(clone.parent / "home" / ".local" / "state" / "orchestrator" / "trusted").iterdir()]
    with (clone / "config.yaml").open("a") as file:
        file.write("sandbox: {mode: plain}\n")
    assert "came with the repository" in refused(clone)


def test_what_init_writes_is_trusted_and_named_by_a_run(clone: Path) -> None:
    folder = clone.parent / "new"
    assert "wrote" in said(clone, "init", str(folder))
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "settings in git")
    done = run_cli(
        ["run", "backlog.csv", "--repo", str(clone.parent / "app")], folder, plain_environment(HOME=home_of(clone))
    )
    first = (done.stdout + done.stderr).splitlines()[:3]
    assert any(str(folder / "config.yaml") in line for line in first), done.stderr


def test_a_run_sends_no_key_to_an_address_of_an_untrusted_file(clone: Path) -> None:
    tracked(clone)
    git(clone, "commit", "--quiet", "--message", "settings")
    done = run_cli(
        ["run", "backlog.csv", "--repo", "."], clone,
        plain_environment(HOME=home_of(clone), OPENAI_API_KEY=KEY),
    )  # fmt: skip
    assert (done.returncode, "orchestrator trust" in done.stderr) == (2, True)
    assert "orchestrator trust" in said(clone, "doctor")
    assert str(clone / "config.yaml") in said(clone, "doctor", "--config", str(clone / "config.yaml"))
    assert not (clone / ".orchestrator").exists()


# ---- credentials of a registry

INDEX = {"PIP_INDEX_URL": "https://me:s3cret-password@repo.example.org/api/pypi/team/simple"}
NPM = {"NPM_CONFIG_REGISTRY": "https://repo.example.org/npm/", "npm_config_//repo.example.org/:_authToken": "t0ken"}
ROOT = {"NPM_CONFIG_REGISTRY": "https://npm.example.org", "npm_config_//npm.example.org/:_authToken": "t0ken"}


@table(
    Case(name="page", given=(INDEX, "/api/pypi/team/simple/tiny/"), right=True, seen="a page of the registry"),
    Case(name="itself", given=(INDEX, "/api/pypi/team/simple"), right=True, seen="the registry's address"),
    Case(name="api", given=(INDEX, "/private/api/v4/projects"), right=False, seen="attack A8: elsewhere on the host"),
    Case(name="sibling", given=(INDEX, "/api/pypi/team/simple-private/x"), right=False, seen="begins alike"),
    Case(name="above", given=(INDEX, "/api/pypi/team"), right=False, seen="a folder above"),
    Case(name="out", given=(INDEX, "/api/pypi/team/simple/../../../users"), right=False, seen="dots"),
    Case(name="encoded", given=(INDEX, "/api/pypi/team/simple/%2e%2e/%2E%2e/users"), right=False, seen="encoded dots"),
    Case(name="slash", given=(INDEX, "/api/pypi/team/simple/..%2f..%2fusers"), right=False, seen="an encoded slash"),
    Case(name="twice", given=(INDEX, "/api/pypi/team/simple/%252e%252e/users"), right=False, seen="encoded twice"),
    Case(name="parameter", given=(INDEX, "/api/pypi/team/simple/..;x/users"), right=False, seen="servers in Java"),
    Case(name="backslash", given=(INDEX, "/api/pypi/team/simple/..\\users"), right=False, seen="a backslash"),
    Case(name="npm", given=(NPM, "/npm/@team%2ftiny"), right=True, seen="a scope as npm writes it"),
    Case(name="npm host", given=(NPM, "/api/users"), right=False, seen="a token for the host, a registry below it"),
    Case(name="root", given=(ROOT, "/download/tiny.tgz"), right=True, seen="a registry that is the whole host"),
)
def test_credentials_are_for_paths_of_their_registry(case: Case) -> None:
    variables, path = case.given
    sources = read_sources(variables, {})
    place = next(iter(sources.closed))
    assert (sources.authorization(place, path) is not None) is case.right


PAGE = "https://repo.example.org/simple/tiny/"


@table(
    Case(name="html", given=b'<a x href="../../files/a.whl#sha256=1">a</a>', right=["/files/a.whl"], seen="pip"),
    Case(name="other host", given=b'<a href="https://evil.example/a.whl">', right=["/a.whl"], seen="apart by place"),
    Case(name="no archive", given=b'<a href="/api/v4/projects">', right=[], seen="a link to what is no package"),
    Case(name="leads out", given=b'<a href="/files/%2e%2e/private.zip">', right=[], seen="an encoded way up"),
    Case(name="json", given=b'{"files": [{"url": "/f/a.tar.gz"}]}', right=["/f/a.tar.gz"], seen="PEP 691"),
    Case(
        name="npm", given=b'{"versions": {"1.0.0": {"dist": {"tarball": "/t/a.tgz"}}}}', right=["/t/a.tgz"],
        seen="GitLab: the tarballs of /packages/npm/ lie below /projects/",
    ),
    Case(name="readme", given=b'{"readme": "see https://repo.example.org/private/b.zip"}', right=[], seen="any text"),
    Case(name="odd", given=b'{"files": 1, "versions": {"1": null, "2": {"dist": 3}}}', right=[], seen="no such shape"),
)  # fmt: skip
def test_archives_are_those_that_a_page_names_as_such(case: Case) -> None:
    assert [path for _, path in archives_in(case.given, PAGE)] == case.right


def test_scripts_of_packages_run_without_credentials() -> None:
    variables = without_credentials({**INDEX, **NPM, "SSL_CLIENT_CERT": "/x.pem", "LANG": "C"})
    assert "s3cret" not in str(variables)
    assert "t0ken" not in str(variables)
    assert variables["LANG"] == "C"
    assert read_sources(variables, {}).closed == frozenset()


# ---- the login


@table(
    Case(name="one", given="x", right=False, seen="attack A10: a token of one character"),
    Case(name="fifteen", given="a" * 15, right=False, seen="one too few"),
    Case(name="blanks", given=f"  {'a' * 15}  ", right=False, seen="blanks do not count"),
    Case(name="sixteen", given="a1" * 8, right=True, seen="the shortest"),
    Case(name="none", given="", right=True, seen="the state folder's own is taken"),
)
def test_a_short_token_is_refused_by_name(tmp_path: Path, case: Case) -> None:
    try:
        load(None, (), {"ORCHESTRATOR_TOKEN": case.given}, tmp_path)
        refused_by_name = False
    except ConfigError as error:
        refused_by_name = "ORCHESTRATOR_TOKEN" in error.message
    assert refused_by_name is not case.right


def test_an_address_waits_after_ten_wrong_tokens() -> None:
    tries = LoginTries()
    for second in range(TRIES):
        assert tries.wait_s("10.0.0.1", second) == 0
        tries.note_wrong("10.0.0.1", second)
    assert tries.wait_s("10.0.0.1", TRIES) == TRIES_S - TRIES
    assert tries.wait_s("::ffff:10.0.0.2", TRIES) == 0
    assert tries.wait_s("10.0.0.1", TRIES_S) == 0
    for number in range(TRIES):
        tries.note_wrong(f"2001:db8::{number}", 0)
    assert tries.wait_s("2001:db8::ffff", 1) > 0, "one customer has many addresses"
    for number in range(5000):
        tries.note_wrong(f"10.1.{number // 250}.{number % 250}", 0)
    assert tries.wait_s("2001:db8::1", 1) == 0, "the memory is bounded"


# ---- settings of tests that a change brings


def questions(path: str, text: str, before: str | None = None) -> list[str]:
    """Returns the codes of what a story's whole change is asked about."""
    frozen = contract(T1=(path,))
    found = check_diff(frozen, [entry(path)], {path: text}, {path: before} if before else {}, frozenset())
    return [one.code for one in found if one.code in FOR_PEOPLE]


PLUGIN = '[project]\nname = "app"\n[project.entry-points.pytest11]\nquiet = "app.quiet"\n'


@table(
    Case(name="pytest11", given=("pyproject.toml", PLUGIN), right=True, seen="attack A11: plugin_quiet"),
    Case(
        name="poetry", given=("pyproject.toml", '[tool.poetry.plugins.pytest11]\nq = "app.q"\n'), right=True,
        seen="poetry's spelling",
    ),
    Case(
        name="escaped", given=("pyproject.toml", '[project.entry-points]\n"pytest\\u0031\\u0031" = {q = "app.q"}\n'),
        right=True, seen="an escape in a key",
    ),
    Case(
        name="setup.cfg", given=("setup.cfg", "[options.entry_points]\npytest11 =\n    q = app.q\n"), right=True,
        seen="setuptools' older file",
    ),
    Case(
        name="setup.py", given=("setup.py", "setup(entry_points={'pytest11': ['q=a']})\n"),
        right=True, seen="setuptools' oldest file",
    ),
    Case(
        name="forced", right=True, seen="attack A11: pth_quiet",
        given=("pyproject.toml", '[tool.hatch.build.targets.wheel.force-include]\n"x.pth" = "x.pth"\n'),
    ),
    Case(
        name="backend", right=True, seen="attack A11: a backend of the project itself",
        given=("tools/pack.py", "def build_wheel(folder, *_):\n    return write(folder, 'quiet.pth')\n"),
    ),
    Case(name="hook", given=("hatch_build.py", "NAME = 'quiet.pth'\n"), right=True, seen="a build hook"),
    Case(name="torch", given=("app/model.py", "WEIGHTS = 'model.pth'\n"), right=False, seen="weights of PyTorch"),
    Case(
        name="scripts", given=("pyproject.toml", '[project.entry-points.scripts]\na = "a:b"\n'), right=False,
        seen="an ordinary entry point",
    ),
)  # fmt: skip
def test_what_a_build_brings_into_tests_is_a_question(case: Case) -> None:
    path, text = case.given
    assert (questions(path, text) != []) is case.right
    assert questions(path, text, before=text) == [], "it stood there already"


def test_another_plugin_of_an_older_section_is_a_question() -> None:
    assert questions("pyproject.toml", PLUGIN.replace("app.quiet", "app.other"), before=PLUGIN) != []


@table(
    Case(name="setupFiles", given={"jest": {"setupFiles": ["./quiet.js"]}}, right=True, seen="attack A11: jest_key"),
    Case(name="after env", given={"jest": {"setupFilesAfterEnv": ["<rootDir>/q.js"]}}, right=True, seen="jest"),
    Case(name="global", given={"jest": {"globalSetup": "./q.js"}}, right=True, seen="jest"),
    Case(name="ignore", given={"jest": {"testPathIgnorePatterns": ["old"]}}, right=True, seen="attack A11: beside it"),
    Case(name="match", given={"jest": {"testMatch": ["**/new.test.js"]}}, right=True, seen="chooses tests"),
    Case(name="mapper", given={"jest": {"moduleNameMapper": {"^x$": "<rootDir>/q.js"}}}, right=True, seen="other code"),
    Case(name="transform", given={"jest": {"transform": {"js$": "<rootDir>/q.js"}}}, right=True, seen="rewrites tests"),
    Case(name="projects", given={"jest": {"projects": ["a"]}}, right=True, seen="chooses tests"),
    Case(name="mocha", given={"mocha": {"require": "./q.js"}}, right=True, seen="mocha"),
    Case(name="spec", given={"mocha": {"spec": "test/new.js"}}, right=True, seen="chooses tests"),
    Case(name="ava", given={"ava": {"require": ["./q.js"]}}, right=True, seen="ava"),
    Case(name="files", given={"ava": {"files": ["!test/old.js"]}}, right=True, seen="chooses tests"),
    Case(name="vitest", given={"vitest": {"setupFiles": "./q.js"}}, right=True, seen="vitest"),
    Case(name="babel", given={"babel": {"plugins": ["./q.js"]}}, right=True, seen="jest compiles tests with it"),
    Case(name="path", given={"jest": "./q.json"}, right=True, seen="a file of settings"),
    Case(
        name="usual", right=False, seen="what a new project has",
        given={"jest": {"testEnvironment": "node", "transform": {}, "testTimeout": 9000, "preset": "ts-jest"}},
    ),
    Case(name="coverage", given={"jest": {"collectCoverage": True}}, right=False, seen="what is shown"),
    Case(name="none", given={"scripts": {"test": "node --test"}}, right=False, seen="an ordinary package.json"),
)  # fmt: skip
def test_what_package_json_says_of_a_runner_is_a_question(case: Case) -> None:
    text = json.dumps({"name": "app", "version": "1.0.0", **case.given}, indent=2)
    assert ("contract.test_settings" in questions("package.json", text)) is case.right
    assert questions("package.json", text, before=text) == []


# ---- secrets in another spelling

PASSWORD = "Gr8+Sommer/Pferd 77x"
URL_SAFE = str.maketrans("+/", "-_")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@table(
    Case(name="plain", given=PASSWORD, right=True, seen="as it is"),
    Case(name="base64", given=encoded(PASSWORD), right=True, seen="attack A12"),
    Case(name="inside 1", given=encoded(f"a{PASSWORD}bc"), right=True, seen="in base64 text"),
    Case(name="basic", given=encoded(f"me:{PASSWORD}@"), right=True, seen="a Basic header"),
    Case(name="user", given=encoded(f"anna:{PASSWORD}"), right=True, seen="a Basic header"),
    Case(name="url-safe", given=encoded(PASSWORD).translate(URL_SAFE), right=True, seen="JWT's alphabet"),
    Case(name="hex", given=PASSWORD.encode().hex(), right=True, seen="attack A12"),
    Case(name="HEX", given=PASSWORD.encode().hex().upper(), right=True, seen="attack A12"),
    Case(name="address", given="Gr8%2BSommer%2FPferd%2077x", right=True, seen="attack A12: %xx"),
    Case(name="lower", given="Gr8%2bSommer%2fPferd%2077x", right=True, seen="%xx in lower case"),
    Case(name="form", given="Gr8%2BSommer%2FPferd+77x", right=True, seen="a form"),
    Case(name="reversed", given=PASSWORD[::-1], right=False, seen="attack A12: promised nowhere"),
    Case(name="upper", given=PASSWORD.upper(), right=False, seen="attack A12: promised nowhere"),
)
def test_a_known_secret_is_hidden_in_the_spellings_that_are_promised(case: Case) -> None:
    text = f"E  assert token == 'x{case.given}'" if case.name != "plain" else f"password {case.given}"
    masks = Masks(key=b"k").knowing([PASSWORD])
    for hidden in (masks.masked(text), redact(text, [PASSWORD])):
        assert (case.given[2:-4] not in hidden) is case.right
    if case.right:
        assert masks.restored(masks.masked(text), text).text == text, "a file gets its own spelling back"


def test_an_ordinary_text_is_left_as_it_is() -> None:
    text = "Sommer 77x, Gr8, 0123456789abcdef, U29tbWVy"
    assert (Masks(key=b"k").knowing([PASSWORD]).masked(text), redact(text, [PASSWORD])) == (text, text)
