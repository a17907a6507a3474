from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.prompts.render import load_prompts


@pytest.fixture
def packaged(tmp_path: Path) -> Path:
    folder = tmp_path / "packaged"
    (folder / "architect").mkdir(parents=True)
    (folder / "architect" / "breakdown.md").write_text("plan")
    (folder / "repair.md").write_text("repair")
    (folder / "notes.txt").write_text("no prompt")
    return folder


def test_an_override_replaces_single_files(packaged: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "architect").mkdir(parents=True)
    (mine / "architect" / "breakdown.md").write_bytes(b"\xef\xbb\xbfmine\r\nhere")
    (mine / ".DS_Store").write_bytes(b"\0")
    assert load_prompts(packaged, None) == {"architect/breakdown": "plan", "repair": "repair"}
    assert load_prompts(packaged, mine) == {"architect/breakdown": "mine\nhere", "repair": "repair"}


def test_an_unknown_override_names_the_nearest(packaged: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "architect").mkdir(parents=True)
    (mine / "architect" / "breakdowns.md").write_text("x")
    with pytest.raises(ConfigError, match=r"no architect/breakdowns\.md; did you mean architect/breakdown\.md"):
        load_prompts(packaged, mine)


def test_what_cannot_be_read_is_said(packaged: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_prompts(packaged, tmp_path / "nowhere")
    (packaged / "repair.md").write_bytes(b"a\xff")
    with pytest.raises(ConfigError, match=r"not UTF-8 \(byte 1\)"):
        load_prompts(packaged, None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"holds no \.md files"):
        load_prompts(tmp_path / "empty", None)
