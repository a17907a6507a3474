"""US-002: members and their cards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shelf.cli import main
from shelf.errors import ShelfError
from shelf.members import Members
from shelf.storage import Database


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    with Database(tmp_path / "library.db") as database:
        yield Members(database)


def test_new_member_gets_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person who joins with name and e-mail address gets a card such as M-0001"""
    assert main(["--file", str(tmp_path / "library.db"), "join", "Ada Byron", "ada@example.org"]) == 0
    assert capsys.readouterr().out == "Welcome, Ada Byron! The card is M-0001.\n"


@pytest.mark.parametrize("address", ["", "ada", "ada@", "@example.org", "ada@example", "a da@example.org", "a@b@c.org"])
def test_wrong_address_is_refused(members: Members, address: str) -> None:
    """What cannot be an e-mail address is refused and nothing is stored"""
    with pytest.raises(ShelfError, match="no e-mail address"):
        members.join("Ada Byron", address)
    assert members.all() == []


def test_address_joins_once(members: Members) -> None:
    """The same e-mail address cannot join twice, whatever its capital letters, and the message names the card"""
    members.join("Ada Byron", "ada@example.org")
    with pytest.raises(ShelfError, match=r"Ada Byron \(M-0001\)"):
        members.join("Somebody Else", "ADA@Example.org")
    assert len(members.all()) == 1


def test_members_are_listed_by_name(members: Members) -> None:
    """Members are listed by name, and a card is found however its number is typed"""
    members.join("mary Somerville", "mary@example.org")
    members.join("Ada Byron", "ada@example.org")
    assert [member.name for member in members.all()] == ["Ada Byron", "mary Somerville"]
    assert members.get("m-2") == members.get("2") == members.get("M-0002")
    with pytest.raises(ShelfError, match="nobody has the card M-0009"):
        members.get("M-0009")
