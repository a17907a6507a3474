"""What the Dockerfile and railway.json say, for tests that do it."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


def railway() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "railway.json").read_text(encoding="utf-8"))
    return found


def instructions(stage: int | None = None) -> list[tuple[str, str]]:
    """(name, rest) of every instruction of the Dockerfile, or of its last (-1) or another stage."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    found = [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines) if name]
    if stage is None:
        return found
    begins = [at for at, (name, _) in enumerate(found) if name == "FROM"]
    ends = [*begins[1:], len(found)]
    return found[begins[stage] : ends[stage]]


def start_command() -> list[str]:
    """What the platform runs: railway.json's own command would go first."""
    assert "startCommand" not in railway()["deploy"]
    [command] = [rest for name, rest in instructions(-1) if name == "CMD"]
    parts: list[str] = json.loads(command)
    return parts


def variables() -> dict[str, str]:
    """What the image sets."""
    words = [word for name, rest in instructions(-1) if name == "ENV" for word in shlex.split(rest)]
    return dict(word.split("=", 1) for word in words)


def copied() -> list[str]:
    """Paths of this tree that get into the image."""
    found = [rest.split()[:-1] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    return [path for paths in found for path in paths]


def healthcheck() -> list[str]:
    """What Docker asks with."""
    [told] = [rest for name, rest in instructions(-1) if name == "HEALTHCHECK"]
    parts: list[str] = json.loads(told.partition("CMD ")[2])
    return parts
