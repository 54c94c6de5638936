from __future__ import annotations

from tests.build import Call, Talk, chunk, exchange, schema, sse
from tests.rules.case import Fires
from tests.rules.timed import DONE, HEAD, MESSAGE_START, PING, named, paced, said, timed, unanswered, with_usage

TALK = Talk(text="Mercury, Venus, Earth and Mars; then the giants: Jupiter, Saturn, Uranus, Neptune.")
STREAMING = (
    *("openai.chat", "anthropic.messages", "openai.responses", "openai.completions", "google.generate_content"),
    *("ollama.chat", "ollama.generate", "mistral.chat", "cohere.chat", "deepinfra.inference", "bedrock.converse"),
)
WHOLE = '{"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Mercury'
REST = ', Venus."}, "finish_reason": "stop"}]}'
ANTHROPIC = (
    "/v1/messages",
    {"model": "m", "max_tokens": 64, "stream": True, "messages": [{"role": "user", "content": "hi"}]},
)
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
WORDS = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Mercury"}}
OPENING = [(float(at), event) for at, event in zip((300, 310, 320), named(MESSAGE_START, BLOCK, WORDS), strict=True)]
CALL = {"index": 0, "id": "call_1", "function": {"name": "orbit", "arguments": '{"planet": "Venus"}'}}


def thinking(tokens: int, gap: float = 40_000.0) -> dict[str, object]:
    record = timed([(400, HEAD), (400 + gap, said("Eight.")), (410 + gap, DONE)])
    return with_usage(record, completion_tokens=tokens + 3, completion_tokens_details={"reasoning_tokens": tokens})


FIRES = {
    **{f"in the middle, {api}": Fires(paced(api, TALK, 500, gap=31_000), says="no event for 31.0 s") for api in STREAMING},
    "exactly the limit": Fires(timed([(400, said("Mer")), (30_400, said("cury")), (30_500, DONE)]), says="30.0 s"),
    "only pings meanwhile": Fires(
        timed(
            [(400, said("Mer")), *[(400.0 + 9_000 * n, PING) for n in (1, 2, 3, 4)], (45_000, said("cury")), (45_100, DONE)]
        ),
        says="only 4 keep-alives came",
        layer="model",
    ),
    "pings with a name": Fires(
        timed(
            [*OPENING, (15_000, 'event: ping\ndata: {"type": "ping"}\n\n'), (33_000, named({"type": "message_stop"})[0])],
            *ANTHROPIC,
        ),
        says="only 1 keep-alive came",
        layer="model",
    ),
    "pings by their type, in the responses API": Fires(
        timed([(1, said("Mer")), (16_000, 'data: {"type":"keepalive","sequence_number":4}\n\n'), (32_000, DONE)]),
        says="1 keep-alive",
    ),
    "a ping in the same chunk as the next event": Fires(
        timed([(400, said("Mer")), (40_000, PING + said("cury")), (40_010, DONE)]), says="before event 2 (text)", layer="gateway"
    ),
    "before a call that comes whole": Fires(
        timed([(400, said("Let me see.")), (46_000, sse(chunk({"tool_calls": [CALL]}), done=False)), (46_010, DONE)]),
        says="after event 0 (text) and before event 1 (a call of orbit)",
        layer="gateway",
    ),
    "before the finish reason": Fires(timed([(400, said("Mercury")), (35_000, DONE)]), says="(the finish reason)"),
    "after the head": Fires(
        timed([(400, HEAD), (41_000, said("Mercury")), (41_010, DONE)]), says="after event 0 (the head of the message)"
    ),
    "the longest of three": Fires(
        timed([(1, said("a")), (31_000, said("b")), (90_000, said("c")), (121_000, said("d")), (121_100, DONE)]),
        says="no event for 59.0 s, after event 1 (text) and before event 2 (text); 2 more such gaps",
    ),
    "until the client left": Fires(
        timed([(400, said("Mercury, Ve"))], duration=64_000.0, end="client-left"), says="then the client left"
    ),
    "until the upstream broke off": Fires(
        timed([(400, said("Mercury, Ve"))], duration=64_000.0, end="upstream-died"), says="then the upstream broke off"
    ),
    "pings until the client left": Fires(
        timed([(400, said("Mercury")), *[(10_000.0 * n, PING) for n in (1, 2, 3)]], duration=31_000.0, end="client-left"),
        says="only 3 keep-alives",
    ),
    "after the head, and the client did not wait long enough for a hang": Fires(
        timed([(400, HEAD)], duration=45_000.0, end="client-left"), says="the head of the message"
    ),
    "no terminator after the finish reason": Fires(
        timed([(400, said("All.", "stop"))], duration=70_000.0, end="client-left"), says="(text)"
    ),
    "a whole body that stops half-way": Fires(
        timed([(900, WHOLE), (61_000, REST)], body={**TALK.record("openai.chat", False)["request"], "model": "m", "messages": [{"role": "user", "content": "hi"}]}, kind="application/json"),
        says="in the middle of the body",
    ),
    "a whole body that was never finished": Fires(
        timed([(900, WHOLE)], body={"model": "m", "messages": [{"role": "user", "content": "hi"}]}, kind="application/json", duration=95_000.0, end="client-left"),
        says="in the middle of the body",
    ),
    "explained by thinking": Fires(thinking(900), severity="info"),
    "thinking that would not have taken as long": Fires(thinking(60), severity="warning"),
}  # fmt: skip

