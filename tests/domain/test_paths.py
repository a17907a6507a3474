import posixpath
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.paths import MAX_PATH_BYTES, unsafe_reason

PARTS = st.sampled_from(
    [
        "a",
        "b.py",
        "..",
        ".",
        "",
        ".git",
        ".GIT",
        "git~1",
        ".git\u200c",
        "~",
        "C:",
        "nul",
        "x:y",
        " ",
        "a ",
        "é",
        "...",
        "\\",
    ]
)


@pytest.mark.parametrize(
    "path",
    [
        "",
        " a",
        "a ",
        "a/",
        "/a",
        "~/a",
        "../a",
        "a/../b",
        "a//b",
        "./a",
        "C:a",
        "c:/a",
        "a\\b",
        "a\0b",
        "a\nb",
        ".git/config",
        "sub/.Git",
        ".git ",
        ".git./x",
        "GIT~1/x",
        ".g\u200cit/x",
        ".git::$INDEX_ALLOCATION/x",
        "a:b",
        "con",
        "x/NUL.txt",
        "com1.py",
        "lpt³",
        "conin$",
        "aux .txt",
        "a./b",
        "a /b",
        "\u3000a",
        "a\u202eb",
        "a\x85b",
        "\ud800",
        "x" * 256,
        "é/" * 200,
    ],
)
def test_unsafe_paths_have_a_reason(path: str) -> None:
    assert unsafe_reason(path)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "a..b.js",
        "..a",
        ".gitignore",
        ".github/workflows/ci.yml",
        "a b/c d.py",
        "pages/[id].tsx",
        "café/é.py",
        "console.py",
        "com10.py",
        "a-b_c~",
        "git~x",
        "x" * 255,
    ],
)
def test_safe_paths_have_none(path: str) -> None:
    assert unsafe_reason(path) is None


@given(st.lists(PARTS, max_size=5).map("/".join) | st.text(max_size=40))
def test_no_accepted_path_escapes(path: str) -> None:
    if unsafe_reason(path) is not None:
        return
    assert len(path.encode()) <= MAX_PATH_BYTES
    assert posixpath.normpath(path) == path
    for kind in (PurePosixPath, PureWindowsPath):
        assert not kind(path).is_absolute()
        assert not kind(path).anchor
        assert not {"..", ".git"} & {part.lower() for part in kind(path).parts}
