import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.backlogs.csv import CsvBacklog
from orchestrator.backlogs.rows import ReadingRules
from orchestrator.core.errors import BacklogError
from orchestrator.core.story import CellUpdate, Priority
from tests.backlogs.backlog_samples import MESSY, SIMPLE


def backlog_of(tmp_path: Path, data: bytes) -> CsvBacklog:
    (tmp_path / "backlog.csv").write_bytes(data)
    return CsvBacklog(tmp_path / "backlog.csv", tmp_path / "state" / "cells.json", ReadingRules(foundation="LIB-900"))


def update(story_id: str, **cells: str) -> CellUpdate:
    return CellUpdate(story_id=story_id, cells=cells)


def test_reads_the_original_header_with_its_mess(tmp_path: Path) -> None:
    content = backlog_of(tmp_path, MESSY).read()
    lend, back, login, setup = content.stories
    assert [problem.code for problem in content.problems] == ["backlog.field"], "columns of its own are named once"
    assert (lend.id, lend.line, lend.dependencies) == ("LIB-001", 2, ("LIB-900", "LIB-009"))
    assert lend.user_story == 'As a reader, I want "Dune"'
    assert lend.acceptance_criteria == ("Book is lent", "Shelf shows it")
    assert (back.line, back.title, back.priority) == (3, "Return\r\na book", Priority.HIGH)
    assert back.dependencies == ("LIB-001", "LIB-009")
    assert (login.line, login.acceptance_criteria) == (8, ("works",))
    assert (setup.line, setup.title, setup.foundation) == (10, "Set-up é", True)
    assert [story.foundation for story in content.stories] == [False, False, False, True]


def test_header_names_match_trimmed_in_any_case_and_foundation_is_marked(tmp_path: Path) -> None:
    data = b" story_id ,TITLE,Foundation,Priority\nA-1,x,No,P1\nLIB-900,y,Yes,whenever\nA-3,z,1,\n"
    content = backlog_of(tmp_path, data).read()
    assert [s.foundation for s in content.stories] == [False, True, True]
    assert [s.priority for s in content.stories] == [Priority.HIGH, Priority.MEDIUM, Priority.MEDIUM]
    assert [(f.code, f.where.line) for f in content.problems] == [("backlog.priority", 3)]


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"", "backlog.empty", "is empty"),
        (b"\xef\xbb\xbf\r\n\r\n", "backlog.empty", "is empty"),
        (b"\nStory_ID,Title\n,,\n\n", "backlog.no_rows", "a header and no rows"),
        (b"Nr,Title\n1,x\n", "backlog.columns", "no column Story_ID; the header found is: Nr, Title"),
        (b"Story_ID:Title\n1:x\n", "backlog.columns", "no column Story_ID and no column Title"),
        (None, "backlog.unreadable", "No such file"),
    ],
)
def test_what_is_no_backlog_is_refused(tmp_path: Path, data: bytes | None, code: str, said: str) -> None:
    backlog = backlog_of(tmp_path, data or b"")
    if data is None:
        (tmp_path / "backlog.csv").unlink()
    with pytest.raises(BacklogError) as caught:
        backlog.read()
    assert said in caught.value.message
    assert caught.value.findings[0].code == code


def test_rows_of_a_wrong_shape_are_problems_with_lines(tmp_path: Path) -> None:
    data = b'Story_ID,Title,Title\nA-1,x\n,"no\nid",\nA-2,a,b,c,d\nA-3,"say "hi"",c\nA-4,x,,,,\n'
    found = backlog_of(tmp_path, data).read().problems
    assert [(f.code, f.severity.value, f.where.line, f.where.story) for f in found] == [
        ("backlog.column_twice", "minor", 1, None),
        ("backlog.missing_id", "critical", 3, None),
        ("backlog.too_many_cells", "major", 5, "A-2"),
        ("backlog.quote", "major", 6, "A-3"),
    ]


