"""`RepoPath`: a path that stays inside the repository because it cannot be built otherwise."""

import re
import unicodedata
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

MAX_PATH_BYTES = 400
MAX_SEGMENT_BYTES = 255
_RESERVED = re.compile(r"^(con|prn|aux|nul|clock\$|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\..*)?$", re.IGNORECASE)
_GIT_DIR = re.compile(r"^(\.git|git~[0-9]+)[. ]*$", re.IGNORECASE)
_GIT_FILE = re.compile(r"^(gitmod|gitatt|gitign|gi[0-9a-f]{4})~[0-9]+[. ]*$", re.IGNORECASE)
"""Short names by which NTFS reaches `.gitmodules` and its like."""
_NOT_ON_WINDOWS = re.compile(r'[<>"|?*]')
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode categories that a reader does not see; HFS+ ignores several of them, so they could spell `.git`."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2065\u3164\uffa0")
"""Letters and marks by category, and yet nothing to be seen."""


def _segment_problem(segment: str) -> str | None:
    if segment == "..":
        return "it climbs out with `..`"
    if segment in {"", "."}:
        return "it has an empty or `.` segment"
    if _GIT_DIR.match(segment):
        return "it reaches into `.git`"
    if _GIT_FILE.match(segment):
        return f"`{segment}` is a short name of one of git's own files"
    if _RESERVED.match(segment):
        return f"`{segment}` is a reserved device name"
    if len(segment.encode("utf-8", "surrogatepass")) > MAX_SEGMENT_BYTES:
        return f"a segment is longer than {MAX_SEGMENT_BYTES} bytes"
    if segment != segment.strip() or segment.endswith("."):
        return f"the segment `{segment}` starts or ends with a blank, or ends with a dot"
    return None


def unsafe_reason(path: object) -> str | None:
    """Why `path` must never be written below a repository root, or None when it may.

    Judged by segments, so `a..b.js` is fine. A trailing slash is a directory and therefore no file path. Never raises.
    """
    if not isinstance(path, str):
        return "it is no string"
    return _path_problem(path) or next(
        (problem for segment in path.split("/") if (problem := _segment_problem(segment))), None
    )


def _path_problem(path: str) -> str | None:
    if not path or path != path.strip():
        return "it is empty or has blanks at its ends"
    if path.startswith(("/", "~")):
        return "it is absolute"
    if path.startswith("-"):
        return "it starts with `-`, which every tool takes for an option"
    if re.match(r"^[A-Za-z]:", path):
        return "it names a drive"
    return _char_problem(path)


def _char_problem(path: str) -> str | None:
    if "\\" in path:
        return "it has a backslash; use `/`"
    if any(0xD800 <= ord(char) <= 0xDFFF for char in path):
        return "it is not valid Unicode"
    if any(unicodedata.category(char) in _INVISIBLE or char in _BLANK_LETTERS for char in path):
        return "it has a control or invisible character"
    if ":" in path:
        return "it has a colon (a drive or a file stream)"
    if found := _NOT_ON_WINDOWS.search(path):
        return f"it has `{found[0]}`, which no file name may have everywhere"
    if len(path.encode("utf-8")) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    return None


def is_git_name(name: str) -> bool:
    """Whether some file system takes this name of a file or folder for `.git`: case, trailing dots, short names, and
    characters that HFS+ does not see."""
    seen = name if name.isascii() else "".join(char for char in name if unicodedata.category(char) not in _INVISIBLE)
    return bool(_GIT_DIR.match(seen.partition(":")[0]))


def spelling(path: str) -> str:
    """What a file system that ignores case and how accents are composed takes the path for; for comparing only."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


class RepoPath(str):
    """A relative POSIX path below the repository root; building one of anything else raises ValueError with the reason.

    A string in every other respect: compares, hashes and is written as one.
    """

    __slots__ = ()

    def __new__(cls, path: str) -> Self:
        """The checked path."""
        reason = unsafe_reason(path)
        if reason is not None:
            raise ValueError(f"unsafe path {path!r}: {reason}")
        return super().__new__(cls, path)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Strings only, checked; written as plain strings."""
        return core_schema.no_info_after_validator_function(
            cls, core_schema.str_schema(strict=True), serialization=core_schema.to_string_ser_schema()
        )
