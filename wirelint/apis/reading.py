"""What the modules of all APIs share: readers of decoded JSON, the base of the readers of replies, and `ApiSpec`.

A value of the wrong type reads as absent, so that no reader fails on it. Traits of an API are in `traits.py`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import orjson

from wirelint.events import Done, Event, Failure, Frame, Other, ReplyMeta, StreamViolation, Usage
from wirelint.jsonvalues import decode_json, mapping, mappings, number, text
from wirelint.model import FaultKind, Json, Request, Role, ToolChoice

DONE = "[DONE]"
IGNORED = frozenset(
    {"created", "created_at", "obfuscation", "p", "sequence_number", "service_tier", "system_fingerprint"}
)
"""Top-level members that no reader looks at and that change between events: times, counts, padding that hides the length
of a text (OpenAI `obfuscation`, Mistral and Bedrock `p`)."""
_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("assistant", "model"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}


def role_of(message: Mapping[str, Json]) -> Role:
    """Return the role of a message; `user` for a role of no API."""
    return _ROLES.get(text(message.get("role")) or "", "user")


def stated_reason(value: Json) -> str | None:
    """Return a finish reason; None for null, a blank text, and the word `"null"` that some servers write for null."""
    return value if isinstance(value, str) and value.strip().lower() not in ("", "null", "none") else None


def index_of(item: Mapping[str, Json], position: int) -> int:
    """Return the `index` of an array's item, or its position if it has no numeric index."""
    index = number(item.get("index"))
    return position if index is None else index


def compact(value: Json) -> str:
    """Return a value as JSON text; an empty string for None."""
    return "" if value is None else orjson.dumps(value).decode()


def result_text(content: Json) -> str:
    """Return the text of a tool's result: a text, or a list of texts, of JSON (Converse) and of documents.

    Cohere sends documents: `[{"document":{"data":"18 °C"}}]`, text or objects. A search for tools returns their names
    (Anthropic): `[{"type":"tool_reference","tool_name":"get_rate"}]`.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return compact(content)
    lines: list[str] = []
    for _, part in mappings(content):
        document = part.get("document")
        data = (
            part.get("text", part.get("json", part.get("tool_name")))
            if document is None
            else mapping(document).get("data", document)
        )
        if data is not None:
            lines.append(data if isinstance(data, str) else compact(data))
    return "\n".join(lines)


def tool_choice(choice: Json) -> ToolChoice:
    """Return a tool choice in the form of OpenAI's APIs, Anthropic's, or Converse's (`{"any": {}}`)."""
    match choice:
        case "none" | "NONE" | {"type": "none"}:
            return ToolChoice("none")
        case "required" | "any" | "REQUIRED" | {"type": "any"} | {"any": _}:
            return ToolChoice("required")
        case (
            {"function": {"name": str(name)}}
            | {"custom": {"name": str(name)}}
            | {"tool": {"name": str(name)}}
            | {"name": str(name)}
        ):
            return ToolChoice("named", name)
        case _:
            return ToolChoice("auto")


def is_conversation(body: Mapping[str, Json]) -> bool:
    """Return True if a body has the shape that all chat APIs share: a list of messages, each with a role."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return False
    return not [one for one in messages if not isinstance(one, dict) or not isinstance(one.get("role"), str)]


MISSHAPEN = "content as "
_SHAPES: dict[type, str] = {
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
}


def misshapen(value: Json) -> str:
    """Return the kind of an opaque part for content of a JSON type that the API does not allow there.

    >>> misshapen({"type": "text", "text": "Hi"})
    'content as an object with type, text'
    """
    if isinstance(value, dict):
        return f"{MISSHAPEN}an object with {', '.join(value)}"
    return MISSHAPEN + _SHAPES.get(type(value), "null")


def lists_parts(value: Json) -> bool:
    """Return True if content is a list of parts, and not of texts alone."""
    kinds = set(map(type, value)) if isinstance(value, list) else {str}
    return dict in kinds or str not in kinds


def words_of(value: Json) -> str:
    """Return the text of content of another JSON type, or else the value as JSON.

    >>> words_of({"type": "text", "text": "Hi"})
    'Hi'
    """
    if isinstance(value, str):
        return value
    listed = value if isinstance(value, list) else [value]
    parts = [
        part.get("text") if isinstance(part, dict) and part.keys() <= {"type", "text"} else part for part in listed
    ]
    texts = [part for part in parts if isinstance(part, str)]
    if texts and len(texts) == len(listed):
        return "".join(texts)
    return compact(value)


def misshapen_text(value: Json) -> str:
    """Return the kind of an opaque part for a non-empty object or array where the API has text; "" for other values."""
    return misshapen(value) if value and isinstance(value, (dict, list)) else ""


Reading: TypeAlias = tuple[list[tuple[dict[str, Json], Frame]], bool, list[Event]]
"""The documents that a frame completed, whether it held `[DONE]`, and its violations.