def test_a_write_changes_its_cells_only_and_keeps_the_mode(tmp_path: Path) -> None:
    backlog = backlog_of(tmp_path, MESSY)
    (tmp_path / "backlog.csv").chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to("backlog.csv")
    linked = CsvBacklog(link, tmp_path / "state" / "cells.json", ReadingRules())
    event = 'done, "merged"\nat once'
    assert linked.write([update("LIB-001", Execution_Status="completed"), update("LIB-009", last_event=event)]) is None
    after = (tmp_path / "backlog.csv").read_bytes()
    expected = MESSY.replace(b"wf-001,,,,,,,,Ann", b"wf-001,,,completed,,,,,Ann").replace(
        b"LIB-009,Login,,,,,LIB-900,,- works",
        b"LIB-009,Login,,,,,LIB-900,,- works" + b"," * 10 + b'"done, ""merged""\nat once"',
    )
    assert after == expected
    assert (tmp_path / "backlog.csv").stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert backlog.read().stories[0].completed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["backlog.csv", "link.csv", "state"]
    inode = (tmp_path / "backlog.csv").stat().st_ino
    assert linked.write([update("LIB-001", Execution_Status="completed")]) is None
    assert (tmp_path / "backlog.csv").stat().st_ino == inode, "nothing to change: nothing is written"


def test_what_a_person_saved_meanwhile_stays(tmp_path: Path) -> None:
    backlog = backlog_of(tmp_path, SIMPLE)
    backlog.read()
    (tmp_path / "backlog.csv").write_bytes(SIMPLE.replace(b"A-1,One", b"A-0,New,,,,\nA-1,Uno"))
    assert backlog.write([update("A-2", Sprint_ID="SP-001")]) is None
    assert (tmp_path / "backlog.csv").read_bytes() == SIMPLE.replace(b"A-1,One", b"A-0,New,,,,\nA-1,Uno").replace(
        b"Two,A-1,,", b"Two,A-1,SP-001,"
    )


