"""One contract for the writers of all APIs: what was written reads as the changed events, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from tests.apis import talk_openai_responses as responses
from tests.apis.harness import (
    ITEMS,
    Change,
    Shape,
    bodies,
    body_of,
    calling,
    essence,
    frames_of,
    identified,
    raw,
    rebuilt,
    relabelled,
    reply_of,
    reworded,
    rewrite,
    rewritten,
    shown,
    stopped,
    the,
    thinking,
    understood,
    untouched,
    without,
)
from tests.apis.shapes import SHAPES
from tests.apis.talk_deepinfra_inference import token
from tests.apis.talk_google_generate_content import SIGNATURE
from tests.apis.talk_google_generate_content import reply as gemini_reply
from tests.build import some, sse
from tests.selection import in_batches, rotated
from wirelint.apis.traits import traits
from wirelint.apis.writing import MADE
from wirelint.events import Close, Delta, Event, Finish, Start, StreamViolation, Usage
from wirelint.model import Reply, ToolCall

MODELS = {api: shapes for api, shapes in SHAPES.items() if api != "mcp"}
CALLS = (("go", "{}"), ("look", '{"at": "y"}'))

CHANGES: dict[str, Callable[[str], Change]] = {
    "rebuilt": lambda api: rebuilt,
    "no text": lambda api: without("text"),
    "no reasoning": lambda api: without("reasoning"),
    "no calls": lambda api: without("tool_call"),
    "first call removed": lambda api: without("tool_call", 1),
    "text in capitals": lambda api: reworded("text", str.upper),
    "text cut": lambda api: reworded("text", lambda text: text[1:]),
    "text emptied": lambda api: reworded("text", lambda text: ""),
    "reasoning in capitals": lambda api: reworded("reasoning", str.upper),
    "reasoning emptied": lambda api: reworded("reasoning", lambda text: ""),
    "arguments in capitals": lambda api: reworded("tool_call", lambda text: text.replace("x", "y")),
    "call inserted": lambda api: calling(CALLS[0], reason=traits(api).calls),
    "calls inserted": lambda api: calling(*CALLS, reason=traits(api).calls),
    "text turned into reasoning": lambda api: thinking("!"),
    "calls relabelled": lambda api: relabelled("call_9", "see"),
    "finish reason replaced": lambda api: stopped(traits(api).ended),
    "reply id replaced": lambda api: identified("r9"),
}


@in_batches(("api", "shape", "form"), bodies(MODELS))
def test_unchanged_events_leave_as_they_came(api: str, shape: Shape, form: str) -> None:
    body = body_of(shape, form)
    assert rewritten(api, body, untouched)[0] == body


def content(api: str, reply: Reply) -> list[Any]:
    """Return what a client shows of a reply: the text of each kind joined, arguments as values."""
    found: list[Any] = []
    for choice in reply.choices:
        texts = {"text": "", "reasoning": "", "refusal": ""}
        calls: list[Any] = []
        others: list[Any] = []
        for part in choice.parts:
            kind, words = shown(part)
            if isinstance(part, ToolCall):
                calls.append((part.id if traits(api).has_call_ids else None, part.name, part.arguments.mapping))
            elif kind in texts:
                texts[kind] += words
            elif kind != "sealed":
                others.append((kind, words))
        if any(texts.values()) or calls or others or choice.finish_reason:
            found.append((choice.index, texts, calls, sorted(others), choice.finish_reason))
    return found


# --- form of streams --------------------------------------------------------------------------------------------------


def documents_of(written: bytes) -> list[Any]:
    """Return the JSON documents of a stream, with the names of their events."""
    frames, _ = frames_of([written])
    return [(frame.event, json.loads(frame.data)) for frame in frames if frame.data and frame.data.startswith("{")]


def check_cohere(written: bytes) -> None:
    """Blocks of each group are numbered from 0, and none starts within another."""
    numbers: dict[str, int] = {}
    within: tuple[str, int] | None = None
    for _, document in documents_of(written):
        group, _, verb = document["type"].rpartition("-")
        if group in ("content", "tool-call"):
            place = (group, document["index"])
            if verb == "start":
                assert within is None
                assert document["index"] == numbers.get(group, 0)
                numbers[group] = document["index"] + 1
            else:
                assert within == place
            within = None if verb == "end" else place


def check_anthropic(written: bytes) -> None:
    """Content blocks are numbered from 0, one is open at a time, and signatures leave with their thinking."""
    number, is_open, kind = 0, False, ""
    for name, document in documents_of(written):
        assert name == document["type"] or name in (None, "chunk")
        if document["type"].startswith("content_block"):
            assert document["index"] == number
            assert is_open is not (document["type"] == "content_block_start")
            is_open = document["type"] != "content_block_stop"
            number += not is_open
            kind = document.get("content_block", {}).get("type", kind)
            assert kind == "thinking" or "signature" not in document.get("delta", {})
    assert not is_open


def check_bedrock(written: bytes) -> None:
    """Content blocks are numbered from 0, one after the other; each has an event before its stop."""
    number, begun = 0, False
    for _, document in documents_of(written):
        event = next(
            (document[key] for key in document if isinstance(document[key], dict) and key != "delta"), document
        )
        event = document if "contentBlockIndex" in document else event
        if "contentBlockIndex" in event:
            assert event["contentBlockIndex"] == number
            assert begun or event.keys() - {"contentBlockIndex", "p"}, "a stop without any other event"
            begun = bool(event.keys() - {"contentBlockIndex", "p"})
            number += not begun
    assert not begun


def check_ollama(written: bytes) -> None:
    """Each line has the model and a time. Only the last one is the end, and it has the counts."""
    lines = [json.loads(line) for line in written.splitlines() if line.strip()]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert all("model" in line and "created_at" in line for line in lines)


def check_responses(written: bytes) -> None:
    """Each text is equal in all places that repeat it; items and sequence numbers are counted without gaps."""
    documents = [document for _, document in documents_of(written)]
    if "sequence_number" in documents[0]:
        assert [document["sequence_number"] for document in documents] == list(range(len(documents)))
    texts: dict[Any, str] = {}
    items: list[dict[str, Any]] = []
    done: set[int] = set()
    for document in documents:
        index, kind = document.get("output_index"), document["type"]
        place = (index, document.get("content_index"), document.get("summary_index"))
        if kind == "response.output_item.added":
            assert index == len(items), "items are numbered in order"
            assert all(one in done for one in range(index)), "one item is open at a time"
            items.append(document["item"])
        elif index is not None:
            assert index < len(items), "announced before any other event of the item"
            assert index not in done
        if "item_id" in document and index is not None:
            assert items[index]["id"] == document["item_id"]
        if kind.endswith(".delta"):
            texts[place] = texts.get(place, "") + document["delta"]
        elif kind == "response.output_item.done":
            done.add(index)
            items[index] = document["item"]
        elif kind.endswith(".done"):
            repeated = document.get("part", document)
            (name,) = {"text", "refusal", "arguments", "input"} & repeated.keys()
            assert texts.get(place, "") == repeated[name]
    assert documents[-1]["response"]["output"] == items


WELL_FORMED: dict[str, Callable[[bytes], None]] = {
    "anthropic.messages": check_anthropic,
    "bedrock.converse": check_bedrock,
    "cohere.chat": check_cohere,
    "ollama.chat": check_ollama,
    "ollama.generate": check_ollama,
    "openai.responses": check_responses,
}


def is_well_formed(api: str, body: bytes) -> bool:
    if api in WELL_FORMED:
        try:
            WELL_FORMED[api](body)
        except (AssertionError, KeyError):
            return False
    return api in WELL_FORMED


# --- the contract -----------------------------------------------------------------------------------------------------

CANNOT: dict[str, set[str]] = {
    "openai.completions": {"call inserted", "calls inserted", "text turned into reasoning"},
    "deepinfra.inference": {
        *("call inserted", "calls inserted", "text turned into reasoning"),
        *("finish reason replaced", "reply id replaced"),
    },
}
"""Changes that an API cannot express."""
ODD: dict[str, set[str]] = {
    "openai.chat": {"legacy function_call"},
    "anthropic.messages": {"null input"},
    "deepinfra.inference": {"cut off"},
    "openai.responses": {"local shell", "all in the last event"},
    "google.generate_content": {
        *("a prompt that is refused", "the reason in every event", "the reason in every event, wrapped"),
    },
    "ollama.generate": {"not ended"},
}
"""Shapes of which no fix changes the parts in question."""


USUAL = {
    api: {name: shape for name, shape in shapes.items() if name not in ODD.get(api, ())}
    for api, shapes in MODELS.items()
}


@in_batches(("api", "shape", "form"), bodies(USUAL, sound=True))
def test_written_replies_read_as_the_events(api: str, shape: Shape, form: str) -> None:
    body = body_of(shape, form)
    names = CHANGES.keys() - CANNOT.get(api, set())
    well_formed = form == "stream" and is_well_formed(api, body)
    if "reasoning" in str(shape.parts):
        names -= {"text turned into reasoning"}
    for name in rotated(sorted(names), f"{api} {form} {shape.parts}", 13):
        written, expected = rewritten(api, body, CHANGES[name](api))
        reply = reply_of(api, written)
        assert content(api, reply) == content(api, expected), name
        for fact in ("usage", "terminated", "id", "model"):
            assert getattr(reply, fact) == getattr(expected, fact), (name, fact)
        assert not reply.faults, name
        if well_formed:
            WELL_FORMED[api](written)


@pytest.mark.parametrize("api", WELL_FORMED)
def test_the_form_of_streams_is_checked(api: str) -> None:
    bodies_ = [shape.stream for shape in MODELS[api].values() if shape.stream is not None and not shape.faults]
    assert sum(is_well_formed(api, raw(body)) for body in bodies_) > len(bodies_) / 2


def test_a_made_frame_is_no_part_of_an_earlier_violation() -> None:
    """The next event shows that an event was broken. That is no reason to write it again."""
    broken = 'data: {"type": "response.in_progress", "response": {"id" "resp_1"}}\n\n'
    head, name, tail = SO.partition("event: response.output_text.done")
    body = raw(head + broken + name + tail)
    assert "broken-json" in {fault.kind for fault in reply_of("openai.responses", body).faults}
    assert rewrite("openai.responses", body, reworded("text", str.upper)).count(broken.encode()) == 1


CITED = ITEMS["cited"]
SO = responses.streamed(responses.whole([responses.message("So it goes on", "And on")]), step=5)
MADE_CALL = ("call", 'look {"at": "star"}')


def test_events_that_lost_their_blank_line_are_separated() -> None:
    torn = SO.replace("}\n\nevent: response.output_text.d", "}\nevent: response.output_text.d")
    assert torn != SO
    written = rewrite(
        "openai.responses", torn, lambda events: [one for one in events if not isinstance(one, StreamViolation)]
    )
    assert not reply_of("openai.responses", written).faults
    check_responses(written)


def test_text_behind_the_last_frame_joins_the_open_item() -> None:
    body = raw(SO[: SO.index("event: response.output_text.done")])
    frames, events, _ = understood("openai.responses", body)
    last = next(event for event in reversed(events) if isinstance(event, Delta))
    api = the("openai.responses")
    reader, writer = api.reply_reader(streamed=True), api.reply_writer(streamed=True)
    written = b"".join(writer.write(frame, read, read) for frame in frames for read in [reader.read(frame)])
    call = Start(MADE, "tool_call", "/choices/0", 0, last.frame, None, "call_n", "look")
    written += writer.close([last._replace(text="!"), call, Delta(MADE, '{"at": "star"}', last.frame)])
    assert written.startswith(body)
    assert essence(reply_of("openai.responses", written)) == [[("text", "So it goes on!"), MADE_CALL]]


@pytest.mark.parametrize("form", ["whole", "stream"])
def test_citations_move_with_the_text(form: str) -> None:
    part: dict[str, Any] = {**CITED["content"][0], "text": "Well, High at nine."}
    part["annotations"] = [{**part["annotations"][0], "start_index": 6, "end_index": 10}]
    body = responses.whole([{**CITED, "content": [part]}])
    given = body if form == "whole" else responses.streamed(body, step=40)
    written = rewrite("openai.responses", given, reworded("text", lambda text: text.replace("Well, ", "")))
    final = json.loads(written) if form == "whole" else documents_of(written)[-1][1]["response"]
    made = final["output"][0]["content"][0]
    assert made["text"] == "High at nine."
    assert (made["annotations"][0]["start_index"], made["annotations"][0]["end_index"]) == (0, 4)


def cut_by_a_call(events: Sequence[Event]) -> Iterable[Event]:
    """Insert a call before the piece `lo` of a text."""
    for event in events:
        if isinstance(event, Delta) and event.text == "lo":
            yield Start(MADE + 1, "tool_call", "", 0, event.frame, None, "tooluse_9", "ask", {})
            yield Close(MADE + 1, event.frame)
        yield event


@pytest.mark.parametrize("api", ["anthropic.messages", "bedrock.converse", "cohere.chat"])
def test_text_behind_a_call_is_another_block(api: str) -> None:
    written = rewrite(api, SHAPES[api]["text"].stream, cut_by_a_call)
    reply = reply_of(api, written)
    assert [kind for kind, _ in essence(reply)[0]] in (["text", "call", "text"], ["text", "text", "call"])
    assert reply.choices[0].text == "Hello"
    assert not reply.faults
    WELL_FORMED[api](written)


@pytest.mark.parametrize(
    ("name", "framing"), {"Nova's own endpoint": "chunk", "written down by a client": None}.items()
)
def test_events_leave_in_the_framing_of_the_stream(name: str, framing: str | None) -> None:
    written = rewrite("bedrock.converse", SHAPES["bedrock.converse"][name].stream, calling(CALLS[1], reason="tool_use"))
    frames, _, reply = understood("bedrock.converse", written)
    assert essence(some(reply))[0][-1] == ("call", 'look {"at": "y"}')
    assert {frame.event for frame in frames} == {framing}


def test_an_exception_stays_one() -> None:
    written = rewrite(
        "anthropic.messages",
        SHAPES["anthropic.messages"]["over Bedrock, an exception"].stream,
        reworded("text", str.upper),
    )
    assert reply_of("anthropic.messages", written).error == {
        "type": "throttlingException",
        "message": "Too many tokens.",
    }


@pytest.mark.parametrize("form", ["whole", "stream"])
def test_mistral_sends_reasoning_as_a_chunk(form: str) -> None:
    written = rewrite("mistral.chat", body_of(SHAPES["mistral.chat"]["text"], form), thinking("!"))
    assert b'{"type":"thinking","thinking":[{"type":"text","text":"Hel' in written
    assert b"reasoning" not in written


def test_ollamas_calls_are_numbered_by_position() -> None:
    body = SHAPES["ollama.chat"]["calls in one line, with ids"].stream
    written = rewrite("ollama.chat", body, without("tool_call", 1))
    calls = [one for line in written.splitlines() for one in json.loads(line)["message"].get("tool_calls", ())]
    assert [one["function"]["index"] for one in calls] == [0]


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize("api", ["openai.completions", "deepinfra.inference"])
def test_raw_completions_have_no_calls(api: str, form: str) -> None:
    shape = SHAPES[api]["text" if form == "whole" or api == "openai.completions" else "text, streamed"]

    def change(events: Sequence[Event]) -> Iterable[Event]:
        return [*events, Start(MADE, "tool_call", "", 0, events[0].frame, None, "c", "look")] if events else []

    with pytest.raises(ValueError, match="no tool_call"):
        rewrite(api, body_of(shape, form), change)


def test_deepinfra_repeats_the_changed_text_at_the_end() -> None:
    body = sse(token("Hel"), token("lo"), token("", generated_text="Hello", num_output_tokens=2))
    written = rewrite("deepinfra.inference", body, reworded("text", lambda text: text.replace("lo", "p")))
    assert essence(reply_of("deepinfra.inference", written)) == [[("text", "Help")]]
    assert documents_of(written)[-1][1]["generated_text"] == "Help"


# --- Gemini -----------------------------------------------------------------------------------------------------------

GEMINI = "google.generate_content"
GEMINI_CALL = {"functionCall": {"name": "look", "args": {"at": "sky"}}}


def test_geminis_signatures_stay_where_they_were() -> None:
    part, call = {"text": "Hello", "thoughtSignature": SIGNATURE}, {**GEMINI_CALL, "thoughtSignature": "b3RoZXI="}
    changes: list[tuple[Change, list[Any]]] = [
        (reworded("text", str.upper), [{**part, "text": "HELLO"}, call]),
        (without("text"), [{**part, "text": ""}, call]),
        (without("tool_call"), [part]),
    ]
    for change, expected in changes:
        document = json.loads(rewrite(GEMINI, gemini_reply([part, call], "STOP"), change))
        assert document["candidates"][0]["content"]["parts"] == expected


@pytest.mark.parametrize(("model", "signed"), [("gemini-2.5-flash", False), ("gemini-3-pro-preview", True)])
def test_the_first_made_call_is_signed_where_the_model_demands_it(model: str, signed: bool) -> None:
    written = rewrite(GEMINI, gemini_reply([], "STOP", modelVersion=model), calling(*CALLS, reason="STOP"))
    parts = json.loads(written)["candidates"][0]["content"]["parts"]
    assert ["thoughtSignature" in part for part in parts] == [signed, False]


def test_gemini_takes_no_arguments_but_objects() -> None:
    with pytest.raises(ValueError, match="no object"):
        rewrite(GEMINI, gemini_reply([], "STOP"), calling(("go", "["), reason="STOP"))


@in_batches(("api", "shape", "form"), bodies({GEMINI: USUAL[GEMINI]}))
def test_text_that_was_held_back_leaves_as_it_came(api: str, shape: Shape, form: str) -> None:
    """The text of a frame in two pieces, behind the usage."""

    def change(events: Sequence[Event]) -> Iterable[Event]:
        yield from (event for event in events if isinstance(event, Usage))
        for event in events:
            if isinstance(event, Delta) and event.text.isalpha():
                yield from (event._replace(text=event.text[:2]), Delta(event.block, event.text[2:], event.frame))
            elif not isinstance(event, Usage):
                yield event

    body = body_of(shape, form)
    assert rewrite(api, body, change) == body


def test_a_made_chunk_has_the_members_of_the_other_chunks() -> None:
    """The first chunk of Azure has an empty id and no choices."""
    frames, events, _ = understood("openai.chat", raw(SHAPES["openai.chat"]["Azure's first chunk"].stream))
    writer = the("openai.chat").reply_writer(streamed=True)
    for frame in frames[:2]:
        own = [event for event in events if event.frame is frame]
        assert writer.write(frame, own, own) == frame.raw
    ((_, document),) = documents_of(writer.close([Finish(0, "stop", "/choices/0/finish_reason", None)]))
    assert document == {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
