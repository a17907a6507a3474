"""The providers `bedrock` and `vertex`: the Messages API on Amazon Bedrock and on Google Vertex, by the SDK's clients.

Without a key they find the credentials of the machine, as its role or a profile, with packages of their own."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from importlib import import_module
from typing import Any

import anthropic
import httpx2

from orchestrator.core.calls.exchange import Prompt
from orchestrator.core.errors import PermanentProviderError
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess, NoConnection, reason
from orchestrator.providers.refusals import one_line

_Errors = tuple[type[Exception], ...]


class _CloudProvider(AnthropicProvider):
    """Credentials are fetched with the first request and whenever they have run out."""

    _unreachable: _Errors = ()
    """What the cloud's package raises where the place that gives credentials cannot be reached."""
    _no_credentials: _Errors = ()
    """What it raises where there are none, or none any more; less particular than the errors before."""

    @asynccontextmanager
    async def _ask(self, prompt: Prompt) -> AsyncIterator[httpx2.Response]:
        try:
            async with super()._ask(prompt) as response:
                yield response
        except self._unreachable as error:
            raise NoConnection(reason(error), timed_out=False) from error
        except self._no_credentials as error:
            told = f"{self.name}: no credentials: {one_line(str(error))}"
            raise PermanentProviderError(told, kind="auth", provider_name=self.name) from error


class BedrockProvider(_CloudProvider):
    """`ports.Provider` on models of Amazon Bedrock."""

    name = "bedrock"

    def _connect(self, access: ModelAccess, **usual: Any) -> Any:
        boto3, errors = import_module("boto3"), import_module("botocore.exceptions")
        # The SDK would read these files, for a second, with the first event: in the event loop. It keeps them.
        import_module("anthropic.lib.bedrock._stream_decoder").get_response_stream_shape()
        self._unreachable = (errors.HTTPClientError,)
        self._no_credentials = (errors.BotoCoreError, errors.ClientError)
        region, variables = access.variables["AWS_REGION"], access.variables
        if access.api_key:
            own: dict[str, Any] = {"api_key": access.api_key}
        else:
            # Secret ones are no longer in the environment, where boto3 would look for them.
            names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
            key, secret, token = (variables.get(name) or None for name in names)
            own = {"aws_access_key": key, "aws_secret_key": secret, "aws_session_token": token}
            try:
                found = boto3.Session(key, secret, token, region).get_credentials()
            except errors.BotoCoreError as error:
                raise ValueError(error) from error
            if found is None:
                raise ValueError("AWS has no credentials on this machine")
        return anthropic.AsyncAnthropicBedrock(aws_region=region, base_url=access.base_url or None, **own, **usual)

    def _is_stream(self, response: httpx2.Response) -> bool:
        return "amazon.eventstream" in response.headers.get("content-type", "")

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[Any]:
        damaged: _Errors = (import_module("botocore.eventstream").ParserError,)
        try:
            async with aclosing(super()._events(response)) as events:
                async for event in events:
                    yield event
        except damaged as error:
            raise ValueError(error) from error


class VertexProvider(_CloudProvider):
    """`ports.Provider` on models of Google Vertex."""

    name = "vertex"

    def _connect(self, access: ModelAccess, **usual: Any) -> Any:
        variables = access.variables
        return anthropic.AsyncAnthropicVertex(
            region=variables["CLOUD_ML_REGION"],
            project_id=variables["ANTHROPIC_VERTEX_PROJECT_ID"],
            access_token=access.api_key or None,
            credentials=None if access.api_key else self._credentials(),
            base_url=access.base_url or None,
            **usual,
        )

    def _credentials(self) -> Any:
        auth, errors = import_module("google.auth"), import_module("google.auth.exceptions")
        self._unreachable, self._no_credentials = (errors.TransportError,), (errors.GoogleAuthError,)
        try:
            found, _project = auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
        except errors.GoogleAuthError as error:
            raise ValueError(error) from error
        return found
