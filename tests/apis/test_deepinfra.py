"""DeepInfra's own inference API: what belongs to it, what its requests say, and replies that are written again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.apis.rewriting import BLOCK, Change, instead, rewrite, the, unchanged
from tests.apis.shapes_deepinfra import DEEPINFRA
from tests.apis.talk_deepinfra_inference import token, whole
from tests.apis.test_contract import essence, understood
from tests.build import exchange, read, sse
from wirelint.apis import recognise
from wirelint.apis.openai_completions import FormError
from wirelint.events import Delta, Done, Event, Start
from wirelint.model import Text

PATHS: dict[str, tuple[str, Any, bool]] = {
    "a model": ("/v1/inference/acme/One-7B", {"input": "Once"}, True),
    "a version of it": ("/v1/inference/acme/One-7B/v2", {"input": "Once"}, True),
    "a deployment": ("/proxy/v1/inference/acme/One-7B", {"input": "Once", "stream": True}, True),
    "an embedding": ("/v1/inference/acme/Embed", {"inputs": ["Once"]}, False),
    "no model": ("/v1/inference", {"input": "Once"}, False),
    "its chat": ("/v1/openai/chat/completions", {"model": "a", "messages": [{"role": "user", "content": "Hi"}]}, False),
    "responses of OpenAI": ("/v1/responses", {"model": "a", "input": "Once"}, False),
}


@pytest.mark.parametrize(("path", "body", "ours"), PATHS.values(), ids=PATHS)
def test_whose_it_is(path: str, body: Any, ours: bool) -> None:
    found = recognise("POST", path, {}, body)
    assert (found is not None and found.name == "deepinfra.inference") == ours


def test_what_a_request_says() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    body = {"input": "Once", "stream": True, "tools": [tool]}
    found = read(exchange("/v1/inference/acme/One%2D7B", body, whole("Hello")))
    assert found.request is not None
    assert found.model == "acme/One-7B"
    assert [message.parts for message in found.request.messages] == [(Text("Once", "/input"),)]
    assert [tool.name for tool in found.request.tools] == ["look"]
    assert found.request.stream


def test_what_a_client_reads_of_it() -> None:
    found = read(exchange("/v1/inference/acme/One", {"input": "Once"}, whole("Hello", request_id="r1"))).reply
    assert found is not None
    assert found.choices[0].parts[0].pointer == "/results/0/generated_text"
    assert found.id == "r1"
    assert found.finished


LAST = token("", generated_text="Hello", num_output_tokens=2)
CHANGES: dict[str, tuple[Any, str, Change, str]] = {
    "a text cut": (whole("lo"), sse(token("lo"), LAST), instead("lo", "l"), "l"),
    "a text gone": (whole("lo"), sse(token("lo"), LAST), instead("lo", ""), ""),
    "the end of it": (whole("lo"), sse(token("Hel"), token("lo"), LAST), instead("lo", "p"), "Help"),
}


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize(("body", "stream", "change", "words"), CHANGES.values(), ids=CHANGES)
def test_changes(body: Any, stream: str, change: Change, words: str, form: str) -> None:
    raw = (json.dumps(body) if form == "whole" else stream).encode()
    made = rewrite("deepinfra.inference", raw, change)
    _, _, reply = understood(the("deepinfra.inference"), [made])
    assert reply is not None
    said = words if form == "stream" else {"Help": "p"}.get(words, words)
    assert essence(reply) == [[("text", said)] if said else []]
    assert reply.terminated
    assert reply.usage
    if form == "stream":  # the whole text is told once more, and is the same
        told = [json.loads(line[6:]) for line in made.decode().split("\n\n") if line.startswith("data: {")]
        assert told[-1]["generated_text"] == words
        assert told[-1]["num_output_tokens"] == 2


def test_text_given_back_at_the_end() -> None:
    def change(event: Event) -> Iterable[Event]:
        if isinstance(event, Delta):
            return []
        return [Delta(0, "Hi", event.frame), event] if isinstance(event, Done) else [event]

    made = rewrite("deepinfra.inference", sse(token("Hel"), token("lo")).encode(), change)
    _, _, reply = understood(the("deepinfra.inference"), [made])
    assert reply is not None
    assert essence(reply) == [[("text", "Hi")]]
    assert reply.terminated


HEALTHY = [pytest.param(shape.stream, id=name) for name, shape in DEEPINFRA.items() if isinstance(shape.stream, str)]


@pytest.mark.parametrize("raw", HEALTHY)
def test_what_nobody_changes_stays(raw: str) -> None:
    assert rewrite("deepinfra.inference", raw.encode(), unchanged) == raw.encode()


@pytest.mark.parametrize("raw", [json.dumps(whole("Hello")), sse(token("Hello"))], ids=["whole", "stream"])
def test_a_call_has_no_form_here(raw: str) -> None:
    def change(event: Event) -> Iterable[Event]:
        made = Start(BLOCK, "tool_call", "", 0, event.frame, None, "c", "look")
        return [event, made] if isinstance(event, Start) else [event]

    with pytest.raises(FormError, match="no tool_call"):
        rewrite("deepinfra.inference", raw.encode(), change)
