"""Replies that go as those before them went: they leave unread, and all is as if they had been read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.addon.build import Clock, flow_of, head_of, visit_of
from tests.build import APIS, REGISTRY, Call, Talk, as_record, schema
from tests.fixes.drive import UNSAFE
from tests.fixes.test_prefilter import WORDS
from tests.rewrite.test_plain import FIRST
from wirelint.addon.delivery import Delivery
from wirelint.addon.failures import Failures
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.engine import Engine, Session
from wirelint.rewrite import ReplyStream
from wirelint.rewrite import following as module
from wirelint.rewrite.following import Following, Forms
from wirelint.rewrite.stream import LONGEST_HOLD
from wirelint.state.ledger import Ledger

TOOLS = {"find": schema(place="string"), "to": schema(place="string")}
TALK = Talk(text="x", tools=TOOLS, model="m")
REQUEST = TALK.record("openai.chat", True)
PLAIN = ("The ferry leaves", " at nine, and", " comes back", " at two.")


class Seen(NamedTuple):
    """What became of a reply: what the client got, what is known of it, what was found."""

    pieces: tuple[tuple[bytes, ...], ...]
    faults: tuple[object, ...]
    fixes: tuple[object, ...]
    notes: tuple[str, ...]
    delivered: object
    exchange: tuple[str, ...]
    findings: tuple[object, ...]


def events(
    pieces: Iterable[str] = PLAIN,
    *,
    number: int = 1,
    reason: str | None = "stop",
    usage: dict[str, Any] | None = None,
    done: bool = True,
    head: dict[str, Any] | None = None,
    model: str = "m",
) -> list[bytes]:
    """The events of a reply of OpenAI's form. `number` makes what differs from reply to reply; `head`: more members."""
    made = {"id": f"chatcmpl-{number:08x}", "object": "chat.completion.chunk", "created": 1_770_000_000 + number}
    same = {**made, "model": model, "system_fingerprint": f"fp_{number * 977:06x}", **(head or {})}

    def chunk(delta: dict[str, Any], why: str | None = None, **more: Any) -> dict[str, Any]:
        return {**same, "choices": [{"index": 0, "delta": delta, "finish_reason": why}], **more}

    told = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in pieces)]
    told += [chunk({}, reason)] if reason is not None else []
    told += [{**same, "choices": [], "usage": usage}] if usage is not None else []
    body = [b"data: %s\n\n" % json.dumps(one, ensure_ascii=False).encode("utf-8", "surrogatepass") for one in told]
    return [*body, *([b"data: [DONE]\n\n"] if done else [])]


def started(
    forms: Forms | None, request: dict[str, Any] = REQUEST, clock: Clock | None = None, hold: float = LONGEST_HOLD
) -> tuple[Delivery, ExchangeRecorder]:
    """A reply whose head has come. `hold`: milliseconds for which text may wait."""
    flow = flow_of(request)
    flow.response = head_of(request)
    flow.response.headers["transfer-encoding"] = "chunked"
    visit = visit_of(request, limit=1 << 22, clock=clock)
    visit.respond(200, as_record(request).response_headers)
    assert visit.session is not None
    rewriting = ReplyStream.begin(visit.session, REGISTRY.rules, Ledger(), UNSAFE, hold)
    assert rewriting is not None
    return Delivery(flow, visit, rewriting, Failures(), "", forms), visit


