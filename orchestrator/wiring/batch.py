"""`check --batch`: many answers judged by one process, a line of JSON each."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError, field_validator

from orchestrator.domain.base import Value
from orchestrator.domain.redaction import redacted
from orchestrator.errors import UserError
from orchestrator.sprint.by_hand import suite_of_file
from orchestrator.wiring.by_hand import TEST_SOURCES, check_any_plan, judged_json
from orchestrator.wiring.check import CheckOptions, check

ALONE = 0
"""Jobs behind a process that ended: one process, and no other beside it."""


class Request(Value):
    """One line of the input."""

    id: str | int
    kind: Literal["delivery", "suite", "breakdown", "plan"]
    file: str = ""
    """What is judged: a path, read unless `text` is given, too."""
    text: str | None = None
    repo: Path | None = None
    """The folder whose files count as being there."""
    context: tuple[str, ...] = ()
    """As the option `--context`; nothing in it is as if it was not given."""
    story: str | None = None
    environment: str | None = None
    """As the option `--environment`."""
    breakdown: str | None = None
    """The file with the story's breakdown, for a delivery."""

    @field_validator("repo")
    @classmethod
    def _is_folder(cls, repo: Path | None) -> Path | None:
        if repo is not None and not repo.is_dir():
            raise ValueError(f"{repo} is no folder")
        return repo


class BadLine(UserError):
    """A line of the input that cannot be judged; `field` is the one to change."""

    def __init__(self, message: str, field: str | None = None, request: str | int | None = None) -> None:
        super().__init__(message)
        self.field, self.request = field, request


def judge_line(line: str) -> dict[str, Any]:
    """Returns what is printed for one line. Raises BadLine."""
    request = _read(line)
    text = _text(request)
    plan = _file(request.breakdown, "breakdown") if request.breakdown is not None else None
    started = time.perf_counter()
    try:
        judged = _judge(request, text, plan)
    except UserError as error:
        raise BadLine(error.message, request=request.id) from error
    said = {"id": request.id, **judged, "ms": round((time.perf_counter() - started) * 1000, 1)}
    return dict(redacted(said))


def judge_lines(
    lines: Iterable[str], jobs: int, judge: Callable[[str], dict[str, Any]] = judge_line
) -> Iterator[dict[str, Any]]:
    """Judges each line that is not blank; returns the results in the order of the lines, an error for a bad line.

    A line whose judge crashes, or ends its process, is an error of that line; all others are judged.
    """
    left = deque((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    while left:
        workers = _workers(jobs)
        try:
            for result in [workers.submit(judge, line) for _, line in left]:
                error = result.exception()
                broken = isinstance(error, BrokenProcessPool)
                # Which of several processes ended is not said: one alone goes on, and breaks at the guilty line.
                if not broken or jobs == ALONE:
                    number, line = left.popleft()
                    yield result.result() if error is None else _told(number, line, error)
                if broken:
                    jobs = ALONE
                    break
        finally:
            workers.shutdown(cancel_futures=True)


def _workers(jobs: int) -> Executor:
    if jobs == 1:
        return ThreadPoolExecutor(1)
    # Spawned, not forked: the parsers' libraries have threads of their own.
    return ProcessPoolExecutor(max(jobs, 1), get_context("spawn"))


def _told(number: int, line: str, error: BaseException) -> dict[str, Any]:
    told: dict[str, Any] = {"id": None, "line": number, "field": None}
    if isinstance(error, BadLine):
        told |= {"id": error.request, "field": error.field}
        what = error.message
    elif isinstance(error, BrokenProcessPool):
        what = "the process that judged it ended"
    else:
        what = f"a defect of ours: {type(error).__name__}: {error}"
    if told["id"] is None:
        told["id"] = _id_in(line)
    place = f"line {number}" + (f", `{told['field']}`" if told["field"] else "")
    return {**told, "error": f"{place}: {what}"}


def _id_in(line: str) -> str | int | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    said = value.get("id") if isinstance(value, dict) else None
    return said if isinstance(said, str | int) else None


def _judge(request: Request, text: str, plan: str | None) -> dict[str, Any]:
    story, repo = request.story, request.repo
    if request.kind == "plan":
        _, judged = check_any_plan(text, request.file, story=story, repo=repo, context=request.context or None)
        return judged_json(judged)
    if request.kind == "suite" and request.file.lower().endswith(TEST_SOURCES):
        text = suite_of_file(_path_in(repo, request.file), text)
    options = CheckOptions(story=story, repo=repo, context=request.context, plan=plan)
    return judged_json(check(request.kind, text, options))


def _path_in(repo: Path | None, file: str) -> str:
    """The path from the project's root; of a file that lies elsewhere its name."""
    path, root = Path(file), (repo or Path()).resolve()
    if not path.is_absolute() and not path.exists():
        return path.as_posix()
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _read(line: str) -> Request:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadLine("no JSON object")
    try:
        request = Request.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadLine(first["msg"], ".".join(map(str, first["loc"])) or None) from error
    if request.text is None and not request.file:
        raise BadLine("`file` or `text` is needed", "text", request.id)
    return request


def _text(request: Request) -> str:
    return request.text if request.text is not None else _file(request.file, "file")


def _file(path: str, field: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise BadLine(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", field) from error
