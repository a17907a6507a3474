"""The state folder: records whole or not at all, paths that never meet, readable complaints."""

import os
import shutil
import stat
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import minor
from orchestrator.core.sprint import SprintRecord
from orchestrator.storage.state_folder import StateFolder


def record(sprint: str, hours: int = 0) -> SprintRecord:
    return SprintRecord(
        sprint=sprint,
        backlog="/b.csv",
        repo="/r\udce9po",
        base="0" * 40,
        story_ids=("A", "B"),
        needs={"B": ("A",), "A": ()},
        warnings=(minor("backlog.x", "ü"),),
        started_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours),
    )


def test_a_record_comes_back_as_it_was_also_with_a_path_that_is_no_text(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "home")
    folder.save(record("SP-001"))
    assert folder.record("SP-001") == record("SP-001")
    changed = record("SP-001").reset(("A",))
    folder.save(changed)
    again = folder.record("SP-001")
    assert again == changed
    assert again is not None
    assert (again.workflow_id("A"), again.workflow_id("B")) == ("SP-001/A@2", "SP-001/B")
    assert [path.name for path in folder.sprint("SP-001").iterdir()] == ["sprint.json"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_records_come_oldest_first(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert folder.records() == []
    for name, hours in (("SP-003", 1), ("SP-001", 2), ("SP-002", 0)):
        folder.save(record(name, hours))
    folder.sprint("half").mkdir()
    assert [found.sprint for found in folder.records()] == ["SP-002", "SP-003", "SP-001"]
    assert folder.record("half") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"sprint": 1}', b"\xff"])
def test_a_record_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    folder = StateFolder(tmp_path)
    folder.sprint("SP-001").mkdir(parents=True)
    (folder.sprint("SP-001") / "sprint.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"sprint\.json.*move it away"):
        folder.records()


def test_it_hides_from_a_repository_around_it(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "deep" / "home")
    folder.make()
    folder.make()
    assert (folder.home / ".gitignore").read_text() == "*\n"


def test_a_home_that_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "home"):
        with pytest.raises(ConfigError, match="cannot use the state folder"):
            StateFolder(home).make()


def test_a_folder_that_is_open_is_closed_and_told_once(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "home")
    folder.home.mkdir()
    folder.engine_database.touch()
    folder.home.chmod(0o755)
    assert folder.make() == f"the state folder {folder.home} was open to other users (mode 0755); now only to you"
    assert (mode(folder.home), folder.make()) == (0o700, None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_that_is_open_is_refused(tmp_path: Path) -> None:
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    theirs, link = place / "theirs", place / "link"
    place.chmod(0o755)
    theirs.mkdir()
    theirs.chmod(0o777)
    link.symlink_to(theirs)
    try:
        os.seteuid(65534)
        for home in (theirs, link):
            with pytest.raises(ConfigError, match=r"\(mode 0777\), and its mode cannot be changed"):
                StateFolder(home).make()
    finally:
        os.seteuid(0)
        shutil.rmtree(place)


def test_a_folder_of_other_things_is_not_closed(tmp_path: Path) -> None:
    (tmp_path / "shared").touch()
    tmp_path.chmod(0o755)
    with pytest.raises(ConfigError, match="is no state folder, and not empty"):
        StateFolder(tmp_path).make()
    assert mode(tmp_path) == 0o755


def test_names_of_two_places_never_meet(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert folder.mirror(Path("/one/app")) != folder.mirror(Path("/two/app"))
    assert folder.sidecar(Path("/one/b.csv")) != folder.sidecar(Path("/two/b.csv"))
    assert len(folder.mirror(Path("/" + "x" * 250)).name) < 100
    assert folder.mirror(Path("/")).name.startswith("root-")


def test_the_report_is_replaced_whole(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.save_report("SP-001", "{}", "# Old")
    path = folder.save_report("SP-001", '{"a": 1}', "# New")
    assert (path.read_text(), path.with_suffix(".md").read_text()) == ('{"a": 1}', "# New")


def test_the_key_of_masks_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    first = StateFolder(tmp_path).mask_key()
    assert (len(first), StateFolder(tmp_path).mask_key()) == (32, first)
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [("mask.key", 0o600)]


def test_the_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert folder.token() is None
    token = folder.make_token()
    assert [folder.token(), folder.make_token(), StateFolder(tmp_path).make_token()] == [token] * 3
    assert len(token) >= 32
    assert [(path.name, path.stat().st_mode & 0o777) for path in folder.daemon_token.parent.iterdir()] == [
        ("token", 0o600)
    ]


@pytest.mark.parametrize("fault", ["wide", "empty", "short", "two lines", "link", "dangling link"])
def test_a_token_that_others_may_know_is_refused(fault: str, tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    good = folder.make_token()
    path, other = folder.daemon_token, tmp_path / "other"
    if fault == "wide":
        path.chmod(0o640)
    elif "link" in fault:
        path.replace(other if fault == "link" else tmp_path / "gone")
        path.symlink_to(other)
    else:
        path.write_text({"empty": "", "short": good[:31], "two lines": f"{good}\n{good}"}[fault])
    with pytest.raises(ConfigError, match="delete it, and the next start makes another one"):
        folder.make_token()
    path.unlink()
    assert folder.make_token() != good


def test_a_folder_of_another_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "home")
    assert folder.find_format() is None
    folder.make()
    folder.make()
    assert folder.find_format() == 1
    (folder.home / "format").write_text("999\n")
    for use in (folder.find_format, folder.make):
        with pytest.raises(ConfigError, match=r"is of format 999, and this version works with 1"):
            use()
    assert (folder.home / "format").read_text() == "999\n"


def test_paths_below_the_folder_around_it_move_with_it(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "home").mkdir(parents=True)
    folder = StateFolder(here / "home")
    inside = record("SP-001").model_copy(update={"repo": str(here / "repo"), "backlog": str(here / "b.csv")})
    outside = record("SP-002").model_copy(update={"repo": "/else/repo", "backlog": str(tmp_path / "b.csv")})
    for one in (inside, outside):
        folder.save(one)
    assert folder.record("SP-001") == inside
    here.rename(there)
    moved = StateFolder(there / "home")
    assert moved.record("SP-001") == inside.model_copy(
        update={"repo": str(there / "repo"), "backlog": str(there / "b.csv")}
    )
    assert moved.record("SP-002") == outside
    assert moved.mirror(there / "repo").name == folder.mirror(here / "repo").name
    assert moved.sidecar(there / "b.csv").name == folder.sidecar(here / "b.csv").name
    assert moved.mirror(there / "repo") != moved.mirror(there / "other" / "repo")


def test_a_record_with_fields_of_a_newer_version_is_not_called_damaged(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "home")
    folder.save(record("SP-001"))
    [path] = folder.home.glob("sprints/SP-001/*.json")
    path.write_text(path.read_text().replace('"sprint":', '"new_in_999": 1, "sprint":', 1))
    with pytest.raises(ConfigError, match="is of a newer version"):
        folder.record("SP-001")
