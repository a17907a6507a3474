"""The port to models."""

from typing import Protocol

from orchestrator.domain.exchange import Prompt, Reply


class Provider(Protocol):
    """One way to get a reply from a model."""

    name: str

    async def complete(self, prompt: Prompt) -> Reply:
        """One call, no retry. Raises TransientProviderError, PermanentProviderError."""
        ...
