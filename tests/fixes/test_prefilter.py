"""The prefilter lets only text pass that no rewriter changes or holds back."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import APIS, REGISTRY, Talk, as_record, schema, some
from tests.cuts import events_of
from tests.fixes.drive import UNSAFE, open_session
from tests.tables import tables
from wirelint.capture.record import Record
from wirelint.fixes.prefilter import Prefilter
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.pipeline import Pipeline
from wirelint.state.ledger import Ledger

TOOLS = {"find": schema(place="string"), "to": schema(place="string"), "call": schema(place="string")}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("varied", [False, True], ids=["alike", "each of its own"])
def test_a_word_that_waits_leaves_with_the_next(api: str, varied: bool) -> None:
    text = "One goes to it: there, too. the ferry as well.\n  And so (to it); then."
    record = Talk(text=text, tools=TOOLS, step=1).record(api, True)
    body = record["response"]["body"].encode()
    events = events_of(body)
    if varied:  # an event that says more than the one before it is read before it leaves
        events = [event.replace(b"{", b'{"obfuscation":"%d",' % number, 1) for number, event in enumerate(events)]
        record["response"]["body"] = b"".join(events).decode()
    rewriting = some(ReplyStream.begin(open_session(as_record(record)), REGISTRY.rules, Ledger(), UNSAFE))
    steps = [rewriting.feed(event) for event in events]
    steps.append(rewriting.end())
    assert b"".join(itertools.chain(*steps)) == b"".join(events)
    assert not rewriting.faults
    assert not rewriting.changed
    told = [number for number, event in enumerate(events) if re.search(b'"(content|text)": ?".{1,2}"', event)]
    assert len(told) == len(text)
    waits = [told[found.start()] for found in re.finditer(r"(?<=[:.;] )t|(?<=\()t", text)]
    assert len(waits) == 4  # there, the, to, then: what goes on a sentence does not wait
    for number in waits:
        assert steps[number] == []
        assert next(filter(None, steps[number:]))[0] == events[number]


def test_blanks_without_end_are_not_waited_for_without_end() -> None:
    talk = Talk(text="One goes there.\n" + " " * 1200 + "x", tools=TOOLS, step=1)
    record = talk.record("openai.chat", True)
    body = record["response"]["body"].encode()
    events = events_of(body)
    rewriting = some(ReplyStream.begin(open_session(as_record(record)), REGISTRY.rules, Ledger(), UNSAFE))
    longest = waits = 0
    out: list[bytes] = []
    for event in events:
        step = rewriting.feed(event)
        waits = 0 if step else waits + 1
        longest = max(longest, waits)
        out += step
    out += rewriting.end()
    assert b"".join(out) == body
    assert not rewriting.faults
    assert longest < 600


SEARCH = {"find": schema(place="string"), "read_note": schema(path="string")}
TABLES = tables(__file__)


@given(
    parts=st.lists(
        st.one_of(st.sampled_from(TABLES["code"]), st.sampled_from(TABLES["markup"]), st.text(max_size=4)), max_size=8
    ),
    step=st.sampled_from((1, 2, 3, 4, 5, 7, 11, 40)),
    api=st.sampled_from(("openai.chat", "anthropic.messages")),
    model=st.sampled_from(("m", "qwen3", "kimi-k2", "deepseek-r1", "gpt-oss-20b")),
)
def test_fixes_are_those_without_the_prefilter(parts: list[str], step: int, api: str, model: str) -> None:
    text = "".join(parts) or "So."
    record = as_record(Talk(text=text, tools=SEARCH, model=model, step=step).record(api, True), 1)
    told = _repaired(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prefilter, "may_start", lambda *_: True)
        patch.setattr(Pipeline, "pass_by", lambda *_: False)
        assert told == _repaired(record)


def _repaired(record: Record) -> tuple[object, ...]:
    """What the client gets of a reply, and what is said of it."""
    rewriting = some(ReplyStream.begin(open_session(record), REGISTRY.rules, Ledger(), UNSAFE))
    out = [piece for event in events_of(record.response_body or b"") for piece in rewriting.feed(event)]
    out += rewriting.end()
    assert rewriting.faults == []
    return b"".join(out), tuple(map(repr, rewriting.repairs)), tuple(rewriting.notes)
