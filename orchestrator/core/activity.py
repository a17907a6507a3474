"""What a step does while it lasts (installing, testing, waiting), told to whom records or shows it.

Installers, runners and the workspace do not know for whom they work: who began the work listens to it in its context,
which tasks and threads that it starts inherit.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar

Listener = Callable[[str], AbstractAsyncContextManager[None]]
"""What goes on → a context that lasts as long as it does."""


def _nobody(_what: str) -> AbstractAsyncContextManager[None]:
    return nullcontext()


_listener: ContextVar[Listener] = ContextVar("activity", default=_nobody)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Has `listener` told of every activity that begins inside the block."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@asynccontextmanager
async def activity(what: str) -> AsyncIterator[None]:
    """Tells that `what` goes on inside the block: words such as `installing 3 packages`."""
    async with _listener.get()(what):
        yield


@asynccontextmanager
async def acquired(lock: AbstractAsyncContextManager[object], what: str) -> AsyncIterator[None]:
    """Holds `lock` inside the block; `what` goes on until it is free."""
    async with AsyncExitStack() as stack:
        async with activity(what):
            await stack.enter_async_context(lock)
        yield
