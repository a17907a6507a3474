"""A backup while it is written, for one reader: what is not read yet is not written yet."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.errors import OrchestratorError
from orchestrator.server.streaming import until_gone
from orchestrator.settings import Environment
from orchestrator.wiring.backup import backup

GZIP = "application/gzip"
_CHUNK = 256 * 1024


async def archive_chunks(environment: Environment) -> AsyncGenerator[bytes]:
    """The archive of the state folder in parts. Raises ConfigError, WorkspaceError; a reader that leaves ends it.

    Nothing of it is kept: through a pipe, so that a slow reader costs neither memory nor room on the disk.
    """
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=_CHUNK)
    ours, theirs = os.pipe()
    writing = asyncio.create_task(_write(environment, theirs), name="backup")
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", buffering=0)
    )
    try:
        while part := await reader.read(_CHUNK):
            yield part
        await writing
    finally:
        transport.close()  # whoever still writes is told that nobody reads
        await asyncio.gather(writing, return_exceptions=True)


class Archive(Response):
    """Sends the parts behind the first one until the client leaves; breaks off when a part cannot be made."""

    media_type = GZIP

    def __init__(self, first: bytes, parts: AsyncGenerator[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(None, headers=headers)
        del self.headers["content-length"]
        self._first, self._parts = first, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        async with aclosing(self._parts):
            await until_gone(self._tell(send), receive)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _write(environment: Environment, end: int) -> None:
    stream = os.fdopen(end, "wb")
    try:
        await backup(environment, stream)
        await asyncio.to_thread(stream.flush)
    finally:
        with suppress(OSError, OrchestratorError):
            await asyncio.to_thread(stream.close)
