"""Cassettes, LHAR, session logs and results of a verifier: what is read of them, and what is not checked."""

from __future__ import annotations

import base64
import gzip
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.build import REGISTRY, checked
from tests.live.harness import Peer, Upstream
from tests.tables import rows, tables
from wirelint.capture.offline import fix
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.fix import FixPolicy

RULES = REGISTRY.select([])
CHAT = "https://llm.example/v1/chat/completions"
ASK = {"model": "acme-1", "messages": [{"role": "user", "content": "Höre zu: 😀"}]}
TABLES = tables(__file__)


def _answer() -> dict[str, Any]:
    said = {"role": "assistant", "content": "Gern. 😀"}
    choices = [{"index": 0, "message": said, "finish_reason": "stop"}]
    return {"id": "c-1", "object": "chat.completion", "model": "acme-1", "choices": choices}


def _write(folder: Path, *lines: Any, name: str = "log") -> Path:
    path = folder / name
    path.write_bytes("\n".join(item if isinstance(item, str) else json.dumps(item) for item in lines).encode() + b"\n")
    return path


def _split(path: Path) -> tuple[list[Record], list[str]]:
    items = list(read([path]))
    problems = [str(item).replace(f"{path}: ", "") for item in items if isinstance(item, Problem)]
    return [item for item in items if isinstance(item, Record)], problems


def _found(path: Path) -> list[list[str]]:
    """The names of what is found, exchange by exchange, what is not checked left out."""
    return [[one.name for one in item.findings if one.severity != "info"] for item in checked(read([path]), RULES)]


def _unjudged(path: Path) -> str:
    found = (one for item in checked(read([path]), RULES) for one in item.findings)
    return " | ".join(one.message for one in found if one.name == "not-judged")


# --- cassettes --------------------------------------------------------------------------------------------------------


def _interaction(request: Any = None, response: Any = None) -> dict[str, Any]:
    headers = {"Content-Type": ["application/json"]}
    return {
        "request": {"method": "POST", "uri": CHAT, "headers": headers, **(request or {})},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, **(response or {})},
    }


PLAIN = json.dumps(_answer(), ensure_ascii=False).encode()
ZIPPED = gzip.compress(PLAIN)
GZIP = {"content-encoding": ["gzip"]}
BODIES: dict[str, tuple[dict[str, Any], bytes | None]] = {
    "text": ({"body": {"string": PLAIN.decode()}}, PLAIN),
    "a plain string": ({"body": PLAIN.decode()}, PLAIN),
    "nothing": ({"body": {"string": ""}}, b""),
    "left out": ({}, None),
    "a value": ({"parsed_body": _answer(), "body": {"string": ""}}, orjson.dumps(_answer())),
    "base64 of Ruby's": ({"body": {"encoding": "ASCII-8BIT", "base64_string": base64.b64encode(PLAIN).decode()}}, PLAIN),
    "coded": ({"headers": GZIP, "body": {"base64_string": base64.b64encode(ZIPPED).decode()}}, PLAIN),
    "no longer coded, though it says so": ({"headers": GZIP, "body": {"string": PLAIN.decode()}}, PLAIN),
    "flat, of httpx": ({"status": None, "status_code": 200, "content": PLAIN.decode()}, PLAIN),
}  # fmt: skip


@pytest.mark.parametrize(("response", "body"), BODIES.values(), ids=BODIES)
def test_bodies_of_a_cassette(tmp_path: Path, response: dict[str, Any], body: bytes | None) -> None:
    cassette = {"version": 1, "interactions": [_interaction({"body": json.dumps(ASK)}, response)]}
    for path in (_write(tmp_path, cassette), _write(tmp_path, json.dumps(cassette, indent=4), name="b.json")):
        (record,), problems = _split(path)
        assert not problems
        assert (record.method, record.url, record.status, record.place) == ("POST", CHAT, 200, "interaction 1")
        assert record.response_body == body
        assert json.loads(record.request_body or b"") == ASK
        assert record.form == "vcr"


YAML = Path(__file__).with_name("cassette.yaml").read_text(encoding="utf-8")


