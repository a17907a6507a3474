"""The port to models."""

from typing import Protocol

from orchestrator.domain.exchange import Prompt, Reply


class Provider(Protocol):
    """One way to get a reply from a model."""

    name: str

    async def complete(self, prompt: Prompt) -> Reply:
        """One call, no retry: transport is this method's matter, content is not.

        Returns whatever a model answered, for it is paid for: a refusal, a call of a tool or nothing at all is a reply
        with the text there is ("" if none) and its stop reason; a part of an answer that has an unknown shape is left
        out. The answer loop says what such a reply lacks and raises SchemaValidationError, for every provider alike.
        Raises TransientProviderError or PermanentProviderError when no answer of a model came, also where a success
        status brings something else.
        """
        ...
