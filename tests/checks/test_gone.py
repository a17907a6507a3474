"""A file is taken away: who of the same task still imports it."""

import pytest

from orchestrator.checks.gone import check_gone
from orchestrator.domain.delivery import Delivery, FileChange


def said(removed: str, files: dict[str, str], before: dict[str, str] | None = None) -> list[str | None]:
    changes = tuple(FileChange(path=path, content=text) for path, text in files.items())
    delivery = Delivery(story_id="US-1", task_id="T-US-1-01", files=changes, removed=(removed,))
    return [finding.where.file for finding in check_gone(delivery, {removed: "X = 1\n", **(before or {})})]


@pytest.mark.parametrize(
    ("removed", "path", "text"),
    [
        ("old.py", "new.py", "from old import X\n"),
        ("app/old.py", "app/new.py", "import app.old\n"),
        ("app/old.py", "app/new.py", "from .old import X\n"),
        ("src/app/old.py", "src/app/new.py", "from app.old import X\n"),
        ("lib/old.js", "lib/new.js", "const { X } = require('./old');\n"),
        ("lib/old.js", "lib/new.mjs", "import { X } from './old.js';\n"),
        ("lib/old/index.ts", "lib/new.ts", "import { X } from './old';\n"),
    ],
)
def test_who_imports_what_is_gone_is_told(removed: str, path: str, text: str) -> None:
    assert said(removed, {path: text}) == [path]
    assert said(removed, {}, {path: text}) == [path], "a file of the task that was left as it was"
    assert said(removed, {path: "X = 1\n"}, {path: text}) == []


@pytest.mark.parametrize(
    ("removed", "files"),
    [
        ("old.py", {"old/__init__.py": "X = 1\n", "new.py": "from old import X\n"}),
        ("lib/old.js", {"lib/old.ts": "export const X = 1;\n", "lib/new.ts": "import { X } from './old';\n"}),
        ("app/requests.py", {"app/new.py": "import requests\n"}),
        ("app/old.py", {"other/new.py": "from .old import X\n"}),
        ("app/old.py", {"app/new.py": "old = 1  # from app.old import X\n"}),
        ("app/old.py", {"app/new.py": "from app import older\n"}),
        ("old.json", {"new.py": "def (\n"}),
        ("lib/old.js", {"lib/new.js": "import x from 'old';\n"}),
    ],
)
def test_what_is_still_there_or_another_is_not(removed: str, files: dict[str, str]) -> None:
    assert said(removed, files) == []
