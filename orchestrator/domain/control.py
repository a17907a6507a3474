"""What people order of a sprint or a story while it is at work: pause, resume, cancel, retry, replan, reset."""

from enum import StrEnum

from orchestrator.domain.base import Value

CONTROL_GIVEN, CONTROL_SETTLED = "control_given", "control_settled"
"""Names of the events: that an order was given, and what became of it."""
CONTROL_MARK = ":control:"
"""In the id of every order's event: `<sprint>:control:<order id>`."""


BRIEF = 200
"""Letters of an order's comment that a message shows."""


class Verb(StrEnum):
    """What can be ordered."""

    PAUSE = "pause"
    """Nothing new begins, what is at work ends its turn; nothing that was paid for is lost."""
    RESUME = "resume"
    CANCEL = "cancel"
    """At once, a call in flight is cut: the story ends as cancelled, its branch is kept."""
    RETRY = "retry"
    """A story that ended without being done is run anew, and what it had blocked; of a sprint, all such stories."""
    REPLAN = "replan"
    """As `retry` of a story, which the architect plans from the start and is told the comment."""
    RESET = "reset"
    """As if it had not been run."""


class Order(Value):
    """One order."""

    id: str
    """Unique; whoever gives the same one again adds nothing."""
    verb: Verb
    story: str | None = None
    """None: the whole sprint."""
    by: str
    comment: str = ""

    @property
    def brief(self) -> str:
        """As much of the comment as a message shows."""
        return " ".join(self.comment.split())[:BRIEF]


class Settled(Value):
    """What became of an order."""

    order: str
    """Its id; "" where it was carried out without one, as nobody was at work."""
    done: bool
    """False: it was refused, and `message` says why."""
    message: str
    stories: tuple[str, ...] = ()
    """Whom it concerned."""