Each document comes with a frame whose data is that document: the frame from the wire or, if its data is different
(several documents, a part of one), a new frame with the same number.
"""


class Decoded(NamedTuple):
    """The last frame whose data was exactly one JSON object, and that object; None for `[DONE]`."""

    frame: Frame | None
    document: dict[str, Json] | None


class Documents:
    """Decoder of the JSON documents of a stream's frames. It reads like lenient clients and records violations.

    It undoes two faults of gateways: several documents in one event, one a line (the blank lines were lost), and one
    document over several events (cut where a chunk ended). It holds the pieces of the latter until they form a
    document, or until an event with a complete document shows that they do not.
    """

    _LONGEST_SPLIT = 1 << 20

    def __init__(self) -> None:
        self._pieces: list[Frame] = []
        """Frames that hold the pieces of one document so far."""
        self.last = Decoded(None, None)

    def read(self, frame: Frame) -> Reading:
        data = frame.data
        document = _decode(data) if data is not None and data != DONE else None
        if not self._pieces and not frame.faults and (document is not None or data == DONE):  # nearly all of them
            self.last = Decoded(frame, document)
            return ([], True, []) if document is None else ([(document, frame)], False, [])
        violations: list[Event] = [StreamViolation(kind, detail, frame) for kind, detail in frame.faults]
        if data is None:
            return ([], False, violations)
        if document is not None:
            return ([(document, frame)], False, violations + self.close())
        if data.strip() == DONE:
            return ([], True, violations + self.close())
        return self._split_lines(frame, data, violations) or self._join(frame, data, violations)

    def _split_lines(self, frame: Frame, data: str, violations: list[Event]) -> Reading | None:
        """Read data with one document a line, or with a doubled field name; None for any other data."""
        lines = [line.strip().removeprefix("data:").lstrip() for line in data.split("\n") if line.strip()]
        bare = [line for line in lines if line != DONE]
        whole = [(document, _part_of(frame, line)) for line in bare if (document := _decode(line)) is not None]
        if len(lines) > 1 and len(whole) == len(bare):
            lost = StreamViolation("missing-blank-line", f"{len(lines)} documents in one event", frame)
            return (whole, len(bare) < len(lines), [*violations, lost])
        if len(lines) == 1 and lines[0] != data.strip() and (whole or lines[0] == DONE):
            # `data: data: {…}`: two proxies that both frame. Strict clients read the second name as a part of the JSON.
            return (whole, not whole, [*violations, StreamViolation("doubled-field", data[:60], frame)])
        return None if lines else ([], False, violations)

    def close(self) -> list[Event]:
        """Drop pieces that did not form a document, and return the violation."""
        pieces, self._pieces = self._pieces, []
        return [StreamViolation("broken-json", (pieces[0].data or "")[:60], pieces[0])] if pieces else []

    def _join(self, frame: Frame, data: str, violations: list[Event]) -> Reading:
        if not self._pieces and not data.lstrip().startswith("{"):
            return ([], False, [*violations, StreamViolation("broken-json", data[:60], frame)])
        self._pieces.append(frame)
        joined = "".join(piece.data or "" for piece in self._pieces)
        if len(joined) > self._LONGEST_SPLIT:
            return ([], False, violations + self.close())
        document = _decode(joined) if len(self._pieces) > 1 else None
        if document is None:
            return ([], False, violations)
        first = self._pieces[0]
        violations.append(StreamViolation("split-json", f"one document over {len(self._pieces)} events", first))
        self._pieces = []
        named = frame if frame.event is not None else frame._replace(event=first.event)
        return ([(document, _part_of(named, joined))], False, violations)


def _part_of(frame: Frame, data: str) -> Frame:
    """Return a frame that represents one document of `frame`, whose data is more or less than that document."""
    return Frame(frame.number, b"", frame.event, data)


def _decode(data: str) -> dict[str, Json] | None:
    document = decode_json(data)
    return document if isinstance(document, dict) else None


class ReplyReader(ABC):
    """Reader of one reply: frames to events. It decodes each frame and passes the documents to `read_document`."""

    has_done_marker: ClassVar[bool] = False
    """True if `[DONE]` ends a stream of the API. Readers of other APIs ignore it."""
    terminator: ClassVar[str] = ""
    """The event that must follow a finish reason in a stream. Empty: none, or the reader checks it."""

    def __init__(self, *, streamed: bool) -> None:
        self.streamed = streamed
        self.documents = Documents()
        self.is_done = self.is_finished = False
        """`is_done`: the terminator has been read. `is_finished`: a finish reason has been read."""
        self.count = 0
        """Number of blocks so far, which is the number of the next one."""
        self.out: list[Event] = []
        """The events of the current frame. `read_document` returns more of them, or appends to this list."""
        self.frame = Frame(0, b"", None, None)
        """The frame of the current document."""
        self.is_alone = False
        """True if no other document is in the frame."""
        self._head: tuple[str | None, str | None] = (None, None)

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        documents, done, self.out = self.documents.read(frame)
        self.is_alone = len(documents) == 1
        for document, place in documents:
            self.frame = place
            self.out += self.read_document(document)
        if not documents and frame.data:
            self.out.extend(self.read_undecoded(frame))
        if done and self.has_done_marker:
            self.is_done = True
            self.out.append(Done(frame))
        return or_other(frame, self.out)

    def close(self) -> list[Event]:
        """Return violations that only the end of the stream can show."""
        events = self.documents.close()
        if self.terminator and self.streamed and self.is_finished and not self.is_done:
            events.append(StreamViolation("missing-end", f"no {self.terminator}", None))
        return events

    def next_block(self) -> int:
        """Return the number of a new block."""
        self.count += 1
        return self.count - 1

    def violation(self, kind: FaultKind, detail: str) -> StreamViolation:
        return StreamViolation(kind, detail, self.frame)

    def failure(self, error: Json) -> Iterable[Event]:
        return (Failure(error, self.frame),) if error is not None else ()

    def usage(self, counts: Json) -> Iterable[Event]:
        return (Usage(counts, self.frame),) if isinstance(counts, dict) and counts else ()

    def meta(self, id_: str | None, model: str | None) -> Iterable[Event]:
        """Return the id and the model of the reply, unless an earlier event had the same; many APIs repeat them."""
        if (id_, model) == self._head or not (id_ or model):
            return ()
        self._head = (id_, model)
        return (ReplyMeta(id_, model, self.frame),)

    @abstractmethod
    def read_document(self, document: dict[str, Json]) -> Iterable[Event]:
        """Return the events of a document."""

    def read_undecoded(self, frame: Frame) -> Iterable[Event]:
        """Return the events of data without a document."""
        return ()


def or_other(frame: Frame, events: list[Event]) -> list[Event]:
    """Return the events of a frame, with `Other` for a frame without any, or with only an earlier frame's `broken-json`."""
    last = events[-1] if events else None
    if last is None or (type(last) is StreamViolation and last.kind == "broken-json" and last.frame is not frame):
        events.append(Other(frame))
    return events


