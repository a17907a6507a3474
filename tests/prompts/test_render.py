import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import ConfigError
from orchestrator.prompts.budget import as_data
from orchestrator.prompts.render import PROMPT_SLOTS, SEGMENT_ORDER, PromptLibrary
from tests.prompts.packaged import packaged_library, packaged_texts

TEXTS = packaged_texts()
LIBRARY = packaged_library()
REPAIR = """<!-- segment: role -->
Repair.

<!-- segment: contract -->
## Shape

{{schema}}

## Problem

{{problem}}

<!-- segment: feedback -->
## Broken

{{ broken }}
"""


def library(repair: str) -> PromptLibrary:
    return PromptLibrary({**TEXTS, "repair": repair})


def segments(lib: PromptLibrary, **slots: str) -> dict[str, str]:
    return {segment.name: segment.text for segment in lib.render("repair", slots)}


@pytest.mark.parametrize("name", sorted(PROMPT_SLOTS))
def test_packaged_prompts_render_stable_first_with_every_value_once(name: str) -> None:
    slots = {slot: f"<<value of {slot}>>" for slot in PROMPT_SLOTS[name]}
    rendered = LIBRARY.render(name, slots)
    names = [segment.name for segment in rendered]
    assert names == sorted(names, key=SEGMENT_ORDER.index)
    assert names[0] == "data"
    whole = "\n\n".join(segment.text for segment in rendered)
    assert all(whole.count(value) == 1 for value in slots.values())
    assert "{{" not in whole
    assert "<!--" not in whole
    assert len(TEXTS[name].encode()) < 8500


ALWAYS_LAST = {
    *("architect/breakdown_missing", "architect/amendment"),
    *("developer/merge", "developer/merge_plan", "developer/merge_whole"),
    "analyst/stage",
}
"""Prompts whose last segment says something else, too."""


@pytest.mark.parametrize("name", sorted(PROMPT_SLOTS))
def test_without_feedback_the_prompt_has_no_trace_of_it(name: str) -> None:
    slots = dict.fromkeys(PROMPT_SLOTS[name], "x") | ({"feedback": " \n"} if "feedback" in PROMPT_SLOTS[name] else {})
    rendered = LIBRARY.render(name, slots)
    assert ("feedback" in {s.name for s in rendered}) == (
        "feedback" not in PROMPT_SLOTS[name] and not name.startswith("repair")
    ) or (name in ALWAYS_LAST)
    assert all(segment.text.strip() for segment in rendered)


def test_re_asks_share_their_prefix_with_the_first_ask() -> None:
    for first, other, up_to in (
        ("architect/breakdown", "architect/breakdown_missing", "feedback"),
        ("developer/delivery", "developer/continuation", "feedback"),
        ("developer/delivery", "developer/merge", "feedback"),
        ("developer/delivery_plan", "developer/merge_plan", "feedback"),
        ("developer/delivery_whole", "developer/merge_whole", "feedback"),
    ):
        slots = {slot: f"<{slot}>" for slot in PROMPT_SLOTS[first] | PROMPT_SLOTS[other]}
        one, two = (
            [s for s in LIBRARY.render(n, {k: slots[k] for k in PROMPT_SLOTS[n]}) if s.name not in {up_to, "feedback"}]
            for n in (first, other)
        )
        assert one == two


def test_blank_sections_and_segments_are_left_out_and_blank_values_do_not_leave_headings() -> None:
    lib = library(REPAIR)
    assert segments(lib, schema="S", problem="", broken=" \n ") == {"role": "Repair.", "contract": "## Shape\n\nS"}
    assert segments(lib, schema="", problem="", broken="B") == {
        "role": "Repair.",
        "feedback": '## Broken\n\n<data of="the text to repair">\nB\n</data>',
    }


def test_a_section_with_words_of_its_own_stays() -> None:
    text = REPAIR.replace("## Broken\n", "## Broken\n\nHere it is:\n")
    assert segments(library(text), schema="S", problem="P", broken="")["feedback"].startswith(
        "## Broken\n\nHere it is:"
    )


@given(st.text(alphabet=st.sampled_from(list("{}x \n#`<!->$\\1")) | st.characters(codec="utf-8"), max_size=60))
def test_values_are_inserted_verbatim_and_never_expanded(value: str) -> None:
    for hostile in ("." + value, "{{schema}}" + value, "<!-- segment: role -->\n" + value, r"\g<0>\1" + value):
        text = segments(library(REPAIR), schema="S", problem="P", broken=hostile)["feedback"]
        assert text == "## Broken\n\n" + as_data(hostile, "the text to repair")
        assert hostile in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (REPAIR.replace("{{schema}}", "{{shema}}"), "unknown slot {{shema}}; did you mean schema?"),
        (REPAIR.replace("{{problem}}", ""), "does not use the slot {{problem}}"),
        (REPAIR.replace("segment: contract", "segment: contrat"), "unknown segment contrat; did you mean contract?"),
        (REPAIR.replace("segment: contract", "segment: role"), "once each and in the order"),
        (
            REPAIR.replace("segment: role", "segment: task").replace("segment: feedback", "segment: role"),
            "in the order",
        ),
        ("Hello\n" + REPAIR, "line 1: text before the first"),
        (REPAIR.replace("<!-- segment: contract -->", "<!-- segmnt contract -->"), "line 4: a marker is written"),
        ("", "it has no <!-- segment: NAME --> line"),
    ],
)
def test_a_bad_override_fails_at_start_and_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"repair\.md") as caught:
        library(text)
    assert said in caught.value.message


def test_missing_and_unknown_prompts_are_named() -> None:
    with pytest.raises(ConfigError, match=r"repair\.md is missing"):
        PromptLibrary({name: text for name, text in TEXTS.items() if name != "repair"})
    with pytest.raises(ConfigError, match=r"unknown prompt architect/brakdown\.md; did you mean architect/breakdown"):
        PromptLibrary({**TEXTS, "architect/brakdown": "x"})
    with pytest.raises(ConfigError, match="there is no prompt tester/suit; did you mean tester/suite"):
        LIBRARY.render("tester/suit", {})


def test_a_person_s_word_leaves_no_trace_where_there_is_none() -> None:
    name = "architect/breakdown"
    slots = dict.fromkeys(PROMPT_SLOTS[name], "x") | {"comment": "", "overridden_conflict": ""}
    plain = "".join(segment.text for segment in LIBRARY.render(name, slots))
    said = "".join(segment.text for segment in LIBRARY.render(name, slots | {"comment": "use a copy"}))
    assert "## Comment of a person" not in plain
    assert "## Comment of a person on this story\n\nuse a copy" in said
    assert "## Conflict that a person has overridden" not in said


def test_slots_given_must_be_those_of_the_prompt() -> None:
    slots = dict.fromkeys(PROMPT_SLOTS["repair"], "x")
    with pytest.raises(
        ConfigError, match=r"repair\.md: no place for the given slot \{\{brokn\}\}; did you mean broken"
    ):
        LIBRARY.render("repair", {**slots, "brokn": ""})
    with pytest.raises(ConfigError, match=r"repair\.md: nothing given for the slot \{\{broken\}\}"):
        LIBRARY.render("repair", {"schema": "", "problem": ""})


def test_the_version_follows_the_text() -> None:
    assert library(REPAIR).version("repair") == library(REPAIR).version("repair") != LIBRARY.version("repair")
    assert len(LIBRARY.version("architect/breakdown")) == 16
    with pytest.raises(ConfigError):
        LIBRARY.version("nobody")
