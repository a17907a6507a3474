"""What of a folder an analysis reads."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.analysis.input import MAX_BYTES, read_file
from orchestrator.app.plan_files import project_files
from orchestrator.core.errors import ConfigError
from tests.support import git, make_repo


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def names(folder: Path, *ignore: str) -> list[str]:
    return [*asyncio.run(project_files(folder, ignore, tracked=False))]


IGNORES = {
    ".gitignore": "*.log\n!keep.log\n/build/\ntmp/*\n!tmp/kept.txt\n# no rule\n\\#x\ndocs/**/*.pdf\n[bad\n",
    "a/.gitignore": "!loud.log\n/only_here\nbuild\n",
    "a/only_here": "", "a/b/only_here": "", "a/build/x": "", "build/x": "", "b/build/x": "", "#x": "",
    "x.log": "", "keep.log": "", "a/loud.log": "", "a/b/loud.log": "", "b/loud.log": "",
    "tmp/gone.txt": "", "tmp/kept.txt": "", "docs/a/b.pdf": "", "docs/b.pdf": "", "main.py": "", "[bad": "",
}  # fmt: skip


def test_ignore_rules_are_gits(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    write(repo, IGNORES)
    said = git(repo, "-c", "core.excludesFile=/dev/null", "ls-files", "--others", "--exclude-standard", "-z")
    assert names(repo) == sorted(name for name in said.split("\0") if name)


def test_a_folder_that_is_no_repository_is_read_the_same_way(tmp_path: Path) -> None:
    write(tmp_path, {**IGNORES, "node_modules/x.js": "", "__pycache__/x.py": "", ".venv/x.py": "", ".git/config": ""})
    assert "main.py" in names(tmp_path)
    assert not [
        name for name in names(tmp_path) if name.startswith((".git/", "node_modules", "__py", ".venv", "build"))
    ]


def test_a_folder_inside_a_repository_keeps_to_the_rules_above_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    write(repo, {".gitignore": "dist/\n/app/web/local.py\n", "app/.gitignore": "/web/*.tmp\n!dist/\n"})
    write(repo, {"app/web/.gitignore": "!kept.tmp\n", "app/web/a.py": "", "app/web/dist/x.js": "", "app/web/b.tmp": ""})
    write(repo, {"app/web/kept.tmp": "", "app/web/local.py": "", "app/web/sub/local.py": ""})
    said = git(repo, "-c", "core.excludesFile=/dev/null", "ls-files", "--others", "--exclude-standard", "app/web")
    assert names(repo / "app" / "web") == sorted(path.removeprefix("app/web/") for path in said.splitlines())


def test_own_rules_go_first(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "a.log": "", "data/x.py": "", "main.py": ""})
    assert names(tmp_path, "data/", "!a.log") == [".gitignore", "a.log", "main.py"]


def test_no_link_is_followed_and_no_pipe_is_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = write(tmp_path / "folder", {"a.py": "a"})
    (folder / "link.py").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / ".gitignore").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    assert names(folder) == ["a.py"]
    assert read_file(folder, "link.py") is None
    assert read_file(folder, "pipe") is None
    assert read_file(folder, "gone.py") is None


def test_text_is_utf8_and_not_too_long(tmp_path: Path) -> None:
    (tmp_path / "bom.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    (tmp_path / "nul").write_bytes(b"a\0b")
    (tmp_path / "long").write_bytes(b"a" * (MAX_BYTES + 1))
    assert read_file(tmp_path, "bom.py") == "x = 1\n"
    assert [read_file(tmp_path, name) for name in ("latin", "nul", "long")] == [None] * 3


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        names(tmp_path / "none")


def test_a_file_name_that_no_prompt_takes_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": ""})
    subprocess.run(["touch", b"bad\xff.py", "new\nline.py"], cwd=tmp_path, check=True)
    assert names(tmp_path) == ["a.py"]
