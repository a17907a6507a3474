"""The reply journal: what ended is on disk whole, nothing else counts."""

import resource
from pathlib import Path

import pytest

from orchestrator.core.calls.exchange import FailedCall, Prompt, Purpose, Reply, Segment, TurnKey
from orchestrator.storage.reply_journal import ReplyJournal, WorkflowJournal

KEY = TurnKey(persona="alex", story="A", task="T-A-01", purpose=Purpose.DELIVERY)
OTHER = TurnKey(persona="alex", story="A", task="T-A-02", purpose=Purpose.DELIVERY)
LATE = FailedCall(turn=1, kind="timeout", message="late", code="provider.timeout")


def prompt(key: TurnKey = KEY, turn: int = 1) -> Prompt:
    return Prompt(key=key, turn=turn, segments=(Segment(name="role", text="Be Alex. \ud83d"),))


def reply(key: TurnKey = KEY, turn: int = 1, text: str = "files") -> Reply:
    return Reply(key=key, turn=turn, text=text)


def test_what_was_recorded_is_there_in_the_next_process(tmp_path: Path) -> None:
    journal = ReplyJournal(tmp_path).workflow("SP-001/A@2")
    assert (journal.spent.calls, journal.next_turn(KEY)) == (0, 1)
    journal.keep_prompt(3, prompt())
    journal.record_failure(3, prompt(), LATE)
    journal.record_reply(3, prompt(turn=2), reply(turn=2, text="half a pair \ud83d and \x00 and ü"))
    journal.record_reply(4, prompt(OTHER), reply(OTHER))
    for view in (journal, ReplyJournal(tmp_path).workflow("SP-001/A@2")):
        assert view.spent.calls == 3
        kept = view.reply(3)
        assert kept is not None
        assert kept.text == "half a pair \ud83d and \x00 and ü"
        assert view.failures(3) == (LATE,)
        assert view.reply(4) == reply(OTHER)
        assert view.reply(5) is None
        assert (view.next_turn(KEY), view.next_turn(OTHER)) == (3, 2)
    assert ReplyJournal(tmp_path).workflow("SP-001/A").spent.calls == 0


def test_failures_come_in_the_order_of_turns(tmp_path: Path) -> None:
    journal = WorkflowJournal(tmp_path)
    for turn in (10, 9, 1):
        journal.record_failure(1, prompt(turn=turn), LATE.model_copy(update={"turn": turn}))
    again = WorkflowJournal(tmp_path)
    assert [failure.turn for failure in again.failures(1)] == [1, 9, 10]


def test_half_written_and_foreign_files_do_not_count(tmp_path: Path) -> None:
    journal = WorkflowJournal(tmp_path)
    journal.record_reply(1, prompt(), reply())
    whole = (tmp_path / "1-1.json").read_bytes()
    (tmp_path / "2-1.tmp").write_bytes(whole[:40])
    (tmp_path / "3-1.json").write_bytes(b"")
    (tmp_path / "4-1.json").write_bytes(whole[:-1])
    (tmp_path / "5-1.json").write_text('{"other": 1}')
    again = WorkflowJournal(tmp_path)
    assert again.spent.calls == 1
    assert again.reply(1) == reply()


def test_a_reply_that_the_disk_did_not_take_whole_is_an_error_and_never_half_a_reply(tmp_path: Path) -> None:
    journal = WorkflowJournal(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="large"):
            journal.record_reply(1, prompt(), reply(text="x" * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("*.json"))
