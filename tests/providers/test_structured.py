"""Schemas that are sent with a request: which, where, in what form, and what is told when a service keeps to none."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from orchestrator.answers.looks import look_in
from orchestrator.core.calls import wire
from orchestrator.core.calls.exchange import Prompt, Purpose, Segment, StopReason, TurnKey
from orchestrator.core.calls.wire import WIRE_SCHEMAS
from orchestrator.personas.session import Request
from orchestrator.personas.shown import Shown
from orchestrator.providers import anthropic, openai
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.structured import OR_LOOK, Structured, answer_schema, is_closed
from orchestrator.settings import WireStructured
from tests.providers.http_server import Answer, Asked, completion, message, model_server

CONTRACTS = Path(__file__).parents[2] / "contracts"
CLOSED = {"suite", "analysis", "stage"}
STAGE = '{"summary": "S", "recommendations": [], "tasks": []}'


Form = Literal["any", "json", "json_or_look"]


def prompt(schema: str = "stage", *, form: Form = "json", persona: str = "mike", segments: str = "data task") -> Prompt:
    return Prompt(
        key=TurnKey(persona=persona, story="A", purpose=Purpose.REPAIR),
        turn=1,
        segments=tuple(Segment(name=name, text=f"<{name}>") for name in segments.split()),
        schema_name=schema,
        answer_form=form,
    )


@asynccontextmanager
async def opened(
    kind: type[ModelProvider], url: str, *, model: str = "m", structured: WireStructured = "auto"
) -> AsyncIterator[ModelProvider]:
    access = ModelAccess(
        model=model, api_key="sk-1234567", base_url=url, timeout_s=20, max_output_tokens=9,
        structured=lambda _: structured,
    )  # fmt: skip
    provider = await asyncio.to_thread(kind, access, price={}.get)
    try:
        yield provider
    finally:
        await provider.close()


def sent(asked: Asked) -> Any:
    """The schema of a request; None without one."""
    if "response_format" in asked.body:
        return asked.body["response_format"]["json_schema"]["schema"]
    return asked.body["output_config"]["format"]["schema"] if "output_config" in asked.body else None


def examples(schema: str) -> Iterator[Any]:
    for path in sorted((CONTRACTS / "examples" / "accepted").glob(f"{schema}.*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def strict(schema: str) -> Any:
    made = openai.response_format(schema)
    assert made is not None
    return made["json_schema"]["schema"]


def vendor_forms(schema: str) -> Sequence[Any]:
    return (anthropic._output_config(schema)["output_config"]["format"]["schema"], strict(schema))  # type: ignore[index]


def filled(schema: str, value: Any) -> Any:
    """The same answer with every field written out, as a strict schema wants it."""
    return WIRE_SCHEMAS[schema].model_validate(value).model_dump(mode="json")


@pytest.mark.parametrize("schema", WIRE_SCHEMAS)
def test_what_is_sent_accepts_every_example_of_an_answer(schema: str) -> None:
    given = list(examples(schema))
    assert given
    for value in given:
        Draft202012Validator(answer_schema(schema)).validate(value)
        # An open schema goes as it is: made strict, it would exclude the packages of a plan and its notes.
        Draft202012Validator(strict(schema)).validate(filled(schema, value) if is_closed(schema) else value)
    assert is_closed(schema) == (schema in CLOSED)


@pytest.mark.parametrize("schema", WIRE_SCHEMAS)
def test_where_files_may_be_asked_for_the_schema_allows_that_and_every_answer(schema: str) -> None:
    made = openai.response_format(schema + OR_LOOK)
    assert made is not None
    assert made["json_schema"]["strict"] is False
    for value in (*examples(schema), {"read": ["a.py"]}):
        Draft202012Validator(made["json_schema"]["schema"]).validate(value)
    assert not Draft202012Validator(made["json_schema"]["schema"]).is_valid({"tell": "no"})


def answers(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Any value of a type, its optional fields filled as well."""
    fields = {name: st.from_type(field.annotation) for name, field in model.model_fields.items()}  # type: ignore[arg-type]
    return st.builds(model, **fields)