def test_a_cassette_in_yaml(tmp_path: Path) -> None:
    """One interaction that is broken does not take the others with it; nothing of Python is run to read them."""
    path = _write(tmp_path, YAML)
    records, problems = _split(path)
    assert [record.place for record in records] == ["interaction 1", "interaction 2", "interaction 4"]
    assert records[0].request_body == b'{"model": "acme-1", "messages": [{"role": "user", "content": "- a\n- b: c"}]}'
    assert b'"- request:"' in (records[0].response_body or b"")
    assert dict(records[0].response_headers) == {"x-price": "1e3", "x-id": "0010"}
    assert (records[1].method, records[1].request_body, records[1].response_body) == ("POST", b'{"model": "m"}', b"oh")
    assert len(problems) == 1
    assert problems[0].startswith("interaction 3: broken YAML: ")


@rows(TABLES["unreadable"])
def test_cassettes_that_cannot_be_read(text: str, says: str, tmp_path: Path) -> None:
    records, problems = _split(_write(tmp_path, text))
    assert not records
    assert says in problems[0]


def _completion(peer: Peer) -> None:
    asked = json.loads(peer.body)
    body = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"\xc3\xa9"},"finish_reason":null}]}\n\n'
    body = body if asked.get("stream") else PLAIN
    fields: dict[str, Any] = {"content_type": "text/event-stream" if asked.get("stream") else "application/json"}
    if "gzip" in peer.headers.get("accept-encoding", ""):
        body = gzip.compress(body)
        fields["content_encoding"] = "gzip"
    peer.head(**fields, content_length=str(len(body)))
    peer.send(body)


@pytest.fixture
def endpoint() -> Iterator[str]:
    upstream = Upstream(_completion)
    yield f"{upstream.url}/v1/chat/completions"
    upstream.close()


@pytest.mark.parametrize(
    "options",
    [{}, {"decode_compressed_response": True}, {"decode_compressed_response": True, "serializer": "json"}],
    ids=["yaml", "yaml, decoded", "json, decoded"],
)
def test_what_vcrpy_records(tmp_path: Path, endpoint: str, options: dict[str, Any]) -> None:
    vcr = pytest.importorskip("vcr")
    path = tmp_path / "cassette"
    with vcr.VCR(**options).use_cassette(str(path), record_mode="all"):
        for stream in (True, False):
            for coding in ("gzip", "identity"):
                body = json.dumps({**ASK, "stream": stream}).encode()
                headers = {"content-type": "application/json", "accept-encoding": coding}
                urllib.request.urlopen(urllib.request.Request(endpoint, body, headers), timeout=10).read()
    records, problems = _split(path)
    assert not problems
    assert [record.url for record in records] == [endpoint] * 4
    assert [record.response_body == PLAIN for record in records] == [False, False, True, True]
    assert _found(path) == [["truncated-stream"], ["truncated-stream"], [], []]
    assert _unjudged(path) == "not checked here: when the pieces of a reply came"


# --- LHAR -------------------------------------------------------------------------------------------------------------


def _entry(request: Any, response: Any, **http_: Any) -> dict[str, Any]:
    return {
        "type": "entry",
        "id": "e-1",
        "trace_id": "t",
        "timestamp": "2026-01-31T09:45:00.000Z",
        "gen_ai": {},
        "http": {"method": "POST", "url": CHAT, "status_code": 200, "api_format": "chat-completions", **http_},
        "timings": {"send_ms": 1, "wait_ms": 20, "receive_ms": 5, "total_ms": 26, "tokens_per_second": None},
        "raw": {"request_body": request, "response_body": response},
    }


SESSION = {"type": "session", "trace_id": "t", "started_at": "2026-01-31T09:45:00Z", "tool": "x", "model": "acme-1"}
CUT = 'data: {"choices":[{"index":0,"delta":{"content":"The steps are"},"finish_reason":null}]}\n\n'


