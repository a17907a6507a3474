"""The roles that the product's loops know; personas implement them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding
from orchestrator.domain.review import ReviewBrief, Reviewed
from orchestrator.domain.sprint import Replan
from orchestrator.domain.stages import (
    Amended,
    AmendmentBrief,
    Analysed,
    Delivered,
    FailureBrief,
    GivenPlan,
    MergeBrief,
    Planned,
    SuiteBrief,
    TaskBrief,
    Written,
)
from orchestrator.domain.surface import Surface
from orchestrator.domain.testing import TestSuite

JudgeDelivery = Callable[[Delivery], Awaitable[Sequence[Finding]]]
Look = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]  # paths → texts of those that are UTF-8 files there


class Architect(Protocol):
    """Plans a story. Bound to one story and its Step."""

    async def breakdown(self, surface: Surface, feedback: str, said: Replan | None) -> Planned:
        """One plan, with the answer loop's retries inside.

        `feedback` is empty or a rendered revision request; `said` is what a person said when it was begun anew.
        """
        ...

    async def extract_plan(self, path: str, text: str) -> GivenPlan:
        """A person's task plan as a model reads it, held against its text; by rules alone whenever that fails.

        What the checks of the text say stands in its findings.
        """
        ...

    def revision(self, planned: Planned, findings: Sequence[Finding]) -> str:
        """The feedback for the next plan."""
        ...

    async def amendment(self, brief: AmendmentBrief) -> Amended:
        """Which of the files and packages asked for are allowed after all. One request, without a retry."""
        ...


class Developer(Protocol):
    """Delivers one task's files. Bound to one story and its Step."""

    async def deliver(self, brief: TaskBrief, judge: JudgeDelivery, look: Look) -> Delivered:
        """Ask until `judge` finds nothing major or the budget is used up; `judge` sees every well-formed delivery."""
        ...

    async def merge(self, brief: MergeBrief, judge: JudgeDelivery) -> Delivered:
        """Bring both sides of a merge together. One request, without a retry; `judge` sees a well-formed answer."""
        ...


class Reviewer(Protocol):
    """Reads one task's change. Bound to one story and its Step."""

    async def review(self, brief: ReviewBrief) -> Reviewed:
        """A verdict; without one in the answers, and for a change that was not seen whole, it does not approve."""
        ...


class Tester(Protocol):
    """Writes a story's suite and reads its failures. Bound to one story and its Step."""

    async def suite(self, brief: SuiteBrief, judge: Callable[[TestSuite], Awaitable[Sequence[Finding]]]) -> Written:
        """A suite that satisfies the checks and about which `judge` says nothing major, or None."""
        ...

    async def analyse(self, brief: FailureBrief) -> Analysed:
        """Instructions for the files of the tasks."""
        ...
