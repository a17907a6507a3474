"""Garbage collection of a process that stays."""

import gc

from orchestrator.files.process import collecting_rarely


def test_what_is_there_is_not_looked_through_again_and_again() -> None:
    before = gc.get_threshold()
    with collecting_rarely():
        looks = gc.get_stats()[0]["collections"]
        kept = [[number] for number in range(3000)]
        # Python's own threshold would have been reached four times.
        assert gc.get_stats()[0]["collections"] - looks <= 1
        assert gc.get_freeze_count() > len(kept)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
