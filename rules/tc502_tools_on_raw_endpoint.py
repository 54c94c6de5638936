from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.apis.traits import ended_by_itself
from wirelint.claims.tool_denials import denial, may_deny
from wirelint.model import Choice, Exchange, Json, Request, Text
from wirelint.rule import Finding, Rule, excerpt, listed
from wirelint.state.ledger import Ledger

_CHAT = {
    "openai.completions": "/v1/chat/completions",
    "deepinfra.inference": "/v1/openai/chat/completions",
    "ollama.generate": "/api/chat",
}
"""Endpoints that take one text without tools, and the counterpart of each with tools."""
_TEXT = 1000
"""Characters of a reply to search: a model denies having a tool early."""

_HEADER = 400
"""Characters of a header's value to search."""
_DROPPED = re.compile(
    r"(?<![a-z])(?:drop|remov|ignor|stripp|omitt|discard|filtered|exclud|skipp|unsupported"
    r"|not?[ _-](?:be[ _-])?(?:support|forward|pass))",
    re.IGNORECASE,
)
_TOOLS = re.compile(
    r"(?<![a-z0-9_])(?:tools|functions|tool_?config|(?:tool|function)[ _-](?:call(?:s|ing)?|use))(?![a-z0-9_])"
    r"(?![.\[/](?:\w{1,9}|\*)?\]?[.\[/]\w)",
    re.IGNORECASE,
)
"""Names of tools as a whole; not those of one field of a tool (`tools.0.strict`)."""
_NOTHING = frozenset({"", "0", "false", "no", "none", "null", "[]", "{}"})


class ToolsOnRawEndpoint(Rule):
    """Tools go to an endpoint that drops them, or are lost on the way to the model.

    ## What it does
    Reports tool declarations, and messages with calls or tool results, in a request to an endpoint that takes one text:
    `/v1/completions`, DeepInfra's `/v1/inference/{model}`, Ollama's `/api/generate`. These ignore tools without an
    error. Reports a reply without a call whose response header says that tools were dropped, removed, ignored or are
    unsupported (`Ngrok-AIG-Removed-Params: tools, tool_choice`). With low confidence it reports a reply in which the
    model denies having the declared tools although it may call them: then something on the way dropped them.

    ## Why is this bad?
    The model never sees its tools. It answers from memory, says that it cannot, or invents an action, and nothing looks
    like a failure.

    ## Example
    `POST /v1/inference/moonshotai/Kimi-K2.5` with `{"input": "<|im_user|>…", "tools": [{"type": "function", …}]}`.

    ## False positives
    Silent on a refused raw request. A denial differs from an honest answer by its subject: "I have no tool for booking
    flights" is true of a model that only has a weather tool. Silent where `tool_choice` forbids calls, where the
    history has tool results, beside calls, and in quotations. A model that merely overlooks its tools is left for a
    person to judge.

    ## Fix safety
    Reported only: the request needs another endpoint and shape.

    ## References
    - DeepInfra, Native API and OpenAI API
    - OpenAI, Completions API (legacy)
    - ngrok, AI Gateway: response headers
    - Ollama, API: generate and chat
    """

    code = "TC502"
    name = "tools-on-raw-endpoint"
    severity = "error"
    layer = "client"
    needs = frozenset({"tools"})
    requires_in_reply = frozenset({"tools"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or exchange.api not in _CHAT or (exchange.status or 0) >= 400:
            return
        better = _CHAT[exchange.api]
        if request.tools:
            names = listed([f"`{excerpt(tool.name, 40)}`" for tool in request.tools], 3)
            yield self.finding(
                "request",
                f"this endpoint takes one text and silently drops the declared tools {names}; {better} accepts them",
                request.tools[0].pointer.rpartition("/")[0],
            )
        for place, what in _lost(request.body.get("messages")):
            yield self.finding(
                "request",
                f"this endpoint takes one text and drops the messages beside it, {what} among them; {better} accepts them",
                place,
            )
            break

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not request.tools or exchange.api in _CHAT:
            return
        if not exchange.ok or reply.error is not None or not _may_call(request):
            return
        dropped = _dropped(exchange)
        if dropped is not None and not any(choice.calls for choice in reply.choices):
            yield self.finding(
                "response",
                f"{len(request.client_tools)} tools were declared, and a header says that they were dropped: "
                f"{excerpt(dropped, 90)}",
                layer="gateway",
            )
            return
        for choice in reply.choices:
            yield from self._denials(request, choice)

    def _denials(self, request: Request, choice: Choice) -> Iterator[Finding]:
        if choice.calls or choice.hosted or not ended_by_itself(choice):
            return
        for part in choice.parts:
            if not isinstance(part, Text) or not may_deny(part.text[:_TEXT]):
                continue
            words = request.last_user.words if request.last_user is not None else ""
            found = denial(part.text[:_TEXT], words, request.client_tools)
            if found is not None:
                names = ", ".join(f"`{excerpt(tool.name, 40)}`" for tool in request.client_tools[:3])
                yield self.finding(
                    "response",
                    f"the model was given {names} and says {excerpt(found.said, 90)!r}: they may have been lost on the way",
                    part.pointer,
                    event=part.event_at(found.start),
                    severity="warning" if found.outright else "info",
                    confidence="low",
                    layer="gateway",
                )
                return


def _may_call(request: Request) -> bool:
    """Return True if the model had tools, may call them, and has not shown that it knows them."""
    if request.tool_choice.mode == "none" or not request.client_tools:
        return False
    return not request.has_history or not any(message.calls or message.results for message in request.messages)


def _dropped(exchange: Exchange) -> str | None:
    """Return the response header that lists tools among dropped parameters."""
    for name, value in exchange.response_headers.items():
        header = f"{name}: {value[:_HEADER]}"
        if _DROPPED.search(header) and _TOOLS.search(header) and value.strip().lower() not in _NOTHING:
            return header
    return None


def _lost(messages: Json) -> Iterator[tuple[str, str]]:
    """Yield the messages beside a prompt that hold calls or a result."""
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict) and message.get("tool_calls"):
            yield f"/messages/{place}", "calls"
        elif isinstance(message, dict) and message.get("role") in ("tool", "function"):
            yield f"/messages/{place}", "tool results"
