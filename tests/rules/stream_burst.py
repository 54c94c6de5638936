from __future__ import annotations

from typing import Any

from tests.build import Call, Talk, chunk, exchange, schema, sse
from tests.rules.case import Fires
from tests.rules.timed import DONE, HEAD, PING, named, paced, said, timed, unanswered, with_usage

LONG = (
    "The inner planets are Mercury, Venus, Earth and Mars. They are small and made of rock. The outer ones are Jupiter, "
    "Saturn, Uranus and Neptune: two giants of gas, two of ice. Between the two groups lies the belt of asteroids."
)
TALK = Talk(text=LONG)
STREAMING = (
    *("openai.chat", "anthropic.messages", "openai.responses", "openai.completions", "google.generate_content"),
    *("ollama.chat", "ollama.generate", "mistral.chat", "cohere.chat", "deepinfra.inference", "bedrock.converse"),
)
TOOLS = {"save": schema(text="string")}


def words(
    first: float, text: str = LONG, step: float = 0.0, before: tuple[tuple[float, str], ...] = ()
) -> dict[str, Any]:
    """The words of a text, one event each, from `first` on."""
    events = [(first + step * n, said(f"{word} ")) for n, word in enumerate(text.split())]
    return timed([*before, *events, (events[-1][0], DONE)])


def thought(record: dict[str, Any], tokens: int) -> dict[str, Any]:
    return with_usage(record, completion_tokens=tokens + 60, completion_tokens_details={"reasoning_tokens": tokens})


def last_alone(talk: Talk, at: float = 31_000) -> dict[str, Any]:
    """A stream of OpenAI's Responses of which nothing came but the event with the whole response."""
    made = talk.record("openai.responses", True)
    events = made["response"]["body"].split("\n\n")
    body = next(event for event in events if "response.completed" in event) + "\n\n"
    made["response"] |= {"body": body, "chunks": [[at, len(body.encode())]]}
    return {**made, "timing": {"duration_ms": at + 1}}


FIRES = {
    "a response in its last event": Fires(
        last_alone(Talk(text="Eight.")), says="the whole reply in the stream's last event", severity="warning"
    ),
    "a call in its last event": last_alone(Talk(calls=(Call("save", {"text": "planets"}),), tools=TOOLS)),
    "a sentence in the only event": Fires(
        timed([(15_000, said(LONG[:120], "stop")), (15_001, "data: [DONE]\n\n")]), says="last event", severity="info"
    ),
    **{f"all at once, {api}": Fires(paced(api, TALK, 31_000, 0), says="nothing for 31.0 s, then") for api in STREAMING},
    "exactly the limit": Fires(words(8_000), says="nothing for 8.0 s"),
    "within 48 milliseconds": Fires(words(12_000, LONG[:90], 3.0), says="within"),
    "the head had come before": Fires(words(20_000, before=((300, HEAD),)), says="nothing for 20.0 s"),
    "pings had come before": Fires(words(20_000, before=((5_000, PING), (10_000, PING)))),
    "in one event": Fires(timed([(15_000, said(LONG * 3)), (15_001, DONE)]), says="in 1 event "),
    "in one chunk": Fires(timed([(15_000, "".join(said(f"{word} ") for word in LONG.split()) + DONE)])),
    "text and a call": Fires(
        paced("openai.chat", Talk(text=LONG, calls=(Call("save", {"text": "planets"}),), tools=TOOLS), 9_000, 0)
    ),
    "visible reasoning": Fires(paced("anthropic.messages", Talk(reasoning=LONG, text="Eight."), 11_000, 0)),
    "more than any model writes, however long it thought": Fires(thought(words(60_000, LONG * 6), 3_000)),
    "thought for a moment only": Fires(thought(words(60_000), 40)),
}

SILENT = {
    "a response in its last event, soon": last_alone(Talk(text="Eight."), 900),
    "a word in the only event": timed([(15_000, said("Eight.", "stop")), (15_001, "data: [DONE]\n\n")]),
    "a head, then a sentence with the finish": timed([(300, HEAD), (15_000, said(LONG[:120], "stop"))]),
    "a last event alone, after thinking that is not shown": thought(
        timed([(15_000, said(LONG[:120], "stop")), (15_001, "data: [DONE]\n\n")]), 900
    ),
    **{f"steady after a slow start, {api}": paced(api, TALK, 20_000, 30) for api in STREAMING},
    **{f"at once and quickly, {api}": paced(api, TALK, 900, 0) for api in ("openai.chat", "anthropic.messages")},
    "just below the limit": words(7_999),
    "spread over 60 milliseconds": words(9_000, step=2.0),
    "short": timed([(31_000, HEAD), (31_000, said("Eight.")), (31_000, DONE)]),
    "short, in many events": timed([*[(31_000.0, said("ha ")) for _ in range(12)], (31_000.0, DONE)]),
    "a sentence in one event": timed([(15_000, said(LONG[:120])), (15_001, DONE)]),
    "a call, which comes whole": paced("openai.chat", Talk(calls=(Call("save", {"text": LONG}),), tools=TOOLS), 25_000, 0),
    "a long call in one event": timed(
        [
            (25_000, sse(chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "save", "arguments": f'{{"text": "{LONG}"}}'}}]}), done=False)),
            (25_001, DONE),
        ]
    ),
    "thinking that is not shown": thought(words(40_000), 900),
    "thinking that is encrypted": timed(
        [
            (float(at), event)
            for at, event in zip(
                [400, 20_000, 20_000, 20_001, 20_001, 20_002, 20_002, 20_002],
                named(
                    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": []}},
                    {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "ZW5j"}},
                    {"type": "content_block_stop", "index": 0},
                    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
                    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": LONG * 2}},
                    {"type": "content_block_stop", "index": 1},
                    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                    {"type": "message_stop"},
                ),
                strict=True,
            )
        ],
        "/v1/messages",
        {"model": "m", "max_tokens": 64, "stream": True, "messages": [{"role": "user", "content": "hi"}]},
    ),
    "thinking that streamed, then a quick answer": timed(
        [
            *[(9_000.0 + 40 * n, sse(chunk({"reasoning_content": f"{w} "}), done=False)) for n, w in enumerate(LONG.split())],
            *[(11_000.0, said(f"{word} ")) for word in LONG.split()],
            (11_000.0, DONE),
        ]
    ),
    "a beginning, then the rest at once": timed(
        [(400, said("Well, ")), *[(20_000.0, said(f"{word} ")) for word in LONG.split()], (20_000.0, DONE)]
    ),
    "a whole body": paced("openai.chat", TALK, 31_000, 0, stream=False),
    "times are not known": exchange("/v1/chat/completions", {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}, "".join(said(f"{word} ") for word in LONG.split()) + DONE, content_type="text/event-stream"),
    "no reply": unanswered(90_000.0),
    "cut off": timed([(30_000, "".join(said(f"{word} ") for word in LONG.split()))], end="upstream-died"),
    "a failed request": timed([(30_000, '{"error": {"message": "' + LONG * 4 + '"}}')], kind="application/json", status=500),
}  # fmt: skip