PARTS = (
    *(wire.WireFile, wire.WireTestCase, wire.WireInstruction, wire.WireReason),
    *(wire.WireImprovement, wire.WireTestToChange),
)
for part in PARTS:
    st.register_type_strategy(part, answers)


@pytest.mark.parametrize("schema", sorted(CLOSED))
@given(data=st.data())
def test_strict_forms_exclude_no_answer(schema: str, data: st.DataObject) -> None:
    value = data.draw(answers(WIRE_SCHEMAS[schema])).model_dump(mode="json")
    for form in vendor_forms(schema):
        Draft202012Validator(form).validate(value)


TABLE = [
    # service, setting, schema, segments, whether it is sent
    ("anthropic .api.anthropic.com/claude-x", "auto", "stage", "data role task", True),
    ("anthropic .api.anthropic.com/claude-x", "auto", "stage", "data project role task", False),
    ("anthropic .api.anthropic.com/claude-x", "always", "stage", "data project role task", True),
    ("anthropic .api.anthropic.com/claude-x", "never", "stage", "data role task", False),
    ("anthropic .api.anthropic.com/claude-x", "auto", "breakdown", "data role task", False),
    ("anthropic .127.0.0.1/any", "auto", "stage", "data project role task", False),
    ("openai .api.openai.com/gpt-6-sol", "auto", "stage", "data project role task", False),
    ("openai .api.openai.com/gpt-6-sol", "auto", "breakdown", "data role task", False),
    ("openai .api.openai.com/gpt-6-sol", "always", "breakdown", "data role task", True),
    ("openai .us.azure.com/own-name", "auto", "stage", "data project role task", False),
    ("openai .gateway.example/anthropic/claude-sonnet-5", "auto", "stage", "data project role task", False),
    ("openai .127.0.0.1/gpt-5.4", "auto", "stage", "data project role task", False),
    ("openai .127.0.0.1/us.anthropic.claude-opus-5", "auto", "stage", "data project role task", False),
    ("openai .127.0.0.1/qwen3-coder", "auto", "breakdown", "data project role task", True),
    ("openai .127.0.0.1/openai/gpt-oss-120b", "auto", "breakdown", "data project role task", True),
    ("openai .127.0.0.1/qwen3-coder", "never", "breakdown", "data role task", False),
]


@pytest.mark.parametrize(("service", "wanted", "schema", "segments", "is_sent"), TABLE)
def test_who_gets_a_schema(service: str, wanted: WireStructured, schema: str, segments: str, *, is_sent: bool) -> None:
    structured = Structured(service, lambda _: wanted, takes_open=not service.startswith("anthropic"))
    assert structured.name(prompt(schema, segments=segments)) == (schema if is_sent else None)
    assert structured.name(prompt(schema, form="any", segments=segments)) is None
    looks = structured.name(prompt(schema, form="json_or_look", segments=segments))
    assert looks == (schema + OR_LOOK if is_sent else None)


def test_which_prompts_ask_for_nothing_but_json() -> None:
    """Plans, whole files and reviews do not; where files may be asked for, it is said as JSON."""
    assert look_in('{"read": ["path"]}') == (("path",), ())
    request = Request(persona="mike", purpose=Purpose.BREAKDOWN, prompt="", slots={})
    assert request.answer_form(looks_as_json=False) == "json"
    looking = replace(request, shown=Shown({}, no_files, 9, looks=1))
    assert looking.answer_form(looks_as_json=True) == "json_or_look"
    assert looking.answer_form(looks_as_json=False) == "any"  # a prompt of one's own that says READ
    for form in ("plan", "whole"):
        assert request.in_form(form).answer_form(looks_as_json=True) == "any"  # type: ignore[arg-type]


async def no_files(_: Sequence[str]) -> dict[str, str]:
    return {}


