"""Who answers whom, behind the one port, and what becomes of a provider that others have replaced."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from orchestrator.domain.exchange import Prompt, Reply
from orchestrator.errors import PermanentProviderError
from orchestrator.ports import Provider
from orchestrator.settings import ProviderName


@dataclass(frozen=True, kw_only=True)
class Seat:
    """Who answers a persona; hashable, so that personas with the same seat share connections."""

    provider: ProviderName
    model: str | None
    base_url: str | None
    timeout_s: float
    max_output_tokens: int

    def __str__(self) -> str:
        return f"{self.provider} {self.model}" if self.model and self.provider != "scripted" else self.provider


class RoutedProvider:
    """`ports.Provider` that hands each prompt to the provider of its persona."""

    def __init__(
        self,
        seats: Mapping[str, Seat],
        providers: Mapping[Seat, Provider],
        default: Seat,
        closers: tuple[Callable[[], Awaitable[None]], ...],
        stronger: Mapping[str, Seat],
    ) -> None:
        self._seats, self._providers, self._default, self._closers = seats, providers, default, closers
        self._stronger = stronger
        self.name: str = default.provider
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def complete(self, prompt: Prompt) -> Reply:
        """See the port."""
        persona = prompt.key.persona
        usual = self._seats.get(persona, self._default)
        provider = self._providers.get(self._stronger.get(persona, usual) if prompt.stronger else usual)
        if provider is None:
            # A story keeps the reviewers that it began with; the settings may have lost them since.
            told = f"nobody answers for {persona}, with whom the story began: name it in review.reviewers"
            raise PermanentProviderError(told, kind="bad_request", provider_name=self.name)
        self._calls += 1
        self._idle.clear()
        try:
            return await provider.complete(prompt)
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def idle(self) -> None:
        """Until no call is under way."""
        await self._idle.wait()

    async def close(self) -> None:
        """Give all connections back; again: nothing."""
        closers, self._closers = self._closers, ()
        for close in closers:
            await close()

    def __str__(self) -> str:
        own = [f"{persona}: {seat}" for persona, seat in self._seats.items() if seat != self._default]
        strong = [f"{persona} when stuck: {seat}" for persona, seat in self._stronger.items()]
        return ", ".join([str(self._default), *own, *strong])


class Replaced:
    """Providers that have been replaced: calls under way end on the connections that they began on, which are then
    closed."""

    def __init__(self) -> None:
        self._ending: dict[asyncio.Task[None], RoutedProvider] = {}

    def add(self, provider: RoutedProvider) -> None:
        """No call begins on it any more."""
        task = asyncio.create_task(_end(provider), name="replaced-provider")
        self._ending[task] = provider
        task.add_done_callback(self._ending.pop)

    async def close(self) -> None:
        """Close at once what is left of them."""
        left = [*self._ending.items()]
        for task, _ in left:
            task.cancel()
        await asyncio.gather(*(task for task, _ in left), return_exceptions=True)
        for _, provider in left:
            await provider.close()


async def _end(provider: RoutedProvider) -> None:
    await provider.idle()
    await provider.close()