_MESSAGES = ("message", "msg", "detail", "error_message", "error_msg", "errorMessage", "errMsg", "status_msg")
_CODES = ("code", "statusCode", "status_code", "error_code", "errorCode", "errcode")
_SUCCESSES = frozenset({"", "0", "200", "ok", "success", "succeeded"})
_FAILED = frozenset({"error", "fail", "failed", "failure"})


def refusal_of(document: Mapping[str, Json]) -> Json:
    """Return the error of a document without any member of a reply, in a service's own form; None if it is no error.

    Some services wrap all answers: `{"code": 1113, "msg": …, "success": false}`. MiniMax sends the members of a reply as
    null, beside `"base_resp": {"status_code": 1004, "status_msg": …}`.
    """
    beside = mapping(document.get("base_resp"))
    members = beside or document
    if not (any(text(members.get(name)) for name in _MESSAGES) or document.get("detail") or document.get("errors")):
        return None
    status = members.get("status")
    codes = [str(members[name]).lower() for name in _CODES if isinstance(members.get(name), str | int)]
    failed = any(code not in _SUCCESSES for code in codes)
    failed = failed or members.get("success") is False or members.get("ok") is False
    failed = failed or (status in _FAILED if isinstance(status, str) else (number(status) or 0) >= 400)
    return dict(members) if failed or document.keys() == {"detail"} else None


