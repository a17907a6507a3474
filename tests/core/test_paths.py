import pickle
import posixpath
import tempfile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.paths import MAX_PATH_BYTES, RepoPath, spelling, unsafe_reason
from orchestrator.core.value import Value

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
        "clock$",
        "src/COM0.js",
        ".git\u034f/x",
        "a/GIT~2 ./x",
        "aux .txt",
        "a./b",
        "a /b",
        "\u3000a",
        "a\u202eb",
        "a\x85b",
        "\ud800",
        "x" * 256,
        "é/" * 200,
        "-rf",
        "--help",
        "-/a.py",
        "a?",
        "a*b",
        "a<b",
        "src/a>b.py",
        "a|b",
        'a"b',
        "GITMOD~1",
        "x/gi7eba~1",
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
        "gitmod~",
        "x" * 255,
        "app/(group)/@modal/page.tsx",
        "app/[[...slug]]/page.tsx",
        "routes/$param.tsx",
        "routes/posts/-parts/table.tsx",
        "src/+page.svelte",
        "a#b, c;d=e&f'g!{h}%i.py",
        "данные/файл 1.csv",
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


class Held(Value):
    """A value with paths."""

    path: RepoPath
    more: dict[str, tuple[RepoPath, ...]] = {}


@given(st.lists(PARTS | st.text(max_size=6), max_size=5).map("/".join))
def test_whatever_a_repo_path_holds_stays_inside_and_round_trips(path: str) -> None:
    root = Path(tempfile.gettempdir()).resolve() / "no-such-root"
    try:
        held = Held(path=path, more={"x": (path,)})
    except ValueError:
        assert unsafe_reason(path)
        with pytest.raises(ValueError, match="unsafe path"):
            RepoPath(path)
        return
    inside = (root / held.path).resolve()
    assert inside != root
    assert inside.relative_to(root).as_posix() == path
    assert Held.model_validate_json(held.model_dump_json()) == held
    assert Held.model_validate(held.model_dump(mode="json")).more["x"] == (path,)
    assert isinstance(Held.model_validate(held.model_dump(mode="json")).path, RepoPath)
    assert pickle.loads(pickle.dumps(held.path)) == path
    assert spelling(held.path) == spelling(path.upper()) or not path.isascii()


@pytest.mark.parametrize("value", [None, 7, b"a.py", ["a.py"], {"a": "b"}, Path("a.py")])
def test_what_is_no_string_is_no_path(value: Any) -> None:
    assert unsafe_reason(value)
    with pytest.raises(ValueError, match="string"):
        Held(path=value)
