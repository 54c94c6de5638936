"""Repairs in real processes: framing, codings, headers, connections that go on, and both sides in every file.

The rule that repairs is one of the tests' own; what the shipped ones do is told elsewhere.
"""

from __future__ import annotations

import gzip
import json
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import brotli
import pytest
import zstandard

from tests.build import FORMS, Talk, User, as_record, chunk, sse
from tests.live.harness import (
    PATIENCE,
    SCRIPT,
    Client,
    Peer,
    Proxy,
    Reply,
    Script,
    Upstream,
    post,
    refused,
    replying,
    running,
)
from tests.selection import sampled
from wirelint.wire.content_coding import decode

pytestmark = pytest.mark.live

RULES = Path(__file__).resolve().parents[1] / "addon" / "repairs"
OPTIONS = ("wirelint_fix=unsafe", f"wirelint_rules={RULES}", "wirelint_select=XX901")
QUIET = Talk(history=(User("Go on."),), text="They say «hello to you» and go. Ünder ☂.")
LOUD = Talk(history=(User("Go on."),), text="They say HELLO TO YOU and go. Ünder ☂.")
CLEAN = Talk(history=(User("Go on."),), text="All is well. Ünder ☂.")
PATHS = {"openai.chat": "/v1/chat/completions", "anthropic.messages": "/v1/messages"}
KINDS = {True: "text/event-stream", False: "application/json"}


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def body_of(talk: Talk, api: str, stream: bool) -> bytes:
    return as_record(talk.record(api, stream)).response_body or b""


def request_of(talk: Talk, api: str, stream: bool) -> bytes:
    return as_record(talk.record(api, stream)).request_body or b""


def text_of(api: str, body: bytes) -> str:
    """The text of a reply, whole or streamed, read without any of the project's own code."""
    if body.startswith(b"{"):
        document = json.loads(body)
        content = document["choices"][0]["message"]["content"] if api == "openai.chat" else document["content"]
        return str(content) if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    text = ""
    for line in body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        document = json.loads(line[6:])
        for choice in document.get("choices", ()):
            text += choice["delta"].get("content") or ""
        text += document.get("delta", {}).get("text", "")
    return text


def raw(response: str, body: bytes, *, close: bool = False) -> Script:
    """A script that sends these very bytes."""

    def script(peer: Peer) -> None:
        peer.send(response.replace("\n", "\r\n").encode() + b"\r\n" + body)
        if close:
            peer.close()

    return script


@pytest.fixture(scope="module")
def repairer(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("repairer"), upstream.url, *OPTIONS) as proxy:
        yield proxy


def ask(proxy: Proxy, upstream: Upstream, name: str, script: Script, api: str, stream: bool, **headers: str) -> Reply:
    upstream.scripts[name] = script
    given = {"x-test-id": name, SCRIPT: name, **{key.replace("_", "-"): value for key, value in headers.items()}}
    return post(proxy.port, PATHS[api], request_of(QUIET, api, stream), given)


@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_a_reply(repairer: Proxy, upstream: Upstream, api: str, stream: bool) -> None:
    name, body = f"reply {api} {stream}", body_of(QUIET, api, stream)
    answer = ask(repairer, upstream, name, replying([body[:99], body[99:]], content_type=KINDS[stream]), api, stream)
    assert (answer.complete, text_of(api, answer.body)) == (True, LOUD.text)
    assert answer.headers["x-wirelint"] == ("fix=unsafe" if stream else 'rewrote; rules="murmur"')
    record = repairer.wait_for_record(name)
    assert record["response"]["body"].encode() == body
    assert record["delivered"]["body"].encode() == answer.body
    assert record["delivered"]["headers"]["x-wirelint"] == answer.headers["x-wirelint"]
    (fix,) = record["fixes"]
    assert (fix["name"], fix["side"], fix["safety"]) == ("murmur", "response", "unsafe")
    assert fix["patch"].startswith("- ")
    assert "\n+ " in fix["patch"]
    assert "forwarded" not in record


FRAMINGS = {
    "chunked": "transfer-encoding: chunked\n",
    "with a length": "content-length: {size}\n",
    "until the connection closes": "connection: close\n",
}


