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
