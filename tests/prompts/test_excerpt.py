from orchestrator.prompts.budget import WIDTH, render_excerpt

TEXT = "\n".join(f"line {number}" for number in range(1, 13))


def test_the_lines_around_a_place_with_a_mark_under_the_column() -> None:
    shown = render_excerpt(TEXT, 10, 6).split("\n")
    assert shown == [
        "```text", " 6 | line 6", " 7 | line 7", " 8 | line 8", " 9 | line 9", "10 | line 10", "   |      ^",
        "11 | line 11", "12 | line 12", "```",
    ]  # fmt: skip


def test_long_lines_are_shown_around_the_column_and_odd_places_are_the_end() -> None:
    line = "x" * 500 + "!" + "y" * 500
    shown = render_excerpt(line, 1, 501).split("\n")
    assert shown[2].index("^") == shown[1].index("!")
    assert len(shown[1]) < WIDTH + 10
    assert shown[1].count("…") == 2
    for place in ((99, 99), (0, 0), (1, 99)):
        assert "^" in render_excerpt("a\nb", *place)
    assert render_excerpt("a ``` b\t\r\n", 1, 3).startswith("````text")
