"""Prompts of analyses as files, ours and anybody's."""

import re
from pathlib import Path

import pytest

from orchestrator.analysis.stages import Library, choose, load_stage_prompts
from orchestrator.core.analysis import StagePrompt
from orchestrator.core.errors import ConfigError
from orchestrator.settings import AnalysisSettings, packaged
from tests.prompts.test_packaged_texts import said_twice

OURS = load_stage_prompts(packaged("system_prompts") / "library")
FAMILIES = (
    *("quality", "architecture", "performance", "security", "testing", "evolution", "product", "business", "learning"),
    "operations",
)


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def prompt_rows() -> list[str]:
    """The rows of the page's table: each prompt under its family, with the first sentence of its text."""
    ours = sorted(OURS.values(), key=lambda prompt: (FAMILIES.index(prompt.category), prompt.id))
    about = {prompt.id: re.split(r"(?<=[.?])\s", prompt.text.split("\n\n")[1])[0] for prompt in ours}
    return [f"| {prompt.category} | `{prompt.id}` | {about[prompt.id]} |" for prompt in ours]


def profile_rows() -> list[str]:
    return [f"| `{name}` | {', '.join(stages)} |" for name, stages in AnalysisSettings().profiles.items()]


def test_the_packaged_library_is_whole() -> None:
    assert {prompt.category for prompt in OURS.values()} == set(FAMILIES)
    assert all(prompt.goal and f"# {prompt.goal}\n" in prompt.text for prompt in OURS.values())
    assert all(prompt.id == Path(prompt.file).stem for prompt in OURS.values())
    assert [prompt.id for prompt in OURS.values() if prompt.history] == ["plan_summary", "stakeholder_brief"]
    for part in ("good task", "Leave out:", "Priority:"):
        assert [prompt.id for prompt in OURS.values() if part not in prompt.text] == []


def test_no_prompt_says_what_another_one_says() -> None:
    assert said_twice({prompt.id: prompt.text for prompt in OURS.values()}, run=7) == {}


def test_every_profile_names_prompts_that_are_there_and_every_prompt_has_a_profile() -> None:
    profiles = AnalysisSettings().profiles
    assert {name for stages in profiles.values() for name in stages} == set(OURS)
    for name, stages in profiles.items():
        assert len(set(stages)) == len(stages)
        assert not any(OURS[stage].history for stage in stages[:-1]), f"{name}: what sums up comes last"


def test_the_page_lists_every_prompt_and_profile() -> None:
    page = (Path(__file__).parents[2] / "docs" / "analyse.md").read_text(encoding="utf-8").splitlines()
    listed = [line for line in page if line.startswith(tuple(f"| {family} |" for family in FAMILIES))]
    assert listed == prompt_rows()
    assert [line for line in page if line.startswith("| `") and line in profile_rows()] == profile_rows()


def test_plain_markdown_is_a_prompt_as_it_is(tmp_path: Path) -> None:
    text = "---\n\n# Doors {{x}}\n\nExpected Output: a comprehensive report…\n\n---\n"
    write(tmp_path, **{"01 Doors & more": text, "README": "no", "_draft": "no"})
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", speed="---\ntitle: x\n---\nBased on the previous analysis, sum up.\r\nNow.")
    found = load_stage_prompts(tmp_path)
    assert list(found) == ["01-Doors-more", "sub-speed"]
    assert found["01-Doors-more"].text == text.strip("\n")
    assert (found["01-Doors-more"].goal, found["01-Doors-more"].name) == ("", "01-Doors-more")
    assert [prompt.history for prompt in found.values()] == [False, True]
    assert found["sub-speed"].text.startswith("---\ntitle: x\n---\nBased on")


def test_prompts_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    found = load_stage_prompts(write(tmp_path, **{"10 sum": "c", "2 größe": "b", "1 doors": "a"}))
    assert [*found] == ["1-doors", "2-gr-e", "10-sum"]


def test_front_matter_is_read(tmp_path: Path) -> None:
    front = "---\nid: doors\ngoal: 'Doors: all'\nstage: risk\ncategory: security\nhistory: false\nother: 1\n---\n"
    write(tmp_path, a=f"{front}Look at the previous analysis.\n")
    (prompt,) = load_stage_prompts(tmp_path).values()
    assert prompt == StagePrompt(
        id="doors", goal="Doors: all", category="security", history=False,
        text="Look at the previous analysis.", file=str(tmp_path / "a.md"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no prompts"),
        ({"a": "---\nid: x\n---\n\n"}, "is empty"),
        ({"a": "---\ngoal: a: b: c\n---\nText"}, "no valid YAML"),
        ({"a": "---\nid: same\n---\nText", "b": "---\nid: same\n---\nText"}, "both the prompt same"),
        ({"+": "Text"}, "has no letter"),
        ({"日本": "Text"}, "give it an `id:`"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_stage_prompts(write(tmp_path, **files))


def test_a_prompt_that_is_no_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_stage_prompts(tmp_path)


def test_which_prompts_are_asked() -> None:
    own = {"mine": StagePrompt(id="mine", text="x"), "security": StagePrompt(id="security", text="my own")}
    settings = AnalysisSettings(profiles={"both": ("security", "testing", "mine", "testing")}, profile="both")
    library = Library(OURS, own, "folder")
    assert choose(library, settings, profile=None, stages=()) == ("folder", tuple(own.values()))
    assert [prompt.text for prompt in choose(library, settings, profile="both", stages=()).prompts] == [
        "my own", OURS["testing"].text, "x",
    ]  # fmt: skip
    assert choose(library, settings, profile=None, stages=("testing",)).profile == "custom"
    assert choose(Library(OURS, {}), AnalysisSettings(), profile=None, stages=()).profile == "full_review"
    with pytest.raises(ConfigError, match="names no prompt"):
        choose(library, AnalysisSettings(profiles={"none": ()}), profile="none", stages=())
