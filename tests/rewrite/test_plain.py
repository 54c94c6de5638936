"""Replies that say nothing but plain text: no rewriter is made for them, and all is as if they had been."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import APIS, REGISTRY, Call, Talk, as_record, schema
from tests.fixes.drive import UNSAFE, Result, open_session, run
from tests.fixes.test_prefilter import WORDS
from wirelint.capture.record import Record
from wirelint.engine import Session
from wirelint.events import Delta, Event
from wirelint.fix import RewriteContext, Rewriter
from wirelint.rewrite import Rewritten, pipeline, pipeline_factory, rewrite_reply, unread, whole_reply
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

TOOLS = {"find": schema(place="string"), "to": schema(place="string"), "call": schema(place="string")}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
FIRST = (
    *("The ferry", "I", "It goes", "Sure", "t", "to", "a", "assistant", "ASSISTANT", "analysis", "analysisWe"),
    *("thought\n", "python\n", "all\n", "find", "find(", "tools.find(", "function.", "[", "{", " The", "\n", "/no"),
    *("model\n", "## ", "H", "<think>", "Here is my", "Observation:", "call", "`", "to=self", "We need to"),
    *("Human: ", '{"name": "find"', "]~b]"),
)  # fmt: skip


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _stream(
    pieces: Iterable[str],
    *,
    reason: str | None = "stop",
    usage: bool = False,
    done: bool = True,
    late: Sequence[str] = (),
    comment: bool = False,
    model: str = "m",
) -> Record:
    """A reply of OpenAI's form; `late` are pieces after its end."""
    events: list[Any] = [_chunk({"role": "assistant", "content": ""})]
    events += [_chunk({"content": piece}) for piece in pieces]
    if reason is not None:
        events.append(_chunk({}, reason))
    events += [{**HEAD, "choices": [], "usage": {"total_tokens": 3}}] if usage else []
    body = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    body[1:1] = [": waiting\n\n"] if comment else []
    body += ["data: [DONE]\n\n"] if done else []
    body += [f"data: {json.dumps(_chunk({'content': piece}), ensure_ascii=False)}\n\n" for piece in late]
    record = as_record(Talk(text="x", tools=TOOLS).record("openai.chat", True), 1)
    asked = json.loads(record.request_body or b"")
    return dataclasses.replace(
        record,
        request_body=json.dumps({**asked, "model": model}).encode(),
        response_body="".join(body).encode("utf-8", "surrogatepass"),
        chunks=(),
    )


def _edges(record: Record) -> list[int]:
    parts = (record.response_body or b"").split(b"\n\n")[:-1]
    return list(itertools.accumulate(len(part) + 2 for part in parts))[:-1]


