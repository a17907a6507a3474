"""The Protocols between the product's loops and the world. Adapters and personas implement them; wiring binds them."""

from orchestrator.ports.durable import Clock, EventSink, Step, TurnJournal
from orchestrator.ports.models import Provider
from orchestrator.ports.roles import Architect, Developer, JudgeDelivery, Look, Reviewer, Tester
from orchestrator.ports.world import Backlog, CommandRunner, SuiteRunner, Workspace

__all__ = [
    "Architect",
    "Backlog",
    "Clock",
    "CommandRunner",
    "Developer",
    "EventSink",
    "JudgeDelivery",
    "Look",
    "Provider",
    "Reviewer",
    "Step",
    "SuiteRunner",
    "Tester",
    "TurnJournal",
    "Workspace",
]
