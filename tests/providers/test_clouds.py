"""Models on Bedrock, Vertex and Azure, through the clients of the SDKs, against a server that speaks their wires."""

import asyncio
import base64
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, Segment, StopReason, TurnKey, Usage
from orchestrator.core.errors import ConfigError, PermanentProviderError, TransientProviderError
from orchestrator.files.process import SystemClock
from orchestrator.providers.routing import RoutedProvider, open_providers
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from tests.providers.http_server import (
    EVENTS,
    Answer,
    Asked,
    completion_stream,
    message,
    message_stream,
    model_server,
)

TEXT = "one two three four five six seven"
KEY = TurnKey(persona="mike", story="A", purpose=Purpose.BREAKDOWN)
PROMPT = Prompt(key=KEY, turn=1, segments=(Segment(name="role", text="r"), Segment(name="task", text="t")))
MODEL = "eu.anthropic.claude-m-v1:0"
BEDROCK = {"AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "bedrock-key-1"}
VERTEX = {"CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "project-1"}
AZURE = {"AZURE_OPENAI_API_KEY": "azure-key-1", "OPENAI_API_VERSION": "2025-04-01"}
FRAMES = {"content-type": "application/vnd.amazon.eventstream"}


def opened(folder: Path, provider: str, url: str, variables: dict[str, str], *overrides: str) -> RoutedProvider:
    own = (f"provider={{name: {provider}, model: {MODEL}, base_url: '{url}'}}", *overrides)
    settings, environment = load(None, own, variables, folder)
    return open_providers(RunOptions(backlog=folder / "b.csv"), settings, environment, SystemClock())


async def ask(folder: Path, provider: str, url: str, variables: dict[str, str], *overrides: str) -> Reply:
    routed = await asyncio.to_thread(opened, folder, provider, url, variables, *overrides)
    try:
        return await routed.complete(PROMPT)
    finally:
        await routed.close()


def frame(payload: dict[str, Any], **headers: str) -> bytes:
    """A message of AWS's event stream encoding."""
    encoded = b"".join(
        bytes([len(name) + 1]) + f":{name}".encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for name, value in ((name.replace("_", "-"), value) for name, value in headers.items())
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", len(encoded) + len(body) + 16, len(encoded))
    head = prelude + struct.pack("!I", zlib.crc32(prelude))
    return head + encoded + body + struct.pack("!I", zlib.crc32(head + encoded + body))


def frames(text: str = TEXT) -> list[bytes]:
    """The stream of the Messages API as Bedrock packs it."""
    data = [line.removeprefix("data: ") for line in message_stream(text).splitlines() if line.startswith("data: ")]
    return [
        frame(
            {"bytes": base64.b64encode(one.encode()).decode()},
            message_type="event",
            event_type="chunk",
            content_type="application/json",
        )
        for one in data
    ]


async def test_bedrock_with_a_key_streams_its_own_frames(tmp_path: Path) -> None:
    with model_server(Answer(body=b"".join(frames()), headers=FRAMES)) as server:
        reply = await ask(tmp_path, "bedrock", server.url, BEDROCK, "provider.effort=low")
    assert (reply.text, reply.reasoning, reply.provider) == (TEXT, "hm", "bedrock")
    assert (reply.stop_reason, reply.usage) == (StopReason.END_TURN, Usage(input=20, cached=7, output=5, reasoning=3))
    (asked,) = server.asked
    assert asked.path == "/model/eu.anthropic.claude-m-v1:0/invoke-with-response-stream"
    assert asked.headers["authorization"] == "Bearer bedrock-key-1"
    assert asked.body["output_config"] == {"effort": "low"}
    assert asked.body["anthropic_version"]
    assert not {"model", "stream"} & set(asked.body)


async def test_bedrock_signs_requests_with_credentials_that_left_the_environment(tmp_path: Path) -> None:
    variables = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-1"}
    with model_server(Answer(body=message(TEXT))) as server:
        token = {"AWS_SESSION_TOKEN": "session-1"}
        reply = await ask(tmp_path, "bedrock", server.url, variables | token, "provider.stream=false")
    (asked,) = server.asked
    assert (reply.text, asked.path) == (TEXT, "/model/eu.anthropic.claude-m-v1:0/invoke")
    assert asked.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/bedrock/aws4_request" in asked.headers["authorization"]
    assert asked.headers["x-amz-security-token"] == "session-1"


async def test_what_goes_wrong_in_a_stream_of_bedrock_is_what_it_is_elsewhere(tmp_path: Path) -> None:
    begun = b"".join(frames()[:8])
    busy = frame({"message": "slow down"}, message_type="exception", exception_type="throttlingException")
    damaged = bytearray(frames()[8])
    damaged[-20] ^= 1
    for end in (busy, bytes(damaged), b""):
        with model_server(Answer(body=begun + end, headers=FRAMES)) as server:
            reply = await ask(tmp_path, "bedrock", server.url, BEDROCK)
        assert reply.stop_reason is StopReason.INTERRUPTED
        assert reply.text
        assert TEXT.startswith(reply.text)


async def test_refusals_of_bedrock_are_told_in_its_words(tmp_path: Path) -> None:
    refused = Answer(status=403, body={"message": "The security token is invalid."})
    with model_server(refused) as server, pytest.raises(PermanentProviderError) as caught:
        await ask(tmp_path, "bedrock", server.url, BEDROCK)
    assert caught.value.kind == "auth"
    assert caught.value.message == (
        "bedrock answered 403: The security token is invalid; put a valid key into AWS_BEARER_TOKEN_BEDROCK, or correct"
        " the credentials of this machine"
    )


async def test_a_model_that_bedrock_does_not_have_pauses_the_sprint(tmp_path: Path) -> None:
    refused = Answer(status=400, body={"message": "The provided model identifier is invalid."})
    with model_server(refused) as server, pytest.raises(PermanentProviderError) as caught:
        await ask(tmp_path, "bedrock", server.url, BEDROCK)
    assert (caught.value.kind, caught.value.concerns_all) == ("model", True)


def test_a_machine_without_credentials_is_told_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "BOTO_CONFIG", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(ConfigError, match="the provider bedrock cannot be set up: AWS has no credentials"):
        opened(tmp_path, "bedrock", "http://127.0.0.1:1", {"AWS_REGION": "eu-west-1"})
    with pytest.raises(ConfigError, match=r"the provider vertex cannot be set up: .*[Cc]redentials"):
        opened(tmp_path, "vertex", "http://127.0.0.1:1", VERTEX)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ConfigError, match="nobody"):
        opened(tmp_path, "bedrock", "http://127.0.0.1:1", {"AWS_REGION": "eu-west-1"})


@pytest.mark.parametrize(
    ("variable", "value"), [("HTTPS_PROXY", "proxy:port"), ("ALL_PROXY", "ftp://x"), ("SSL_CERT_FILE", "/no/such.pem")]
)
def test_a_proxy_or_certificates_that_cannot_be_used_are_told_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=r"the provider anthropic cannot be set up: .*; look at HTTPS_PROXY"):
        opened(tmp_path, "anthropic", "https://model.example", {"ANTHROPIC_API_KEY": "key"})


@pytest.mark.parametrize(
    ("provider", "variables", "lacking", "package"),
    [("bedrock", BEDROCK, "AWS_REGION", "boto3"), ("vertex", VERTEX, "CLOUD_ML_REGION", "google.auth")],
)
def test_what_a_cloud_lacks_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    variables: dict[str, str],
    lacking: str,
    package: str,
) -> None:
    without = {name: value for name, value in variables.items() if name != lacking}
    with pytest.raises(ConfigError, match=f"the provider {provider} needs {lacking} in the environment"):
        opened(tmp_path, provider, "http://127.0.0.1:1", without)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=rf"pip install 'anthropic\[{provider}\]'"):
        opened(tmp_path, provider, "http://127.0.0.1:1", variables)