@pytest.mark.parametrize("talk", [QUIET, CLEAN], ids=["quiet", "clean"])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("stream", [True, False])
def test_framing(repairer: Proxy, upstream: Upstream, framing: str, stream: bool, talk: Talk) -> None:
    """Two requests, on one connection where that may be: a wrong length would show in the second."""
    api, body = "openai.chat", body_of(talk, "openai.chat", stream)
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if framing == "chunked" else body
    head = f"HTTP/1.1 200 OK\ncontent-type: {KINDS[stream]}\n{FRAMINGS[framing].format(size=len(body))}"
    closes = "close" in FRAMINGS[framing]
    name = f"framing {framing} {stream} {talk is QUIET}"
    upstream.scripts[name] = raw(head, sent, close=closes)
    expected = LOUD.text if talk is QUIET else CLEAN.text
    with Client(repairer.port) as client:
        for _ in range(1 if closes else 2):
            client.ask(PATHS[api], request_of(talk, api, stream), {SCRIPT: name, "x-test-id": name})
            status, headers = client.head()
            answer, complete = client.rest()
            assert (status, complete, text_of(api, answer)) == (200, True, expected)
            assert talk is QUIET or answer == body
            assert not {"content-length", "transfer-encoding"} <= headers.keys()
            if not closes:
                client.again()


@pytest.mark.parametrize("framing", FRAMINGS)
def test_an_old_client_sees_the_end_of_the_connection(repairer: Proxy, upstream: Upstream, framing: str) -> None:
    body = body_of(QUIET, "openai.chat", True)
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if framing == "chunked" else body
    head = f"HTTP/1.1 200 OK\ncontent-type: text/event-stream\n{FRAMINGS[framing].format(size=len(body))}"
    name = f"old {framing}"
    upstream.scripts[name] = raw(head, sent, close=True)
    given = request_of(QUIET, "openai.chat", True)
    lines = [
        "POST /v1/chat/completions HTTP/1.0",
        f"{SCRIPT}: {name}",
        "content-type: application/json",
        f"content-length: {len(given)}",
    ]
    with socket.create_connection(("127.0.0.1", repairer.port), timeout=PATIENCE) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + given)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    fields, _, content = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in fields
    assert text_of("openai.chat", content) == LOUD.text


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("stream", [True, False])
def test_codings(repairer: Proxy, upstream: Upstream, coding: str, stream: bool) -> None:
    """A stream comes without its coding, a whole body keeps it. The bytes are cut everywhere."""
    plain = body_of(QUIET, "openai.chat", stream)
    body, name = CODINGS[coding](plain), f"{coding} {stream}"
    pieces = [body[start : start + 7] for start in range(0, len(body), 7)]
    script = replying(pieces, content_type=KINDS[stream], content_encoding=coding)
    answer = ask(repairer, upstream, name, script, "openai.chat", stream)
    assert answer.headers.get("content-encoding") == (None if stream else coding)
    assert text_of("openai.chat", decode(answer.headers.get("content-encoding"), answer.body)) == LOUD.text
    assert repairer.wait_for_record(name)["response"]["body"].encode() == plain


@pytest.mark.parametrize("stream", [True, False])
def test_plain_text_under_the_name_of_a_coding(repairer: Proxy, upstream: Upstream, stream: bool) -> None:
    body, name = body_of(QUIET, "openai.chat", stream), f"not gzip {stream}"
    script = replying([body[:30], body[30:]], content_type=KINDS[stream], content_encoding="gzip")
    answer = ask(repairer, upstream, name, script, "openai.chat", stream)
    assert (answer.complete, answer.body) == (True, body)
    record = repairer.wait_for_record(name)
    assert record["end"] == "unread"
    assert "not what its content-encoding says" in record["notes"][0]


