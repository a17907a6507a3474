"""The diagrams of docs/concepts.md are drawn from the code: a limit that changes there changes here."""

from tests.docs.diagrams import FOLDER, all_drawn


def test_the_committed_diagrams_are_what_is_drawn() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == all_drawn(), (
        "run: python -m tests.docs.diagrams"
    )
