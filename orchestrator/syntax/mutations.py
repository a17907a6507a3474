"""Other expectations for the tests of a suite: each changed test has to fail where the original one passed.

A mutation changes what one test expects and nothing else: not its name, not its arguments, and as little as possible
of what it does before. A runner that reports a mutated test as passed reports what it likes.
"""

from orchestrator.domain.base import Value


class Mutation(Value):
    """One change to one test."""

    case: str
    """The test as its runner names it: `Class::method` or `function` for pytest, for node the titles of the
    describe blocks and its own, joined with ` > `."""
    start: int
    """First changed byte of the UTF-8 text."""
    end: int
    """First byte behind the change; equal to `start` where something is only inserted."""
    text: str
    """What stands there instead."""
    other_value: bool = False
    """Whether another value is expected, which an object that equals everything does not notice."""
