"""Ollama's own API: `POST …/api/chat` and `POST …/api/generate`.

Replies are JSON lines, since `stream` is true unless the request says otherwise; with `stream: false` the same document
comes once. Each line carries a piece of the message, and the last one, with `done: true`, says why it ended and counts
tokens. Source: the vendor's API reference, and recordings of servers from 0.1 to 0.12.

What sets it apart: a call comes in one piece, its arguments an object, with no id (recent servers send one); its `index` is
its place in the reply and older servers leave it out; a reply with calls ends with `stop`; an error is a string, in a line
of its own when the stream has begun. `generate` has no messages: `prompt` in, `response` out, and `raw: true` means that
the prompt already is what the model's template would have made of a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wirelint.apis.ollama_writer import StreamWriter, WholeWriter
from wirelint.apis.reading import (
    Documents,
    error_of,
    mapping,
    mappings,
    misshapen,
    number,
    schema,
    stated_reason,
    text,
    told,
)
from wirelint.events import Delta, Done, Event, Failure, Finish, Frame, Other, ReplyMeta, Start, StreamViolation, Usage
from wirelint.model import (
    Arguments,
    Json,
    Kind,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

__all__ = ["CHAT", "GENERATE", "Ollama"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_COUNTS = ("prompt_eval_count", "eval_count")


class Ollama:
    """One of the two endpoints. They differ by where the words stand."""

    def __init__(self, name: str, path: str, place: str) -> None:
        """`place`: pointer of the object that holds what the model says."""
        self.NAME = name
        self._path = path
        self._place = place

    def serves(self, path: str) -> bool:
        """Return True if requests of this API come at a path at all."""
        return path.endswith(self._path)

    def claims(self, path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
        if not self.serves(path) or not isinstance(body.get("model"), str):
            return False
        messages = body.get("messages")
        return isinstance(messages, list) if self._place else messages is None

    def claims_reply(self, document: Mapping[str, Json]) -> bool:
        if not isinstance(document.get("done"), bool):
            return False
        return isinstance(document.get("message" if self._place else "response"), dict if self._place else str)

    def read_request(self, body: Mapping[str, Json]) -> Request:
        messages = _messages(body.get("messages")) if self._place else _prompt(body)
        return Request(
            api=self.NAME,
            model=text(body.get("model")) or "",
            messages=tuple(messages),
            tools=tuple(_tools(body.get("tools"))),
            body=body,
            stream=body.get("stream") is not False,
            max_tokens=number(mapping(body.get("options")).get("num_predict")),
        )

    def reply_reader(self, *, streamed: bool) -> _Reader:
        return _Reader(self._place, streamed=streamed)

    def reply_writer(self, *, streamed: bool) -> StreamWriter | WholeWriter:
        return StreamWriter(self._place) if streamed else WholeWriter(self._place)


CHAT = Ollama("ollama.chat", "/api/chat", "/message")
GENERATE = Ollama("ollama.generate", "/api/generate", "")


class _Reader:
    """Frames to events. Text and thinking are one block each, every entry of `tool_calls` is a call of its own."""

    def __init__(self, place: str, *, streamed: bool) -> None:
        self._place = place
        self._streamed = streamed
        self.documents = Documents()
        self._blocks: dict[str, int] = {}
        self._count = 0
        self._calls = 0
        self._model: str | None = None
        self._done = False

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        reading = self.documents.read(frame)
        events = reading.offences
        for document, place in reading.documents:
            if self._done:
                events.append(StreamViolation("after-end", (frame.data or "")[:60], frame))
                continue  # clients have left
            events += self._document(document, place)
        return told(frame, events)

    def close(self) -> list[Event]:
        return self.documents.close()

    def _document(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        model = text(document.get("model"))
        if model and model != self._model:
            self._model = model
            yield ReplyMeta(None, model, frame)
        if (error := error_of(document)) is not None:
            yield Failure(error, frame)
        yield from self._said(mapping(document.get("message")) if self._place else document, frame)
        if reason := stated_reason(document.get("done_reason")):
            yield Finish(0, reason, "/done_reason", frame)
        if counts := {name: document[name] for name in _COUNTS if number(document.get(name)) is not None}:
            yield Usage(counts, frame)
        if document.get("done") is True:
            self._done = True
            yield Done(frame)

    def _said(self, message: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        yield from self._text("reasoning", "thinking", message, frame)
        name = "content" if self._place else "response"
        yield from self._text("text", name, message, frame)
        if message.get(name) and not isinstance(message[name], str) and name not in self._blocks:
            self._blocks[name] = self._new()
            yield Start(self._blocks[name], "opaque", f"{self._place}/{name}", 0, frame, name=misshapen(message[name]))
        for position, call in mappings(message.get("tool_calls")):
            yield from self._call(position, call, frame)
        if message.get("images"):
            yield from self._begin("opaque", "images", frame)

    def _text(self, kind: Kind, name: str, message: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        if piece := text(message.get(name)):
            yield from self._begin(kind, name, frame)
            yield Delta(self._blocks[name], piece, frame)

    def _begin(self, kind: Kind, name: str, frame: Frame) -> Iterator[Event]:
        if name not in self._blocks:
            self._blocks[name] = self._new()
            yield Start(self._blocks[name], kind, f"{self._place}/{name}", 0, frame, name=name)

    def _call(self, position: int, call: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        function = mapping(call.get("function"))
        given = function.get("arguments")
        ordinal, self._calls = self._calls, self._calls + 1
        block = self._new()
        pointer = f"{self._place}/tool_calls/{ordinal}"
        name, words = text(function.get("name")), text(given)
        value = None if words is not None else given
        # A call is whole where it stands, so its place is its number, whatever `index` says.
        yield Start(block, "tool_call", pointer, 0, frame, ordinal, text(call.get("id")), name, value, item=position)
        if words:
            yield Delta(block, words, frame, position)

    def _new(self) -> int:
        self._count += 1
        return self._count - 1


def _prompt(body: Mapping[str, Json]) -> Iterator[Message]:
    if system := text(body.get("system")):
        yield Message("system", (Text(system, "/system"),), "/system")
    prompt = text(body.get("prompt"))
    parts: list[Part] = [Text(prompt, "/prompt")] if prompt else []
    parts += _images(body.get("images"), "")
    if parts:
        yield Message("user", tuple(parts), "/prompt")


def _messages(messages: Json) -> Iterator[Message]:
    for n, message in mappings(messages):
        place = f"/messages/{n}"
        role = _ROLES.get(text(message.get("role")) or "", "user")
        yield Message(role, tuple(_parts(role, message, place)), place)


def _parts(role: Role, message: Mapping[str, Json], place: str) -> Iterator[Part]:
    words = text(message.get("content"))
    if role == "tool":
        name = text(message.get("tool_name")) or text(message.get("name"))
        yield ToolResult(text(message.get("tool_call_id")), words or "", place, name)
        return
    if thought := text(message.get("thinking")):
        yield Reasoning(thought, f"{place}/thinking")
    if words:
        yield Text(words, f"{place}/content")
    yield from _images(message.get("images"), place)
    for n, call in mappings(message.get("tool_calls")):
        function = mapping(call.get("function"))
        given = function.get("arguments")
        arguments = Arguments(given or "") if given is None or isinstance(given, str) else Arguments.of(given)
        yield ToolCall(text(call.get("id")), text(function.get("name")), arguments, f"{place}/tool_calls/{n}")


def _images(images: Json, place: str) -> Iterator[Part]:
    for n, _ in enumerate(images if isinstance(images, list) else ()):
        yield Opaque("image", f"{place}/images/{n}")


def _tools(tools: Json) -> Iterator[Tool]:
    for n, tool in mappings(tools):
        function = mapping(tool.get("function"))
        if name := text(function.get("name")):
            described = text(function.get("description")) or ""
            yield Tool(name, f"/tools/{n}", described, schema(function.get("parameters")))