def _made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the number of rewriters whenever some are made."""
    made: list[int] = []
    real = pipeline.stages_of

    def counted(*given: Any) -> pipeline.Stages:
        stages = real(*given)
        made.append(len(stages))
        return stages

    monkeypatch.setattr(pipeline_factory, "stages_of", counted)
    return made


PLAIN = ("The ferry leaves", " at nine, and", " comes back at two.")


@pytest.mark.parametrize(
    ("pieces", "told", "needed"),
    [
        pytest.param(PLAIN, {}, False, id="text"),
        pytest.param(PLAIN, {"usage": True}, False, id="usage"),
        pytest.param(PLAIN, {"comment": True}, False, id="comment"),
        pytest.param((*PLAIN, " Go. T"), {}, False, id="ends in what may be a word"),
        pytest.param(PLAIN, {"reason": "length"}, False, id="cut off"),
        pytest.param((), {}, True, id="nothing said"),
        pytest.param(PLAIN, {"reason": "tool_calls"}, True, id="promises calls"),
        pytest.param(PLAIN, {"done": False}, True, id="no terminator"),
        pytest.param(PLAIN, {"late": ("More.",)}, True, id="more after the end"),
        pytest.param(("<think>", *PLAIN), {}, True, id="begins a thought"),
        pytest.param((*PLAIN, "<"), {}, True, id="may begin a tag"),
        pytest.param((*PLAIN, "\n# "), {}, True, id="ends in what opens a line"),
        pytest.param(("find", *PLAIN), {}, True, id="begins with the name of a tool"),
        pytest.param(("python", *PLAIN), {}, True, id="begins as calls of Llama's do"),
        pytest.param(("assistant", *PLAIN), {}, True, id="begins with a role"),
    ],
)
def test_rewriters_are_made_where_something_may_need_them(
    pieces: Sequence[str], told: dict[str, Any], needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _made(monkeypatch)
    record = _stream(pieces, **told)
    assert run(record, cuts=_edges(record)).faults == ()
    assert bool(made) is needed


def test_a_call_after_plain_text_is_repaired_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(text="Let me see. ", calls=(Call("find", {"place": "Bodø"}),), tools=TOOLS, step=4)
    record = as_record(talk.record("openai.chat", True), 1)
    made = _made(monkeypatch)
    result = run(record, cuts=_edges(record))
    assert made
    assert result.delivered == record.response_body


class _Shouting(Rule):
    """Puts all text in capitals."""

    code = "XX903"
    name = "shouting"
    severity = "info"
    layer = "model"

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        return _Shout()


class _Shout:
    held: int | None = None

    def push(self, event: Event) -> Iterable[Event]:
        return (event._replace(text=event.text.upper()),) if isinstance(event, Delta) else (event,)

    def release(self) -> Iterable[Event]:
        return ()


def test_a_rule_of_the_users_own_gets_all_text() -> None:
    record = _stream(PLAIN)
    result = run(record, (*REGISTRY.rules, _Shouting()), cuts=_edges(record))
    assert result.after.reply is not None
    assert result.after.reply.choices[0].text == "".join(PLAIN).upper()


def _seen(result: Result) -> tuple[object, ...]:
    return result.pieces, result.repairs, result.notes, result.faults, result.changed


@given(
    first=st.sampled_from(FIRST),
    more=st.lists(st.one_of(st.sampled_from((*WORDS, *FIRST)), st.text(max_size=6)), max_size=8),
    reason=st.sampled_from(("stop", "length", "tool_calls", "eos", None)),
    usage=st.booleans(),
    done=st.booleans(),
    late=st.sampled_from(((), ("More.",))),
    model=st.sampled_from(("m", "gemma-3", "gpt-oss-20b", "qwen3", "deepseek-r1", "kimi-k2")),
    flush=st.booleans(),
)
def test_all_is_as_if_they_had_been_made(
    first: str,
    more: list[str],
    reason: str | None,
    usage: bool,
    done: bool,
    late: Sequence[str],
    model: str,
    flush: bool,
) -> None:
    pieces = [piece for piece in (first, *more) if piece]
    record = _stream(pieces, reason=reason, usage=usage, done=done, late=late, model=model)
    cuts = _edges(record)
    slept = run(record, cuts=cuts, step=5.0, flush=flush)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_factory, "are_late", lambda rules, api: False)
        awake = run(record, cuts=cuts, step=5.0, flush=flush)
    assert _seen(slept) == _seen(awake)


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=25)
@given(
    first=st.sampled_from(FIRST),
    more=st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=8),
    called=st.booleans(),
    step=st.integers(1, 9),
    cuts=st.lists(st.floats(0, 1), max_size=6),
)
def test_all_is_as_if_they_had_been_made_in_every_api(
    api: str, first: str, more: list[str], called: bool, step: int, cuts: list[float]
) -> None:
    calls = (Call("find", {"place": "Bodø"}),) if called else ()
    record = as_record(Talk(text=first + "".join(more), calls=calls, tools=TOOLS, step=step).record(api, True), 1)
    size = len(record.response_body or b"")
    edges = sorted({int(cut * size) for cut in cuts} - {0, size})
    slept = run(record, cuts=edges, step=5.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_factory, "are_late", lambda rules, api: False)
        awake = run(record, cuts=edges, step=5.0)
    assert _seen(slept) == _seen(awake)


@pytest.mark.parametrize("api", APIS)
@given(
    first=st.sampled_from(FIRST),
    more=st.lists(st.one_of(st.sampled_from((*WORDS, *FIRST)), st.text(max_size=6)), max_size=8),
    called=st.booleans(),
    finish=st.sampled_from(("", None, "stop", "tool", "length", "nonsense")),
    model=st.sampled_from(("m", "gemma-3", "gpt-oss-20b", "qwen3", "deepseek-r1", "kimi-k2")),
)
def test_a_whole_reply_that_is_plain_is_one_in_which_nothing_is_found(
    api: str, first: str, more: list[str], called: bool, finish: str | None, model: str
) -> None:
    calls = (Call("find", {"place": "Bodø"}),) if called else ()
    talk = Talk(text=first + "".join(more), calls=calls, tools=TOOLS, finish=finish, model=model)
    record = as_record(talk.record(api, False), 1)
    quick = run(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_factory, "says_plainly", lambda *_: False)
        thorough = run(record)
        patch.setattr(pipeline_factory, "is_clean", lambda *_: False)
        repaired = run(record)
    assert _seen(quick) == _seen(thorough) == _seen(repaired)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("talk", "looked"),
    [
        pytest.param(Talk(text="The ferry leaves at nine."), False, id="text"),
        pytest.param(Talk(text="The ferry leaves <b>now</b>."), True, id="a tag"),
        pytest.param(
            Talk(text="Let me see.", calls=(Call("find", {"place": "Bodø"}),), tools=TOOLS), True, id="a call"
        ),
    ],
)
def test_a_plain_whole_reply_is_not_looked_at_by_rules(
    api: str, talk: Talk, looked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = unread.is_clean

    def counted(*given: Any) -> bool:
        asked.append(1)
        return real(*given)

    monkeypatch.setattr(pipeline_factory, "is_clean", counted)
    record = as_record(talk.record(api, False), 1)
    assert run(record).delivered == record.response_body
    assert bool(asked) is looked
    asked.clear()
    assert run(record, (*REGISTRY.rules, _Shouting())).delivered != record.response_body
    assert asked


REST = (" and goes on", ", analysis of a thought", "\nfind it", "\n\nSo", " t", "<think>", " [", " so be it. " * 40)


def _rewritten(record: Record) -> tuple[Rewritten, list[bytes], Session]:
    session, later = open_session(record), list[bytes]()
    made = rewrite_reply(
        session,
        record.response_body or b"",
        REGISTRY.rules,
        Ledger(),
        UNSAFE,
        chunks=record.chunks,
        later=lambda pieces: later.extend(piece for piece, _ in pieces),
    )
    return made, later, session


@pytest.mark.parametrize("api", APIS)
@given(
    first=st.sampled_from(FIRST),
    more=st.lists(st.one_of(st.sampled_from((*WORDS, *REST)), st.text(max_size=6)), max_size=8),
    called=st.booleans(),
    finish=st.sampled_from(("", None, "stop", "length", "nonsense")),
    model=st.sampled_from(("m", "gemma-3", "gpt-oss-20b", "qwen3", "deepseek-r1", "kimi-k2")),
    cut=st.floats(0, 1),
)
def test_a_whole_reply_that_is_told_by_its_events_is_as_if_it_had_been_read(
    api: str, first: str, more: list[str], called: bool, finish: str | None, model: str, cut: float
) -> None:
    calls = (Call("find", {"place": "Bodø"}),) if called else ()
    talk = Talk(text=first + "".join(more), calls=calls, tools=TOOLS, finish=finish, model=model)
    record = as_record(talk.record(api, False), 1)
    body = record.response_body or b""
    size = int(cut * len(body))
    record = dataclasses.replace(record, chunks=((1.0, size), (2.0, len(body) - size)))
    quick, later, session = _rewritten(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_reply, "_says_plainly", lambda *_: False)
        thorough, never, read = _rewritten(record)
    assert quick == thorough
    assert not never
    if later:
        assert (b"".join(later), quick.body) == (body, body)
        assert session.reply() is None, "it is read when somebody asks"
        session.feed(body)
    assert repr(session.finish().reply) == repr(read.finish().reply)


@pytest.mark.parametrize(
    ("text", "plainly"),
    [
        pytest.param("The ferry leaves at nine. " * 40, True, id="long"),
        pytest.param("The ferry leaves at nine. " * 40 + "Such is the analysis of my thought.", True, id="words"),
        pytest.param("The ferry leaves at nine. " * 40 + "\nfind it", False, id="a line that begins with a tool"),
        pytest.param("The ferry leaves at nine. " * 40 + "\r\n\x0bfind it", False, id="other line ends"),
        pytest.param("The ferry leaves at nine. " * 40 + "<|im_end|>", False, id="a token"),
        pytest.param("assistant\n" + "The ferry leaves at nine. " * 40, False, id="a role"),
    ],
)
def test_which_whole_replies_are_told_by_their_events(text: str, plainly: bool) -> None:
    record = as_record(Talk(text=text, tools=TOOLS).record("openai.chat", False), 1)
    assert bool(_rewritten(record)[1]) is plainly
    broken = dataclasses.replace(record, response_body=(record.response_body or b"")[:-1])
    assert not _rewritten(broken)[1]
    other = dataclasses.replace(record, response_headers=(("content-type", "text/plain"),))
    assert not _rewritten(other)[1]


@pytest.mark.parametrize("text", ["if (a < b && c", "Let me see.", "<think>So", '<tool_call>{"name": "find"'])
def test_what_a_repair_has_kept_goes_with_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it holds itself in a circle: that would be left to the garbage collector, and stop the proxy."""
    kept: list[weakref.ref[Rewriter]] = []
    real = pipeline.stages_of

    def watched(*given: Any) -> pipeline.Stages:
        stages = real(*given)
        kept.extend(weakref.ref(rewriter) for _, rewriter in stages)
        return stages

    monkeypatch.setattr(pipeline_factory, "stages_of", watched)
    record = _stream((text, " it goes", " on <| and"))
    gc.disable()
    try:
        assert run(record, cuts=_edges(record)).faults == ()
        assert kept
        assert [one() for one in kept if one() is not None] == []
    finally:
        gc.enable()
