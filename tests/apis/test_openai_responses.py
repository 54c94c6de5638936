"""OpenAI Responses: requests, what identifies calls, and replies written anew that say one thing wherever they say it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from tests.apis.shapes_responses import CITED, LOOK, LOOK_TOO, OPEN, PATCH, SEALED, SEARCH, SHAPES_RESPONSES
from tests.apis.talk_openai_responses import counted, events, message, reasoning, streamed, whole
from tests.build import Talk, read, schema
from wirelint.apis import by_name, openai_responses, recognise, recognise_reply
from wirelint.events import Close, Delta, Event, Finish, Fold, Other, Start, StreamViolation
from wirelint.model import HostedCall, Json, Message, Opaque, Part, Reasoning, Refusal, Reply, Request, Text, ToolCall
from wirelint.wire import Sniffer

API = "openai.responses"


def request(**body: Any) -> Request:
    return openai_responses.read_request({"model": "acme-1", **body})


def test_a_type_that_is_no_text_is_read_as_none() -> None:
    assert request(input=[{"type": []}, {"role": "user", "content": "Hi"}]).messages[-1].text == "Hi"


# --- recognition ------------------------------------------------------------------------------------------------------

MINE: dict[str, tuple[str, dict[str, Any]]] = {
    "the vendor": ("/v1/responses", {"model": "m", "input": "hi"}),
    "azure": ("/openai/v1/responses", {"model": "m", "input": "hi"}),
    "a backend of a subscription": ("/backend-api/codex/responses", {"model": "m", "input": []}),
    "a stored prompt": ("/v1/responses", {"prompt": {"id": "pmpt_1"}}),
    "any path, typed items": ("/llm", {"model": "m", "input": [{"role": "user", "content": "hi"}]}),
    "any path, results": (
        "/llm",
        {"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": ""}]},
    ),
}
NOT_MINE: dict[str, tuple[str, dict[str, Any]]] = {
    "embeddings": ("/v1/embeddings", {"model": "m", "input": ["hi"]}),
    "embeddings elsewhere": ("/embed", {"model": "m", "input": ["hi"]}),
    "moderations": ("/v1/moderations", {"model": "m", "input": [{"type": "text", "text": "hi"}]}),
    "moderations elsewhere": ("/check", {"model": "m", "input": [{"type": "text", "text": "hi"}]}),
    "chat": ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
    "counting": ("/v1/responses/input_tokens", {"model": "m", "input": [{"role": "user", "content": "hi"}]}),
    "cancelling": ("/v1/responses/resp_1/cancel", {}),
    "a plain input": ("/v1/inference/m", {"model": "m", "input": "hi"}),
}


@pytest.mark.parametrize(("path", "body"), MINE.values(), ids=MINE)
def test_requests_that_are_of_this_api(path: str, body: dict[str, Json]) -> None:
    assert recognise("POST", path, {}, body) is by_name(API)


@pytest.mark.parametrize(("path", "body"), NOT_MINE.values(), ids=NOT_MINE)
def test_requests_that_are_not(path: str, body: dict[str, Json]) -> None:
    assert recognise("POST", path, {}, body) is not by_name(API)


def test_replies_are_recognised() -> None:
    assert recognise_reply(whole([])) is by_name(API)
    assert recognise_reply({"type": "response.created", "response": {}}) is by_name(API)
    assert recognise_reply({"type": "response.created", "event_id": "event_1", "response": {}}) is not by_name(API)


@pytest.mark.parametrize("stream", [False, True])
def test_a_lost_request_is_made_up_for_by_the_reply(stream: bool) -> None:
    record = Talk(text="Hi").record(API, stream)
    record["request"] = {"url": "", "headers": {}, "body": None}
    assert read(record).api == API


# --- requests ---------------------------------------------------------------------------------------------------------


def said(part: Part) -> tuple[str, ...]:
    match part:
        case Text(text, pointer) | Refusal(text, pointer):
            return type(part).__name__, text, pointer
        case Reasoning(text, pointer, opaque):
            return ("Sealed" if opaque else "Reasoning"), text, pointer
        case ToolCall():
            return part.form, f"{part.id} {part.name} {part.arguments.text}", part.pointer
        case HostedCall(id_, name, pointer):
            return "HostedCall", f"{id_} {name}", pointer
        case Opaque(kind, pointer):
            return "Opaque", kind, pointer
        case _:
            return type(part).__name__, getattr(part, "text", ""), part.pointer


def shown(message: Message) -> tuple[str, str, list[tuple[str, ...]]]:
    return message.role, message.pointer, [said(part) for part in message.parts]


INPUTS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "a string": ({"input": "Hi"}, [("user", "/input", [("Text", "Hi", "/input")])]),
    "instructions": (
        {"instructions": "Be brief.", "input": "Hi"},
        [
            ("system", "/instructions", [("Text", "Be brief.", "/instructions")]),
            ("user", "/input", [("Text", "Hi", "/input")]),
        ],
    ),
    "roles": (
        {"input": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
        [
            ("system", "/input/0", [("Text", "Be brief.", "/input/0/content")]),
            ("user", "/input/1", [("Text", "Hi", "/input/1/content")]),
        ],
    ),
    "content parts": (
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "See"},
                        {"type": "input_image", "image_url": "data:"},
                        {"type": "input_file", "file_id": "f"},
                    ],
                }
            ]
        },
        [
            (
                "user",
                "/input/0",
                [
                    ("Text", "See", "/input/0/content/0/text"),
                    ("Opaque", "input_image", "/input/0/content/1"),
                    ("Opaque", "input_file", "/input/0/content/2"),
                ],
            )
        ],
    ),
    "a turn of the model is one message, each result one": (
        {
            "input": [
                SEALED,
                message("Let me."),
                LOOK,
                LOOK_TOO,
                {"type": "function_call_output", "call_id": "call_1", "output": "blue"},
                {
                    "type": "function_call_output",
                    "call_id": "call_2",
                    "output": [{"type": "input_text", "text": "grey"}],
                },
                OPEN,
            ]
        },
        [
            (
                "assistant",
                "/input/0",
                [
                    ("Sealed", "", "/input/0"),
                    ("Text", "Let me.", "/input/1/content/0/text"),
                    ("function", 'call_1 look {"at": "sky"}', "/input/2"),
                    ("function", 'call_2 look {"at": "sea"}', "/input/3"),
                ],
            ),
            ("tool", "/input/4", [("ToolResult", "blue", "/input/4")]),
            ("tool", "/input/5", [("ToolResult", "grey", "/input/5")]),
            ("assistant", "/input/6", [("Reasoning", "Up, then.", "/input/6/content/0/text")]),
        ],
    ),
    "custom tools and hosted ones": (
        {"input": [PATCH, {"type": "custom_tool_call_output", "call_id": "call_7", "output": "ok"}, SEARCH]},
        [
            ("assistant", "/input/0", [("custom", "call_7 patch *** Begin\n+one\n", "/input/0")]),
            ("tool", "/input/1", [("ToolResult", "ok", "/input/1")]),
            ("assistant", "/input/2", [("HostedCall", "ws_1 web_search", "/input/2")]),
        ],
    ),
    "a computer": (
        {
            "input": [
                {"type": "computer_call", "call_id": "call_c", "action": {"type": "wait"}},
                {"type": "computer_call_output", "call_id": "call_c", "output": {"type": "computer_screenshot"}},
            ]
        },
        [
            ("assistant", "/input/0", [("function", 'call_c computer {"type":"wait"}', "/input/0")]),
            ("tool", "/input/1", [("ToolResult", '{"type":"computer_screenshot"}', "/input/1")]),
        ],
    ),
    "nothing that can be read": ({"input": [1, "two", None]}, []),
}


@pytest.mark.parametrize(("body", "expected"), INPUTS.values(), ids=INPUTS)
def test_input_items_are_messages(body: dict[str, Any], expected: list[Any]) -> None:
    assert [shown(message) for message in request(**body).messages] == expected


def test_a_failed_patch_is_an_error() -> None:
    item = {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such file"}
    assert [result.is_error for result in request(input=[item]).messages[0].results] == [True]


FUNCTION = {"type": "function", "name": "look", "description": "d", "parameters": schema(at="string")}
TOOLS: dict[str, tuple[dict[str, Any], list[tuple[str, str, bool, str]], bool]] = {
    "a function": ({"tools": [FUNCTION]}, [("look", "/tools/0", False, "function")], True),
    "nested as in chat": (
        {"tools": [{"type": "function", "function": {"name": "look"}}]},
        [("look", "/tools/0", False, "function")],
        True,
    ),
    "custom": ({"tools": [{"type": "custom", "name": "patch"}]}, [("patch", "/tools/0", False, "custom")], True),
    "hosted": ({"tools": [{"type": "web_search"}]}, [("web_search", "/tools/0", True, "web_search")], True),
    "the client's own, of the vendor's types": (
        {"tools": [{"type": "local_shell"}, {"type": "computer_use_preview"}, {"type": "shell"}]},
        [
            ("local_shell", "/tools/0", False, "local_shell"),
            ("computer", "/tools/1", False, "computer_use_preview"),
            ("shell", "/tools/2", False, "shell"),
        ],
        True,
    ),
    "a shell of the provider": (
        {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]},
        [("shell", "/tools/0", True, "shell")],
        True,
    ),
    "a namespace": (
        {"tools": [{"type": "namespace", "name": "sea", "tools": [FUNCTION]}]},
        [("look", "/tools/0/tools/0", False, "function")],
        True,
    ),
    "a search for tools, and what it gave": (
        {"tools": [{"type": "tool_search"}], "input": [{"type": "tool_search_output", "tools": [FUNCTION]}]},
        [("tool_search", "/tools/0", True, "tool_search"), ("look", "/input/0/tools/0", False, "function")],
        False,
    ),
    "more tools in mid-conversation": (
        {"input": [{"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}]},
        [("look", "/input/0/tools/0", False, "function")],
        True,
    ),
    "a remote server": ({"tools": [{"type": "mcp", "server_label": "s"}]}, [("mcp", "/tools/0", True, "mcp")], False),
    "a stored prompt": ({"prompt": {"id": "p"}, "input": "Hi"}, [], False),
    "a conversation that goes on": ({"previous_response_id": "resp_0", "input": "Hi"}, [], False),
    "a conversation that goes on, with tools": (
        {"previous_response_id": "resp_0", "input": "Hi", "tools": [FUNCTION]},
        [("look", "/tools/0", False, "function")],
        True,
    ),
}


@pytest.mark.parametrize(("body", "tools", "known"), TOOLS.values(), ids=TOOLS)
def test_tools(body: dict[str, Any], tools: list[Any], known: bool) -> None:
    asked = request(**body)
    assert [(tool.name, tool.pointer, tool.hosted, tool.type) for tool in asked.tools] == tools
    assert asked.tools_known is known


CHOICES: dict[str, tuple[Json, tuple[str, str | None]]] = {
    "none": ("none", ("none", None)),
    "auto": ("auto", ("auto", None)),
    "required": ("required", ("required", None)),
    "nothing": (None, ("auto", None)),
    "a function": ({"type": "function", "name": "look"}, ("named", "look")),
    "a custom tool": ({"type": "custom", "name": "patch"}, ("named", "patch")),
    "a function as in chat": ({"type": "function", "function": {"name": "look"}}, ("named", "look")),
    "some tools": ({"type": "allowed_tools", "mode": "auto", "tools": []}, ("auto", None)),
    "one of some": ({"type": "allowed_tools", "mode": "required", "tools": []}, ("required", None)),
    "a hosted tool": ({"type": "web_search"}, ("named", "web_search")),
    "a server": ({"type": "mcp", "server_label": "sea"}, ("required", None)),
    "a tool of a server": ({"type": "mcp", "server_label": "sea", "name": "tide"}, ("required", None)),
}


@pytest.mark.parametrize(("choice", "expected"), CHOICES.values(), ids=CHOICES)
def test_tool_choice(choice: Json, expected: tuple[str, str | None]) -> None:
    made = request(input="Hi", tool_choice=choice).tool_choice
    assert (made.mode, made.name) == expected


# --- replies ----------------------------------------------------------------------------------------------------------


def understood(body: bytes, change: Callable[[list[Event]], Iterable[Event]] | None = None) -> tuple[Reply, bytes]:
    """A reply as it is read, and its bytes when a rewriter makes `change` of the events of each frame."""
    sniffer = Sniffer({})
    frames = [*sniffer.feed(body), *sniffer.close()]
    reader = openai_responses.reply_reader(streamed=sniffer.streamed)
    writer = openai_responses.reply_writer(streamed=sniffer.streamed)
    fold, written = Fold(streamed=sniffer.streamed), b""
    for frame in frames:
        read_ = reader.read(frame)
        for event in read_:
            fold.push(event)
        written += writer.write(frame, read_, read_ if change is None else list(change(read_)))
    for event in reader.close():
        fold.push(event)
    return fold.reply(), written


@pytest.mark.parametrize("name", SHAPES_RESPONSES[API])
def test_what_is_not_changed_leaves_as_it_came(name: str) -> None:
    shape = SHAPES_RESPONSES[API][name]
    for body in (json.dumps(shape.whole) if shape.whole else "", str(shape.stream or "")):
        assert understood(body.encode())[1] == body.encode()


def test_a_call_that_gets_another_id_is_told_of() -> None:
    last = {**LOOK, "call_id": "call_2"}
    made = [*events(whole([LOOK]))]
    made[-2] = {**made[-2], "item": last}
    reply, _ = understood(counted(made).encode())
    (call,) = reply.choices[0].calls
    assert (call.id, [piece.id for piece in call.pieces]) == ("call_1", ["call_1", "call_2"])
    assert reply.choices[0].finish_pointer == "/status"


def test_places_of_a_reply() -> None:
    body = whole([reasoning("One", "Two"), OPEN, CITED, LOOK], "incomplete", "max_output_tokens")
    for text in (json.dumps(body), streamed(body)):
        choice = understood(text.encode())[0].choices[0]
        assert [part.pointer for part in choice.parts] == [
            "/output/0/summary/0/text",
            "/output/0/summary/1/text",
            "/output/1/content/0/text",
            "/output/2/content/0/text",
            "/output/3",
        ]
        assert choice.finish_pointer == "/incomplete_details/reason"


# --- replies written anew ---------------------------------------------------------------------------------------------

Change = Callable[[list[Event]], Iterable[Event]]
NEW = 1 << 32


def anew(read_: list[Event]) -> Iterable[Event]:
    """Events of the same content."""
    return [event._replace() for event in read_]


def shout(read_: list[Event]) -> Iterable[Event]:
    return [event._replace(text=event.text.upper()) if type(event) is Delta else event for event in read_]


def without(what: str) -> Change:
    """Takes a piece out of text wherever one delta has it."""

    def change(read_: list[Event]) -> Iterable[Event]:
        return [e._replace(text=e.text.replace(what, "")) if type(e) is Delta and what in e.text else e for e in read_]

    return change


class NoCall:
    """Takes one call out."""

    def __init__(self, id_: str) -> None:
        self.id, self.block = id_, -1

    def __call__(self, read_: list[Event]) -> Iterable[Event]:
        for event in read_:
            if type(event) is Start and event.id == self.id:
                self.block = event.block
            elif getattr(event, "block", None) != self.block:
                yield event


class Promoted:
    """Makes a call of the first text, where it ends."""

    def __init__(self) -> None:
        self.made = False

    def __call__(self, read_: list[Event]) -> Iterable[Event]:
        for event in read_:
            if type(event) is not Delta or self.made or "o." not in event.text:
                yield event
                continue
            self.made = True
            yield event._replace(text=event.text.replace("o.", ""))
            yield Start(NEW, "tool_call", "/choices/0", 0, event.frame, None, "call_n", "look")
            yield Delta(NEW, '{"at": "star"}', event.frame)
            yield Close(NEW, event.frame)


def thoughtful(read_: list[Event]) -> Iterable[Event]:
    """Makes a thought of a word."""
    for event in read_:
        if type(event) is Delta and "THOUGHT" in event.text:
            yield event._replace(text=event.text.replace("THOUGHT", ""))
            yield Start(NEW, "reasoning", "/choices/0", 0, event.frame)
            yield Delta(NEW, "thought", event.frame)
        else:
            yield event


def renamed(read_: list[Event]) -> Iterable[Event]:
    for event in read_:
        yield event._replace(id="call_new", name="see") if type(event) is Start and event.kind == "tool_call" else event


def stopped(reason: str) -> Change:
    return lambda read_: [event._replace(reason=reason) if type(event) is Finish else event for event in read_]


def late(read_: list[Event]) -> Iterable[Event]:
    """Makes a call when the reply is over."""
    for event in read_:
        if type(event) is Finish:
            yield Start(NEW, "tool_call", "/choices/0", 0, event.frame, None, "call_n", "look")
            yield Delta(NEW, '{"at": "star"}', event.frame)
        yield event


SAY, DO = ("text", "I look. At it."), ("call", 'call_1 look {"at": "sky"}')
DO_TOO, MADE = ("call", 'call_2 look {"at": "sea"}'), ("call", 'call_n look {"at": "star"}')
TALK = [message("I look. At it."), LOOK, LOOK_TOO]
CHANGES: dict[str, tuple[Callable[[], Change], list[dict[str, Any]], list[tuple[str, str]], str]] = {
    "the same, anew": (lambda: anew, TALK, [SAY, DO, DO_TOO], "completed"),
    "everything, anew": (
        lambda: anew,
        [SEALED, reasoning("Hm", "Ah"), OPEN, SEARCH, CITED, PATCH],
        [
            ("reasoning", ""),
            ("reasoning", "Hm"),
            ("reasoning", "Ah"),
            ("reasoning", "Up, then."),
            ("hosted", "web_search"),
            ("text", "High at nine."),
            ("call", "call_7 patch *** Begin\n+one\n"),
        ],
        "completed",
    ),
    "other text, other arguments": (
        lambda: shout,
        [reasoning("Hm"), *TALK, PATCH],
        [
            ("reasoning", "HM"),
            ("text", "I LOOK. AT IT."),
            ("call", 'call_1 look {"AT": "SKY"}'),
            ("call", 'call_2 look {"AT": "SEA"}'),
            ("call", "call_7 patch *** BEGIN\n+ONE\n"),
        ],
        "completed",
    ),
    "text cut": (lambda: without("look"), [message("I look. I look.")], [("text", "I . I .")], "completed"),
    "all text cut": (lambda: without("Gone."), [message("Gone."), LOOK], [DO], "completed"),
    "a part cut": (lambda: without("Gone."), [message("Gone.", "Here."), LOOK], [("text", "Here."), DO], "completed"),
    "the first call out": (lambda: NoCall("call_1"), TALK, [SAY, DO_TOO], "completed"),
    "the last call out": (lambda: NoCall("call_2"), TALK, [SAY, DO], "completed"),
    "a call out of text": (Promoted, [message("It is so."), LOOK], [("text", "It is s"), MADE, DO], "completed"),
    "a call at the end": (lambda: late, [message("It is so.")], [("text", "It is so."), MADE], "completed"),
    "a thought after text": (
        lambda: thoughtful,
        [message("So far THOUGHT")],
        [("text", "So far "), ("reasoning", "thought")],
        "completed",
    ),
    "other ids and names": (
        lambda: renamed,
        [LOOK],
        [("call", 'call_new see {"at": "sky"}')],
        "completed",
    ),
    "cut by length": (lambda: stopped("length"), [message("So")], [("text", "So")], "max_output_tokens"),
    "filtered": (lambda: stopped("content_filter"), [message("So")], [("text", "So")], "content_filter"),
    "with calls": (lambda: stopped("tool_calls"), [LOOK], [DO], "completed"),
}


def essence(reply: Reply) -> list[tuple[str, str]]:
    made = []
    for part in reply.choices[0].parts:
        match part:
            case ToolCall():
                made.append(("call", f"{part.id} {part.name} {part.arguments.text}"))
            case HostedCall():
                made.append(("hosted", part.name or ""))
            case _:
                made.append((type(part).__name__.lower(), getattr(part, "text", "")))
    return made


@pytest.mark.parametrize(("make", "items", "expected", "reason"), CHANGES.values(), ids=CHANGES)
def test_a_body_written_anew(
    make: Callable[[], Change], items: list[dict[str, Any]], expected: list[tuple[str, str]], reason: str
) -> None:
    _, written = understood(json.dumps(whole(items)).encode(), make())
    reply, _ = understood(written)
    assert essence(reply) == expected
    assert reply.choices[0].finish_reason == reason
    assert all(item.get("content") != [] for item in json.loads(written)["output"])


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("make", "items", "expected", "reason"), CHANGES.values(), ids=CHANGES)
def test_a_stream_written_anew(
    make: Callable[[], Change],
    items: list[dict[str, Any]],
    expected: list[tuple[str, str]],
    reason: str,
    named: bool,
) -> None:
    _, written = understood(streamed(whole(items), named=named).encode(), make())
    reply, _ = understood(written)
    assert essence(reply) == expected
    assert reply.choices[0].finish_reason == reason
    assert not reply.faults
    assert reply.terminated
    documents = consistent(written)
    assert (b"event: " in written) is named
    final, _ = understood(json.dumps(documents[-1]["response"]).encode())
    assert essence(final) == expected
    assert documents[-1]["type"] == ("response.completed" if reason == "completed" else "response.incomplete")


WORDS = {"text", "refusal", "arguments", "input"}


def consistent(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream that tells everything the same way wherever it tells it, and counts without gaps."""
    documents = [json.loads(block.split(b"data: ", 1)[1]) for block in stream.split(b"\n\n") if b"data: " in block]
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
            assert index < len(items), "announced before anything is said of it"
            assert index not in done
        if "item_id" in document and index is not None:
            assert items[index]["id"] == document["item_id"]
        if kind.endswith(".delta"):
            texts[place] = texts.get(place, "") + document["delta"]
        elif kind == "response.output_item.done":
            done.add(index)
            items[index] = document["item"]
        elif kind.endswith(".done"):
            told = document.get("part", document)
            (name,) = WORDS & told.keys()
            assert texts.get(place, "") == told[name]
    assert documents[-1]["response"]["output"] == items
    for index, item in enumerate(items):
        for name, field in (("content", 1), ("summary", 2)):
            for n, part in enumerate(item.get(name, ())):
                place = (index, n, None) if field == 1 else (index, None, n)
                assert texts.get(place, "") == next(part[word] for word in WORDS if word in part)
        for word in ("arguments", "input"):
            assert texts.get((index, None, None), "") == item.get(word, texts.get((index, None, None), ""))
    return documents


