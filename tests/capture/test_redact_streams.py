"""Secrets that a stream spreads over its events: none of them survives in pieces, and the framing stays."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

import pytest

from tests.apis.shapes_bedrock import CLAUDE_EVENTS, HELLO, carried, stream
from tests.apis.talk_bedrock_converse import delta, said, stop
from tests.apis.talk_google_generate_content import array, reply
from tests.build import as_record, exchange, some
from tests.selection import sampled
from wirelint.capture import streams
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import begin, respond
from wirelint.capture.streams import StreamStrings
from wirelint.wire import EventStream
from wirelint.wire.aws_eventstream import content_of, split

R = Redactor(b"k")
KEY = "sk-proj-Zq81LmN0pXv72RtYc5Wb"
M = R.mark(KEY)
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bqk\n-----END PRIVATE KEY-----"

Build = Callable[[str], dict[str, object]]
"""One event with a piece of text in it."""


def _chat(field: str) -> Build:
    return lambda text: {"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0, "delta": {field: text}}]}


def _chat_call(text: str) -> dict[str, object]:
    call = {"index": 1, "function": {"arguments": text}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def _anthropic(kind: str, field: str) -> Build:
    return lambda text: {"type": "content_block_delta", "index": 2, "delta": {"type": kind, field: text}}


def _responses(text: str) -> dict[str, object]:
    return {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "delta": text,
    }


CHANNELS: dict[str, Build] = {
    "content": _chat("content"),
    "reasoning_content": _chat("reasoning_content"),
    "arguments": _chat_call,
    "text_delta": _anthropic("text_delta", "text"),
    "thinking_delta": _anthropic("thinking_delta", "thinking"),
    "partial_json": _anthropic("input_json_delta", "partial_json"),
    "responses": _responses,
    "completions": lambda text: {"choices": [{"index": 0, "text": text}]},
}


def _stream(build: Build, pieces: list[str], ascii_only: bool = True, line: str = "\n") -> bytes:
    data = [f"data: {json.dumps(build(piece), ensure_ascii=ascii_only)}" for piece in pieces]
    return (f"{line}{line}".join([f": ping{line}event: x", *data, "data: [DONE]"]) + line + line).encode()


def _texts(body: bytes) -> list[str]:
    """The longest string of each event, which is the text: marks make it the longest, or it is empty."""
    parser = EventStream()
    frames = parser.feed(body) + parser.close()
    return [frame.data for frame in frames if frame.data is not None]


def _joined(build: Build, body: bytes) -> str:
    empty = json.loads(json.dumps(build("\x01")))
    return "".join(_find(empty, json.loads(data)) for data in _texts(body) if data != "[DONE]")


def _find(pattern: object, value: object) -> str:
    if pattern == "\x01":
        assert isinstance(value, str)
        return value
    if isinstance(pattern, dict):
        assert isinstance(value, dict)
        return "".join(_find(item, value[name]) for name, item in pattern.items())
    if isinstance(pattern, list):
        assert isinstance(value, list)
        return "".join(_find(item, value[number]) for number, item in enumerate(pattern))
    return ""


def _cuts(text: str) -> Iterator[list[str]]:
    for place in sampled(range(1, len(text)), 5):
        yield [text[:place], text[place:]]
    yield list(text)


SPLIT = {
    "key": (f"say {KEY} done", f"say {M} done"),
    "quoted": (f'"{KEY}"\\\n é', f'"{M}"\\\n é'),
    "pem": (f"a {PEM} b", f"a {R.mark(PEM)} b"),
    "bearer": ("use Bearer abc123def456 now", f"use Bearer {R.mark('abc123def456')} now"),
    "arguments": (
        '{"q": 1, "password": "hunter2", "z": "\\n"}',
        f'{{"q": 1, "password": "{R.mark("hunter2")}", "z": "\\n"}}',
    ),
}


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(("text", "expected"), SPLIT.values(), ids=SPLIT)
def test_every_cut(channel: str, text: str, expected: str) -> None:
    build = CHANNELS[channel]
    for pieces in _cuts(text):
        for body in (_stream(build, pieces), _stream(build, pieces, ascii_only=False, line="\r\n")):
            redacted = some(R.body(body))
            assert _joined(build, redacted) == expected, pieces
            assert len(_texts(redacted)) == len(pieces) + 1
            assert R.body(redacted) == redacted


PATHS = {
    "text_delta": "/v1/messages",
    "thinking_delta": "/v1/messages",
    "partial_json": "/v1/messages",
    "responses": "/v1/responses",
    "completions": "/v1/completions",
}


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("event", [True, False], ids=["event by event", "in pieces"])
def test_strings_of_a_session(channel: str, event: bool) -> None:
    """A body that a session has read is not parsed again, and is redacted to the same bytes as without a session."""
    asked: dict[str, object] = {"model": "m", "max_tokens": 1, "stream": True}
    asked |= {"input": "x"} if channel == "responses" else {"prompt": "x"} if channel == "completions" else {}
    asked |= {} if "input" in asked or "prompt" in asked else {"messages": [{"role": "user", "content": "Hi"}]}
    path = PATHS.get(channel, "/v1/chat/completions")
    for words in ("a plain text of many pieces, no key in it", f"say {KEY} done", f'{{"password": "{KEY[8:]}"}}'):
        body = _stream(CHANNELS[channel], [words[at : at + 4] for at in range(0, len(words), 4)], ascii_only=False)
        headers = (("content-type", "text/event-stream"),)
        record = Record("1", "POST", f"https://h{path}", (), json.dumps(asked).encode(), 200, headers, body)
        session, strings = begin(record), StreamStrings()
        assert session is not None
        session.listener = strings
        respond(session, record)
        pieces = re.split(rb"(?<=\n\n)", body) if event else [body[at : at + 31] for at in range(0, len(body), 31)]
        for piece in pieces:
            session.feed(piece)
        session.finish()
        assert strings.covers(body)
        assert R.record(record, strings).response_body == R.body(body)
        assert streams.is_clean(body, strings, ()) == (KEY[8:] not in words)
        assert R.record(record, StreamStrings()).response_body == R.body(body), "incomplete strings prove nothing"


def test_calls_side_by_side() -> None:
    """Pieces of two parallel calls, interleaved, each with a key of its own."""
    other = "sk-ant-api03-aB3dE5fG7hJ9kLmN1pQr"
    events = []
    for first, second in zip(_halves(KEY), _halves(other), strict=True):
        for index, text in enumerate((first, second)):
            events.append(
                {
                    "choices": [
                        {"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": text}}]}}
                    ]
                }
            )
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    redacted = (R.body(body) or b"").decode()
    assert redacted.count(M) == redacted.count(R.mark(other)) == 1
    assert not any(half in redacted for half in (*_halves(KEY), *_halves(other)))


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def test_a_clean_stream_is_the_same_object() -> None:
    body = _stream(_chat("content"), list("the task-oriented disk-based answer: max_tokens 5"))
    assert R.body(body) is body


def test_only_the_secret_changes() -> None:
    first = (
        b'id: 1\r\nevent: m\r\ndata:{ "choices" :[{"delta":{"content":"\\u0073k-proj-Zq81LmN0"}}] }\r\n\r\n:\r\n\r\n'
    )
    second = b'data: {"choices":[{"delta":{"content":"pXv72RtYc5Wb\\ud83d\\ude00"}}]}\r\n\r\ndata: \xff\r\n\r\n'
    body = first + second
    expected = body.replace(b"\\u0073k-proj-Zq81LmN0", M.encode()).replace(b"pXv72RtYc5Wb", b"")
    assert R.body(body) == expected


OTHERS = {
    "one event": b'data: {"error":{"message":"bad key %s"}}\n\n',
    "lost blank lines": b'data: {"a":"x %s"}\ndata: {"b":"y"}\n\n',
    "several data lines": b'data: {"a":\ndata: "%s"}\n\n',
    "comment": b": %s\n\ndata: {}\n\n",
    "plain data": b"data: %s\n\n",
    "lines": b'{"message":{"content":"a %s"}}\n{"message":{"content":""},"done":true}\n',
    "no blank line at the end": b'data: {"a":"%s"}',
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_other_framings(body: bytes) -> None:
    assert R.body(body.replace(b"%s", KEY.encode())) == body.replace(b"%s", M.encode())


SPREAD = {
    "document over two events": (b'data: {"choices":[{"delta":{"content":"%s', b'data: %s"}}]}'),
    "lines": (b'{"message":{"content":"%s"}}', b'{"message":{"content":"%s"}}'),
}


@pytest.mark.parametrize(("first", "second"), SPREAD.values(), ids=SPREAD)
def test_other_spreads(first: bytes, second: bytes) -> None:
    gap = b"\n\n" if first.startswith(b"data") else b"\n"
    one, two = (half.encode() for half in _halves(KEY))
    body = first.replace(b"%s", one) + gap + second.replace(b"%s", two) + gap
    assert R.body(body) == first.replace(b"%s", M.encode()) + gap + second.replace(b"%s", b"") + gap


def test_chunks_go_on_adding_up() -> None:
    body = _stream(_chat("content"), ["a sk-pr", "oj-Zq81LmN0pXv72", "RtYc5Wb b"])
    for size in (1, 7, 50, len(body)):
        sizes = [len(body[n : n + size]) for n in range(0, len(body), size)]
        chunks = tuple((float(n), size) for n, size in enumerate(sizes))
        record = R.record(Record("1", "POST", "u", response_body=body, chunks=chunks))
        assert sum(size for _, size in record.chunks) == len(record.response_body or b"") != len(body)
        assert all(size >= 0 for _, size in record.chunks)
        assert len(record.chunks) == len(chunks)


def test_a_block_that_begins_with_text() -> None:
    """The start of a block carries the first characters, the deltas the others."""
    one, two = _halves(KEY)
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": one}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": two}}
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in (start, delta))
    assert R.body(body.encode()) == body.replace(one, M).replace(two, "").encode()


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_known_secret_at_every_cut(channel: str) -> None:
    """A password without any shape, known from the request, that the reply repeats."""
    secret, build = 'tr0ub4dor "&" 3/\\', CHANNELS[channel]
    for pieces in _cuts(f"it is {secret}."):
        redactor = Redactor(b"k")
        record = Record("1", "POST", "u", (("x-api-key", secret),), None, 200, (), _stream(build, pieces))
        redacted = redactor.record(record).response_body or b""
        assert _joined(build, redacted) == f"it is {redactor.mark(secret)}.", pieces


# --- other framings ---------------------------------------------------------------------------------------------------

SPOKEN = "sk-proj-9fK2mQ7xR4tB1vN8cL5wZ3yH6jD0pS"


def spoken(body: bytes) -> str:
    messages, rest = split(body)
    assert rest == b""
    return "".join(content_of(raw).decode() for raw in messages)


def claude(words: str) -> bytes:
    told = json.loads(json.dumps(CLAUDE_EVENTS).replace('"Hel"', json.dumps(words)))
    return carried(*told)


MESSAGES = {
    "in a message": stream(delta(0, said(f"The key is {SPOKEN}, keep it.")), stop(0)),
    "over two messages": stream(
        delta(0, said(f"The key is {SPOKEN[:15]}")), delta(0, said(f"{SPOKEN[15:]}, keep it.")), stop(0)
    ),
    "carried in base64": claude(f"The key is {SPOKEN}, keep it."),
}


@pytest.mark.parametrize("body", MESSAGES.values(), ids=MESSAGES)
def test_messages_of_aws(body: bytes) -> None:
    headers = (("authorization", f"Bearer {SPOKEN}"),)
    record = Record(
        id="1", method="POST", url="http://llm.test/model/acme/converse-stream", request_headers=headers,
        request_body=b"{}", status=200, response_headers=(), response_body=body, chunks=((1.0, len(body)),),
    )  # fmt: skip
    clean = some(Redactor().record(record).response_body)
    assert clean != body
    text = spoken(clean)
    assert SPOKEN not in text
    assert SPOKEN[:15] not in text
    assert SPOKEN[15:] not in text
    assert "[redacted:" in text
    assert base64.b64encode(SPOKEN.encode())[:-4] not in clean
    assert len(split(clean)[0]) == len(split(body)[0])
    assert Redactor().record(record).chunks == ((1.0, len(clean)),)


@pytest.mark.parametrize(
    "body", [stream(*HELLO), carried(*CLAUDE_EVENTS), stream(*HELLO)[:-5]], ids=["plain", "carried", "cut"]
)
def test_clean_messages_are_the_same_object(body: bytes) -> None:
    assert Redactor().body(body) is body


SECRET = "sk-ant-api03-Zx81mQv7LtPw29KdRs64HbYc0NfJe35GuAoIq7"


@pytest.mark.parametrize("step", [5, 17, 200])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut off"])
def test_elements_of_an_array(step: int, cut: bool) -> None:
    said = f"The key is {SECRET}, keep it. 鍵 " + "x" * 40
    pieces = [said[start : start + step] for start in range(0, len(said), step)]
    body = array(*(reply([{"text": piece}]) for piece in pieces))
    body = body[:-30] if cut else body
    url = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
    record = as_record(exchange(url, {"contents": [{"parts": [{"text": "Which?"}]}]}, body))
    kept = (Redactor().record(record).response_body or b"").decode()
    texts = re.findall(r'"text": "([^"]*)"', kept)
    joined = "".join(texts)
    assert SECRET not in joined
    assert "[redacted:" in joined
    assert joined.startswith("The key is ")
    assert cut or [len(json.loads(kept)), "".join(texts)[-3:]] == [len(pieces), "xxx"]


def test_a_clean_array() -> None:
    body = array(*(reply([{"text": word}]) for word in ("All", " is", " well")))
    record = as_record(exchange("/v1beta/models/m:streamGenerateContent", {}, body))
    assert Redactor().record(record).response_body == body.encode()


# --- the work grows with the bytes ------------------------------------------------------------------------------------


def _events(documents: Iterable[object]) -> bytes:
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents).encode()


def _deltas(count: int) -> Iterator[object]:
    text = " ".join(f"{KEY}{number:04}" for number in range(count))
    return ({"choices": [{"index": 0, "delta": {"content": text[at : at + 9]}}]} for at in range(0, len(text), 9))


def _indexes(count: int) -> Iterator[object]:
    yield from (_chat("content")(KEY), _chat("content")(" "))
    for number in range(3 * count):
        yield {"choices": [{"index": number // 3, "delta": {"content": f"{number}"}}]}


def _members(count: int) -> bytes:
    lines = "".join(f'data: "{number}": "{KEY}",\n' for number in range(count))
    return f'data: {{\n{lines}data: "z": 1}}\n\n'.encode()


def _strings(count: int) -> Iterator[object]:
    return ({"a": [f"{half}{number}" for number in range(count)]} for half in _halves(KEY))


MANY: dict[str, Callable[[int], bytes]] = {
    "secrets in one text": lambda count: _events(_deltas(count)),
    "texts": lambda count: _events(_indexes(count)),
    "lines of one event": _members,
    "strings of one event": lambda count: _events(_strings(count)),
}


@pytest.mark.parametrize("name", MANY)
def test_the_work_grows_with_the_bytes(name: str) -> None:
    small, large = (_steps(MANY[name](count)) for count in (100, 400))
    assert large < 5 * small


def _steps(body: bytes) -> int:
    """Lines of `streams` that are run while a body is redacted."""
    steps = 0

    def line(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return line

    def call(frame: FrameType, event: str, _: object) -> Any:
        return line if frame.f_code.co_filename == streams.__file__ else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        redacted = R.body(body)
    finally:
        sys.settrace(before)
    assert redacted != body
    return steps
