"""bash reads shell files: what it does not understand is refused, other shells are not its own."""

import json
from pathlib import Path

import pytest

from orchestrator.app.judge import CheckOptions, check, check_shell
from orchestrator.checks.paths import read_syntax, shell_files, syntax_command
from orchestrator.core.delivery import Delivery, FileChange
from tests.code.corpus_files import FOLDER, broken, text_of

SOUND = {
    "quotes.sh": 'f() (x)\ncase a in (b|c) d;; *) ;; esac\necho $((1+(2*3))) "${a:-$(b "c")}" \'it\'"\'"\'s\'\n',
    "extended.sh": "shopt -s extglob\nls !(*.txt|*.md)\n",
    "own shell.sh": "#!/usr/bin/env zsh\nfor f (*.txt) { echo $f }\n",
    "rc.zsh": "for f (*.txt) { echo $f }\n",
    "template.sh": "{% if x %}\nif true; then\n{% endif %}\n",
}


def delivery(files: dict[str, str]) -> Delivery:
    changes = tuple(FileChange(path=path, content=text) for path, text in files.items())
    return Delivery(story_id="US-001", task_id="T1", files=changes)


def test_sound_scripts_pass_and_broken_ones_are_found_at_their_line() -> None:
    assert check_shell(delivery(SOUND | {path.name: text_of(path) for path in FOLDER.glob("shell/*")})) == []
    texts = {f"{number}-{path.name}": text for number, (path, text, _) in enumerate(broken("shell"))}
    found = check_shell(delivery(texts | {"open.sh": "cat <<EOF\nx\n"}))
    assert {finding.where.file for finding in found} == {*texts, "open.sh"}
    assert {(finding.code, finding.severity.blocks) for finding in found} == {("delivery.syntax", True)}
    assert all(finding.where.line for finding in found)


def test_without_bash_files_count_as_not_checked() -> None:
    paths = shell_files(delivery({"a.sh": "x"}).files)
    found = read_syntax(paths, "/bin/sh: 1: bash: not found\n")
    assert [(finding.code, finding.severity.blocks) for finding in found] == [("delivery.unchecked", False)]
    assert "bash -n" in syntax_command(paths)


def test_a_delivery_judged_by_hand_is_read_by_bash(tmp_path: Path) -> None:
    answer = json.dumps({"files": [{"path": "bin/a b.sh", "content": "if true; then\n  x\n"}]})
    judged = check("delivery", answer, CheckOptions(repo=tmp_path))
    assert [finding.code for finding in judged.findings if finding.severity.blocks] == ["delivery.syntax"]


def test_what_reads_a_delivery_reaches_nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, outside = tmp_path / "bin" / "bash", tmp_path / "outside"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch '{outside}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    check_shell(delivery({"a.sh": "echo a\n"}))
    assert not outside.exists()