def test_events_that_lost_their_blank_lines_are_set_apart() -> None:
    def change(read_: list[Event]) -> Iterable[Event]:
        return [event for event in read_ if type(event) is not StreamViolation]

    whole_stream = streamed(whole([message("I look. At it."), LOOK]))
    torn = whole_stream.replace("}\n\nevent: response.output_text.d", "}\nevent: response.output_text.d")
    assert torn != whole_stream
    reply, written = understood(torn.encode(), change)
    assert "missing-blank-line" in {fault.kind for fault in reply.faults}
    assert not understood(written)[0].faults
    assert essence(understood(written)[0]) == [SAY, DO]
    for document in consistent(written):
        assert f"event: {document['type']}\n".encode() in written


def test_a_broken_event_behind_a_repair_is_written_once() -> None:
    """That it is broken is known with the next event, which is no reason to write it again."""
    broken = 'data: {"type": "response.in_progress", "response": {"id" "resp_1"}}\n\n'
    head, name, tail = streamed(whole([message("So it goes")])).partition("event: response.output_text.done")
    reply, written = understood((head + broken + name + tail).encode(), shout)
    assert "broken-json" in {fault.kind for fault in reply.faults}
    assert written.count(broken.encode()) == 1


def test_what_is_told_after_the_last_frame_is_told_in_events() -> None:
    body = streamed(whole([message("So it goes")]))
    body = body[: body.index("event: response.output_text.done")]
    sniffer = Sniffer({})
    reader, writer = openai_responses.reply_reader(streamed=True), openai_responses.reply_writer(streamed=True)
    written, last = b"", None
    for frame in [*sniffer.feed(body.encode()), *sniffer.close()]:
        read_ = reader.read(frame)
        last = next((event for event in read_ if type(event) is Delta), last)
        written += writer.write(frame, read_, read_)
    assert last is not None
    written += writer.close([
        last._replace(text=" on"),
        Start(NEW, "tool_call", "/choices/0", 0, last.frame, None, "call_n", "look"),
        Delta(NEW, '{"at": "star"}', last.frame),
    ])  # fmt: skip
    assert written.startswith(body.encode())
    assert essence(understood(written)[0]) == [("text", "So it goes on"), MADE]


