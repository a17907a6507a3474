"""Whom an order concerns, and why it cannot be carried out. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orchestrator.domain.control import Order, Verb
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.words import counted

_DONE = "it is done; `reset` runs it anew"


class Decision(NamedTuple):
    """What an order comes to."""

    stories: tuple[str, ...] = ()
    """Those it concerns, in the order of the sprint."""
    refused: str = ""
    """Why nothing is done; "" when something is."""


def decide(
    order: Order, status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]], sprint: str
) -> Decision:
    """`status` holds every story of the sprint, `blocked_by` what each blocked one waited for in vain."""
    if order.story is not None and order.story not in status:
        return Decision(refused=f"sprint {sprint} has no story {order.story}")
    if order.verb in {Verb.PAUSE, Verb.RESUME, Verb.CANCEL}:
        return _unfinished(order, status, sprint)
    if order.verb is Verb.RETRY:
        return _retried(order, status, blocked_by, sprint)
    if order.verb is Verb.REPLAN:
        return _replanned(order, status, blocked_by)
    if order.story is None:
        return Decision(tuple(status))
    return Decision(with_blocked([order.story], status, blocked_by))


def _unfinished(order: Order, status: Mapping[str, StoryStatus], sprint: str) -> Decision:
    if order.story is None:
        stories = tuple(story for story, standing in status.items() if not standing.final)
        return Decision(stories, "" if stories else f"every story of sprint {sprint} has ended")
    standing = status[order.story]
    if order.verb is Verb.CANCEL and standing is StoryStatus.CANCELLED:
        return Decision()  # also one of ours that was cut before it was said
    if standing.final:
        return Decision(refused=f"{order.story} has ended: it is {standing}")
    return Decision((order.story,))


def _retried(
    order: Order, status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]], sprint: str
) -> Decision:
    bad = [story for story, standing in status.items() if standing.final and standing is not StoryStatus.DONE]
    if order.story is None:
        return Decision(tuple(bad), "" if bad else f"no story of sprint {sprint} has ended without being done")
    standing = status[order.story]
    if order.story not in bad:
        why = _DONE if standing is StoryStatus.DONE else f"it is {standing} and has not ended"
        return Decision(refused=f"{order.story}: {why}")
    in_the_way = [need for need in blocked_by.get(order.story, ()) if status.get(need) is not StoryStatus.DONE]
    if standing is StoryStatus.BLOCKED and in_the_way:
        return Decision(refused=f"{order.story} was blocked by {', '.join(in_the_way)}: retry that instead")
    return Decision(with_blocked([order.story], status, blocked_by))


def _replanned(order: Order, status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]]) -> Decision:
    if order.story is None:
        return Decision(refused="name the story that is to be planned anew")
    refused = why_not_replanned(order.story, status[order.story], blocked_by.get(order.story, ()), order.comment)
    return Decision(refused=refused) if refused else Decision(with_blocked([order.story], status, blocked_by))


def why_not_replanned(story: str, standing: StoryStatus, blocked_by: Sequence[str], comment: str) -> str:
    """Why a story that waits for nobody is not planned anew; "" when it is."""
    if not comment.strip():
        return "the comment is empty: say with --comment what the architect is to do about the story"
    if standing is StoryStatus.BLOCKED:
        return f"{story} was blocked by {', '.join(blocked_by)}: plan that anew instead"
    if not standing.final or standing is StoryStatus.DONE:
        return f"{story} is {standing}; only a story that ended without being done is planned anew"
    return ""


def with_blocked(
    stories: Sequence[str], status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """The stories and, transitively, those that they had blocked, in the order of the sprint."""
    chosen = set(stories)
    grown = True
    while grown:
        more = {
            story
            for story, needs in blocked_by.items()
            if status.get(story) is StoryStatus.BLOCKED and chosen & set(needs)
        }
        grown = not more <= chosen
        chosen |= more
    return tuple(story for story in status if story in chosen)


def done_as(order: Order, decision: Decision, sprint: str) -> str:
    """What is said of an order that was carried out."""
    whom = f"sprint {sprint}" if order.story is None else order.story
    if order.verb is Verb.CANCEL and not decision.stories:
        return f"{whom} is cancelled already"
    others = [story for story in decision.stories if story != order.story]
    also = f" with {', '.join(others)}" if order.story is not None and others else ""
    count = f" ({counted(len(decision.stories), 'story', 'stories')})" if order.story is None else ""
    said = {
        Verb.PAUSE: "is paused: what is at work ends its call or command, nothing new begins",
        Verb.RESUME: "goes on",
        Verb.CANCEL: "is cancelled",
        Verb.RETRY: "is run anew",
        Verb.REPLAN: "is planned anew",
        Verb.RESET: "is reset",
    }[order.verb]
    return f"{whom}{count} {said}{also}, by {order.by}" + (f": {order.brief}" if order.brief else "")
