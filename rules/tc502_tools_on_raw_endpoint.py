from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.apis.traits import ended_by_itself
from wirelint.claims.tool_denials import denial, may_deny
from wirelint.model import Choice, Exchange, Json, Request, Text
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger

_CHAT = {
    "openai.completions": "/v1/chat/completions",
    "deepinfra.inference": "/v1/openai/chat/completions",
    "ollama.generate": "/api/chat",
}
"""Endpoints that take a text and know nothing of tools, and the one beside each that does."""
_TEXT = 1000
"""Characters of a reply that are looked at: who lacks what was asked for says so soon."""

_HEADER = 400
"""Characters of a header's value that are looked at."""
_DROPPED = re.compile(
    r"(?<![a-z])(?:drop|remov|ignor|stripp|omitt|discard|unsupported|not?[ _-](?:be[ _-])?support)", re.IGNORECASE
)
_TOOLS = re.compile(
    r"(?<![a-z0-9_])(?:tools|functions|tool_?config|(?:tool|function)[ _-](?:call(?:s|ing)?|use))(?![a-z0-9_])",
    re.IGNORECASE,
)
_NOTHING = frozenset({"", "0", "false", "no", "none", "null", "[]", "{}"})


class ToolsOnRawEndpoint(Rule):
    """Tools go to an endpoint that drops them, or got lost on the way to the model.

    ## What it does
    Reports tool declarations, and messages with calls or tool results, in a request to an endpoint that takes a single
    text: `/v1/completions`, DeepInfra's `/v1/inference/{model}`, Ollama's `/api/generate`. There is no place for them,
    and no error either. It reports a reply without a call of which a header says that the tools were dropped, removed,
    ignored or are not supported (`Ngrok-AIG-Removed-Params: tools, tool_choice`). Beyond that, with low confidence, it
    reports a reply in which the model denies having the tools that the request declares, though it was free to call them:
    then something on the way has dropped them.

    ## Why is this bad?
    The model never hears of its tools. It answers from memory, says that it cannot, or makes an action up, and nothing in
    the exchange looks like a failure.

    ## Example
    `POST /v1/inference/moonshotai/Kimi-K2.5` with `{"input": "<|im_user|>…", "tools": [{"type": "function", …}]}`.

    ## False positives
    Silent on a raw request that was refused: then nothing vanished. A denial is told from an honest answer by what it is
    about: "I have no tool for booking flights" is true of a model that can only look up the weather. Silent where
    `tool_choice` forbids calls, where the history holds tool results (the model knows its tools), beside calls, and in
    quotations. A model that only overlooks its tools is what remains to be told apart by a person.

    ## Fix safety
    Reported only: the request belongs to another endpoint, in another shape.

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
            names = ", ".join(f"`{excerpt(tool.name, 40)}`" for tool in request.tools[:3])
            names += f" and {len(request.tools) - 3} more" if len(request.tools) > 3 else ""
            yield self.finding(
                "request",
                f"this endpoint takes one text and drops the declared tools {names} without a word; {better} takes them",
                request.tools[0].pointer.rpartition("/")[0],
            )
        for place, what in _lost(request.body.get("messages")):
            yield self.finding(
                "request",
                f"this endpoint takes one text and drops the messages beside it, {what} among them; {better} takes them",
                place,
            )
            break

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not request.tools or exchange.api in _CHAT:
            return
        if not exchange.ok or reply.error is not None or not _free_to_call(request):
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
            asked = request.last_user.words if request.last_user is not None else ""
            found = denial(part.text[:_TEXT], asked, request.client_tools)
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


def _free_to_call(request: Request) -> bool:
    """Whether a model had tools to call, might call them, and has not shown already that it knows of them."""
    if request.tool_choice.mode == "none" or not request.client_tools:
        return False
    return not request.has_history or not any(message.calls or message.results for message in request.messages)


def _dropped(exchange: Exchange) -> str | None:
    """The response header that names tools among what a gateway did not hand on."""
    for name, value in exchange.response_headers.items():
        said = f"{name}: {value[:_HEADER]}"
        if _DROPPED.search(said) and _TOOLS.search(said) and value.strip().lower() not in _NOTHING:
            return said
    return None


def _lost(messages: Json) -> Iterator[tuple[str, str]]:
    """The first message beside a prompt that holds calls or a result."""
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict) and message.get("tool_calls"):
            yield f"/messages/{place}", "calls"
        elif isinstance(message, dict) and message.get("role") in ("tool", "function"):
            yield f"/messages/{place}", "tool results"
