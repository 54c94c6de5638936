"""Records repaired offline: what is sent on, what is told, what stays."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence

import pytest

from tests.build import FORMS, REGISTRY, Call, Talk, User, as_record, checked, schema, some
from tests.capture.shouts import NONE, SAFE, SHOUT, UNSAFE, record
from wirelint.capture.format import changes, decode, encode
from wirelint.capture.offline import Fixed, fix, true_headers
from wirelint.capture.readers import load
from wirelint.capture.record import Headers, Record, Sent
from wirelint.capture.replay import mended
from wirelint.fix import AppliedFix, FixPolicy
from wirelint.model import End
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger


def _fix(rules: Sequence[Rule], permit: FixPolicy, *records: Record) -> list[Fixed]:
    fixed = list(fix(records, rules, permit))
    assert all(isinstance(item, Fixed) for item in fixed)
    return [item for item in fixed if isinstance(item, Fixed)]


def _one(rules: Sequence[Rule], permit: FixPolicy, record: Record) -> Fixed:
    (fixed,) = _fix(rules, permit, record)
    return fixed


def _text(sent: Sent | None) -> str:
    assert sent is not None
    return some(sent.body).decode()


@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_both_sides_are_repaired(api: str, stream: bool) -> None:
    came = as_record(record("So LOUD here", "Why so LOUD?", api, stream))
    fixed = _one(SHOUT, SAFE, came)
    assert (fixed.record.request_body, fixed.record.response_body) == (came.request_body, came.response_body)
    assert "So calm here" in _text(fixed.record.forwarded)
    assert "Why so calm?" in _text(fixed.record.delivered)
    assert [(repair.code, repair.side, repair.safety) for repair in fixed.record.fixes] == [
        ("XX901", "request", "safe"),
        ("XX901", "response", "safe"),
    ]
    assert [finding.side for finding in fixed.findings] == ["request", "response"]
    assert fixed.remaining == ()
    assert fixed.exchange is not None
    assert some(fixed.exchange.delivered).choices[0].text == "Why so calm?"
    assert some(fixed.exchange.reply).choices[0].text == "Why so LOUD?"


HEADERS: dict[str, tuple[Headers, Headers]] = {
    "length": ((("Content-Length", "99"), ("A", "b")), (("Content-Length", "5"), ("A", "b"))),
    "lengths": ((("content-length", "99"), ("content-length", "98")), (("content-length", "5"),)),
    "coding": ((("Content-Encoding", "gzip"), ("content-length", "1")), (("content-length", "5"),)),
    "chunked": ((("transfer-encoding", "chunked"),), (("transfer-encoding", "chunked"),)),
    "none": ((), ()),
}


@pytest.mark.parametrize(("before", "after"), HEADERS.values(), ids=HEADERS)
def test_headers_are_true(before: Headers, after: Headers) -> None:
    assert true_headers(before, b"12345") == after


def test_fixing_twice_changes_nothing_more() -> None:
    came = [as_record(record("LOUD", "LOUD", api, stream), n) for n, (api, stream) in enumerate(FORMS)]
    for permit in (SAFE, UNSAFE):
        once = [fixed.record for fixed in _fix(SHOUT, permit, *came)]
        read = [decode(load(encode(item)), item.source, item.place) for item in once]
        twice = [fixed.record for fixed in _fix(SHOUT, permit, *read)]
        assert [encode(item) for item in twice] == [encode(item) for item in once]
        repaired = [mended(item) for item in once]
        assert all(changes(fixed.record) == {} for fixed in _fix(SHOUT, permit, *repaired))


def test_repair_begins_with_what_came_in() -> None:
    """Other options give what they would have given without the run before."""
    came = as_record(record("LOUD SCREAM", "LOUD SCREAM"))
    for first, second in itertools.permutations((NONE, SAFE, UNSAFE), 2):
        before = _one(SHOUT, first, came).record
        assert changes(_one(SHOUT, second, before).record) == changes(_one(SHOUT, second, came).record)


def test_the_head_of_a_live_run_stays_with_its_body() -> None:
    made = _one(SHOUT, SAFE, as_record(record(answer="LOUD"))).record
    head = (("x-wirelint", "fix=safe"), ("transfer-encoding", "chunked"))
    live = dataclasses.replace(made, delivered=Sent(head, some(made.delivered).body))
    assert changes(_one(SHOUT, SAFE, live).record) == changes(live)
    other = dataclasses.replace(live, delivered=Sent(head, b"something else"))
    assert changes(_one(SHOUT, SAFE, other).record) == changes(made)


def test_what_came_in_is_lost() -> None:
    """Then what was sent on stays as it was told."""
    made = _one(SHOUT, SAFE, as_record(record("LOUD", "LOUD"))).record
    lost = dataclasses.replace(made, response_body=None, end="unread")
    assert changes(_one(SHOUT, SAFE, lost).record) == changes(made)


def test_a_client_that_got_less_keeps_what_it_got() -> None:
    came = as_record(record())
    body = (came.response_body or b"")[:40]
    short = dataclasses.replace(came, delivered=Sent((), body), end="client-left")
    assert _one(SHOUT, SAFE, short).record.delivered == Sent((), body)
    repair = AppliedFix("XX901", "shout", "safe", "response", "said calm")
    assert _one(SHOUT, SAFE, dataclasses.replace(short, fixes=(repair,))).record.delivered is None


ENDS: list[tuple[End, bool]] = [("complete", True), ("unknown", True), ("client-left", False), ("upstream-died", False)]


@pytest.mark.parametrize(("end", "ended"), ENDS)
def test_a_reply_is_ended_only_where_it_has_ended(end: End, ended: bool) -> None:
    """The last event of this stream lacks its blank line: the rule for framing adds it, when nothing more can come."""
    made = as_record(record(answer="LOUD"))
    cut = dataclasses.replace(
        made, end=end, response_body=(made.response_body or b"").removesuffix(b"data: [DONE]\n\n")
    )
    fixed = _one((*SHOUT, *REGISTRY.select(["sse-framing"])), SAFE, cut)
    assert "calm" in _text(fixed.record.delivered)
    assert _text(fixed.record.delivered).endswith("data: [DONE]\n\n") is ended
    assert fixed.record.end == end


def test_what_is_not_understood_stays() -> None:
    sent = Sent((), b"{}")
    for strange in (
        Record("a", "POST", "https://h/other", (), b'{"LOUD": 1}', 200, (), b"LOUD"),
        Record("b", "GET", "https://h/v1/models", (), None, 200, (), b"LOUD", forwarded=sent),
        Record("c", "POST", "https://h/v1/chat/completions", (), b"\xff\x00", None),
    ):
        fixed = _one(SHOUT, UNSAFE, strange)
        assert fixed.record is strange
        assert (fixed.exchange, fixed.findings) == (None, ())


def test_findings_are_those_of_check() -> None:
    came = [
        dataclasses.replace(as_record(record(said, said, api, stream), n), source="f", place=f"line {n}")
        for n, (said, (api, stream)) in enumerate(itertools.product(("LOUD", "quiet", "SCREAM"), FORMS))
    ]
    assert [fixed.findings for fixed in _fix(SHOUT, UNSAFE, *came)] == [one.findings for one in checked(came, SHOUT)]


def test_new_ids_do_not_hang_on_the_name_of_the_file() -> None:
    leak = (
        '<function_calls>\n<invoke name="look">\n<parameter name="city">Oslo</parameter>\n</invoke>\n</function_calls>'
    )
    talk = Talk((User("How warm is Oslo?"),), text=leak, tools={"look": schema(city="string")})
    line = json.loads(json.dumps(talk.record("anthropic.messages", True)))
    made = [
        _one(REGISTRY.select(["xml-leak"]), UNSAFE, decode({**line, **own}, source, place)).record.delivered
        for own, source, place in (
            ({}, "a", "line 1"),
            ({}, "b", "line 1"),
            ({}, "b", "line 2"),
            ({"id": "x"}, "b", "line 1"),
        )
    ]
    one, renamed, other, own = (_text(sent) for sent in made)
    assert "toolu_" in one
    assert one == renamed
    assert len({one, other, own}) == 3


def test_a_ledger_for_every_file() -> None:
    seen: list[tuple[str, bool]] = []

    class Watcher(Rule):
        code, name, severity, layer = "XX902", "watcher", "info", "client"

        def fix_request(self, exchange: object, ledger: Ledger, permit: FixPolicy) -> tuple[()]:
            seen.append((exchange.id, ledger.issued("call_1") is not None))  # type: ignore[attr-defined]
            return ()

    made = Talk(calls=(Call("look", id="call_1"),)).record("openai.chat", False)
    came = [dataclasses.replace(as_record(made, n), source=source) for n, source in enumerate("aab")]
    _fix((Watcher(),), SAFE, *came)
    assert [known for _, known in seen] == [False, True, False]


def test_reading_that_fails_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def burst(*_: object, **__: object) -> None:
        raise RuntimeError("burst")

    told: list[str] = []
    monkeypatch.setattr("wirelint.capture.offline.rewrite_reply", burst)
    bad, good = as_record(record(answer="LOUD")), Record("g", "GET", "https://h/v1/models")
    first, second = fix([bad, good], SHOUT, SAFE, lambda culprit, error: told.append(f"{culprit}: {error}"))
    assert isinstance(first, Fixed)
    assert first.record is bad
    assert [finding.name for finding in first.remaining] == ["internal-error"]
    assert isinstance(second, Fixed)
    assert told == ["repairing an exchange: burst"]
