"""Repairs in real processes: requests in every coding, both sides in every file, what is logged, held text, options."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.addon.build import CODERS
from tests.build import FORMS, in_pieces
from tests.cuts import events_of
from tests.live.harness import (
    CHUNKED,
    SCRIPT,
    STREAM,
    Client,
    Peer,
    Proxy,
    Script,
    Upstream,
    post,
    replying,
    running,
    scripted,
)
from tests.live.leaks import (
    CALL,
    DAMAGED,
    LEAK,
    PATHS,
    PROSE,
    RESTORED,
    STRIPPED,
    ask,
    asked,
    body_of,
    calls_of,
    kind_of,
)
from tests.live.scenes import OPENAI, Form
from tests.live.strict import assemble
from wirelint.wire.content_coding import decode

ASKED = DAMAGED[OPENAI, True]["request"]["body"].encode()


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_both_sides_of_a_repaired_exchange_are_kept(repairing: Proxy, upstream: Upstream, form: Form) -> None:
    record, test = DAMAGED[form], f"both {form}"
    upstream.scripts[test] = replying(in_pieces(body_of(record), 99), **kind_of(record))
    reply = ask(repairing, form[0], record, test)
    assert calls_of(*form, reply.body)[0][0] == "read_note"
    assert reply.headers["x-wirelint"].startswith("fix=unsafe" if form[1] else "rewrote; rules=")
    kept = repairing.wait_for_record(test)
    assert kept["response"]["body"].encode() == body_of(record)
    assert kept["delivered"]["body"].encode() == reply.body
    assert kept["delivered"]["headers"]["x-wirelint"] == reply.headers["x-wirelint"]
    assert kept["request"]["body"] == record["request"]["body"]
    assert kept["forwarded"]["body"].count(RESTORED) == kept["request"]["body"].count(STRIPPED) == 2
    assert [(fix["name"], fix["side"], fix["safety"]) for fix in kept["fixes"]] == [
        ("mangled-id", "request", "safe"),
        ("xml-leak", "response", "unsafe"),
    ]
    assert all(fix["patch"].startswith("- ") and "\n+ " in fix["patch"] for fix in kept["fixes"])
    flow = repairing.wait_for_probe(test)
    assert flow["metadata"]["wirelint.fixed"] == ["mangled-id", "xml-leak"]
    assert bytes.fromhex(flow["body"]) == reply.body, "mitmproxy shows what the client got"
    assert flow["metadata"]["wirelint.received"]["response"]["body"].encode() == body_of(record)


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "chunked"])
@pytest.mark.parametrize("coding", ["", *CODERS])
def test_a_request_is_repaired_in_its_coding(repairing: Proxy, upstream: Upstream, coding: str, chunked: bool) -> None:
    seen: list[Peer] = []
    name = f"request {coding} {chunked}"
    upstream.scripts[name] = _noting(seen)
    body = CODERS[coding](ASKED) if coding else ASKED
    headers = {"x-test-id": name, SCRIPT: name, **({"content-encoding": coding} if coding else {})}
    with Client(repairing.port) as client:
        if chunked:
            client.ask_in_chunks(PATHS[OPENAI], [body[:40], body[40:]], headers)
        else:
            client.ask(PATHS[OPENAI], body, headers)
        client.head()
        assert client.rest()[1]
    (peer,) = seen
    assert decode(peer.headers.get("content-encoding"), peer.body) == ASKED.replace(
        STRIPPED.encode(), RESTORED.encode()
    )
    assert peer.headers.get("content-encoding", "") == coding
    assert ("content-length" in peer.headers, "transfer-encoding" in peer.headers) == (not chunked, chunked)
    record = repairing.wait_for_record(name)
    assert (record["request"]["body"].encode(), RESTORED in record["forwarded"]["body"]) == (ASKED, True)


UNTOUCHED: dict[str, dict[str, str]] = {
    "no gzip": {"content-encoding": "gzip"},
    "a coding that nobody knows": {"content-encoding": "snappy"},
    "vouched for": {"content-digest": "sha-256=:abc:"},
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_a_request_that_cannot_be_repaired_stays_unchanged(repairing: Proxy, upstream: Upstream, name: str) -> None:
    seen: list[Peer] = []
    upstream.scripts[name] = _noting(seen)
    post(repairing.port, PATHS[OPENAI], ASKED, {"x-test-id": name, SCRIPT: name, **UNTOUCHED[name]})
    assert [peer.body for peer in seen] == [ASKED]
    record = repairing.wait_for_record(name)
    assert "forwarded" not in record
    assert "it was not repaired" in record["notes"][0]


def _noting(seen: list[Peer]) -> Script:
    return scripted(seen.append, replying([body_of(LEAK[OPENAI, True])], **STREAM))


def test_text_that_is_held_too_long_leaves(upstream: Upstream, tmp_path: Path) -> None:
    """The upstream stands still inside of markup, or sends more of it. It ends only when the client has all of it."""
    record = LEAK[OPENAI, True]
    events = events_of(body_of(record))
    begun = events[:-4]
    options = ("wirelint_fix=unsafe", "wirelint_hold=0.2", "wirelint_header=off")
    with running(tmp_path, upstream.url, *options) as proxy:
        for name in ("silence", "more text"):
            received, pause = Event(), 0.3 if "more" in name else 0.0
            upstream.scripts[name] = scripted(
                CHUNKED,
                *begun[:-1],
                pause,
                begun[-1],
                received,
                *events[-4:],
                Peer.finish,
            )
            with Client(proxy.port) as client:
                client.ask(*asked(OPENAI, record, name))
                _, headers = client.head()
                assert "x-wirelint" not in headers
                first = client.read_at_least(len(b"".join(begun)))
                received.set()
                rest, complete = client.rest()
            captured = proxy.wait_for_record(name)
            assert (first + rest, complete) == (b"".join(events), True)
            assert assemble(OPENAI, True, first + rest).text == PROSE + CALL
            assert ("delivered" in captured, captured["end"]) == (False, "complete")
            assert any("held" in note for note in captured["notes"])


def test_without_internals_of_mitmproxy_held_text_is_lost_when_the_upstream_dies(
    upstream: Upstream, tmp_path: Path
) -> None:
    events = events_of(body_of(LEAK[OPENAI, True]))

    dies = scripted(CHUNKED, *events[:-4], 0.3, Peer.close)
    upstream.scripts |= {"off-dies": dies, "off-ends": replying(events, **STREAM)}
    records: dict[str, tuple[dict[str, Any], bytes]] = {}
    with running(tmp_path, upstream.url, "wirelint_fix=unsafe", "wirelint_mitm_compat=off") as proxy:
        for name in ("off-dies", "off-ends"):
            body = ask(proxy, OPENAI, LEAK[OPENAI, True], name).body
            records[name] = proxy.wait_for_record(name), body
    died, got = records["off-dies"]
    assert (died["end"], b"<invoke" in got) == ("upstream-died", False)
    assert any("held" in note for note in died["notes"])
    ended, got = records["off-ends"]
    assert (ended["end"], b'"read_note"' in got) == ("complete", True)