def error_of(document: Mapping[str, Json]) -> Json:
    """Return the error object of a document, or a string that some gateways send for it; None if there is no error.

    Mistral and older vLLM have no `error` member: the document itself is the error, `{"object": "error", "message": …}`.
    """
    if document.get("object") == "error":
        return dict(document)
    error = document.get("error")
    if error is None:
        return None
    if error is True:  # the details are beside it
        return dict(document)
    return error if error not in ({}, "", False) else None


class ReplyWriter:
    """Writer of one reply: events to bytes. It must see every frame, in order. This base class changes nothing."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        """Return the bytes of a frame after its `events` were replaced by `out`: `frame.raw` itself if they are equal."""
        return frame.raw

    def close(self, out: Sequence[Event]) -> bytes:
        """Return the bytes of events after the last frame, or of removed frames."""
        return b""


_STORED_SETTINGS = ("agent", "agent_id", "agent_reference", "assistant_id", "preset", "prompt_id")
_STORED_MODEL, _AGENT_PATH = re.compile(r"@preset/|(?:^|/)agents?/"), re.compile(r"/(?:agent|assistant)s?/")
"""Members of a request, names of models and paths that stand for instructions and tools on a server: agents of Azure and
Mistral, presets of OpenRouter, stored prompts and agents of LiteLLM."""


@dataclass(frozen=True, slots=True)
class ApiSpec:
    """One API. To add one, write a module with an `ApiSpec` and list it in `wirelint.apis.APIS`."""

    name: str
    claims: Callable[[str, Mapping[str, str], Mapping[str, Json]], bool]
    """Return True if a POST of a JSON object (path, headers, body) belongs to this API."""
    claims_reply: Callable[[Mapping[str, Json]], bool]
    """Return True if a JSON document is a reply, or an event of a streamed reply, of this API."""
    request_reader: Callable[[Mapping[str, Json], str], Request]
    """Return the request of a JSON body. The second argument is the path of its URL; some APIs put the model there."""
    reply_reader: Callable[..., ReplyReader]
    stream_writer: Callable[[], ReplyWriter]
    whole_writer: Callable[[], ReplyWriter]
    _: KW_ONLY
    paths: re.Pattern[str] = re.compile("")
    """Paths at which the API is served. Default: any path; then the body decides."""
    claims_other: Callable[[str, str, Mapping[str, str], Json], bool] = lambda _method, _path, _headers, _body: False
    """Return True if a request that is not a POST of an object belongs to this API: method, path, headers, body."""
    channel: Literal["model", "mcp"] = "model"
    """The other end: a model, or a tool server (MCP)."""

    def read_request(self, body: Mapping[str, Json], path: str = "") -> Request:
        """Return the request of a JSON body. If it names settings that the server has, its tools are unknown."""
        request = self.request_reader(body, path).but(api=self.name)
        named = any(body.get(name) for name in _STORED_SETTINGS) or _STORED_MODEL.search(request.model)
        if not named and not _AGENT_PATH.search(path):
            return request
        place = "before" if request.on_server == "nothing" else request.on_server
        return request.but(tools_known=False, on_server=place)

    def reply_writer(self, *, streamed: bool) -> ReplyWriter:
        return self.stream_writer() if streamed else self.whole_writer()