def test_text_that_comes_late_joins_the_item_that_is_open() -> None:
    held: list[Event] = []

    def change(read_: list[Event]) -> Iterable[Event]:
        for event in read_:
            if type(event) is Delta and (held or "goes" in event.text):
                held.append(event)
            else:
                if type(event) is Other:
                    yield from held
                    held.clear()
                yield event

    _, written = understood(streamed(whole([message("So it goes on", "And on"), LOOK]), step=5).encode(), change)
    assert essence(understood(written)[0])[:1] == [("text", "So it goes on")]
    consistent(written)


def test_citations_move_with_the_text() -> None:
    def change(read_: list[Event]) -> Sequence[Event]:
        return [e._replace(text=e.text.replace("Well, ", "")) if type(e) is Delta else e for e in read_]

    part: dict[str, Any] = {**CITED["content"][0], "text": "Well, High at nine."}
    part["annotations"] = [{**part["annotations"][0], "start_index": 6, "end_index": 10}]
    body = whole([{**CITED, "content": [part]}])
    for text, final in (
        (json.dumps(body), json.loads),
        (streamed(body, step=40), lambda b: consistent(b)[-1]["response"]),
    ):
        _, written = understood(text.encode(), change)
        made = final(written)["output"][0]["content"][0]
        assert made["text"] == "High at nine."
        assert (made["annotations"][0]["start_index"], made["annotations"][0]["end_index"]) == (0, 4)
        assert b'"start_index":6' not in written


def test_the_vendors_sdk_reads_what_was_made() -> None:
    openai = pytest.importorskip("openai")
    httpx = importlib.import_module("httpx2" if importlib.util.find_spec("httpx2") else "httpx")
    make, items, *_ = CHANGES["a call out of text"]
    head: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    _, written = understood(streamed(whole(items, **head)).encode(), make())
    answer = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=written)
    transport = httpx.MockTransport(lambda _: answer)
    client = openai.OpenAI(api_key="k", base_url="http://llm.test/v1", http_client=httpx.Client(transport=transport))
    with client.responses.stream(model="acme-1", input="Hi") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds.count("response.function_call_arguments.done") == 2
    calls = [(item.call_id, item.arguments) for item in final.output if item.type == "function_call"]
    assert calls == [("call_n", '{"at": "star"}'), ("call_1", '{"at": "sky"}')]
    assert final.output_text == "It is s"
