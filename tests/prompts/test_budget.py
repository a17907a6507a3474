import re
import time

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.prompts.budget import CHARS_PER_TOKEN, ContextBlock, cap, cap_middle, fence, fit, tokens

TEXT = st.text(alphabet=st.sampled_from(list("`~ab\n #")), max_size=400)
BLOCKS = st.lists(
    st.builds(
        ContextBlock,
        name=st.text(min_size=1, max_size=80),
        text=TEXT | TEXT.map(lambda t: t * 20) | TEXT.map(fence),
        weight=st.integers(0, 3),
    ),
    max_size=12,
)


@given(TEXT)
def test_a_fence_is_never_closed_from_inside(text: str) -> None:
    fenced = fence(text, "python")
    bar = fenced.split("python\n", 1)[0]
    body = fenced[len(bar) + len("python\n") : -len(bar)]
    assert fenced.endswith(bar)
    assert bar not in body
    assert body in {text, text + "\n"}


@given(BLOCKS, st.integers(0, 400))
def test_the_budget_holds_and_what_is_left_out_is_said(blocks: list[ContextBlock], budget: int) -> None:
    text = fit(blocks, budget)
    assert tokens(text) <= budget
    spoken = [block.text for block in blocks if block.text.strip()]
    whole = "\n\n".join(spoken)
    if len(whole) <= budget * CHARS_PER_TOKEN:
        assert text == whole
    elif budget >= 40:
        assert "eft out" in text


def test_heavier_first_whole_before_cut_and_in_the_given_order() -> None:
    blocks = [
        ContextBlock(name="light", text="l" * 300, weight=1),
        ContextBlock(name="big", text="\n".join(["b" * 39] * 100), weight=2),
        ContextBlock(name="small", text="s" * 100, weight=2),
        ContextBlock(name="heavy", text="h" * 200, weight=3),
    ]
    text = fit(blocks, 400)
    assert re.findall(r"^(?:b+|s+|h+|l+)", text, re.M)[-2:] == ["s" * 100, "h" * 200]
    assert re.search(r"^\[big: cut here, \d+ of 3999 characters left out\]$", text, re.M)
    assert text.endswith("[Left out for lack of room (1): light]")
    assert "l" * 300 not in text


def test_a_cut_file_keeps_whole_lines_and_closes_its_fence() -> None:
    inside = "\n".join(f"line {number} ```" for number in range(200))
    text = fit([ContextBlock(name="a.md", text=f"### a.md\n\n{fence(inside, 'md')}")], 200)
    lines = text.split("\n")
    assert lines[2] == "````md"
    assert lines[-2] == "````"
    assert lines[-1].startswith("[a.md: cut here, ")
    assert all(re.fullmatch(r"line \d+ ```", line) for line in lines[3:-2])
    kept = int(re.search(r"(\d+) of (\d+)", lines[-1]).group(1))  # type: ignore[union-attr]
    assert 0 < kept < len(inside)


def test_caps_are_told() -> None:
    assert cap("abc", 3) == "abc"
    assert cap("abcdef", 3) == "abc … (3 more characters left out)"
    assert cap_middle("abcdef", 4) == "ab\n[… 2 characters left out …]\nef"
    assert cap_middle("abcdef", 0) == "\n[… 6 characters left out …]\n"


def test_many_and_long_blocks_take_linear_time() -> None:
    started = time.process_time()
    fit([ContextBlock(name=f"file {n}", text="x\n" * 500) for n in range(3000)], 10_000)
    fit([ContextBlock(name="long", text="```\n" * 200_000)], 100_000)
    assert time.process_time() - started < 5