async def test_what_is_asked_of_each_service() -> None:
    with model_server(Answer(body=message(STAGE))) as server:
        async with opened(anthropic.AnthropicProvider, server.url) as provider:
            reply = await provider.complete(prompt())
    (asked,) = server.asked
    assert asked.body["output_config"] == {"format": {"type": "json_schema", "schema": vendor_forms("stage")[0]}}
    assert (reply.text, reply.unconstrained) == (STAGE, "")
    with model_server(Answer(body=completion(STAGE))) as server:
        async with opened(openai.OpenAIProvider, server.url) as provider:
            for schema in ("stage", "breakdown"):
                await provider.complete(prompt(schema))
    closed, loose = (one.body["response_format"]["json_schema"] for one in server.asked)
    assert (closed["name"], closed["strict"], closed["schema"]) == ("stage", True, strict("stage"))
    assert (loose["name"], loose["strict"], loose["schema"]) == ("breakdown", False, answer_schema("breakdown"))


REFUSALS = {
    "unknown": (400, "response_format.type: this value is not available now"),
    "model": (400, "'claude-told' does not support output format."),
    "large": (400, "Schema is too complex for compilation."),
    "grammar": (400, "Failed to initialize samplers: Unexpected empty grammar stack after accepting piece: <think>"),
    "fields": (422, "Extra inputs are not permitted: response_format"),
    "server": (500, "failed to parse grammar"),
}


@pytest.mark.parametrize("why", REFUSALS)
@pytest.mark.parametrize("kind", [anthropic.AnthropicProvider, openai.OpenAIProvider])
async def test_a_refused_schema_is_left_out_from_then_on_and_told_once_per_persona(
    kind: type[ModelProvider], why: str
) -> None:
    status, text = REFUSALS[why]
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}

    def answer(asked: Asked) -> Answer:
        body = message(STAGE) if "messages" in asked.path else completion(STAGE)
        return Answer(status=status, body=error) if sent(asked) else Answer(body=body)

    with model_server(answer) as server:
        async with opened(kind, server.url) as provider:
            told = [
                (await provider.complete(prompt(persona=persona))).unconstrained for persona in ("mike", "mike", "alex")
            ]
    assert [sent(asked) is not None for asked in server.asked] == [True, False, False, False]
    assert "the schema of stage is not sent" in told[0]
    assert text in told[0]
    assert told[1:] == ["", told[0]]


async def test_a_refusal_of_something_else_is_no_refusal_of_the_schema() -> None:
    with model_server(Answer(status=400, body={"error": {"message": "the prompt is too long"}})) as server:
        async with opened(openai.OpenAIProvider, server.url) as provider:
            with pytest.raises(Exception, match="too long"):
                await provider.complete(prompt())
    assert len(server.asked) == 1


async def test_a_schema_without_a_fixed_shape_is_told_of_where_the_service_takes_none() -> None:
    with model_server(Answer(body=message("{}"))) as server:
        async with opened(anthropic.AnthropicProvider, server.url, structured="always") as provider:
            reply = await provider.complete(prompt("breakdown"))
    assert sent(server.asked[0]) is None
    assert "the schema of breakdown is not sent" in reply.unconstrained


@pytest.mark.parametrize(
    ("text", "stop", "is_told"),
    [
        ("Here it is: {}", "stop", True),
        ("```json\n{}\n```", "stop", True),
        ("<think>a plan {</think>\n{}", "stop", False),
        ('{"prompts": [', "length", False),  # was cut
        ("", "stop", False),
        ("", "tool_calls", False),
    ],
)
async def test_a_server_that_takes_a_schema_and_ignores_it_is_told_of_and_its_answer_counts(
    text: str, stop: str, *, is_told: bool
) -> None:
    """An empty answer, or the call of a tool, is content: one request, no transport error."""
    with model_server(Answer(body=completion(text, stop))) as server:
        async with opened(openai.OpenAIProvider, server.url) as provider:
            replies = [await provider.complete(prompt()) for _ in range(2)]
    assert [reply.text for reply in replies] == [text, text]
    assert [("not kept to" in reply.unconstrained) for reply in replies] == [is_told, False]
    assert len(server.asked) == 2
    assert (replies[0].stop_reason is StopReason.TOOL_USE) == (stop == "tool_calls")
