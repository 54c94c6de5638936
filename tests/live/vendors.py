"""The vendors' own SDKs as clients, one `Door` for each API and SDK: the same question asked through all of them.

A door asks with the SDK's own means, whole or streamed, and says what the SDK made of the reply. SDKs are imported when
they are used, since not every one can be installed beside every mitmproxy.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.build import Talk, sse
from tests.live.scenes import QUESTION, TOOLS, Seen
from tests.live.strict import assemble, of_blocks

MODEL = "acme-1"

Headers = Mapping[str, str]
See = Callable[[str, bool, bool, Headers], Seen]
"""(URL of the proxy, streamed, with tools, further headers) -> what the SDK made of the reply."""


@dataclass(frozen=True)
class Door:
    """`called` and `ended` are the finish reasons of a reply with calls and of one without, in the SDK's words.

    `makes_calls`: False where the API has no form for calls, so that markup stays what it is.
    """

    name: str
    api: str
    module: str
    see: See
    called: str
    ended: str
    makes_calls: bool = True
    ids: bool = True

    def ask(self, url: str, *, stream: bool, tools: bool, headers: Headers) -> Seen:
        pytest.importorskip(self.module, reason=f"{self.module} is not installed here")
        return self.see(url, stream, tools, headers)


def _sdk(name: str) -> Any:
    return importlib.import_module(name)


def _request(api: str, tools: bool, **more: Any) -> dict[str, Any]:
    """The question in the words of an API, without `stream`: SDKs set it themselves."""
    declared = {name: (f"{name} works on notes.", one) for name, one in TOOLS.items()} if tools else {}
    talk = Talk((QUESTION,), tools=declared, model=MODEL)
    body: dict[str, Any] = json.loads(talk.record(api, False)["request"]["body"])
    body.pop("stream", None)
    return {**body, **more}


def _decoded(arguments: Any) -> Any:
    """The value of arguments; text that is no JSON stays text."""
    with contextlib.suppress(TypeError, json.JSONDecodeError):
        return json.loads(arguments)
    return arguments


# --- OpenAI -----------------------------------------------------------------------------------------------------------

_TLS = ssl.create_default_context()
"""An SDK that is given no context loads all certificates for each client, which takes longer than the request."""


def _client(package: str, headers: Headers) -> dict[str, Any]:
    """What is told to the clients of OpenAI's and Anthropic's SDKs."""
    http = _sdk(package).DefaultHttpxClient(verify=_TLS)
    return {"max_retries": 0, "default_headers": dict(headers), "http_client": http}


def openai_client(url: str, headers: Headers) -> Any:
    return _sdk("openai").OpenAI(api_key="k", base_url=f"{url}/v1", **_client("openai", headers))


def _chat(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    # Without its token counts a stream has a fault of the client's, which is repaired.
    counted = {"stream_options": {"include_usage": True}} if stream else {}
    request = _request("openai.chat", tools, **counted)
    with openai_client(url, headers) as client:
        return chat(client, request, stream=stream)


def chat(client: Any, request: Mapping[str, Any], *, stream: bool) -> Seen:
    if stream:
        with client.chat.completions.stream(**request) as events:
            choice = events.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(**request).choices[0]
    message = choice.message
    calls = tuple((one.id, one.function.name, _decoded(one.function.arguments)) for one in message.tool_calls or ())
    return Seen(message.content or "", getattr(message, "reasoning_content", "") or "", calls, choice.finish_reason)


def _responses(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    request = _request("openai.responses", tools)
    with openai_client(url, headers) as client:
        if not stream:
            return response_seen(client.responses.create(**request))
        with client.responses.stream(**request) as events:
            return response_seen(events.get_final_response())


def response_seen(response: Any) -> Seen:
    calls = tuple(
        (item.call_id, item.name, _decoded(item.arguments)) for item in response.output if item.type == "function_call"
    )
    return Seen(response.output_text, "", calls, response.status)


def _completions(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    request = _request("openai.completions", tools)
    further = {"tools": request.pop("tools")} if tools else None
    with openai_client(url, headers) as client:
        made = client.completions.create(**request, extra_body=further, stream=stream)
        choices = [one.choices[0] for one in made if one.choices] if stream else [made.choices[0]]
    return Seen("".join(choice.text for choice in choices), "", (), choices[-1].finish_reason)


# --- Anthropic --------------------------------------------------------------------------------------------------------

_CLAUDE = "claude-haiku-4-5"


def _anthropic(make: Callable[[str, Headers], Any]) -> See:
    def see(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
        with make(url, headers) as client:
            return messages(client, _request("anthropic.messages", tools, model=_CLAUDE), stream=stream)

    return see


def messages(client: Any, request: Mapping[str, Any], *, stream: bool) -> Seen:
    if stream:
        with client.messages.stream(**request) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**request)
    return of_blocks(message.model_dump()["content"], message.stop_reason)


def anthropic_client(url: str, headers: Headers) -> Any:
    return _sdk("anthropic").Anthropic(base_url=url, api_key="k", **_client("anthropic", headers))


def _at_bedrock(url: str, headers: Headers) -> Any:
    return _sdk("anthropic").AnthropicBedrock(
        base_url=url, aws_access_key="k", aws_secret_key="s", aws_region="us-east-1", **_client("anthropic", headers)
    )


def _at_vertex(url: str, headers: Headers) -> Any:
    return _sdk("anthropic").AnthropicVertex(
        base_url=f"{url}/v1", region="us-east5", project_id="p", access_token="t", **_client("anthropic", headers)
    )


# --- Google -----------------------------------------------------------------------------------------------------------


def _gemini(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    types = _sdk("google.genai.types")
    options = types.HttpOptions(base_url=url, headers=dict(headers))
    client = _sdk("google.genai").Client(api_key="k", vertexai=False, http_options=options)
    declared = [{"name": name, "parameters_json_schema": one} for name, one in TOOLS.items()]
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)] if tools else None,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    request: dict[str, Any] = {"model": MODEL, "contents": QUESTION.text, "config": config}
    models = client.models
    made = list(models.generate_content_stream(**request)) if stream else [models.generate_content(**request)]
    candidates = [one.candidates[0] for one in made if one.candidates]
    parts = [part for one in candidates for part in (one.content.parts if one.content else None) or ()]
    calls = tuple(
        (part.function_call.id or "", part.function_call.name, part.function_call.args)
        for part in parts
        if part.function_call
    )
    text = "".join(part.text or "" for part in parts if not part.thought)
    finish = next(one.finish_reason for one in reversed(candidates) if one.finish_reason)
    return Seen(text, "", calls, finish.value)


def _gemini_array(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    """What the SDK never asks for: a stream that is one JSON array."""
    body = _request("google.generate_content", tools)
    method = "streamGenerateContent" if stream else "generateContent"
    made = _sdk("httpx").post(f"{url}/v1beta/models/{MODEL}:{method}", json=body, headers=dict(headers))
    told = made.raise_for_status().json()
    candidates = [one["candidates"][0] for one in (told if stream else [told])]
    parts = [part for one in candidates for part in one["content"].get("parts", ())]
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    calls = tuple(("", one["name"], one["args"]) for one in called)
    return Seen("".join(part.get("text", "") for part in parts), "", calls, candidates[-1]["finishReason"])


# --- Ollama -----------------------------------------------------------------------------------------------------------


def _ollama(url: str, headers: Headers) -> Any:
    return _sdk("ollama").Client(host=url, headers=dict(headers))


def _ollama_chat(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    made = _ollama(url, headers).chat(**_request("ollama.chat", tools), stream=stream)
    lines = list(made) if stream else [made]
    called = [one for line in lines for one in line.message.tool_calls or ()]
    calls = tuple(("", one.function.name, dict(one.function.arguments)) for one in called)
    return Seen("".join(line.message.content or "" for line in lines), "", calls, lines[-1].done_reason)


def _ollama_generate(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    made = _ollama(url, headers).generate(**_request("ollama.generate", tools), stream=stream)
    lines = list(made) if stream else [made]
    return Seen("".join(line.response for line in lines), "", (), lines[-1].done_reason)


# --- Mistral ----------------------------------------------------------------------------------------------------------


def _mistral(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    package = _sdk("mistralai")
    made = package if hasattr(package, "Mistral") else _sdk("mistralai.client")  # the second since 2.0
    request = _request("mistral.chat", tools, http_headers=dict(headers))
    with made.Mistral(api_key="k", server_url=url) as client:
        if not stream:
            choice = client.chat.complete(**request).choices[0]
            return _of_mistral([choice.message], choice.finish_reason)
        with client.chat.stream(**request) as events:
            choices = [event.data.choices[0] for event in events]
    return _of_mistral([choice.delta for choice in choices], choices[-1].finish_reason)


def _of_mistral(said: list[Any], finish: Any) -> Seen:
    called = [one for message in said for one in message.tool_calls or ()]
    calls = tuple((one.id, one.function.name, _decoded(one.function.arguments)) for one in called)
    return Seen("".join(message.content or "" for message in said), "", calls, str(finish))


# --- Cohere -----------------------------------------------------------------------------------------------------------


def _cohere(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    client = _sdk("cohere").ClientV2(api_key="k", base_url=url)
    options = {"additional_headers": dict(headers), "max_retries": 0}
    request = _request("cohere.chat", tools, request_options=options)
    if stream:
        return _of_cohere(client.chat_stream(**request))
    made = client.chat(**request)
    calls = tuple(
        (one.id, one.function.name, _decoded(one.function.arguments)) for one in made.message.tool_calls or ()
    )
    text = "".join(part.text for part in made.message.content or () if part.type == "text")
    return Seen(text, "", calls, made.finish_reason)


def _of_cohere(events: Iterator[Any]) -> Seen:
    text, finish = "", None
    calls: list[list[str]] = []
    for event in events:
        match event.type:
            case "content-delta":
                text += event.delta.message.content.text or ""
            case "tool-call-start":
                call = event.delta.message.tool_calls
                assert event.index == len(calls)
                calls.append([call.id, call.function.name, call.function.arguments or ""])
            case "tool-call-delta":
                calls[event.index][2] += event.delta.message.tool_calls.function.arguments
            case "message-end":
                finish = event.delta.finish_reason
    return Seen(text, "", tuple((id_, name, _decoded(arguments)) for id_, name, arguments in calls), finish)


# --- AWS --------------------------------------------------------------------------------------------------------------


def _boto(url: str, headers: Headers) -> Any:
    session = _sdk("boto3").Session(aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1")
    config = _sdk("botocore.config").Config(retries={"max_attempts": 0}, proxies={})
    client = session.client("bedrock-runtime", endpoint_url=url, config=config)

    def add(request: Any, **_: Any) -> None:
        for name, value in headers.items():
            request.headers[name] = value

    client.meta.events.register("before-send.bedrock-runtime.*", add)
    return client


def _converse(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    request = _request("bedrock.converse", tools, modelId=MODEL)
    client = _boto(url, headers)
    if stream:
        return _of_converse(client.converse_stream(**request)["stream"])
    made = client.converse(**request)
    blocks = made["output"]["message"]["content"]
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    calls = tuple((one["toolUseId"], one["name"], one["input"]) for one in uses)
    return Seen("".join(block.get("text", "") for block in blocks), "", calls, made["stopReason"])


def _of_converse(events: Iterator[Mapping[str, Any]]) -> Seen:
    text, finish = "", None
    calls: dict[int, list[str]] = {}
    for event in events:
        ((name, value),) = event.items()
        if name == "contentBlockStart" and "toolUse" in value["start"]:
            use = value["start"]["toolUse"]
            calls[value["contentBlockIndex"]] = [use["toolUseId"], use["name"], ""]
        elif name == "contentBlockDelta":
            text += value["delta"].get("text", "")
            if "toolUse" in value["delta"]:
                calls[value["contentBlockIndex"]][2] += value["delta"]["toolUse"]["input"]
        elif name == "messageStop":
            finish = value["stopReason"]
    return Seen(text, "", tuple((id_, name, _decoded(words)) for id_, name, words in calls.values()), finish)


def _invoke(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    """Claude at Bedrock by its own bodies."""
    body = _request("anthropic.messages", tools, anthropic_version="bedrock-2023-05-31")
    del body["model"]
    client = _boto(url, headers)
    request = {"modelId": "anthropic.claude-haiku-4-5", "body": json.dumps(body)}
    if not stream:
        return assemble("anthropic.messages", False, client.invoke_model(**request)["body"].read())
    events = client.invoke_model_with_response_stream(**request)["body"]
    documents = [json.loads(event["chunk"]["bytes"]) for event in events]
    return assemble("anthropic.messages", True, sse(*documents, named=True).encode())


# --- DeepInfra --------------------------------------------------------------------------------------------------------


def _deepinfra(url: str, stream: bool, tools: bool, headers: Headers) -> Seen:
    body = _request("deepinfra.inference", tools, stream=stream)
    made = _sdk("httpx").post(f"{url}/v1/inference/acme/{MODEL}", json=body, headers=dict(headers)).raise_for_status()
    if not stream:
        return Seen(made.json()["results"][0]["generated_text"])
    lines = [line.removeprefix("data: ") for line in made.text.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return Seen("".join(json.loads(line)["token"]["text"] for line in lines))


DOORS = (
    Door("openai chat", "openai.chat", "openai", _chat, "tool_calls", "stop"),
    Door("openai responses", "openai.responses", "openai", _responses, "completed", "completed"),
    Door("openai completions", "openai.completions", "openai", _completions, "stop", "stop", makes_calls=False),
    Door("anthropic", "anthropic.messages", "anthropic", _anthropic(anthropic_client), "tool_use", "end_turn"),
    Door("anthropic at bedrock", "anthropic.messages", "botocore", _anthropic(_at_bedrock), "tool_use", "end_turn"),
    Door("anthropic at vertex", "anthropic.messages", "google.auth", _anthropic(_at_vertex), "tool_use", "end_turn"),
    Door("google-genai", "google.generate_content", "google.genai", _gemini, "STOP", "STOP", ids=False),
    Door("httpx gemini array", "google.generate_content", "httpx", _gemini_array, "STOP", "STOP", ids=False),
    Door("ollama chat", "ollama.chat", "ollama", _ollama_chat, "stop", "stop", ids=False),
    Door("ollama generate", "ollama.generate", "ollama", _ollama_generate, "stop", "stop", makes_calls=False),
    Door("mistralai", "mistral.chat", "mistralai", _mistral, "tool_calls", "stop"),
    Door("cohere", "cohere.chat", "cohere", _cohere, "TOOL_CALL", "COMPLETE"),
    Door("boto3 converse", "bedrock.converse", "boto3", _converse, "tool_use", "end_turn"),
    Door("boto3 invoke", "anthropic.messages", "boto3", _invoke, "tool_use", "end_turn"),
    Door("httpx deepinfra", "deepinfra.inference", "httpx", _deepinfra, "", "", makes_calls=False),
)
