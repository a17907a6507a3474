"""Texts and values out of a bytes: every byte means something, so small changes make small differences."""

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

TOKENS = (
    *('"', "\\", "\n", "\t", "{", "}", "[", "]", ",", ":", "'", "`", "```", "```json\n", "~~~\n", '"""', "'''", "${"),
    *("//", "/*", "*/", "# ", "...", "…", "<think>", "</think>", "<tool_call>", "&quot;", "&amp;", "\\u00", "\\u1234"),
    *('": "', '", "', '"}', '"]', "}\n", "null", "true", "None", "NaN", "-1e9", '"files": [', '"path": "', "+ "),
    *('"content": "', '{"files": []}', '"tasks": [', '"task_id"', "\u201c", "\u201d", "\u00a0", "\u200b", "\ufeff"),
    *("TASK:", "END_TASK", "> ", "1: ", "@@ ", "\r\n", "\\'", "\\$", "(part 2)\n", "Answer:\n", "\x00", "\u2028"),
    *("\U0001f600", "\ud83d"),
)
"""What bytes from 128 on stand for."""


class Source:
    """Reads the bytes from the front; when they are used up, everything is 0 or empty."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, below: int) -> int:
        """0 to `below` - 1."""
        taken = self._data[self._at : self._at + (1 if below <= 256 else 3)]
        self._at += len(taken)
        return int.from_bytes(taken, "big") % below

    def one_of(self, choices: Sequence[T]) -> T:
        """One of these."""
        return choices[self.number(len(choices))]

    def text(self, most: int = 255) -> str:
        """Characters and tokens, at most so many together."""
        length = self.number(most + 1)
        taken = self._data[self._at : self._at + length]
        self._at += len(taken)
        return "".join(chr(byte) if byte < 128 else TOKENS[byte % len(TOKENS)] for byte in taken)

    def rest(self) -> str:
        """What is left, as text."""
        taken, self._at = self._data[self._at :], len(self._data)
        return "".join(chr(byte) if byte < 128 else TOKENS[byte % len(TOKENS)] for byte in taken)

    def delivery(self) -> dict[str, Any]:
        """A whole developer's answer."""
        files = [{"path": f"src/{at}.js", "content": self.text()} for at in range(1 + self.number(4))]
        answer: dict[str, Any] = {"files": files}
        return answer | {"notes": self.text(60)} if self.number(2) else {"story_id": "US-001"} | answer

    def breakdown(self) -> dict[str, Any]:
        """A whole architect's answer."""
        tasks = [
            {
                "task_id": f"T-US-001-{at + 1:02d}",
                "description": self.text(80),
                "files_to_create": [f"src/{at}.js"],
                "command_to_run": self.one_of((None, "", "npm install")),
            }
            for at in range(1 + self.number(4))
        ]
        whole = {"story_id": "US-001", "architectural_conflict": {"detected": False}, "task_count": len(tasks)}
        return whole | {"tasks": tasks, "technical_notes": self.text(60)}

    def suite(self) -> dict[str, Any]:
        """A whole tester's answer."""
        cases = [{"name": f"test_{at}", "criterion": self.text(40)} for at in range(1 + self.number(3))]
        return {"test_file": "tests/test_a.py", "test_content": self.text(), "test_cases": cases}
