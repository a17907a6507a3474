"""`make check` finds words that the glossary replaces, with file, line and the word to write."""

from tests.docs.blocks import ROOT
from tests.docs.glossary import texts, wrong_words


def test_a_word_is_found_over_a_line_end_and_no_other_use_of_it() -> None:
    page = "A daemon that was told to end stops.\n\nAnother one goes\non with its stories. The room is bare.\n"
    found = wrong_words([(ROOT / "docs/machines.md", 1, page)])
    assert found == ["docs/machines.md:3: 'goes on with': write resume, continue"]


def test_pages_messages_and_help_are_read_and_docstrings_of_engineers_are_not() -> None:
    read = "\n".join(text for path, _, text in texts())
    assert "# Sprint Orchestrator" in read
    assert "the environment could not be made" in read, "a message"
    assert "Delete the branches of a story or a sprint" in read, "help"
    assert "Returns the paths that" not in read