@pytest.mark.parametrize("answer", [CUT, {"streaming": True, "chunks": CUT}], ids=["text", "in a wrapper"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_lhar(tmp_path: Path, answer: Any, wrapped: bool) -> None:
    entries = [_entry(ASK, answer), _entry(ASK, _answer(), url=None), _entry(None, None)]
    lines = [{"lhar": {"version": "0.1.0", "entries": entries}}] if wrapped else [SESSION, *entries]
    path = _write(tmp_path, *lines)
    records, problems = _split(path)
    assert [record.url for record in records] == [CHAT, "/v1/chat/completions"]
    assert (records[0].timing.first_byte, records[0].timing.duration) == (21, 26)
    assert _found(path) == [["truncated-stream"], []]
    assert problems == [
        "1 of 3 entries without bodies (nothing can be judged without them; export with privacy `full`)"
    ]


# --- K2-Vendor-Verifier -----------------------------------------------------------------------------------------------


@rows(TABLES["results"])
def test_results_of_a_verifier(line: dict[str, Any], names: list[str], tmp_path: Path) -> None:
    path = _write(tmp_path, line)
    (record,), problems = _split(path)
    assert not problems
    assert record.timing.duration == 500
    assert record.status == (200 if line["status"] == "success" else 429)
    assert _found(path) == [names]
    assert _unjudged(path).startswith("not checked here: ")


# --- session logs -----------------------------------------------------------------------------------------------------


class _Log:
    """Writes a log line by line, each following the last unless told otherwise."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = [{"type": "summary", "summary": "s", "leafUuid": "elsewhere"}]
        self.last: str | None = None

    def line(self, kind: str, follows: Any = ..., **fields: Any) -> str:
        uuid = f"u{len(self.lines)}"
        parent = self.last if follows is ... else follows
        base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s-1", "isSidechain": False}
        self.lines.append({**base, "timestamp": "2026-01-31T09:45:00.000Z", **fields})
        self.last = uuid
        return uuid

    def user(self, content: Any, follows: Any = ..., **fields: Any) -> str:
        return self.line("user", follows, message={"role": "user", "content": content}, **fields)

    def result(self, id_: str, text: str = "done", follows: Any = ...) -> str:
        return self.user([{"type": "tool_result", "tool_use_id": id_, "content": text}], follows)

    def model(self, id_: str, block: Any, stop: str | None = None, follows: Any = ..., **fields: Any) -> str:
        content = [{"type": "text", "text": block}] if isinstance(block, str) else [block]
        message = {"id": id_, "type": "message", "role": "assistant", "model": "claude-x", "content": content}
        return self.line("assistant", follows, message={**message, "stop_reason": stop}, **fields)


def _use(id_: str, name: str = "Bash", **input_: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": input_}


def _told(record: Record) -> tuple[list[str], list[str]]:
    """The request and the reply of a record, a letter per message, its blocks told by their kinds."""
    asked, answer = json.loads(record.request_body or b""), json.loads(record.response_body or b"")
    history = [f"{one['role'][0]}:{'+'.join(_kind(block) for block in one['content'])}" for one in asked["messages"]]
    return history, [_kind(block) for block in answer["content"]]


def _kind(block: dict[str, Any]) -> str:
    return block.get("text") or block.get("id") or f"={block.get('tool_use_id')}"


def test_a_session(tmp_path: Path) -> None:
    """One message of the model over several lines, results of its first calls between them; then a branch, a sub-agent,
    a compaction, and what the client wrote itself."""
    log = _Log()
    log.user("list and read")
    log.model("m1", "Let me look.")
    first = log.model("m1", _use("t1"))
    log.model("m1", _use("t2", "Read"), "tool_use")
    log.result("t1", follows=first)
    log.result("t2")
    log.line("system", subtype="turn_duration")
    second = log.model("m2", "There are two.", "end_turn")
    log.user("thanks")
    log.model("m3", "You are welcome.", "end_turn")
    log.user("no, another question", follows=second)
    log.user("a note of the client", isMeta=True)
    log.model("e1", "API Error: 529", model_is="synthetic", isApiErrorMessage=True)
    log.model("m4", "Sure.")
    log.user("[Request interrupted by user]")
    log.user("the sub-agent's task", follows=None, isSidechain=True, agentId="a")
    log.model("s1", "Done.", "end_turn", isSidechain=True, agentId="a")
    log.line("system", None, subtype="compact_boundary")
    log.user("what was said so far", isCompactSummary=True)
    log.model("m5", "Going on.", "end_turn")
    path = _write(tmp_path, *log.lines, *log.lines[3:5])  # lines of a session that was resumed are there twice
    records, problems = _split(path)
    assert not problems
    begun = ["u:list and read", "a:Let me look.+t1+t2", "u:=t1+=t2"]
    assert {record.id: _told(record) for record in records} == {
        "m1": (begun[:1], ["Let me look.", "t1", "t2"]),
        "m2": (begun, ["There are two."]),
        "m3": ([*begun, "a:There are two.", "u:thanks"], ["You are welcome."]),
        "m4": ([*begun, "a:There are two.", "u:no, another question+a note of the client"], ["Sure."]),
        "s1": (["u:the sub-agent's task"], ["Done."]),
        "m5": (["u:what was said so far"], ["Going on."]),
    }
    assert {record.id: record.end for record in records if record.end != "complete"} == {"m4": "client-left"}
    assert {record.id for record in records if "finish" in record.missing} == {"m4"}
    assert [record.place for record in records if record.id == "m2"] == ["line 9"]
    assert _found(path) == [[]] * 6
    assert "requests as they were sent, which tools were declared" in _unjudged(path)


def test_a_fault_in_a_session(tmp_path: Path) -> None:
    log = _Log()
    log.user("run it")
    log.model("m1", _use("t1", command="ls"), "tool_use")
    log.result("t1", "a.py")
    log.model("m2", 'Now this.\n\n<invoke name="Bash">\n<parameter name="command">python a.py</parameter>\n</invoke>')
    path = _write(tmp_path, *log.lines, '{"type": "assistant", "uuid": "cut')
    assert _found(path) == [[], ["xml-leak"]]
    (problem,) = _split(path)[1]
    assert problem.startswith("line 6: broken JSON")
    assert problem.endswith("(the other 5 were read)")


def test_a_session_is_no_wire(tmp_path: Path) -> None:
    """What a log leaves out is no fault: tools that nobody declared, results that are missing, an unfinished reply."""
    log = _Log()
    log.user("go")
    log.model("m1", _use("t1"), "tool_use")
    log.user("never mind, what else?")
    log.model("m2", _use("toolu-odd:0", "mcp__files__read"))
    log.result("toolu-odd:0")
    log.result("toolu-odd:0")
    log.model("m3", "I read it.")
    assert _found(_write(tmp_path, *log.lines)) == [[], [], []]


def test_long_histories_are_cut_at_a_message_of_the_user(tmp_path: Path) -> None:
    log = _Log()
    for number in range(30):
        log.user(f"task {number}")
        log.model(f"m{number}", _use(f"t{number}"), "tool_use")
        log.result(f"t{number}", "x" * 100_000)
    records, _ = _split(_write(tmp_path, *log.lines))
    histories = [_told(record)[0] for record in records]
    assert max(len(record.request_body or b"") for record in records) < 1_200_000
    assert histories[0] == ["u:task 0"]
    assert histories[-1][0].startswith("u:")
    assert histories[-1][-1].endswith("task 29")


# --- all of them ------------------------------------------------------------------------------------------------------


def test_a_folder_of_them(tmp_path: Path) -> None:
    """Each is told by its content, whatever it is called; other JSON is passed by."""
    log = _Log()
    log.user("hello")
    log.model("m1", "Hello!", "end_turn")
    _write(tmp_path, *log.lines, name="a.txt")
    _write(tmp_path, TABLES["results"]["fine"][0], name="b.txt")
    _write(tmp_path, SESSION, _entry(ASK, _answer()), name="c.txt")
    _write(tmp_path, YAML, name="d.txt")
    _write(tmp_path, {"interactions": [_interaction({"body": "{}"})]}, name="e.txt")
    _write(tmp_path, {"settings": {"theme": "dark"}}, name="f.json")
    _write(tmp_path, "name: CI\non: push", name="g.yaml")
    records, _ = _split(tmp_path)
    forms = {Path(record.source).name: record.form for record in records}
    assert forms == {"a.txt": "claude-code", "b.txt": "k2vv", "c.txt": "lhar", "d.txt": "vcr", "e.txt": "vcr"}


def test_they_are_not_repaired_in_place(tmp_path: Path) -> None:
    path = _write(tmp_path, TABLES["results"]["schema"][0])
    (problem,) = fix(read([path]), RULES, FixPolicy("safe"))
    assert isinstance(problem, Problem)
    assert problem.fatal
    assert "`wirelint export`" in str(problem)
