"""What the prompts of one story cost while its project grows: tokens, the share from the cache, the share told twice.

`python -m benchmarks prompts [REPO=DIR]`: a made-up project after some stories, or the files of a repository.
"""

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os.path import commonprefix
from pathlib import Path

from benchmarks import samples
from benchmarks.measure import Figure, Result
from orchestrator.app.team import story_body, story_payload
from orchestrator.core.calls.exchange import Prompt, Purpose, ScriptEntry, StoryBrief
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.story import Story
from orchestrator.prompts.budget import CHARS_PER_TOKEN, tokens
from orchestrator.prompts.render import PromptLibrary, load_prompts
from orchestrator.providers.scripted import Script, ScriptedProvider
from orchestrator.settings import Policies, packaged
from tests.memory_workspace import MemoryWorkspace
from tests.simulated import MemorySink, SimulatedRunner, SimulatedStep

TASKS = 6
SIZES = (1, 5, 50, 500)
"""Which story of the project is measured."""
CACHED_FROM = 1024
"""Tokens that a prefix must have before either vendor keeps it."""
LINE_CHARS = 24
"""Shorter lines (brackets, headings) stand twice by chance."""
ANCESTOR = 187_000
"""Input tokens of a story with six tasks in the program that this one follows."""


def run(given: Mapping[str, str]) -> Result:
    """Returns the figures of a story with six tasks. Raises RuntimeError when the story is not done."""
    figures: list[Figure] = []
    repo = given.get("REPO")
    bases = {Path(repo).name: _files(Path(repo))} if repo else {f"story {n}": _grown(n) for n in SIZES}
    for name, base in bases.items():
        prompts = asyncio.run(_prompts(base))
        total = sum(map(_size, prompts))
        figures += [
            Figure(name=f"{name}: input", value=total, unit="tokens"),
            Figure(name=f"{name}: beside the ancestor", value=100 * total / ANCESTOR, unit="%"),
            Figure(name=f"{name}: largest prompt", value=max(map(_size, prompts)), unit="tokens"),
            Figure(name=f"{name}: from the cache", value=100 * sum(_cached(prompts)) / total, unit="%"),
            Figure(name=f"{name}: told twice in one prompt", value=100 * sum(map(_twice, prompts)) / total, unit="%"),
        ]
    about = f"the prompts of a story with {TASKS} tasks, each approved at once; a token is four characters"
    return Result(name="prompts", about=about, figures=tuple(figures))


def _grown(story: int) -> dict[str, str]:
    """The files of a project before its `story`-th story; the one that is measured has the first id."""
    files = {"README.md": "# Ledger\n\nSums, page by page.\n", "pyproject.toml": '[project]\nname = "ledger"\n'}
    for number in range(2, story + 1):
        name = samples.story_id(number)
        files |= {samples.module_path(name, part): samples.module_text(name, part) for part in range(1, TASKS + 1)}
        files[samples.test_path(name)] = samples.test_text(name)
    return files


def _files(repo: Path) -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repo, capture_output=True, text=True, check=True).stdout
    found: dict[str, str] = {}
    for path in filter(None, listed.split("\0")):
        try:
            found[path] = (repo / path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # a link to nowhere, a picture
            continue
    return found


async def prompts_of(number: int) -> list[Prompt]:
    """Returns every prompt of the `number`-th story of a project."""
    return await _prompts(_grown(number))


async def _prompts(base: Mapping[str, str]) -> list[Prompt]:
    """Every prompt of one more story of the project, in order."""
    name = samples.story_id(1)
    step = SimulatedStep(ScriptedProvider(_script(name)), MemorySink(), story=name)
    library = await asyncio.to_thread(lambda: PromptLibrary(load_prompts(packaged("system_prompts"), None)))
    criteria = tuple(f"Function {n} of ledger page 1 returns its sum" for n in range(1, samples.CRITERIA + 1))
    told = Story(id=name, title="Keep ledger page 1", acceptance_criteria=criteria)
    body = story_body(library, MemoryWorkspace(base_files=dict(base)), SimulatedRunner())
    brief = StoryBrief(story=told, sprint="BENCH")
    outcome = await body(step, story_payload(brief, Policies.model_validate({})))
    if outcome.status is not StoryStatus.DONE:
        raise RuntimeError(f"the story is {outcome.status}: {outcome.findings}")
    return step.prompts


def _script(story: str) -> Script:
    entries = dict(samples.script(1, TASKS, 0))
    for task in range(1, TASKS + 1):
        key = {"persona": "reviewer", "story": story, "task": f"T-{story}-{task:02d}", "turn": 1}
        entry = ScriptEntry(**key, purpose=Purpose.REVIEW, text=_APPROVED)
        entries[entry.lookup] = entry
    return entries


_APPROVED = "## Review Summary\n\nAs planned.\n\n## Issues\n\nNone\n\n## Verdict\n\nReady: Yes\nRationale: It is.\n"


def _size(prompt: Prompt) -> int:
    return tokens(prompt.text)


def _cached(prompts: Sequence[Prompt]) -> Iterator[int]:
    """Tokens of each prompt that an earlier one of the same story begins with, where they are enough to be kept."""
    for number, prompt in enumerate(prompts):
        # Of characters, for these are no paths.
        shared = max((len(commonprefix([prompt.text, before.text])) for before in prompts[:number]), default=0)  # noqa: RUF071
        kept = shared // CHARS_PER_TOKEN
        yield kept if kept >= CACHED_FROM else 0


def _twice(prompt: Prompt) -> int:
    """Tokens of the lines that stand in the prompt already."""
    lines = Counter(line.strip() for line in prompt.text.splitlines() if len(line.strip()) >= LINE_CHARS)
    return sum(len(line) * (count - 1) for line, count in lines.items()) // CHARS_PER_TOKEN
