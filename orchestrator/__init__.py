"""Sprint Orchestrator: an architect, a developer and a tester persona driven over a story backlog."""

__version__ = "0.1.0"
