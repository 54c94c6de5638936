from __future__ import annotations

from typing import Any

from tests.build import Talk, exchange
from tests.rules.case import Fires
from tests.rules.timed import DONE, HEAD, MESSAGE_START, PING, named, paced, said, timed, unanswered, with_usage

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
MESSAGES = ("/v1/messages", {**ASKED, "max_tokens": 64, "stream": True})
REPLY = '{"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]'
ERROR = '{"error": {"message": "upstream request timeout"}}'
NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALL = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "pull", "arguments": {"image": "worker"}}}
RESULT = '{"jsonrpc": "2.0", "id": 4, "result": {"content": [{"type": "text", "text": "pulled"}]}}'
TOOLS = ("/mcp", CALL)


def silent(duration: float, end: str, pieces: tuple[tuple[float, str], ...] = (), **more: Any) -> dict[str, Any]:
    return timed(pieces, duration=duration, end=end, **more)


def recorded(first: float, body: str = REPLY + "}", **more: Any) -> dict[str, Any]:
    """A record without the times of its chunks."""
    timing = {"first_byte_ms": first, "duration_ms": first + 40}
    return {**exchange("/v1/chat/completions", ASKED, body, **more), "timing": timing}


FIRES = {
    "the client left": Fires(unanswered(300_000.0), says="no byte of an answer for 300.0 s, nor any other; the client left", severity="error", layer="gateway"),
    "exactly the limit": Fires(unanswered(60_000.0), says="60.0 s"),
    "after a quarter of an hour": Fires(unanswered(900_000.0), says="15 min"),
    "the upstream broke off": Fires(unanswered(75_000.0, end="upstream-died"), says="the upstream broke off"),
    "nobody noted how it ended": Fires(unanswered(75_000.0, end="unknown"), severity="error"),
    "not streamed": Fires(unanswered(120_000.0, body=ASKED), severity="error"),
    "only the head of a message": Fires(
        silent(300_000.0, "client-left", ((729, HEAD),)), says="only the head of a message came", severity="error", layer="model"
    ),
    "only the head of a message, anthropic": Fires(
        timed([(729, named(MESSAGE_START)[0])], *MESSAGES, duration=300_000.0, end="client-left"), severity="error"
    ),
    "the head and pings": Fires(
        timed([(729, named(MESSAGE_START)[0]), *[(15_000.0 * n, 'event: ping\ndata: {"type": "ping"}\n\n') for n in range(1, 9)]], *MESSAGES, duration=130_000.0, end="client-left"),
        says="only the head of a message and 8 keep-alives came",
        layer="model",
    ),
    "nothing but comments": Fires(
        silent(90_000.0, "client-left", tuple((10_000.0 * n, PING) for n in range(1, 9))), says="only 8 keep-alives came"
    ),
    "status line only": Fires(silent(240_000.0, "client-left"), says="the client left", layer="model"),
    "white space until the upstream broke off": Fires(
        silent(100_000.0, "upstream-died", tuple((20_000.0 * n, " \n") for n in range(1, 5)), kind="application/json", body=ASKED), severity="error"
    ),
    "a gateway's error page in its place": Fires(
        timed([(60_012, ERROR)], body=ASKED, kind="application/json", status=504), says="then HTTP 504", severity="error", layer="gateway"
    ),
    "an error in the stream in its place": Fires(
        timed([(400, PING), (70_000, f"data: {ERROR}\n\n")]), says="then an error", severity="error"
    ),
    "it came after all": Fires(timed([(75_000, said("Hello.")), (75_010, DONE)]), says="then it came", severity="info"),
    "a short whole body, late": Fires(timed([(75_000, REPLY + "}")], body=ASKED, kind="application/json"), severity="info"),
    "by the time of the head alone": Fires(recorded(75_000.0), severity="info"),
    "too few tokens for the wait": Fires(
        timed([(75_000, REPLY + ', "usage": {"completion_tokens": 40}}')], body=ASKED, kind="application/json"), severity="info"
    ),
    "ollama": Fires({**unanswered(80_000.0), "request": {"method": "POST", "url": "http://llm.test/api/chat", "body": {**ASKED, "stream": True}}}),
    "gemini": Fires({**unanswered(80_000.0), "request": {"method": "POST", "url": "http://llm.test/v1beta/models/g:streamGenerateContent", "body": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}}}),
    "a tool that never returns": Fires(
        {**unanswered(600_000.0), "request": {"method": "POST", "url": "http://tools.test/mcp", "body": CALL}}, layer="tool"
    ),
}  # fmt: skip

SILENT = {
    "a notification that was never settled, which is another rule's": {
        **unanswered(120_000.0), "request": {"method": "POST", "url": "http://tools.test/mcp", "body": NOTICE}
    },
    **{
        f"slow but in time, {api}": paced(api, Talk(text="Hello there."), 55_000, 20)
        for api in ("openai.chat", "anthropic.messages", "openai.responses", "google.generate_content", "ollama.chat", "bedrock.converse", "cohere.chat", "mistral.chat")
    },
    "just below the limit": unanswered(59_999.0),
    "the client soon left": unanswered(2_000.0),
    "no time is known": {**unanswered(0.0), "timing": {}},
    "a long stream": timed([(400, HEAD), *[(1_000.0 * n, said("and ")) for n in range(1, 120)], (120_000.0, DONE)]),
    "the head came at once, the answer late: a stall": timed([(300, HEAD), (75_000, said("Hello.")), (75_010, DONE)]),
    "a stall is another thing": timed([(400, said("Mer")), (200_000, said("cury")), (200_010, DONE)]),
    "cut off in the middle, long after": timed([(400, said("Mer"))], duration=200_000.0, end="client-left"),
    "a long whole body": timed([(95_000, REPLY + ', "usage": {"completion_tokens": 4000}}')], body=ASKED, kind="application/json"),
    "a whole body after long thinking": timed(
        [(95_000, REPLY + ', "usage": {"completion_tokens": 2100, "completion_tokens_details": {"reasoning_tokens": 2000}}}')], body=ASKED, kind="application/json"
    ),
    "a stream after long thinking that is not shown": with_usage(
        timed([(80_000, HEAD), (80_000, said("Eight.")), (80_001, DONE)]),
        completion_tokens=2010,
        completion_tokens_details={"reasoning_tokens": 2000},
    ),
    "white space, and in time": timed([*[(9_000.0 * n, "\n") for n in range(1, 6)], (52_000, REPLY + "}")], body=ASKED, kind="application/json"),
    "an error at once": timed([(90, ERROR)], body=ASKED, kind="application/json", status=429),
    "an error, and the connection stays": timed([(90, ERROR)], body=ASKED, kind="application/json", status=503, duration=90_000.0),
    "by the time of the head alone": recorded(2_400.0),
    "a body that was not recorded": {**recorded(900.0, ""), "timing": {"first_byte_ms": 900, "duration_ms": 200_000}},
    "a body that was too large to be read": {**unanswered(300_000.0), "end": "unread"},
    "a tool that took its time": timed([(240_000, RESULT)], *TOOLS, kind="application/json"),
    "a stream that a server may speak on": {
        **unanswered(600_000.0),
        "request": {"method": "GET", "url": "http://tools.test/mcp", "headers": {"accept": "text/event-stream", "mcp-session-id": "s1"}, "body": None},
    },
}  # fmt: skip
