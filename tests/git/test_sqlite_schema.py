"""Schemas of SQLite files in a tree."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.git.workspace import GitWorkspace, schema_sql
from tests.git.git_samples import git, save, user_repo


def database(path: Path, *, wal: bool = False) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        if wal:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)")
        connection.execute("CREATE TABLE sqliteish (a)")
        connection.execute("CREATE VIEW seen AS SELECT name FROM users")
        connection.commit()
    return path.read_bytes()


SQL = "CREATE TABLE sqliteish (a);\nCREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);\n"


@pytest.mark.parametrize("wal", [False, True])
def test_the_tables_are_read_without_opening_a_file(tmp_path: Path, wal: bool) -> None:
    assert schema_sql(database(tmp_path / "a.db", wal=wal)) == SQL


def test_what_is_no_database_gives_nothing(tmp_path: Path) -> None:
    whole = database(tmp_path / "a.db")
    assert schema_sql(b"") == schema_sql(b"SQLite format 3\0") == schema_sql(b"text") == ""
    for cut in (17, 60, 100, 3000):
        schema_sql(whole[:cut])
    spoilt = whole.replace(b"CREATE TABLE users", b"CREATE \xff\xfeBLE users")
    assert schema_sql(spoilt) == ""


async def test_a_workspace_reads_them_from_the_branch(tmp_path: Path) -> None:
    repo = user_repo(tmp_path / "user", {"notes.db": "no database"})
    database(repo / "app.db")
    (repo / "link.db").symlink_to("app.db")
    save(repo, "Database")
    head = git(repo, "rev-parse", "HEAD")
    workspace = GitWorkspace(mirror=tmp_path / "mirror.git", folder=tmp_path / "trees", sprint="s1", base=head)
    await workspace.prepare(repo)
    await workspace.open("US-1")
    assert await workspace.schemas("US-1", ["app.db", "link.db", "notes.db", "gone.db"]) == {"app.db": SQL}
    assert await workspace.schemas("US-1", []) == {}
    workspace.close()
