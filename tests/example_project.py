"""The project that the examples in contracts/examples are held against."""

import json
from pathlib import Path

STORY = "US-007"
FILES = {
    "app/__init__.py": "",
    "app/big.py": "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(40)),
    "app/prices.py": "def total(prices):\n    return sum(prices)\n\n\ndef average(prices):\n    return 2\n",
    "app/cart.py": "from app.prices import total\n\n\ndef cart(prices):\n    return total(prices)\n",
    "requirements.txt": "flask>=3\nrich\n",
    "pyproject.toml": '[project]\nname = "app"\n',
}
"""The files that are there."""
_ONE = ("src/a.py",)
_TASK_FILES = {
    "refused/delivery.missing_file": ("src/a.py", "src/b.py"),
    "told/delivery.contract.file": _ONE,
    "told/delivery.contract.other_task": _ONE,
}


def task_files(path: Path) -> tuple[str, ...]:
    """What the task of an example's delivery lists: what is delivered, where that is not the point."""
    stated = _TASK_FILES.get(f"{path.parent.name}/{path.stem}")
    if stated:
        return stated
    value = json.loads(path.read_text(encoding="utf-8"))
    files = value.get("files", ()) if isinstance(value, dict) else ()
    paths = [file["path"] for file in files if isinstance(file, dict)] if isinstance(files, list) else list(files)
    return tuple(path for path in paths if ".." not in path.split("/") and not path.startswith(".git/"))


def lay_out(folder: Path) -> Path:
    """The project as files; no repository."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