def test_a_coding_that_breaks_in_the_middle_is_no_end(repairer: Proxy, upstream: Upstream) -> None:
    """What is left of the stream cannot be read. The client must not take it for one that ended well."""
    plain = body_of(CLEAN, "openai.chat", True)
    squeezed = zlib.compressobj(wbits=31)
    good = squeezed.compress(plain[:200]) + squeezed.flush(zlib.Z_SYNC_FLUSH)
    script = replying([good, b"\xff" * 40, b"more"], content_type="text/event-stream", content_encoding="gzip")
    answer = ask(repairer, upstream, "breaks", script, "openai.chat", True)
    assert (answer.body, answer.complete) == (plain[:200], False)
    assert repairer.wait_for_record("breaks")["end"] == "unread"


@pytest.mark.parametrize("pack", [gzip.compress, brotli.compress, zstandard.ZstdCompressor().compress])
def test_a_coding_that_ends_too_early_is_no_end(
    repairer: Proxy, upstream: Upstream, pack: Callable[..., bytes]
) -> None:
    plain = body_of(CLEAN, "openai.chat", True)
    raw, coding = pack(plain)[:-4], {gzip.compress: "gzip", brotli.compress: "br"}.get(pack, "zstd")
    script = replying([raw[:20], raw[20:]], content_type="text/event-stream", content_encoding=coding)
    answer = ask(repairer, upstream, f"early {coding}", script, "openai.chat", True)
    assert plain.startswith(answer.body)
    assert not answer.complete
    assert repairer.wait_for_record(f"early {coding}")["end"] == "upstream-died"


ALONE: dict[str, tuple[int, dict[str, str]]] = {
    "an error": (429, {}),
    "a server's error": (500, {}),
    "a part": (206, {}),
    "an unknown coding": (200, {"content_encoding": "snappy"}),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ALONE)
def test_what_is_left_alone(repairer: Proxy, upstream: Upstream, name: str, stream: bool) -> None:
    status, headers = ALONE[name]
    body = body_of(QUIET, "openai.chat", stream)
    script = replying([body[:99], body[99:]], status, content_type=KINDS[stream], **headers)
    answer = ask(repairer, upstream, f"{name} {stream}", script, "openai.chat", stream)
    assert (answer.status, answer.body, answer.complete) == (status, body, True)
    assert "x-wirelint" not in answer.headers
    assert answer.headers.get("content-encoding") == headers.get("content_encoding")


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "GET"])
def test_other_methods(repairer: Proxy, upstream: Upstream, method: str) -> None:
    upstream.scripts[method] = raw("HTTP/1.1 200 OK\ncontent-length: 0\n", b"")
    given = request_of(QUIET, "openai.chat", False)
    answer = post(repairer.port, PATHS["openai.chat"], given, {SCRIPT: method}, method)
    assert (answer.status, answer.body, "x-wirelint" in answer.headers) == (200, b"", False)


# --- requests ---------------------------------------------------------------------------------------------------------

MURMUR = Talk(history=(User("Say «good morning» to them. Ünder ☂."),), text="They were told.")
SPOKEN = "Say GOOD MORNING to them. Ünder ☂."
ENCODED: dict[str, Callable[[bytes], bytes]] = {"": bytes, **CODINGS}


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "chunked"])
@pytest.mark.parametrize("coding", ENCODED)
def test_a_request(repairer: Proxy, upstream: Upstream, coding: str, chunked: bool) -> None:
    seen: list[Peer] = []
    answer = replying([body_of(MURMUR, "openai.chat", True)], content_type=KINDS[True])

    def script(peer: Peer) -> None:
        seen.append(peer)
        answer(peer)

    name = f"request {coding} {chunked}"
    upstream.scripts[name] = script
    plain = request_of(MURMUR, "openai.chat", True)
    body = ENCODED[coding](plain)
    headers = {"x-test-id": name, SCRIPT: name, **({"content-encoding": coding} if coding else {})}
    reply = send(repairer, body, headers, chunked=chunked)
    assert reply.complete
    (peer,) = seen
    got = decode(peer.headers.get("content-encoding"), peer.body)
    assert json.loads(got) == {**json.loads(plain), "messages": [{"role": "user", "content": SPOKEN}]}
    assert peer.headers.get("content-encoding", "") == coding
    assert ("content-length" in peer.headers, "transfer-encoding" in peer.headers) == (not chunked, chunked)
    record = repairer.wait_for_record(name)
    assert record["request"]["body"].encode() == plain
    assert record["forwarded"]["body"].encode() == got
    assert [(fix["name"], fix["side"]) for fix in record["fixes"]] == [("murmur", "request")]
    assert [finding["side"] for finding in record["findings"] if finding["name"] == "murmur"] == ["request"]
    assert "delivered" not in record


