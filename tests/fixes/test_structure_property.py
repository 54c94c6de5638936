"""Streams of calls with several faults at once, compared with the intended calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.build import chunk, exchange, sse
from tests.fixes.drive import UNSAFE, run

RULES = ["ID302", "ID305", "ID306", "ST601", "ST606", "TC501", "TC503"]
NAMES = {"feed": "feed", "FEED": "feed", "functions.feed": "feed", "Brush": "Brush", "brush": "Brush", "weed": None}
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("feed", "Brush")]


@dataclass(frozen=True)
class Sent:
    """A call with the pieces that its arguments come in. `head`: the first event has none of them."""

    name: str
    pieces: tuple[str, ...]
    head: bool


@st.composite
def sent(draw: st.DrawFn) -> Sent:
    text = json.dumps({"who": draw(st.sampled_from(["owl", "a}{b", 'q"', "\\"])), "n": draw(st.integers(0, 9))})
    cuts = sorted(draw(st.sets(st.integers(1, len(text) - 1), max_size=4)))
    pieces = tuple(text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True))
    return Sent(draw(st.sampled_from(list(NAMES))), pieces, draw(st.booleans()))


def entries(call: Sent, id_: str, index: int | None, ids: bool) -> list[dict[str, Any]]:
    """The events of a call. `ids`: each carries another id."""
    pieces = ("", *call.pieces) if call.head else call.pieces
    made: list[dict[str, Any]] = [{"function": {"arguments": piece}} for piece in pieces]
    made[0] = {"id": id_, "type": "function", "function": {"name": call.name, "arguments": pieces[0]}}
    for number, entry in enumerate(made[1:] if ids else (), 1):
        entry["id"] = f"{id_}-{number}"
    return [entry | ({} if index is None else {"index": index}) for entry in made]


@given(
    st.lists(st.lists(sent(), max_size=3), min_size=1, max_size=2),
    st.sampled_from(["none", "shared", "missing", "ids"]),
    st.sampled_from(["stop", "tool_calls"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_the_intended_calls_arrive(
    candidates: Sequence[Sequence[Sent]], fault: str, reason: str, ended: bool, random: Any
) -> None:
    rows: list[list[dict[str, Any]]] = []
    for number, calls in enumerate(candidates):
        deltas: list[dict[str, Any]] = [{"content": "Well."}]
        for place, call in enumerate(calls):
            index = {"shared": 0, "missing": None}.get(fault, place)
            id_ = f"call_{number}{place}"
            deltas += [{"tool_calls": [entry]} for entry in entries(call, id_, index, fault == "ids")]
        said = [{"index": number, "delta": delta, "finish_reason": None} for delta in deltas]
        rows.append([*said, {"index": number, "delta": {}, "finish_reason": reason if calls else "stop"}])
    stream = []
    while rows:  # candidates take turns
        row = random.choice(rows)
        stream.append(chunk(choices=[row.pop(0)]))
        rows = [each for each in rows if each]
    asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go."}], "tools": TOOLS}
    reply = sse(*stream, done=ended)
    done = run(exchange("/v1/chat/completions", asked, reply, content_type="text/event-stream"), RULES, UNSAFE)

    assert done.faults == ()
    assert done.after.reply is not None
    for number, (calls, choice) in enumerate(zip(candidates, done.after.reply.choices, strict=True)):
        meant = [
            (f"call_{number}{place}", NAMES[call.name], "".join(call.pieces))
            for place, call in enumerate(calls)
            if NAMES[call.name] is not None
        ]
        assert [(call.id, call.name, call.arguments.text) for call in choice.calls] == meant
        assert choice.finish_reason == ("tool_calls" if meant else "stop")
        assert choice.text.startswith("Well.")
        assert choice.text.count("wirelint took out") == len(calls) - len(meant)
        assert [call.pieces[0].index for call in choice.calls] == list(range(len(meant)))
    assert done.after.reply.terminated
    assert [finding for finding in done.left if finding.fix is not None] == []
