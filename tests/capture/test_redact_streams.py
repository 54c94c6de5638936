"""Secrets that a stream spreads over its events: none of them survives in pieces, and the framing stays."""

from __future__ import annotations

import base64
import itertools
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
from tests.build import as_record, exchange, in_pieces, some, sse
from tests.capture.test_redact import split_secrets
from tests.selection import sampled
from tests.tables import rows, tables
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
TABLES = tables(__file__)
CHANNELS: dict[str, Any] = TABLES["channels"]
"""Path of an API, and an event with a piece of text (`%s`) in it."""


def _event(channel: str, text: str) -> Any:
    return json.loads(json.dumps(CHANNELS[channel][1]).replace("%s", json.dumps(text)[1:-1]))


def _stream(channel: str, pieces: Iterable[str], ascii_only: bool = True, line: str = "\n") -> bytes:
    data = [f"data: {json.dumps(_event(channel, piece), ensure_ascii=ascii_only)}" for piece in pieces]
    return (f"{line}{line}".join([f": ping{line}event: x", *data, "data: [DONE]"]) + line + line).encode()


def _texts(body: bytes) -> list[str]:
    """The longest string of each event, which is the text: marks make it the longest, or it is empty."""
    parser = EventStream()
    frames = parser.feed(body) + parser.close()
    return [frame.data for frame in frames if frame.data is not None]


def _joined(channel: str, body: bytes) -> str:
    return "".join(_find(CHANNELS[channel][1], json.loads(data)) for data in _texts(body) if data != "[DONE]")


def _find(pattern: Any, value: Any) -> str:
    if pattern == "%s":
        return str(value)
    keys = pattern if isinstance(pattern, dict) else range(len(pattern)) if isinstance(pattern, list) else ()
    return "".join(_find(pattern[key], value[key]) for key in keys)


def _cuts(text: str) -> Iterator[list[str]]:
    for place in sampled(range(1, len(text)), 5):
        yield [text[:place], text[place:]]
    yield list(text)


@pytest.mark.parametrize("channel", CHANNELS)
@rows(TABLES["split"])
def test_every_cut(marked: str, channel: str) -> None:
    text, expected = split_secrets(marked, R)
    for pieces in _cuts(text):
        for body in (_stream(channel, pieces), _stream(channel, pieces, ascii_only=False, line="\r\n")):
            redacted = some(R.body(body))
            assert _joined(channel, redacted) == expected, pieces
            assert len(_texts(redacted)) == len(pieces) + 1
            assert R.body(redacted) == redacted


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("event", [True, False], ids=["event by event", "in pieces"])
def test_strings_of_a_session(channel: str, event: bool) -> None:
    """A body that a session has read is not parsed again, and is redacted to the same bytes as without a session."""
    asked: dict[str, object] = {"model": "m", "max_tokens": 1, "stream": True}
    asked |= {"input": "x"} if channel == "responses" else {"prompt": "x"} if channel == "completions" else {}
    asked |= {} if "input" in asked or "prompt" in asked else {"messages": [{"role": "user", "content": "Hi"}]}
    path = CHANNELS[channel][0]
    for words in ("a plain text of many pieces, no key in it", f"say {KEY} done", f'{{"password": "{KEY[8:]}"}}'):
        body = _stream(channel, in_pieces(words, 4), ascii_only=False)
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
    pieces = itertools.product(zip(_halves(KEY), _halves(other), strict=True), (0, 1))
    calls = [{"index": index, "function": {"arguments": halves[index]}} for halves, index in pieces]
    body = _events({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls)
    redacted = (R.body(body) or b"").decode()
    assert redacted.count(M) == redacted.count(R.mark(other)) == 1
    assert not any(half in redacted for half in (*_halves(KEY), *_halves(other)))


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def test_only_the_secret_changes() -> None:
    first = (
        b'id: 1\r\nevent: m\r\ndata:{ "choices" :[{"delta":{"content":"\\u0073k-proj-Zq81LmN0"}}] }\r\n\r\n:\r\n\r\n'
    )
    second = b'data: {"choices":[{"delta":{"content":"pXv72RtYc5Wb\\ud83d\\ude00"}}]}\r\n\r\ndata: \xff\r\n\r\n'
    body = first + second
    expected = body.replace(b"\\u0073k-proj-Zq81LmN0", M.encode()).replace(b"pXv72RtYc5Wb", b"")
    assert R.body(body) == expected


@rows(TABLES["others"])
def test_other_framings(body: str) -> None:
    assert R.body(body.replace("%s", KEY).encode()) == body.replace("%s", M).encode()


@rows(TABLES["spread"])
def test_other_spreads(first: str, second: str) -> None:
    body = first + ("\n\n" if first.startswith("data") else "\n")
    body += body.replace(first, second)
    spread, marked = (body.replace("%s", one, 1).replace("%s", two) for one, two in (_halves(KEY), (M, "")))
    assert R.body(spread.encode()) == marked.encode()


def test_chunks_go_on_adding_up() -> None:
    body = _stream("content", ["a sk-pr", "oj-Zq81LmN0pXv72", "RtYc5Wb b"])
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
    body = sse(start, delta, named=True)
    assert R.body(body.encode()) == body.replace(one, M).replace(two, "").encode()


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_known_secret_at_every_cut(channel: str) -> None:
    """A password without any shape, known from the request, that the reply repeats."""
    secret = 'tr0ub4dor "&" 3/\\'
    for pieces in _cuts(f"it is {secret}."):
        redactor = Redactor(b"k")
        record = Record("1", "POST", "u", (("x-api-key", secret),), None, 200, (), _stream(channel, pieces))
        redacted = redactor.record(record).response_body or b""
        assert _joined(channel, redacted) == f"it is {redactor.mark(secret)}.", pieces


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


CLEAN = {
    "events": _stream("content", list("the task-oriented disk-based answer: max_tokens 5")),
    "messages": stream(*HELLO),
    "carried": carried(*CLAUDE_EVENTS),
    "cut": stream(*HELLO)[:-5],
    "an array": array(*(reply([{"text": word}]) for word in ("All", " is", " well"))).encode(),
}


@pytest.mark.parametrize("body", CLEAN.values(), ids=CLEAN)
def test_a_clean_stream_is_the_same_object(body: bytes) -> None:
    assert Redactor().body(body) is body


SECRET = "sk-ant-api03-Zx81mQv7LtPw29KdRs64HbYc0NfJe35GuAoIq7"


@pytest.mark.parametrize("step", [5, 17, 200])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut off"])
def test_elements_of_an_array(step: int, cut: bool) -> None:
    said = f"The key is {SECRET}, keep it. 鍵 " + "x" * 40
    pieces = list(in_pieces(said, step))
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


# --- the work grows with the bytes ------------------------------------------------------------------------------------


def _events(documents: Iterable[object]) -> bytes:
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents).encode()


def _deltas(count: int) -> Iterator[object]:
    text = " ".join(f"{KEY}{number:04}" for number in range(count))
    return ({"choices": [{"index": 0, "delta": {"content": text[at : at + 9]}}]} for at in range(0, len(text), 9))


def _indexes(count: int) -> Iterator[object]:
    yield from (_event("content", KEY), _event("content", " "))
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