UNTOUCHED: dict[str, dict[str, str]] = {
    "no gzip": {"content-encoding": "gzip"},
    "a coding that nobody knows": {"content-encoding": "snappy"},
    "vouched for": {"content-digest": "sha-256=:abc:"},
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_a_request_that_is_left_alone(repairer: Proxy, upstream: Upstream, name: str) -> None:
    seen: list[Peer] = []
    answer = replying([body_of(MURMUR, "openai.chat", True)], content_type=KINDS[True])

    def script(peer: Peer) -> None:
        seen.append(peer)
        answer(peer)

    upstream.scripts[name] = script
    plain = request_of(MURMUR, "openai.chat", True)
    post(repairer.port, PATHS["openai.chat"], plain, {"x-test-id": name, SCRIPT: name, **UNTOUCHED[name]})
    assert [peer.body for peer in seen] == [plain]
    record = repairer.wait_for_record(name)
    assert "forwarded" not in record
    assert "it was not repaired" in record["notes"][0]


def send(proxy: Proxy, body: bytes, headers: dict[str, str], *, chunked: bool) -> Reply:
    if not chunked:
        return post(proxy.port, PATHS["openai.chat"], body, headers)
    with Client(proxy.port) as client:
        client.ask_in_chunks(PATHS["openai.chat"], [body[:40], body[40:]], headers)
        status, fields = client.head()
        content, complete = client.rest()
        return Reply(status, fields, content, complete)


# --- what is told, and where it stands --------------------------------------------------------------------------------


def test_the_log(repairer: Proxy, upstream: Upstream) -> None:
    body = body_of(QUIET, "openai.chat", True)
    ask(repairer, upstream, "log", replying([body], content_type=KINDS[True]), "openai.chat", True)
    id_ = repairer.wait_for_record("log")["id"]
    lines = repairer.log.splitlines()
    place = next(number for number, line in enumerate(lines) if f"[{id_[:8]}]" in line)
    assert lines[place].endswith(f": 1 error, 1 fixed [{id_[:8]}]")
    assert lines[place + 1].endswith("error murmur [model] response: a murmur: hello to you")
    assert lines[place + 2].endswith("  fixed murmur [unsafe] said it loudly")
    flow = repairer.wait_for_probe("log")
    assert flow["comment"].startswith("murmur · 1 fixed · ")
    assert flow["metadata"]["wirelint.fixed"] == ["murmur"]
    assert bytes.fromhex(flow["body"]).decode().count("HELLO TO YOU") == 1, "mitmproxy shows what the client got"
    assert flow["metadata"]["wirelint.received"]["response"]["body"].encode() == body


def test_text_that_was_held_too_long_leaves_with_the_next_byte(upstream: Upstream, tmp_path: Path) -> None:
    """Nothing can be sent while the upstream is silent."""
    begin, more = (sse(chunk({"content": text}), done=False).encode() for text in ("They say «hello", " to"))
    end = sse(chunk({"content": " you»."}, "stop")).encode()
    late = Event()

    def script(peer: Peer) -> None:
        peer.head(content_type="text/event-stream", transfer_encoding="chunked")
        peer.chunk(begin)
        time.sleep(0.3)
        peer.chunk(more)
        assert late.wait(PATIENCE), "the client has what was held before the upstream goes on"
        peer.chunk(end)
        peer.finish()

    upstream.scripts["late"] = script
    with running(tmp_path, upstream.url, *OPTIONS, "wirelint_hold=0.2", "wirelint_header=off") as proxy:
        with Client(proxy.port) as client:
            given = request_of(QUIET, "openai.chat", True)
            client.ask(PATHS["openai.chat"], given, {SCRIPT: "late", "x-test-id": "late"})
            _, headers = client.head()
            assert "x-wirelint" not in headers
            first = client.read_at_least(len(begin + more))
            late.set()
            rest, complete = client.rest()
        assert (first + rest, complete) == (begin + more + end, True)
        record = proxy.wait_for_record("late")
        assert "delivered" not in record
        assert any("held" in note for note in record["notes"])


def test_without_internals_of_mitmproxy(upstream: Upstream, tmp_path: Path) -> None:
    """A stream is repaired. Text that is held when the upstream dies is lost, and the exchange says so."""
    begin = sse(chunk({"content": "They say «hello"}), done=False).encode()
    end = sse(chunk({"content": " you»."}, "stop")).encode()

    def dies(peer: Peer) -> None:
        peer.head(content_type="text/event-stream", transfer_encoding="chunked")
        peer.chunk(begin)
        time.sleep(0.3)
        peer.close()

    def ends(peer: Peer) -> None:
        peer.head(content_type="text/event-stream", transfer_encoding="chunked")
        peer.chunk(begin)
        peer.chunk(end)
        peer.finish()

    upstream.scripts |= {"off-dies": dies, "off-ends": ends}
    with running(tmp_path, upstream.url, *OPTIONS, "wirelint_mitm_compat=off") as proxy:
        records = {}
        for name in ("off-dies", "off-ends"):
            with Client(proxy.port) as client:
                given = request_of(QUIET, "openai.chat", True)
                client.ask(PATHS["openai.chat"], given, {SCRIPT: name, "x-test-id": name})
                client.head()
                body, _ = client.rest()
            records[name] = proxy.wait_for_record(name), body
    died, got = records["off-dies"]
    assert (died["end"], got) == ("upstream-died", b"")
    assert any("held" in note for note in died["notes"])
    ended, got = records["off-ends"]
    assert ended["end"] == "complete"
    assert b"HELLO" in got


WRONG = {
    "wirelint_mitm_compat=maybe": "wirelint: wirelint_mitm_compat=maybe: neither on nor off; write one of them",
    "wirelint_fix=all": "wirelint: wirelint_fix=all: not a way to repair; write off, safe or unsafe",
    "wirelint_fixable=xml-leek": "wirelint: wirelint_fixable=xml-leek: unknown rule 'xml-leek'; did you mean ",
    "wirelint_unfixable=nosuch": "wirelint: wirelint_unfixable=nosuch: unknown rule 'nosuch'; ",
    "wirelint_hold=0": "wirelint: wirelint_hold=0: not a time up to 3600 seconds; write one such as 5 or 30",
    "wirelint_header=maybe": "wirelint: wirelint_header=maybe: neither on nor off; write one of them",
    "wirelint_clean_history=1": "wirelint: wirelint_clean_history=1: neither on nor off; write one of them",
    "wirelint_fixeble=ID": "wirelint: wirelint_fixeble is no option; did you mean wirelint_fixable?",
}


@pytest.mark.parametrize("option", sampled(list(WRONG), 2))
def test_options_that_cannot_be_used(tmp_path: Path, option: str) -> None:
    status, lines = refused(tmp_path, option)
    assert status == 1
    told = [line for line in lines if "wirelint: " in line]
    assert len(told) == 1
    assert WRONG[option] in told[0]
    assert "Traceback" not in "\n".join(lines)


def test_only_what_may_be_repaired_is(upstream: Upstream, tmp_path: Path) -> None:
    body = body_of(QUIET, "openai.chat", True)
    upstream.scripts["off"] = replying([body], content_type=KINDS[True])
    given = request_of(QUIET, "openai.chat", True)
    for number, options in enumerate((["wirelint_fix=safe"], ["wirelint_fix=unsafe", "wirelint_unfixable=XX"])):
        with running(tmp_path / str(number), upstream.url, *OPTIONS[1:], *options) as proxy:
            answer = post(proxy.port, PATHS["openai.chat"], given, {SCRIPT: "off", "x-test-id": "off"})
            assert answer.body == body
            assert "fixes" not in proxy.wait_for_record("off")
