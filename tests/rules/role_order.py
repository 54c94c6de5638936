from __future__ import annotations

from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, exchange
from tests.rules.case import Fires, Silent


def both(*apis: str) -> tuple[tuple[str, bool], ...]:
    return tuple((api, stream) for api in apis for stream in (False, True))


ASK = User("Light the lamp.")
A, B = "call_Rw4kTz8QnXv2LbYc6MsPdHfG", "toolu_01Hk3TnBv5QxWz8LrMc2PdYf"
CHAT, CLAUDE, MISTRAL, COHERE = (
    both(api) for api in ("openai.chat", "anthropic.messages", "mistral.chat", "cohere.chat")
)
GEMINI, CONVERSE, RESPONSES = both("google.generate_content"), both("bedrock.converse"), both("openai.responses")
TEXT: dict[str, Any] = {"text": "It is lit."}
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."


def called(*ids: str | None) -> Assistant:
    return Assistant("", tuple(Call("lamp", {"n": n}, id_) for n, id_ in enumerate(ids)))


def answer(status: int, message: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = exchange("", {}, {"error": {"message": message, **more}}, status=status)["response"]
    return made


def refused(talk: Talk, message: str, api: str = "openai.chat", status: int = 400) -> dict[str, Any]:
    return {**talk.record(api, False), "response": answer(status, message)}


def chat(*roles: str, status: int = 500, message: str = ALTERNATE) -> dict[str, Any]:
    """A history of these roles, and what became of it."""
    said = [{"role": role, "content": f"{role} {n}"} for n, role in enumerate(roles)]
    made = exchange("/v1/chat/completions", {"model": "gemma-2-9b-it", "messages": said}, "", status=status)
    return {**made, "response": answer(status, message)}


def claude(*blocks: Any, status: int = 400, message: str = "invalid request") -> dict[str, Any]:
    """A history that ends with these blocks, after a call."""
    said = [
        {"role": "user", "content": "Light the lamp."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": B, "name": "lamp", "input": {}}]},
        {"role": "user", "content": list(blocks)},
    ]
    body = {"model": "m", "max_tokens": 90, "messages": said}
    made = exchange("/v1/messages", body, "", request_headers={"anthropic-version": "2023-06-01"})
    return {**made, "response": answer(status, message)}


def unknown(record: dict[str, Any]) -> dict[str, Any]:
    """The same, and no answer has come."""
    return {**record, "response": {"status": None}}


LIT = {"type": "tool_result", "tool_use_id": B, "content": "lit"}
WORDS = {"type": "text", "text": "Here it is."}
REASONING = {
    "model": "m",
    "input": [{"role": "user", "content": "Hm?"}, {"type": "reasoning", "id": "rs_0a1b", "summary": []}],
}
BEFORE = Talk((ASK, Result(A, "lit"), called(A)), **TEXT)
APART = Talk((ASK, called(A), User("Hurry."), Result(A, "lit")), **TEXT)
FOLLOW = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"

FIRES = {
    "before its call": Fires(
        BEFORE,
        severity="warning",
        says="stands before its call",
        layer="client",
        forms=CHAT + CLAUDE + RESPONSES + CONVERSE + MISTRAL + COHERE + GEMINI,
    ),
    "before its call, refused": Fires(refused(BEFORE, FOLLOW), severity="error", says="was refused"),
    "before its call, and nobody answered": Fires(unknown(BEFORE.record("openai.chat", False)), severity="error"),
    "apart from its call": Fires(refused(APART, FOLLOW), says="the user's message stands between"),
    "apart from its call, and another thing was said": Fires(refused(APART, "Rate limit reached", status=429)),
    "apart, Mistral": Fires(
        {
            **APART.record("mistral.chat", False),
            "response": {
                "status": 400,
                "headers": {"content-type": "application/json"},
                "body": '{"object":"error","message":"Unexpected role \'tool\' after role \'user\'","code":"3230",'
                '"type":"invalid_request_message_order"}',
            },
        }
    ),
    "apart, Cohere": Fires(refused(APART, "invalid request", "cohere.chat")),
    "apart, Converse": Fires(
        refused(APART, "Expected toolResult blocks at messages.2.content", "bedrock.converse"), says="stands between"
    ),
    "apart, Gemini": Fires(
        refused(
            APART,
            "Please ensure that function response turn comes immediately after a function call turn.",
            "google.generate_content",
        )
    ),
    "a system message on the way": Fires(chat("user", "system", "user"), says="midst", pointer="/messages/1"),
    "two users": Fires(chat("user", "user"), says="as the one before it", pointer="/messages/1"),
    "two users, in a stream of status 200": Fires(
        chat("user", "user", status=200, message="Jinja: roles must alternate user and assistant"), severity="error"
    ),
    "the assistant first": Fires(chat("system", "assistant", "user"), pointer="/messages/1"),
    "the assistant first, Claude": Fires(
        refused(
            Talk((Assistant("Hello."), User("Hi."))),
            'messages: first message must use the "user" role',
            "anthropic.messages",
        ),
        says="is the first",
    ),
    "the assistant first, Converse": Fires(
        refused(
            Talk((Assistant("Hello."), User("Hi."))),
            "A conversation must start with a user message.",
            "bedrock.converse",
        )
    ),
    "the assistant last": Fires(
        refused(
            Talk((ASK, Assistant("It"))),
            "This model does not support assistant message prefill. The conversation must end with a user message.",
            "anthropic.messages",
        ),
        says="is the last",
    ),
    "the assistant last, Mistral": Fires(
        refused(
            Talk((ASK, Assistant("It"))),
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
            "mistral.chat",
        ),
    ),
    "the user after a tool, Mistral": Fires(
        refused(
            Talk((ASK, called("a1B2c3D4e"), Result("a1B2c3D4e", "lit"), User("Thanks."))),
            "Unexpected role 'user' after role 'tool'",
            "mistral.chat",
        )
    ),
    "a system message among Claude's": Fires(
        {
            **claude(LIT),
            "request": exchange(
                "/v1/messages",
                {"model": "m", "max_tokens": 9, "messages": [{"role": "system", "content": "Be brief."}]},
                "",
                request_headers={"anthropic-version": "2023-06-01"},
            )["request"],
            "response": answer(400, 'messages: Unexpected role "system". Use the top-level `system` parameter.'),
        },
        pointer="/messages/0",
    ),
    "words before a result": Fires(
        claude(WORDS, LIT), says="words before the tool results", pointer="/messages/2/content/0/text"
    ),
    "a call that answers nobody, Gemini": Fires(
        refused(
            Talk((ASK, Assistant("Well."), called("c1"), Result("c1", "lit"))),
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            "google.generate_content",
        ),
        says="calls `lamp`",
    ),
    "an item without its next": Fires(
        {
            **exchange("/v1/responses", REASONING, ""),
            "response": answer(
                400, "Item 'rs_0a1b' of type 'reasoning' was provided without its required following item."
            ),
        },
        pointer="/input/1",
    ),
}

SILENT = {
    "in order": Talk((ASK, called(A), Result(A, "lit"), User("Thanks.")), **TEXT),
    "in order, everywhere": Silent(
        Talk((ASK, called("a1B2c3D4e"), Result("a1B2c3D4e", "lit")), **TEXT),
        CHAT + CLAUDE + MISTRAL + COHERE + GEMINI + CONVERSE + RESPONSES + both("ollama.chat"),
    ),
    "parallel": Talk((ASK, called(A, B), Result(B, "lit"), Result(A, "lit")), **TEXT),
    "two users, accepted": Talk((ASK, User("Now.")), **TEXT),
    "two assistants, accepted": Talk((ASK, Assistant("Yes."), Assistant("Wait."), ASK), **TEXT),
    "the assistant first, accepted": Talk((Assistant("Hello."), ASK), **TEXT),
    "the assistant last, accepted": Talk((ASK, Assistant("It is")), **TEXT),
    "the assistant last, as a prefix": refused(
        Talk(
            (ASK, Assistant("It")),
            request={
                "messages": [
                    {"role": "user", "content": "Light it."},
                    {"role": "assistant", "content": "It", "prefix": True},
                ]
            },
        ),
        "Rate limit reached",
        "mistral.chat",
        429,
    ),
    "a system message on the way, accepted": exchange(
        "/v1/chat/completions",
        {"model": "m", "messages": [{"role": role, "content": "x"} for role in ("user", "system", "user")]},
        {"choices": [{"index": 0, "message": {"content": "Lit."}, "finish_reason": "stop"}]},
    ),
    "apart, accepted": Silent(APART, CHAT + CLAUDE + GEMINI),
    "words before a result, accepted": {
        **claude(WORDS, LIT),
        "response": exchange("", {}, {"type": "message", "content": [WORDS], "stop_reason": "end_turn"})["response"],
    },
    "words after a result": claude(LIT, WORDS),
    "a picture beside a result": claude(LIT, {"type": "image", "source": {"type": "base64", "data": "AA=="}}),
    "refused for another reason": chat("user", "user", message="context length exceeded"),
    "refused for another reason, first": chat("assistant", "user", message="model not loaded"),
    "refused for its temperature": refused(Talk((ASK, User("Now."))), "temperature must be at most 2"),
    "an orphan": refused(Talk((ASK, Result(A, "lit"))), FOLLOW),
    "no result at all": refused(Talk((ASK, called(A), User("Stop."))), "must be followed by tool messages"),
    "too late for Claude": Talk((ASK, called(B), User("Wait."), Assistant("Well."), Result(B, "lit")), **TEXT),
    "a raw prompt": Silent(Talk((ASK, Assistant("Hm."), Assistant("Hm.")), **TEXT), both("openai.completions")),
    "overloaded": refused(Talk((Assistant("Hello."), ASK)), "Overloaded", "anthropic.messages", 529),
}
