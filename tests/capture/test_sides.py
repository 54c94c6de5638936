"""Both sides of a changed exchange: in the captures, in flows, and without secrets."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema_rs
import pytest

from tests.build import Call, Talk, as_record, some
from tests.tables import rows, tables
from wirelint.capture.format import NAMES, beside_received, beside_sent, decode, encode, restored, schema
from wirelint.capture.record import Record, Sent
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import replay
from wirelint.fix import AppliedFix

VALIDATOR = jsonschema_rs.Draft202012Validator(schema())
KEY = "sk-proj-Zq81LmN0pXv72RtYc5Wb"
HEAD = (("content-type", "application/json"),)
ASKED = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
URL = "https://llm.test/v1/chat/completions"


def reply(id_: str) -> bytes:
    return some(as_record(Talk(calls=(Call("f", id=id_),)).record("openai.chat", False)).response_body)


FIXES = (
    AppliedFix("ID302", "nonconforming-id", "safe", "request", "named it anew", "/messages/1", None, "a\nb", "+ c\n"),
    AppliedFix("LK101", "xml-leak", "unsafe", "response", "promoted", None, 12, "", "f({})"),
    AppliedFix("TC503", "finish-reason-mismatch", "safe", "response", "said so"),
)
CHANGED = Record(
    "one", "POST", URL, HEAD, ASKED, 200, HEAD, reply("call_1"), end="complete",
    forwarded=Sent((*HEAD, ("content-length", "63")), ASKED.replace(b"hi", b"ho")),
    delivered=Sent((*HEAD, ("x-wirelint", "fix=unsafe")), reply("call_2")), fixes=FIXES,
)  # fmt: skip
RECORDS = {
    "both": CHANGED,
    "the request": dataclasses.replace(CHANGED, delivered=None, fixes=FIXES[:1]),
    "the reply": dataclasses.replace(CHANGED, forwarded=None, fixes=FIXES[1:]),
    "neither": dataclasses.replace(CHANGED, forwarded=None, delivered=None, fixes=()),
    "a reply that is no text": dataclasses.replace(CHANGED, delivered=Sent((), b"\xff\x00")),
    "a reply that was not kept": dataclasses.replace(CHANGED, delivered=Sent(HEAD, None)),
    "a header that is no text": dataclasses.replace(CHANGED, forwarded=Sent((("x", "caf\udce9"),), b"")),
}


def same(one: Record, two: Record) -> bool:
    fields = ("request_headers", "request_body", "response_headers", "response_body", "forwarded", "delivered", "fixes")
    return all(getattr(one, field) == getattr(two, field) for field in fields)


@pytest.mark.parametrize("name", RECORDS)
def test_a_line_holds_both_sides(name: str) -> None:
    record = RECORDS[name]
    line = json.loads(encode(record))
    assert VALIDATOR.is_valid(line), list(VALIDATOR.iter_errors(line))
    assert ("forwarded" in line) == (record.forwarded is not None)
    assert ("delivered" in line) == (record.delivered is not None)
    assert ("fixes" in line) == bool(record.fixes)
    back = decode(line, "x", "line 1")
    if name != "a header that is no text":
        assert same(back, record)
    assert not {"forwarded", "delivered", "fixes"} & back.annotations.keys()
    assert encode(back) == encode(dataclasses.replace(record, source="x", place="line 1"))


def test_fixes_are_readable() -> None:
    (first, *_) = json.loads(encode(CHANGED))["fixes"]
    assert first["patch"] == "- a\n- b\n+ + c\n+ "
    assert (first["code"], first["side"], first["safety"], first["pointer"]) == (
        "ID302",
        "request",
        "safe",
        "/messages/1",
    )


@rows(tables(__file__)["broken"])
def test_what_is_none_is_left_out(members: dict[str, Any]) -> None:
    record = decode({**json.loads(encode(RECORDS["neither"])), **members}, "x", "line 1")
    assert (record.forwarded, record.delivered, record.fixes) == (None, None, ())


def shown(record: Record, *, sent: bool) -> Record:
    """What a flow shows of a record: what came in, or what was sent on."""
    bare = dataclasses.replace(record, forwarded=None, delivered=None, fixes=())
    forwarded, delivered = (record.forwarded, record.delivered) if sent else (None, None)
    if forwarded is not None:
        bare = dataclasses.replace(bare, request_headers=forwarded.headers, request_body=forwarded.body)
    if delivered is not None:
        bare = dataclasses.replace(bare, response_headers=delivered.headers, response_body=delivered.body)
    return bare


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("name", RECORDS)
def test_a_flow_holds_both_sides(name: str, sent: bool) -> None:
    record = RECORDS[name]
    beside = beside_sent(record) if sent else beside_received(record)
    assert json.loads(json.dumps(beside)) == beside
    assert beside.keys() <= set(NAMES)
    assert bool(beside) == (name != "neither")
    json.dumps(beside, ensure_ascii=False).encode()
    if name != "a header that is no text":
        assert same(restored(shown(record, sent=sent), beside), record)


def test_very_large_bodies_are_left_out_beside_a_flow() -> None:
    large = dataclasses.replace(CHANGED, delivered=Sent(HEAD, b"x" * (5 << 20)), request_body=b"y" * (5 << 20))
    assert beside_received(large)["delivered"] == {"headers": dict(HEAD), "body": None}
    came = beside_sent(large)["received"]
    assert isinstance(came, dict)
    assert came["request"] == {"headers": dict(HEAD), "body": None}


def test_what_cannot_be_read_beside_a_flow_is_not_there() -> None:
    bare = shown(CHANGED, sent=False)
    assert same(restored(bare, {"delivered": {"body_base64": "?"}, "received": 3}), bare)


def test_secrets_are_taken_out_of_all_of_it() -> None:
    """Also where a fix quotes a value without the name that tells of it, and where it was cut in two."""
    password, gap = "correct-horse-battery-42", "x" * 900
    body = reply("call_1").replace(b'"{}"', json.dumps(json.dumps({"password": password, "k": KEY})).encode())
    fixes = (
        AppliedFix(
            "AR403", "schema-violation", "safe", "response", f"made {password} of it", before=password, after=KEY
        ),
        AppliedFix("LK101", "xml-leak", "unsafe", "response", "x", before=f"{gap}{password[:9]}…{KEY[9:]}{gap}"),
    )
    record = dataclasses.replace(
        CHANGED,
        forwarded=Sent((("authorization", f"Bearer {KEY}"),), ASKED.replace(b"hi", KEY.encode())),
        response_body=body, delivered=Sent((), body + b" "), fixes=fixes,
    )  # fmt: skip
    redactor = Redactor(b"key")
    line = encode(redactor.record(record)).decode()
    for secret in (KEY, password, password[:9], KEY[9:]):
        assert secret not in line
    clean = redactor.record(record)
    assert some(clean.forwarded).headers == (("authorization", f"Bearer {redactor.mark(KEY)}"),)
    assert [(fix.before, fix.after) for fix in clean.fixes[:1]] == [(redactor.mark(password), redactor.mark(KEY))]
    assert redactor.record(clean).fixes == clean.fixes
    assert Redactor(b"key", enabled=False).record(record) is record


def test_the_ids_that_the_client_got_are_known() -> None:
    exchange = some(replay(CHANGED))
    assert [call.id for call in some(exchange.reply).choices[0].calls] == ["call_1"]
    assert [call.id for call in some(exchange.delivered).choices[0].calls] == ["call_2"]
