"""Token counts that a fix requested: the client gets the stream without their event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import REGISTRY, as_record, chunk, exchange, some, sse
from tests.cuts import events_of, split
from tests.rewrite.mending import UNSAFE, head
from tests.selection import in_batches
from wirelint.capture.offline import fix
from wirelint.engine import Session
from wirelint.fix import FixPolicy
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.request import mend_request
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

PATH = "/v1/chat/completions"
ASKED: dict[str, Any] = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Say yes."}]}
COUNTS = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
ALONE = {**chunk(), "choices": [], "usage": COUNTS}
SAID = (
    chunk({"role": "assistant", "content": "Yes"}),
    *(chunk({"content": f" and {word}"}) for word in ("then", "we", "go", "on")),
    chunk({}, "stop"),
)
NULLS = tuple({**one, "usage": None} for one in SAID)
RULE = REGISTRY.get("missing-usage")
DONE = "data: [DONE]\n\n"

# What the upstream sends, and what of it the client gets.
STREAMS: dict[str, tuple[str, str]] = {
    "as OpenAI does": (sse(*NULLS, ALONE), sse(*NULLS)),
    "no choices at all": (sse(*SAID, {"id": "x", "usage": COUNTS}), sse(*SAID)),
    "on the last event with a choice": (sse(*SAID[:-1], {**SAID[-1], "usage": COUNTS}),) * 2,
    "on every event": (sse(*({**one, "usage": COUNTS} for one in SAID)),) * 2,
    "an empty choice": (sse(*SAID, chunk({}, usage=COUNTS)),) * 2,
    "a filter's event first": (
        sse({"choices": [], "prompt_filter_results": []}, *SAID, ALONE),
        sse({"choices": [], "prompt_filter_results": []}, *SAID),
    ),
    "never": (sse(*SAID),) * 2,
    "with the terminator in one event": (
        sse(*SAID, done=False) + f"data: {json.dumps(ALONE)}\ndata: [DONE]\n\n",
        sse(*SAID),
    ),
    "a comment beside it": (
        sse(*SAID, done=False) + f": ping\n\ndata: {json.dumps(ALONE)}\n\n{DONE}",
        sse(*SAID, done=False) + f": ping\n\n{DONE}",
    ),
}  # fmt: skip


def passed(
    came: str, pieces: list[bytes], rules: tuple[Rule, ...], permit: FixPolicy = UNSAFE
) -> tuple[bytes, ReplyStream]:
    body = json.dumps(ASKED).encode()
    mended = mend_request(head(body, "openai.chat"), body, rules, Ledger(), permit)
    session = some(Session.begin(id="1", method="POST", url=f"https://llm.test{PATH}", headers={}, body=body))
    session.respond(200, {"content-type": "text/event-stream"})
    rewriting = some(ReplyStream.begin(session, rules, Ledger(), permit, request=some(mended.request)))
    assert came.encode() == b"".join(pieces)
    out = [one for piece in pieces for one in rewriting.feed(piece)] + rewriting.end()
    assert all(out)
    reply = some(session.finish().reply)
    assert reply.usage == (COUNTS if '"total_tokens"' in came else None), "the counts are counted all the same"
    return b"".join(out), rewriting


OTHERS = REGISTRY.select(["ALL"], ["ST601"])
"""All rules but the one that adds the terminator, or a blank line."""


@pytest.mark.parametrize("rules", [(RULE,), OTHERS], ids=["alone", "with others"])
@in_batches("name", STREAMS)
def test_the_requested_event_is_removed(name: str, rules: tuple[Rule, ...]) -> None:
    came, wanted = STREAMS[name]
    raw = came.encode()
    for pieces in ([raw], events_of(raw), split(raw, range(1, len(raw), 7))):
        got, rewriting = passed(came, pieces, rules)
        assert got.decode() == wanted
        taken = [repair.title for repair in rewriting.repairs if repair.code == "ST605"]
        assert len(taken) == (came != wanted)


@pytest.mark.parametrize(
    "permit", [FixPolicy("safe"), FixPolicy("unsafe", lambda code: code != "ST605")], ids=["safe", "others"]
)
def test_nothing_is_removed_without_a_changed_request(permit: FixPolicy) -> None:
    came, _ = STREAMS["as OpenAI does"]
    got, rewriting = passed(came, [came.encode()], REGISTRY.rules, permit)
    assert got.decode() == came
    assert not rewriting.repairs


@pytest.mark.parametrize("wanted", [True, False])
def test_a_client_that_decides_itself_keeps_its_stream(wanted: bool) -> None:
    came, _ = STREAMS["as OpenAI does"]
    asked = {**ASKED, "stream_options": {"include_usage": wanted}}
    record = as_record(exchange(PATH, asked, came, content_type="text/event-stream"))
    (fixed,) = fix([record], REGISTRY.rules, UNSAFE)
    assert (fixed.record.forwarded, fixed.record.delivered) == (None, None)  # type: ignore[union-attr]