def test_columns_the_file_lacks_go_to_the_sidecar_silently(tmp_path: Path) -> None:
    backlog = backlog_of(tmp_path, b"Story_ID,Title\nA-1,x\nA-2,y\n")
    assert backlog.write([update("A-1", Sprint_ID="SP-001", Execution_Status="completed")]) is None
    assert backlog.write([update("A-2", Sprint_ID="SP-001")]) is None
    assert (tmp_path / "backlog.csv").read_bytes() == b"Story_ID,Title\nA-1,x\nA-2,y\n"
    first, second = backlog.read().stories
    assert (first.sprint_id, first.completed, second.sprint_id, second.completed) == ("SP-001", True, "SP-001", False)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_backlog_keeps_its_bytes_and_is_overlaid(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    path = folder / "backlog.csv"
    path.write_bytes(SIMPLE)
    backlog = CsvBacklog(path, tmp_path / "state" / "cells.json", ReadingRules())
    locked, usual = (path, 0o644) if what == "file" else (folder, 0o755)
    locked.chmod(0o444 if what == "file" else 0o555)
    try:
        warning = backlog.write([update("A-1", Execution_Status="executing")])
        assert warning is not None
        assert "read-only" in warning
        assert "cells.json" in warning
        backlog.write([update("A-1", Execution_Status="completed"), update("A-3", Execution_Status="failed")])
        assert path.read_bytes() == SIMPLE
        assert [s.execution_status for s in backlog.read().stories] == ["completed", "", "failed"]
    finally:
        locked.chmod(usual)
    path.write_bytes(SIMPLE.replace(b"Three,,,,", b"Three,,,cancelled,"))
    assert [s.execution_status for s in backlog.read().stories] == ["completed", "", "cancelled"]
    assert backlog.write([update("A-2", Last_Event="started")]) is None
    assert path.read_bytes() == (
        SIMPLE.replace(b"One,,,,", b"One,,,completed,")
        .replace(b"Two,A-1,,,", b"Two,A-1,,,started")
        .replace(b"Three,,,,", b"Three,,,cancelled,")
    ), "set-aside cells come home, a person's later change stays"
    assert json.loads((tmp_path / "state" / "cells.json").read_text())["cells"] == {}


def test_a_full_disk_leaves_the_file_whole(tmp_path: Path) -> None:
    rows = "".join(f"B-{n},{'text ' * 20},\n" for n in range(100))
    data = f"Story_ID,Title,Last_Event\n{rows}".encode()
    backlog = backlog_of(tmp_path, data)
    program = """
import resource, sys
from pathlib import Path
from orchestrator.backlogs.rows import ReadingRules
from orchestrator.backlogs.csv import CsvBacklog
from orchestrator.core.story import CellUpdate
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
backlog = CsvBacklog(Path(sys.argv[1]), Path(sys.argv[2]), ReadingRules())
print(backlog.write([CellUpdate(story_id="B-7", cells={"Last_Event": "done", "Sprint_ID": "SP-001"})]))
"""
    sidecar = tmp_path / "state" / "cells.json"
    argv = [sys.executable, "-c", program, str(tmp_path / "backlog.csv"), str(sidecar)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert "was not changed (File too large)" in done.stdout, done.stderr
    assert (tmp_path / "backlog.csv").read_bytes() == data
    assert sorted(os.listdir(tmp_path)) == ["backlog.csv", "state"]
    assert backlog.read().stories[7].sprint_id == "SP-001"


def test_trouble_is_a_warning_and_nothing_is_forgotten(tmp_path: Path) -> None:
    backlog = backlog_of(tmp_path, SIMPLE)
    path, state = tmp_path / "backlog.csv", tmp_path / "state"
    assert "no row A-9 is left" in (backlog.write([update("A-9", Last_Event="x"), update("A-1", Last_Event="y")]) or "")
    assert b"One,,,,y" in path.read_bytes()
    path.write_bytes(b'Story_ID,Title\n"A-1')
    assert "never closed" in (backlog.write([update("A-1", Last_Event="z")]) or "")
    path.unlink()
    assert "No such file" in (backlog.write([update("A-1", Last_Event="z2")]) or "")
    for file in state.iterdir():
        file.unlink()
    state.rmdir()
    state.write_text("in the way")
    assert "cannot be written" in (backlog.write([update("A-1", Sprint_ID="SP-007")]) or "")
    path.write_bytes(SIMPLE)
    assert backlog.write([update("A-2", Sprint_ID="SP-007")]) is None
    assert path.read_bytes() == SIMPLE.replace(b"One,,,,", b"One,,SP-007,,").replace(b"A-1,,,", b"A-1,SP-007,,")


def test_a_broken_sidecar_is_told_and_not_fatal(tmp_path: Path) -> None:
    backlog = backlog_of(tmp_path, SIMPLE)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "cells.json").write_text("{")
    assert [f.code for f in backlog.read().problems] == ["backlog.sidecar"]
    assert backlog.write([update("A-1", Owner="Ann")]) is None
    assert backlog.read().problems == ()


def test_processes_do_not_lose_each_others_cells(tmp_path: Path) -> None:
    count = 12
    rows = "".join(f"C-{n},t,,\n" for n in range(count * 2))
    backlog = backlog_of(tmp_path, f"Story_ID,Title,Last_Event\n{rows}".encode())
    program = """
import sys
from pathlib import Path
from orchestrator.backlogs.rows import ReadingRules
from orchestrator.backlogs.csv import CsvBacklog
from orchestrator.core.story import CellUpdate
backlog = CsvBacklog(Path(sys.argv[1]), Path(sys.argv[2]), ReadingRules())
for n in range(int(sys.argv[3]), int(sys.argv[4])):
    assert backlog.write([CellUpdate(story_id=f"C-{n}", cells={"Last_Event": f"e{n}", "Sprint_ID": "S"})]) is None
"""
    argv = [sys.executable, "-c", program, str(tmp_path / "backlog.csv"), str(tmp_path / "state" / "cells.json")]
    both = [subprocess.Popen([*argv, str(n * count), str(n * count + count)]) for n in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    text = (tmp_path / "backlog.csv").read_text()
    assert all(f"C-{n},t,e{n},\n" in text for n in range(count * 2))
    assert all(story.sprint_id == "S" for story in backlog.read().stories)


def test_columns_are_known_by_the_names_that_people_give_them(tmp_path: Path) -> None:
    data = b"ID,Title,Depends On,Prio,acceptance criteria,Titel,Team\nA,a,,High,1. x,t,red\nB,b,A,low,,,\n"
    content = backlog_of(tmp_path, data).read()
    a, b = content.stories
    assert (a.id, a.priority.name, a.acceptance_criteria, b.dependencies) == ("A", "HIGH", ("x",), ("A",))
    near, other = content.problems
    assert near.message.endswith("the field 'Titel' (line 1) is not known and not read")
    assert other.message.endswith("not read: Team")