def account(folder: Path, url: str) -> str:
    """The file of a service account whose tokens come from `url`."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    told = {"type": "service_account", "client_email": "me@project-1", "private_key_id": "1"}
    path = folder / "account.json"
    path.write_text(json.dumps({**told, "token_uri": f"{url}/token", "private_key": key.private_bytes(*form).decode()}))
    return str(path)


async def test_vertex_fetches_a_token_for_the_account_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(asked: Asked) -> Answer:
        if asked.path == "/token":
            return Answer(body={"access_token": "fetched-1", "expires_in": 3600, "token_type": "Bearer"})
        return Answer(body=message(TEXT))

    with model_server(respond) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", await asyncio.to_thread(account, tmp_path, server.url))
        routed = await asyncio.to_thread(opened, tmp_path, "vertex", server.url, VERTEX)
        replies = [await routed.complete(PROMPT), await routed.complete(PROMPT)]
        await routed.close()
    assert [reply.text for reply in replies] == [TEXT, TEXT]
    assert [asked.path for asked in server.asked].count("/token") == 1
    assert server.asked[-1].headers["authorization"] == "Bearer fetched-1"


async def test_credentials_that_are_refused_pause_the_sprint_and_a_lost_connection_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Answer(status=400, body={"error": "invalid_grant", "error_description": "account not found"})
    with model_server(gone) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", await asyncio.to_thread(account, tmp_path, server.url))
        with pytest.raises(PermanentProviderError, match=r"no credentials: .*account not found") as caught:
            await ask(tmp_path, "vertex", server.url, VERTEX)
    assert caught.value.concerns_all
    with pytest.raises(TransientProviderError) as lost:  # nobody listens there any more
        await ask(tmp_path, "vertex", server.url, VERTEX)
    assert lost.value.kind == "connection"


async def test_azure_is_asked_for_a_deployment_with_its_version_and_key(tmp_path: Path) -> None:
    with model_server(Answer(body=completion_stream(TEXT), headers=EVENTS)) as server:
        reply = await ask(tmp_path, "azure", server.url, AZURE)
    assert (reply.text, reply.provider) == (TEXT, "azure")
    (asked,) = server.asked
    path, _, query = asked.path.replace("%3A", ":").partition("?")
    assert (path, query) == (f"/openai/deployments/{MODEL}/chat/completions", "api-version=2025-04-01")
    assert (asked.headers["api-key"], asked.body["max_completion_tokens"]) == ("azure-key-1", 16000)
    with pytest.raises(ConfigError, match="the provider azure needs OPENAI_API_VERSION and AZURE_OPENAI_ENDPOINT in"):
        await ask(tmp_path, "azure", "", {})
