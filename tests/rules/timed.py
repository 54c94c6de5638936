"""Exchanges with times: what came when, said in milliseconds after the request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.build import Talk, as_record, chunk, exchange, sse
from wirelint.wire import Sniffer

PING = ": keep-alive\n\n"
CHAT = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Name the planets."}]}
MESSAGE_START = {"type": "message_start", "message": {"id": "msg_1", "model": "acme-1", "content": []}}


def said(text: str, finish: str | None = None) -> str:
    """An event with a delta of text."""
    return sse(chunk({"content": text}, finish), done=False)


def named(*documents: Mapping[str, Any]) -> list[str]:
    """Events with names, one text each."""
    return [sse(document, named=True) for document in documents]


DONE = sse(chunk({}, "stop"))
HEAD = sse(chunk({"role": "assistant", "content": ""}), done=False)


def timed(
    pieces: Sequence[tuple[float, str]],
    path: str = "/v1/chat/completions",
    body: Mapping[str, Any] = CHAT,
    *,
    kind: str = "text/event-stream",
    **more: Any,
) -> dict[str, Any]:
    """An exchange whose reply came in these pieces. `duration` is when it ended, `end` how."""
    made = exchange(path, body, "".join(text for _, text in pieces), content_type=kind, status=more.pop("status", 200))
    made["response"]["chunks"] = [[at, len(text.encode())] for at, text in pieces]
    duration = more.pop("duration", None)
    if duration is not None:
        made["timing"] = {"duration_ms": duration}
    return {**made, **more}


def unanswered(duration: float, *, body: Mapping[str, Any] = CHAT, **more: Any) -> dict[str, Any]:
    """A request that got not even the head of a reply."""
    made = exchange("/v1/chat/completions", body, "")
    made["response"] = {"status": None}
    return {**made, "timing": {"duration_ms": duration}, "end": "client-left", **more}


def paced(
    api: str, talk: Talk, first: float, step: float = 20, *, gap: float = 0, stream: bool = True
) -> dict[str, Any]:
    """A talk in an API: its events from `first` on, one every `step` milliseconds, with a gap in the middle."""
    made = talk.record(api, stream)
    record = as_record(made)
    sniffer = Sniffer({name.lower(): value for name, value in record.response_headers})
    frames = [*sniffer.feed(record.response_body or b""), *sniffer.close()]
    middle = len(frames) // 2
    times = [first + step * number + (gap if number >= middle else 0) for number in range(len(frames))]
    made["response"]["chunks"] = [[at, len(frame.raw)] for at, frame in zip(times, frames, strict=True)]
    made["timing"] = {"duration_ms": times[-1] + 1}
    return made


def with_usage(record: dict[str, Any], **usage: Any) -> dict[str, Any]:
    """The same, with a last event that has these counts, before `[DONE]`."""
    body = record["response"]["body"]
    counts = f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n"
    cut = body.rindex("data: [DONE]")
    record["response"]["body"] = body[:cut] + counts + body[cut:]
    record["response"]["chunks"][-1][1] += len(counts)
    return record