SILENT = {
    **{f"steady, {api}": paced(api, TALK, 500, 2_000) for api in STREAMING},
    "just below the limit": timed([(400, said("Mer")), (30_399, said("cury")), (30_500, DONE)]),
    "many pauses, none too long": timed([(25_000.0 * n, said("and ")) for n in range(1, 9)] + [(215_000.0, DONE)]),
    "slow to begin": timed([(58_000, HEAD), (58_001, said("Mercury")), (58_010, DONE)]),
    "pings before the first event": timed([*[(9_000.0 * n, PING) for n in range(1, 6)], (50_000, said("Hi")), (50_001, DONE)]),
    "the connection stays open after its end": timed([(400, said("Mercury")), (410, DONE)], duration=90_000.0, end="client-left"),
    "a comment after its end": timed([(400, said("Mercury")), (410, DONE), (80_000, PING)], duration=80_001.0),
    "an error has told the client": timed(
        [(400, said("Mer")), (500, 'data: {"error": {"message": "overloaded"}}\n\n')], duration=60_000.0, end="client-left"
    ),
    "times are not known": exchange("/v1/chat/completions", {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}, said("Mer") + DONE, content_type="text/event-stream"),
    "times of another body": {**timed([(400, said("Mer")), (90_000, DONE)]), "response": {"headers": {"content-type": "text/event-stream"}, "body": said("Mer") + DONE, "chunks": [[400, 3], [90_000, 4]]}},
    "an end that nobody noted": timed([(400, said("Mercury, Ve"))]),
    "no reply at all": unanswered(300_000.0),
    "nothing but the head until the client left: a hang": timed([(700, HEAD)], duration=300_000.0, end="client-left"),
    "events without text are events": timed(
        [(400, said("Mer")), *[(20_000.0 * n, sse(chunk({}), done=False)) for n in (1, 2, 3)], (79_000, DONE)]
    ),
    "signatures and other news are events": timed(
        [
            *OPENING,
            (25_000, named({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}})[0]),
            (50_000, named({"type": "content_block_stop", "index": 0})[0]),
            (75_000, named({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, )[0] + named({"type": "message_stop"})[0]),
        ],
        *ANTHROPIC,
    ),
    "an event in two chunks": timed([(400, said("Mer")), (29_000, said("cury")[:40]), (29_900, said("cury")[40:]), (31_000, DONE)]),
    "a whole body in slow pieces": timed([(20_000, WHOLE), (45_000, REST)], body={"model": "m", "messages": [{"role": "user", "content": "hi"}]}, kind="application/json"),
    "white space that keeps a connection open": timed(
        [*[(12_000.0 * n, "\n") for n in range(1, 6)], (70_000, WHOLE + REST)],
        body={"model": "m", "messages": [{"role": "user", "content": "hi"}]}, kind="application/json",
    ),
    "a failed request": timed([(400, '{"error":'), (50_000, ' "busy"}')], kind="application/json", status=503),
    "calls": paced("openai.chat", Talk(calls=(Call("orbit", {"planet": "Venus"}),), tools={"orbit": schema(planet="string")}), 500),
}  # fmt: skip