def passing(
    pieces: Sequence[bytes],
    forms: Forms | None,
    request: dict[str, Any] = REQUEST,
    *,
    end: bool = True,
) -> Seen:
    """Pass a reply, 5 ms between its pieces. `end` False: it breaks off."""
    clock = Clock()
    delivery, visit = started(forms, request, clock)
    assert visit.session is not None
    got: list[tuple[bytes, ...]] = []
    for piece in pieces:
        clock.time += 0.005
        got.append(tuple(delivery(piece)))
    clock.time += 0.005
    got.append(tuple(delivery(b"") if end else delivery.remains()))
    delivery.settle()
    visit.catch_up()
    exchange = visit.session.finish("complete" if end else "upstream-died")
    findings = Engine(REGISTRY.rules).judge(exchange)
    told = (exchange.reply, exchange.end, exchange.chunks, exchange.arrivals, exchange.timing)
    return Seen(
        tuple(got),
        tuple(visit.faults),
        tuple(visit.fixes),
        tuple(visit.notes),
        visit.delivered,
        tuple(map(repr, told)),
        tuple(findings),
    )


def known(forms: Forms | None = None, **told: Any) -> Forms:
    """What is known when two replies have passed."""
    forms = forms or Forms()
    for number in (1, 2):
        passing(events(number=number, **told), forms)
    return forms


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the numbers of the frames that sessions read."""
    read: list[int] = []
    real = Session.read

    def counted(self: Session, frame: Any) -> Any:
        read.append(frame.number)
        return real(self, frame)

    monkeypatch.setattr(Session, "read", counted)
    return read


def test_the_third_reply_is_not_read_while_it_passes(reads: list[int], followed: list[Following]) -> None:
    forms = known()
    assert not followed
    assert reads
    reads.clear()
    pieces = events(("Another text", " of other", " pieces,", " more", " of them."), number=7)
    delivery, visit = started(forms)
    assert visit.session is not None
    for piece in pieces:
        assert delivery(piece) == [piece]
    assert delivery(b"") == []
    assert not reads
    delivery.settle()
    visit.catch_up()
    reply = visit.session.finish().reply
    assert reads == [0, 1, 6, 7], "how it begins and how it ends: what its texts say is known"
    assert reply is not None
    assert reply.choices[0].text == "Another text of other pieces, more of them."
    assert (reply.id, reply.events, reply.terminated) == ("chatcmpl-00000007", len(pieces), True)


FITTING: dict[str, Any] = {
    "as before": events(number=9),
    "another text": events(("I", " said", " so.", " Yes"), number=9),
    "one piece": events(("Nobody knows.",), number=9),
    "may begin a tag": events(("The ferry leaves", " <", "b>now"), number=9),
    "may begin a tool's line": events(("The ferry leaves", "\nf", "erries"), number=9),
    "what JSON escapes": events(('He said "no",', "\nand then\n", "went ☂."), number=9),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits(name: str, followed: list[Following]) -> None:
    forms = known()
    assert passing(FITTING[name], forms) == passing(FITTING[name], None)
    assert followed[-1].over


def test_numbers_of_a_usage_may_differ(followed: list[Following]) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "cost": 0.0012, "details": {"cached": 0, "audio": None}}
    forms = known(usage=usage)
    other = {"prompt_tokens": 190, "completion_tokens": 42, "cost": 1.2e-05, "details": {"cached": 7, "audio": None}}
    third = events(number=9, usage=other)
    assert passing(third, forms) == passing(third, None)
    assert followed[-1].over
    fourth = events(number=10, usage={**other, "details": {"cached": 7, "audio": 1}})
    assert passing(fourth, forms) == passing(fourth, None)
    assert not followed[-1].over


def _with(place: int, old: bytes, new: bytes, **told: Any) -> list[bytes]:
    made = events(number=9, **told)
    assert old in made[place]
    made[place] = made[place].replace(old, new)
    return made


SPLIT = events(number=9)
LONG = events(("The ferry leaves", " at nine", ", and comes", " back", " at two", " o'clock", " then."), number=9)


UNFIT: dict[str, list[bytes]] = {
    "another finish reason": events(number=9, reason="length"),
    "promises calls": events(number=9, reason="tool_calls"),
    "no finish reason": events(number=9, reason=None),
    "no terminator": events(number=9, done=False),
    "nothing said": events((), number=9),
    "an empty piece": events(("The ferry", "", " leaves"), number=9),
    "a usage": events(number=9, usage={"total_tokens": 3}),
    "another model": events(number=9, model="n"),
    "a member more": events(number=9, head={"provider": "x"}),
    "another id on the way": _with(2, b"chatcmpl-00000009", b"chatcmpl-00000008"),
    "another id at the end": _with(-2, b"chatcmpl-00000009", b"chatcmpl-00000008"),
    "another choice": _with(2, b'"index": 0', b'"index": 1'),
    "a role on the way": _with(2, b'"delta": {', b'"delta": {"role": "tool", '),
    "a thought": events(("<think>Hm", "</think>So."), number=9),
    "leaked markup": events(
        ("Hm.", ' <tool_call>{"name": "find", "arguments": {"place": "Bodø"}}</tool_call>'), number=9
    ),
    "a token of a template": events((*PLAIN, "<|im_end|>"), number=9),
    "a line that begins with a tool": events((*PLAIN, "\nfind(", 'place="Bodø")'), number=9),
    "begins with a role": events(("assistant", "\n", "The ferry leaves"), number=9),
    "two events in one": [SPLIT[0] + SPLIT[1], *SPLIT[2:]],
    "an event in two": [*SPLIT[:2], SPLIT[2][:9], SPLIT[2][9:], *SPLIT[3:]],
    "a comment": [*SPLIT[:2], b": waiting\n\n", *SPLIT[2:]],
    "other line ends": [one.replace(b"\n", b"\r\n") for one in SPLIT],
    "an error": [*SPLIT[:3], b'data: {"error": {"message": "no"}}\n\n'],
    "more after the end": [*SPLIT, SPLIT[2]],
    "the end twice": [*SPLIT, SPLIT[-1]],
    "a string that is none": _with(2, b" at nine", b" at\tnine"),
    "no UTF-8": _with(2, b" at nine", b" at \xff nine"),
    "half a surrogate": _with(2, b" at nine", rb" at \ud83d nine"),
    "a document": [b'{"error": {"message": "no"}}'],
    "nothing": [],
}


@pytest.mark.parametrize("end", [True, False], ids=["ends", "breaks off"])
@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_is_read(name: str, end: bool, followed: list[Following]) -> None:
    forms = known()
    assert passing(UNFIT[name], forms, end=end) == passing(UNFIT[name], None, end=end)
    assert name in ("more after the end", "the end twice") or not followed[-1].over


@pytest.mark.parametrize("size", range(len(LONG)))
def test_all_that_flowed_is_there_whenever_it_is_looked_at(size: int) -> None:
    """When it breaks off, when it fails, and when somebody looks while it comes."""
    body = b"".join(LONG[:size])
    delivery, visit = started(known())
    for piece in LONG[:size]:
        assert delivery(piece) == [piece]
    assert visit.empty is (not size)
    assert visit.raw_body() == body
    assert visit.size == 4096 + len(visit.request_body or b"") + len(body)
    delivery.catch_up()
    for piece in LONG[size:]:
        assert delivery._following is None
        assert delivery(piece) == [piece]
    assert visit.raw_body() == b"".join(LONG)


@pytest.mark.parametrize("size", range(len(SPLIT)))
def test_a_reply_that_breaks_off(size: int) -> None:
    forms = known()
    assert passing(SPLIT[:size], forms, end=False) == passing(SPLIT[:size], None, end=False)
    assert passing(SPLIT[:size], forms) == passing(SPLIT[:size], None)


def test_what_is_repaired_is_repaired() -> None:
    forms = known()
    seen = passing(UNFIT["leaked markup"], forms)
    assert [fix.name for fix in seen.fixes] == ["xml-leak"]  # type: ignore[attr-defined]
    assert b"tool_calls" in b"".join(itertools.chain(*seen.pieces))
    assert [fix.name for fix in passing(UNFIT["no terminator"], forms).fixes] != []  # type: ignore[attr-defined]


def test_a_form_is_made_when_it_was_seen_twice(followed: list[Following]) -> None:
    forms = Forms()
    for number in range(5):
        passing(events(number=number, model="mnopq"[number]), forms)
    assert not followed
    passing(events(number=6, model="n"), forms)
    assert not followed
    passing(events(number=7, model="n"), forms)
    assert followed[-1].over


def test_a_server_may_have_several_forms(followed: list[Following]) -> None:
    """With a usage and without, for one."""
    forms = Forms()
    usage = {"total_tokens": 12}
    for number in range(4):
        passing(events(number=number, usage=usage if number % 2 else None), forms)
    followed.clear()
    for number in range(4, 12):
        told = events(number=number, usage=usage if number % 2 else None)
        assert passing(told, forms) == passing(told, None)
    assert len([one for one in followed if one.over]) == 8


def test_of_many_forms_those_that_come_are_kept(followed: list[Following]) -> None:
    forms = Forms()
    for model in "abcdefgh":
        known(forms, model=model)
        passing(events(number=5, model="a"), forms)
        assert followed[-1].over, model
    passing(events(number=6, model="b"), forms)
    assert not followed[-1].over


def test_models_are_told_apart(followed: list[Following]) -> None:
    """Another model of the same server does not drive out what is known of one."""
    forms = known()
    for model in "abcdefgh":
        other = Talk(text="x", tools=TOOLS, model=model).record("openai.chat", True)
        for number in (1, 2, 3):
            passing(events(number=number, model=model), forms, other)
        assert followed[-1].over
    passing(events(number=4), forms)
    assert followed[-1].over


def test_a_server_that_keeps_to_no_form_is_learnt_from_seldom(
    followed: list[Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    real = module._source

    def counted(*given: Any) -> Any:
        looked.append(1)
        return real(*given)

    monkeypatch.setattr(module, "_source", counted)
    forms = Forms()
    for number in range(400):
        passing(events(number=number, model=f"m{number}"), forms)
    assert 10 < len(looked) < 60
    assert not followed
    for number in range(100):
        passing(events(number=number), forms)
    assert followed[-1].over


def test_a_server_whose_replies_stop_following_for_a_while_is_followed_again(followed: list[Following]) -> None:
    forms = known()
    for number in range(3, 60):
        assert passing(events((*PLAIN * 3, " <json>now"), number=number), forms).faults == ()
    passing(events(number=100), forms)
    assert followed[-1].over


def test_replies_that_began_before_the_form_was_known_say_nothing_against_it(followed: list[Following]) -> None:
    forms = Forms()
    under_way = [started(forms) for _ in range(60)]
    for number, (delivery, _) in enumerate(under_way):
        for piece in (*events(number=number), b""):
            delivery(piece)
    passing(events(number=99), forms)
    assert [one.over is not None for one in followed] == [True]


def test_a_server_whose_replies_begin_otherwise_is_still_followed(followed: list[Following]) -> None:
    forms = known()
    for number in range(3, 100):
        passing(events(("<think>Hm", "</think>So."), number=number), forms)
    passing(events(number=100), forms)
    assert followed[-1].over


def test_an_opening_of_many_events_is_no_form(followed: list[Following]) -> None:
    forms = Forms()
    for number in range(4):
        first, *rest = events(number=number)
        passing([first, *[b": waiting\n\n"] * 40, *rest], forms)
    assert not followed


def test_servers_are_told_apart(followed: list[Following]) -> None:
    forms = known()
    other = json.loads(json.dumps(REQUEST))
    other["request"]["url"] = "https://other.example/v1/chat/completions"
    passing(events(number=5), forms, other)
    assert not followed


def test_a_long_reply_is_read_on_the_way(followed: list[Following], reads: list[int]) -> None:
    forms = known()
    long = events((" word",) * 600, number=9)
    assert sum(map(len, long)) > module._MOST
    reads.clear()
    seen = passing(long, forms)
    assert len(reads) > 3
    assert seen == passing(long, None)


@pytest.mark.parametrize("after", range(len(SPLIT)))
def test_a_failure_is_told_and_all_that_came_leaves(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    forms = known()
    real, asked = Following.passes, itertools.count()

    def raising(self: Following, data: bytes, at: float | None) -> list[bytes] | None:
        if next(asked) == after:
            raise RuntimeError("no")
        return real(self, data, at)

    monkeypatch.setattr(Following, "passes", raising)
    seen = passing(SPLIT, forms)
    assert b"".join(itertools.chain(*seen.pieces)) == b"".join(SPLIT)
    assert [fault.name for fault in seen.faults] == ["internal-error"]  # type: ignore[attr-defined]


texts = st.lists(st.one_of(st.sampled_from((*WORDS, *FIRST)), st.text(max_size=6)), max_size=7)


@given(
    replies=st.lists(
        st.tuples(
            st.sampled_from(FIRST),
            texts,
            st.sampled_from(("stop", "stop", "stop", "length", "tool_calls", None)),
            st.sampled_from((None, None, {"total_tokens": 3})),
            st.sampled_from((True, True, True, False)),
        ),
        min_size=1,
        max_size=4,
    ),
    model=st.sampled_from(("m", "gemma-3", "gpt-oss-20b", "deepseek-r1", "kimi-k2")),
    usage=st.sampled_from((None, {"total_tokens": 12})),
    end=st.booleans(),
)
def test_all_is_as_if_they_had_been_read(
    replies: list[tuple[str, list[str], str | None, dict[str, Any] | None, bool]],
    model: str,
    usage: dict[str, Any] | None,
    end: bool,
) -> None:
    forms = known(model=model, usage=usage)
    asked = Talk(text="x", tools=TOOLS, model=model).record("openai.chat", True)
    for number, (first, more, reason, counted, done) in enumerate(replies, 3):
        pieces = [piece for piece in (first, *more) if piece]
        made = events(pieces, number=number, reason=reason, usage=counted or usage, done=done, model=model)
        assert passing(made, forms, asked, end=end) == passing(made, None, asked, end=end)


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=25, deadline=None)
@given(
    said=st.lists(st.tuples(st.sampled_from(FIRST), texts, st.booleans()), min_size=1, max_size=3),
    step=st.integers(1, 9),
    usage=st.booleans(),
)
def test_all_is_as_if_they_had_been_read_in_every_api(
    api: str, said: list[tuple[str, list[str], bool]], step: int, usage: bool
) -> None:
    forms = Forms()
    plain: list[tuple[str, list[str], bool]] = [("The ferry leaves at nine, and comes back at two.", [], False)] * 2
    for first, more, called in (*plain, *said, *plain):
        calls = (Call("find", {"place": "Bodø"}),) if called else ()
        record = Talk(text=first + "".join(more), calls=calls, tools=TOOLS, step=step).record(api, True)
        body = as_record(record).response_body or b""
        made = [part for part in body.replace(b"\n\n", b"\n\n\0").split(b"\0") if part]
        assert passing(made, forms, record) == passing(made, None, record)


def test_a_request_is_never_followed_whose_rewriters_look_at_everything(followed: list[Following]) -> None:
    record = Talk(text="The ferry leaves at nine.", tools=TOOLS).record("anthropic.messages", True)
    body = as_record(record).response_body or b""
    pieces = [part + b"\n\n" for part in body.split(b"\n\n")[:-1]]
    forms = Forms()
    for _ in range(3):
        passing(pieces, forms, record)
    assert not followed


def test_what_is_said_is_judged(followed: list[Following]) -> None:
    """Findings that come of a reply's text are there although nothing of it was read while it passed."""
    forms = known()
    fabricated = events(("I", " ran the tests", " and all of them", " passed."), number=9)
    seen = passing(fabricated, forms)
    assert followed[-1].over
    assert seen.findings == passing(fabricated, None).findings
