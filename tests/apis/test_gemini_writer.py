"""What is written of Gemini's replies: the same bytes where nothing changed, else what the changed events say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.apis.shapes_gemini import CALL, GEMINI
from tests.apis.talk_google_generate_content import SIGNATURE, reply
from tests.apis.test_contract import body_of, shown, understood
from wirelint.apis import ReplyReader, ReplyWriter, gemini
from wirelint.apis.writing import MADE
from wirelint.events import Close, Delta, Event, Finish, Fold, ReplyMeta, Start, Usage
from wirelint.model import Reply, ToolCall
from wirelint.wire import Sniffer

Change = Callable[[Sequence[Event], dict[int, Start]], list[Event]]
"""The events of one frame as a rewriter hands them on; how all blocks so far have begun."""


def rewritten(body: bytes, change: Change) -> tuple[list[Event], Reply | None, list[Event], bytes]:
    """Events as read, the reply that changed events amount to, those events, and the bytes that were written of them."""
    sniffer = Sniffer({})
    frames = [*sniffer.feed(body), *sniffer.close()]
    reader: ReplyReader = gemini.reply_reader(streamed=sniffer.streamed)
    writer: ReplyWriter = gemini.reply_writer(streamed=sniffer.streamed)
    fold, starts = Fold(streamed=sniffer.streamed), dict[int, Start]()
    before: list[Event] = []
    after: list[Event] = []
    made = b""
    for frame in frames:
        read_ = reader.read(frame)
        starts.update({event.block: event for event in read_ if isinstance(event, Start)})
        out = change(read_, starts)
        before, after = before + read_, after + out
        made += writer.write(frame, read_, out)
    last = list(reader.close())
    made += writer.close(change(last, starts))
    for event in (*after, *last):
        fold.push(event)
    return before, fold.reply(), after, made


def untouched(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return list(read_)


def _kind(event: Event, starts: dict[int, Start]) -> str:
    return starts[event.block].kind if isinstance(event, (Start, Delta, Close)) else ""


def shouting(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return [
        event._replace(text=event.text.upper())
        if isinstance(event, Delta) and _kind(event, starts) == "text"
        else event
        for event in read_
    ]


def replaced(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    """Other text, from scratch: nothing says which part it takes the place of."""
    out: list[Event] = []
    for event in read_:
        if isinstance(event, Delta) and _kind(event, starts) == "text":
            event = Delta(event.block, f"<{event.text}>", event.frame)
        out.append(event)
    return out


def silent(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return [event for event in read_ if _kind(event, starts) != "text"]


def callless(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return [event for event in read_ if _kind(event, starts) != "tool_call"]


def renamed(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return [
        event._replace(name="seen") if isinstance(event, Start) and event.kind == "tool_call" else event
        for event in read_
    ]


def rearranged(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    """Other arguments, as text, where they came as a value."""
    out: list[Event] = []
    for event in read_:
        if isinstance(event, Start) and event.kind == "tool_call" and event.input is not None:
            out += [
                event._replace(input=None),
                Delta(event.block, '{"at":', event.frame),
                Delta(event.block, "1}", event.frame),
            ]
        else:
            out.append(event)
    return out


def promoted(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    """Two more calls before each finish reason."""
    return list(_promoted(read_, starts))


def _promoted(read_: Sequence[Event], starts: dict[int, Start]) -> Iterator[Event]:
    for event in read_:
        if isinstance(event, Finish) and MADE + 2 * event.choice + 1 not in starts:
            for number in (1, 2):
                block = MADE + 2 * event.choice + number
                starts[block] = Start(block, "tool_call", "/x", event.choice, event.frame, None, None, f"new{number}")
                yield starts[block]
                yield Delta(block, json.dumps({"number": number}), event.frame)
                yield Close(block, event.frame)
        yield event


def thinking(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    """Text that becomes thought."""
    out: list[Event] = []
    for event in read_:
        if isinstance(event, Delta) and _kind(event, starts) == "text":
            block = MADE + 100 * event.block
            if block not in starts:
                starts[block] = start = starts[event.block]._replace(
                    block=block, kind="reasoning", frame=event.frame, item=-1
                )
                out.append(start)
            out.append(Delta(block, event.text, event.frame))
        elif not (isinstance(event, Start) and event.kind == "text"):
            out.append(event)
    return out


def stopped(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return [event._replace(reason="OTHER") if isinstance(event, Finish) else event for event in read_]


def endless(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return [event for event in read_ if not isinstance(event, Finish)]


def headed(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    return [event._replace(id="another") if isinstance(event, ReplyMeta) and event.id else event for event in read_]


def hesitant(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
    """The same text in two pieces, behind the usage."""
    out: list[Event] = [event for event in read_ if isinstance(event, Usage)]
    for event in read_:
        if isinstance(event, Delta) and _kind(event, starts) == "text":
            out += [event._replace(text=event.text[:2]), Delta(event.block, event.text[2:], event.frame)]
        elif not isinstance(event, Usage):
            out.append(event)
    return out


CHANGES: tuple[Change, ...] = (
    shouting, replaced, silent, callless, renamed, rearranged, promoted, thinking, stopped, endless, headed,
)  # fmt: skip
BODIES = {
    f"{name}-{form}": body_of(shape, form)
    for name, shape in GEMINI.items()
    for form in ("whole", "stream")
    if getattr(shape, form) is not None and not shape.faults and name != "a prompt that is refused"
}


def told(reply_: Reply | None) -> list[Any]:
    """What a reply says: texts that stand together as one, arguments as values, signatures aside."""
    found: list[Any] = []
    for choice in reply_.choices if reply_ is not None else ():
        said: list[Any] = []
        for part in choice.parts:
            kind, words = shown(part)
            if isinstance(part, ToolCall):
                said.append((part.id, part.name, part.arguments.mapping))
            elif said and kind in ("text", "reasoning") and said[-1][0] == kind:
                said[-1] = (kind, said[-1][1] + words)
            elif kind != "sealed" and not (kind == "hosted" and words == "groundingMetadata"):
                said.append((kind, words))
        if said or choice.finish_reason:
            found.append((choice.index, said, choice.finish_reason))
    return found


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_not_changed_leaves_as_it_came(body: bytes) -> None:
    assert rewritten(body, untouched)[3] == body
    assert rewritten(body, hesitant)[3] == body


@pytest.mark.parametrize("name", BODIES)
def test_what_is_written_says_what_the_events_say(name: str) -> None:
    for change in CHANGES:
        if change is promoted and name == "the reason in every event-stream":
            continue  # a candidate that ends twice: what comes between its ends cuts its text in two
        body = BODIES[name]
        before, expected, after, made = rewritten(body, change)
        _, _, again = understood(gemini.API, [made])
        assert told(again) == told(expected), (change.__name__, made.decode())
        assert again is not None
        assert expected is not None
        assert (again.usage, again.error is None) == (expected.usage, expected.error is None)
        assert not again.faults
        assert again.streamed == expected.streamed
        assert after != before or made == body


def test_signatures_stay_where_they_were() -> None:
    part = {"text": "Hello", "thoughtSignature": SIGNATURE}
    body = json.dumps(reply([part, {**CALL, "thoughtSignature": "b3RoZXI="}], "STOP")).encode()
    for change, expected in (
        (shouting, [{**part, "text": "HELLO"}, {**CALL, "thoughtSignature": "b3RoZXI="}]),
        (silent, [{**part, "text": ""}, {**CALL, "thoughtSignature": "b3RoZXI="}]),
        (callless, [part]),
    ):
        document = json.loads(rewritten(body, change)[3])
        assert document["candidates"][0]["content"]["parts"] == expected


@pytest.mark.parametrize(("model", "signed"), [("gemini-2.5-flash", False), ("gemini-3-pro-preview", True)])
def test_models_that_ask_for_signatures_get_one_on_the_first_call_that_is_made(model: str, signed: bool) -> None:
    document = json.loads(rewritten(json.dumps(reply([], "STOP", modelVersion=model)).encode(), promoted)[3])
    marks = ["thoughtSignature" in part for part in document["candidates"][0]["content"]["parts"]]
    assert marks == [signed, False]


def test_no_call_is_made_of_arguments_that_the_api_cannot_have() -> None:
    def broken(read_: Sequence[Event], starts: dict[int, Start]) -> list[Event]:
        return [event._replace(text="[") if _kind(event, starts) == "tool_call" and isinstance(event, Delta) else event
                for event in rearranged(read_, starts)]  # fmt: skip

    with pytest.raises(ValueError, match="no object"):
        rewritten(json.dumps(reply([CALL], "STOP")).encode(), broken)


FOREIGN = ("wrong types", "snake case", "error body", "enums", "a part of tomorrow")
"""What the vendor's client for Python does not take from the vendor either."""


@pytest.mark.parametrize("change", [untouched, *CHANGES], ids=lambda change: change.__name__)
def test_the_vendors_own_client_reads_it(change: Change) -> None:
    types = pytest.importorskip("google.genai.types")
    for name, body in BODIES.items():
        if name.endswith("whole") and not name.startswith(FOREIGN):
            types.GenerateContentResponse.model_validate_json(rewritten(body, change)[3])
