"""The vendors' own clients read replies that were written anew."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apis.harness import body_of, essence, rewrite, rewritten
from tests.apis.shapes import SHAPES
from tests.apis.shapes_responses import LOOK
from tests.apis.talk_openai_responses import message, streamed, whole
from tests.apis.test_writers import CANNOT, CHANGES, USUAL


def openai_client(content: bytes, kind: str) -> Any:
    """Return a client of the vendor's SDK that gets this reply to each request."""
    openai = pytest.importorskip("openai")
    httpx = importlib.import_module("httpx2" if importlib.util.find_spec("httpx2") else "httpx")
    answer = httpx.Response(200, headers={"content-type": kind}, content=content)
    transport = httpx.MockTransport(lambda _: answer)
    http = httpx.Client(transport=transport)
    return openai.OpenAI(api_key="k", base_url="http://llm.test/v1", http_client=http, max_retries=0)


@pytest.mark.parametrize("form", ["whole", "stream"])
def test_completions(form: str) -> None:
    api = "openai.completions"
    for name in ("text", "two candidates", "reasoning beside the text"):
        for change in sorted(CHANGES.keys() - CANNOT[api]):
            written, expected = rewritten(api, body_of(SHAPES[api][name], form), CHANGES[change](api))
            kind = "text/event-stream" if form == "stream" else "application/json"
            texts: dict[int, str] = {}
            with openai_client(written, kind) as client:
                made = client.completions.create(model="m", prompt="Once", stream=form == "stream")
                for one in [choice for event in (made if form == "stream" else [made]) for choice in event.choices]:
                    texts[one.index] = texts.get(one.index, "") + one.text
            for choice in expected.choices:
                assert texts.get(choice.index, "") == choice.text, (name, change)


def test_responses() -> None:
    api = "openai.responses"
    head: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    body = rewrite(api, streamed(whole([message("Hi."), LOOK], **head)), CHANGES["calls inserted"](api))
    with (
        openai_client(body, "text/event-stream") as client,
        client.responses.stream(model="m", input="Hi") as stream,
    ):
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds.count("response.function_call_arguments.done") == 3
    calls = [(item.call_id, item.arguments) for item in final.output if item.type == "function_call"]
    assert calls[1:] == [("made_1", "{}"), ("made_2", '{"at": "y"}')]


FOREIGN = ("wrong types", "snake case", "error body", "enums", "a part of tomorrow")
"""Shapes that the vendor's client for Python does not accept from the vendor either."""


def test_gemini() -> None:
    types = pytest.importorskip("google.genai.types")
    api = "google.generate_content"
    for name, shape in USUAL[api].items():
        if shape.whole is not None and not shape.faults and not name.startswith(FOREIGN) and "wrapped" not in name:
            for change in CHANGES.values():
                types.GenerateContentResponse.model_validate_json(rewrite(api, shape.whole, change(api)))


def as_boto3_reads(written: bytes) -> list[tuple[str, str]]:
    """Return the blocks that boto3's parser reads in a stream of Converse."""
    parsers = pytest.importorskip("botocore.parsers")
    session = pytest.importorskip("botocore.session").get_session()
    reader = pytest.importorskip("botocore.eventstream")
    model = session.get_service_model("bedrock-runtime").operation_model("ConverseStream")

    class Body:
        def stream(self) -> Iterator[bytes]:
            yield written

    blocks: dict[int, tuple[str, list[str]]] = {}
    parser = parsers.create_parser("rest-json")._event_stream_parser
    for event in reader.EventStream(Body(), model.get_event_stream_output(), parser, "ConverseStream"):
        if started := event.get("contentBlockStart"):
            blocks[started["contentBlockIndex"]] = ("call", [f"{started['start']['toolUse']['name']} "])
        if piece := event.get("contentBlockDelta"):
            delta = piece["delta"]
            kind = "call" if "toolUse" in delta else "reasoning" if "reasoningContent" in delta else "text"
            words = delta.get("text") or delta.get("toolUse", {}).get("input") or ""
            words = words or delta.get("reasoningContent", {}).get("text", "")
            blocks.setdefault(piece["contentBlockIndex"], (kind, []))[1].append(words)
    return [(kind, "".join(words)) for kind, words in blocks.values()]


@pytest.mark.parametrize("name", ["text", "thinking", "one call", "text and parallel calls"])
def test_bedrock(name: str) -> None:
    api = "bedrock.converse"
    for change in CHANGES:
        written, expected = rewritten(api, body_of(SHAPES[api][name], "stream"), CHANGES[change](api))
        parts = [(kind, words.replace(" ", "")) for kind, words in essence(expected)[0] if kind != "sealed" and words]
        read = [(kind, words.replace(" ", "")) for kind, words in as_boto3_reads(written) if words]
        assert sorted(read) == sorted(parts), change
