"""Which orders a story or a sprint takes now, and what each of them would do to whom; the supervisor's own rules."""

from collections.abc import Sequence
from typing import Any

from orchestrator.core.command import Order, Verb
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.value import listed
from orchestrator.records.sprint_reader import SprintView
from orchestrator.sprint.command_handler import Decision, decide

LABELS = {
    Verb.PAUSE: "Pause",
    Verb.RESUME: "Resume",
    Verb.RETRY: "Retry",
    Verb.REPLAN: "Replan",
    Verb.CANCEL: "Cancel",
    Verb.RESET: "Reset",
}
_NAMED = 8
"""Stories that a warning names."""


def list_story_orders(view: SprintView, story: str) -> list[dict[str, Any]]:
    """Returns the orders that the story takes now, as `story_orders` of _orders.html shows them."""
    history = view.histories[story]
    left_out = set[Verb]()
    if history.waits_for is not None:
        # Its question has these two among its answers.
        left_out = {Verb.CANCEL, Verb.REPLAN}
    return _list_orders(view, story, left_out | _idle(story in view.held))


def list_sprint_orders(view: SprintView) -> list[dict[str, Any]]:
    """Returns the orders that the sprint takes now, as `sprint_orders` of _orders.html shows them."""
    return _list_orders(view, None, _idle(bool(view.paused), bool(view.held)))


def _idle(is_paused: bool, others_are: bool = False) -> set[Verb]:
    """Returns what would change nothing: a second pause, or the end of none; a sprint's ends those of stories, too."""
    return {Verb.PAUSE} if is_paused else set() if others_are else {Verb.RESUME}


def _list_orders(view: SprintView, story: str | None, left_out: set[Verb]) -> list[dict[str, Any]]:
    status = {name: history.status for name, history in view.histories.items()}
    blocked_by = {name: history.outcome.blocked_by for name, history in view.histories.items() if history.outcome}
    told = []
    for verb in LABELS:
        # A comment is the one thing that an order may lack here: the form asks for it.
        order = Order(id="", verb=verb, story=story, by="", comment="asked for")
        decision = decide(order, status, blocked_by, view.record.sprint)
        if verb in left_out or decision.refused or not decision.stories:
            continue
        # A dialog names the button again, and there a lone "Cancel" would read as "leave it".
        label = f"Cancel the {'story' if story else 'sprint'}" if verb is Verb.CANCEL else LABELS[verb]
        told.append({"verb": verb.value, "label": label, "warning": _warn(view, order, decision)})
    return told


def _warn(view: SprintView, order: Order, decision: Decision) -> str:
    """Returns what is lost by the order; "" for one that loses nothing."""
    if order.verb in {Verb.PAUSE, Verb.RESUME}:
        return ""
    whom = order.story or f"sprint {view.record.sprint}"
    others = _others(order, decision) if order.story or order.verb is Verb.RESET else ""  # the rest names them itself
    if order.verb is Verb.CANCEL:
        waiting = _dependents(view, decision.stories)
        blocked = f" Blocked by that: {listed(waiting, _NAMED)}." if waiting else ""
        ends = "ends" if len(decision.stories) == 1 else "end"
        what = f"{listed(decision.stories, _NAMED)} {ends} as cancelled"
        return f"{what} at once. A call under way is cut and was paid for. Branches are kept.{blocked}"
    if order.verb is Verb.RETRY:
        again = order.story or listed(decision.stories, _NAMED)
        branch = "its branch is" if again in decision.stories else "their branches are"
        return f"Work on {again} starts over, and {branch} deleted.{others} What was spent stays spent."
    if order.verb is Verb.REPLAN:
        return f"The branch of {whom} is deleted, and it is planned from the start.{others} What was spent stays spent."
    result = "" if order.story else " with the result branch"
    return f"{whom} is as if it had not been run: branches and plans are deleted{result}.{others} The log keeps it all."


def _others(order: Order, decision: Decision) -> str:
    rest = [name for name in decision.stories if name != order.story]
    return f" The same happens to {listed(rest, _NAMED)}." if rest else ""


def _dependents(view: SprintView, stories: Sequence[str]) -> list[str]:
    """Returns the pending stories that need one of these, directly or not, in the order of the sprint."""
    pending = [name for name, history in view.histories.items() if history.status is StoryStatus.PENDING]
    gone = set(stories)
    while more := {name for name in pending if name not in gone and gone & set(view.record.needs.get(name, ()))}:
        gone |= more
    return [name for name in pending if name in gone and name not in stories]
