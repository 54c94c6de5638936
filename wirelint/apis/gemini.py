r"""Gemini's `generateContent`, from the Gemini API and from Vertex AI.

Requests: `POST …/models/{model}:generateContent`, or `:streamGenerateContent` for a stream: server-sent events with
`?alt=sse`, a JSON array without. The path names the model. Each event is a reply with further parts of the content. A
function call comes whole in one event, and mostly without an id. A stream has no terminator: server-sent events are
complete when every candidate has a finish reason, an array is with its bracket. Source: the vendor's API reference
(GenerateContentResponse, Content, Part).

    data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"modelVersion":"m"}
    data: {"candidates":[{"content":{"parts":[{"text":"lo"}],"role":"model"},"finishReason":"STOP","index":0}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from wirelint.apis.gemini_writer import (
    MEMBERS,
    StreamWriter,
    WholeWriter,
    camel,
    kind_of,
    member,
    several,
    unwrapped,
    value_of,
)
from wirelint.apis.reading import (
    ApiSpec,
    ReplyReader,
    compact,
    error_of,
    index_of,
    lists_parts,
    misshapen,
    misshapen_text,
    or_other,
    role_of,
)
from wirelint.events import Close, Delta, Done, Event, Failure, Finish, Frame, Other, Start, StreamViolation, part_of
from wirelint.jsonvalues import decode_json, mapping, mappings, number, text
from wirelint.model import Json, Kind, Message, Opaque, Part, Reasoning, Request, Text, Tool, ToolChoice, ToolResult

_METHODS = ("generateContent", "streamGenerateContent")


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    _, colon, method = path.rpartition("/")[2].partition(":")
    if colon:
        inner = not isinstance(body.get("request"), dict) or "contents" in body
        return method in _METHODS and (_is_wrapped(body) or inner)
    if path.endswith("/cachedContents") or "messages" in body:
        return False
    # A gateway may serve this API at any path.
    contents = body.get("contents")
    return isinstance(contents, list) and bool(contents) and all(_is_content(content) for content in contents)


def _is_wrapped(body: Mapping[str, Json]) -> bool:
    """Return True if a request contains one of Gemini's."""
    inner = body.get("request")
    return isinstance(inner, dict) and isinstance(inner.get("contents"), list | dict) and "contents" not in body


def claims_reply(document: Mapping[str, Json]) -> bool:
    document, _ = unwrapped(dict(document))
    listed = [candidate for _, candidate in mappings(document.get("candidates"))]
    if any(_is_content(candidate.get("content")) for candidate in listed):
        return True
    versioned = any(name in document for name in ("modelVersion", "model_version", "responseId", "response_id"))
    return versioned and not MEMBERS.isdisjoint(document) and "object" not in document


def _is_content(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("parts"), list | dict)


_PATH = re.compile(r"/(?:models|tunedModels|endpoints)/([^/:]+):(\w+)/?\Z")
_CLIENT_TOOLS = frozenset({"functionDeclarations", "computerUse"})
_UNSEEN_TOOLS = frozenset({"computerUse", "mcpServers"})
"""Kinds of tools whose names the body does not show."""
_MODES: dict[Json, str] = {1: "AUTO", 2: "ANY", 3: "NONE"}
_RESULTS = ("output", "result", "content", "return_value", "error", "call_error")
"""Members in which clients put the result of a function. The first two are the vendor's own."""


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    wrapped = _is_wrapped(body)
    inner, at = (mapping(body.get("request")), "/request") if wrapped else (body, "")
    found = _PATH.search(path)
    model = unquote(found[1]) if found is not None else (text(inner.get("model")) or "").removeprefix("models/")
    tools = tuple(_tools(inner.get("tools"), f"{at}/tools"))
    cached = bool(value_of(inner, "cachedContent"))
    streamed = path.rstrip("/").endswith(":streamGenerateContent")
    return Request(
        model=(text(body.get("model")) or model) if wrapped else model,  # the wrapper of Code Assist names the model
        messages=(
            *_system(inner, at),
            *(
                Message(role_of(content), tuple(_parts(content.get("parts"), f"{place}/parts")), place)
                for place, content in several(inner.get("contents"), f"{at}/contents")
            ),
        ),
        tools=tools,
        body=body,
        tool_choice=_tool_choice(mapping(value_of(mapping(value_of(inner, "toolConfig")), "functionCallingConfig"))),
        stream=streamed and (wrapped or found is not None),
        hosted=any(tool.hosted for tool in tools),
        tools_known=not (cached or any(tool.type in _UNSEEN_TOOLS for tool in tools)),
        max_tokens=number(value_of(mapping(value_of(inner, "generationConfig")), "maxOutputTokens")),
        on_server="before" if cached else "nothing",
    )


def _system(body: Mapping[str, Json], at: str) -> Iterator[Message]:
    name, value = member(body, "systemInstruction")
    place = f"{at}/{name}"
    if isinstance(value, str):
        parts: tuple[Part, ...] = (Text(value, place),) if value else ()
    else:
        parts = tuple(_parts(mapping(value).get("parts"), f"{place}/parts"))
    if parts:
        yield Message("system", parts, place)


def _parts(parts: Json, place: str) -> Iterator[Part]:
    for where, part in several(parts, place):
        yield from _part(part, where)


def _part(part: Mapping[str, Json], place: str) -> Iterator[Part]:
    """Yield the part that the API's part is, and the files in the result of a function."""
    kind, name, value = kind_of(part)
    inner = mapping(value)
    match kind:
        case "text":
            words = text(value) or ""
            if words:
                yield Reasoning(words, f"{place}/text") if part.get("thought") is True else Text(words, f"{place}/text")
            elif value_of(part, "thoughtSignature"):
                yield Reasoning("", place, opaque=True)
        case "functionResponse":
            yield _result(inner, f"{place}/{name}")
            for n, media in mappings(inner.get("parts")):
                yield Opaque(kind_of(media)[0], f"{place}/{name}/parts/{n}")
        case "":
            return
        case _:
            if (made := part_of(_start_of(kind, inner, f"{place}/{name}"), "")) is not None:
                yield made


def _start_of(kind: str, inner: Mapping[str, Json], pointer: str, choice: int = 0, item: int = -1) -> Start:
    """Return the start of a part that is no text. `inner`: the member that names its kind."""
    id_ = text(inner.get("id")) or None
    match kind:
        case "functionCall":
            name, given = text(inner.get("name")) or None, inner.get("args")
            given = {} if given is None else given  # a call without arguments leaves them out
            return Start(0, "tool_call", pointer, choice, None, None, id_, name, given, item=item)
        case "toolCall" | "executableCode" | "toolResponse" | "codeExecutionResult":
            hosted: Kind = "hosted_call" if kind in ("toolCall", "executableCode") else "hosted_result"
            is_code = kind in ("executableCode", "codeExecutionResult")
            tool = "code_execution" if is_code else (text(value_of(inner, "toolType")) or kind).lower()
            return Start(0, hosted, pointer, choice, None, id=id_, name=tool, item=item)
        case _:
            return Start(0, "opaque", pointer, choice, None, name=kind, item=item)


def _result(response: Mapping[str, Json], place: str) -> ToolResult:
    given = response.get("response")
    inner = mapping(given)
    flag = value_of(inner, "isError")
    failed = flag if isinstance(flag, bool) else True if inner.get("error") and not inner.get("output") else None
    return ToolResult(text(response.get("id")) or None, _shown(given), place, text(response.get("name")), failed)


def _shown(response: Json) -> str:
    """Return the result of a function as text. The object that the API demands often only wraps one text."""
    if isinstance(response, dict):
        results = [value for key, value in response.items() if key in _RESULTS]
        if len(results) == 1 and (len(response) == 1 or isinstance(results[0], list)):
            return _words(results[0])
        if len(response) == 1:
            (value,) = response.values()
            return value if isinstance(value, str) else compact(response)
    return _words(response)


def _words(value: Json) -> str:
    if isinstance(value, str):
        return value
    texts = [words for _, item in mappings(value) if (words := text(item.get("text"))) is not None]
    if texts and isinstance(value, list) and len(texts) == len(value):
        return "\n".join(texts)
    return compact(value)


def _tools(tools: Json, at: str) -> Iterator[Tool]:
    for place, tool in several(tools, at):
        name, declared = member(tool, "functionDeclarations")
        for where, function in several(declared, f"{place}/{name}"):
            if called := text(function.get("name")):
                given = mapping(value_of(function, "parametersJsonSchema"))
                own = given or mapping(_schema(function.get("parameters")))
                yield Tool(called, where, text(function.get("description")) or "", own or None)
        for kind, value in tool.items():
            if kind != name and value is not None and value is not False:
                known = camel(kind)
                yield Tool(known, f"{place}/{kind}", "", None, hosted=known not in _CLIENT_TOOLS, type=known)


def _tool_choice(config: Mapping[str, Json]) -> ToolChoice:
    mode, named = config.get("mode"), value_of(config, "allowedFunctionNames")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    match _MODES.get(mode) if number(mode) is not None else text(mode):
        case "NONE":
            return ToolChoice("none")
        case "ANY" if len(names) == 1:
            return ToolChoice("named", names[0])
        case "ANY":
            return ToolChoice("required", names=tuple(names))
        case "VALIDATED":
            return ToolChoice("auto", names=tuple(names))
        case _:
            return ToolChoice("auto")


# --- schemas ----------------------------------------------------------------------------------------------------------

_TYPES = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""Types by number (`enum-encoding=int`). 0 is no type."""
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_OWN = frozenset({"nullable", "propertyOrdering", "type", "typeUnspecified"})
_DEEPEST = 100


def _schema(value: Json, depth: int = 0) -> Json:
    """Return Google's `Schema` as JSON Schema.

    `Schema` is a subset of OpenAPI 3.0 in a protocol buffer: types in capitals or as numbers, `nullable`, 64-bit numbers
    as strings. (`parametersJsonSchema` already is JSON Schema.)
    """
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    made: dict[str, Json] = {}
    for key, inner in value.items():
        name = camel(key)
        if name not in _OWN:
            made[name] = _schema_member(name, inner, depth + 1)
    kind = _type(value.get("type"))
    nullable = value.get("nullable") is True
    if kind is not None:
        made["type"] = [kind, "null"] if nullable and isinstance(kind, str) and kind != "null" else kind
        listed = made.get("enum")
        if nullable and isinstance(listed, list) and None not in listed:
            made["enum"] = [*listed, None]
    elif nullable and made:
        return {"anyOf": [made, {"type": "null"}]}
    return made


def _schema_member(name: str, value: Json, depth: int) -> Json:
    if name in ("properties", "$defs", "defs", "definitions") and isinstance(value, dict):
        return {key: _schema(inner, depth) for key, inner in value.items()}
    if name in ("items", "additionalProperties", "not"):
        return _schema(value, depth)
    if name in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
        return [_schema(inner, depth) for inner in value]
    if name in _COUNTS and isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return value


def _type(value: Json) -> Json:
    if isinstance(value, int):
        return _TYPES[value] if not isinstance(value, bool) and 0 < value < len(_TYPES) else None
    return (value.lower() if value not in ("", "TYPE_UNSPECIFIED") else None) if isinstance(value, str) else value


_REASONS = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
"""Finish reasons by number (`enum-encoding=int`), where both APIs have the same numbers."""
_UNSPECIFIED = frozenset({"", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})
_HOSTED_EVIDENCE = ("groundingMetadata", "urlContextMetadata")


def _misshapen(content: Json) -> tuple[str, Json] | None:
    """Return the pointer in a candidate's content to a value that clients cannot read as parts, and the value."""
    if not isinstance(content, dict):
        return ("", content) if content else None
    parts = content.get("parts")
    if not parts:
        return ("", content) if content.keys() - {"role", "parts"} else None
    return ("/parts", parts) if not isinstance(parts, dict) and not lists_parts(parts) else None


@dataclass(slots=True)
class _Candidate:
    choice: int
    place: str
    """Pointer of its parts."""
    parts: int = 0
    """Number of parts, as a whole body would have them."""
    run: tuple[Kind, int] | None = None
    """Kind and block of the text that the next part may continue."""
    open: tuple[int, PartialArguments] | None = None
    """The call whose arguments are arriving."""
    once: set[str] = field(default_factory=set)


class Reader(ReplyReader):
    """Reader of replies. Text of neighbouring events is one part, unless another part comes between."""

    has_done_marker = True

    def __init__(self, *, streamed: bool) -> None:
        super().__init__(streamed=streamed)
        self._candidates: dict[int, _Candidate] = {}
        self._stopped: set[int] = set()
        self._array: bool | None = None
        self._inside = ""
        """Pointer of the reply in its wrapper."""
        self._failed = False

    def read(self, frame: Frame) -> list[Event]:
        if self._array is None:
            self._array = self.streamed and frame.raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        if (frame.data is None or not self.streamed) and (bare := self._bare(frame)) is not None:
            return bare
        is_broken = frame.data is None and any(kind == "broken-json" for kind, _ in frame.faults)
        self._failed = self._failed or (bool(self._array) and is_broken)
        events = super().read(frame)
        if frame.faults:  # SDKs of this API read the data lines alone
            named = [one for one in events if isinstance(one, StreamViolation) and one.kind == "parted-name"]
            events = or_other(frame, [one for one in events if one not in named])
        return events

    def close(self) -> list[Event]:
        events = super().close()
        if not self.streamed or self.is_done or self._failed or not self._stopped:
            return events
        if self._array:
            events.append(StreamViolation("missing-end", "no closing bracket", None))
        elif self._candidates.keys() <= self._stopped and not events:
            events.append(Done(None))
        return events

    def _bare(self, frame: Frame) -> list[Event] | None:
        """Return the events of a frame that is no event of a stream; None for ordinary frames.

        A whole body is an array if the stream began with an error. An error amid server-sent events is bare JSON.
        """
        if self.streamed:
            raw = frame.raw.strip()
            if self._array and raw == b"]" and not self.is_done:
                self.is_done = True
                return [Done(frame)]
            if not raw.startswith(b"{"):
                return [Other(frame)] if not frame.faults else None
        elif not (frame.data or "").lstrip("\ufeff \t\r\n").startswith("["):
            return None
        if (value := decode_json(frame.raw if self.streamed else frame.data or "")) is None:
            return None
        events: list[Event] = [StreamViolation(kind, detail, frame) for kind, detail in frame.faults]
        for _, document in several(value, ""):
            if (error := error_of(document)) is not None:
                self._failed = True
                events.append(Failure(error, frame))
        return or_other(frame, events)

    def read_document(self, document: dict[str, Json]) -> Iterator[Event]:
        document, self._inside = unwrapped(document)
        if self.is_done and (document.get("candidates") or error_of(document)):
            yield self.violation("after-end", (self.frame.data or "")[:60])
            return
        id_, model = text(value_of(document, "responseId")), text(value_of(document, "modelVersion"))
        yield from self.meta(id_ or None, model or None)
        if (error := error_of(document)) is not None:
            self._failed = True
            yield Failure(error, self.frame)
        for position, candidate in mappings(document.get("candidates")):
            yield from self._candidate(index_of(candidate, position), candidate)
        name, feedback = member(document, "promptFeedback")
        yield from self._blocked(mapping(feedback), f"{self._inside}/{name}")
        yield from self.usage(value_of(document, "usageMetadata"))

    def _candidate(self, choice: int, body: Mapping[str, Json]) -> Iterator[Event]:
        place = f"{self._inside}/candidates/{choice}"
        known = self._candidates.setdefault(choice, _Candidate(choice, f"{place}/content/parts"))
        parts = mapping(body.get("content")).get("parts")
        if (wrong := _misshapen(body.get("content"))) is not None and "content" not in known.once:
            known.once.add("content")
            where = f"{place}/content{wrong[0]}"
            yield Start(self.next_block(), "opaque", where, choice, self.frame, name=misshapen(wrong[1]))
        for position, part in enumerate(parts if isinstance(parts, list) else [parts]):
            if isinstance(part, dict):
                yield from self._part(known, position, part)
        for evidence in _HOSTED_EVIDENCE:
            name, value = member(body, evidence)
            if value and evidence not in known.once:
                known.once.add(evidence)
                yield Start(self.next_block(), "hosted_result", f"{place}/{name}", choice, self.frame, name=evidence)
        name, given = member(body, "finishReason")
        if (reason := _reason(given)) is not None:
            self._stopped.add(choice)
            yield Finish(choice, reason, f"{place}/{name}", self.frame)

    def _part(self, known: _Candidate, position: int, part: Mapping[str, Json]) -> Iterator[Event]:
        kind, name, value = kind_of(part)
        if kind in ("text", ""):
            yield from self._text(known, position, part) if kind else ()
            return
        inner = mapping(value)
        is_piece = value_of(inner, "willContinue") is True or value_of(inner, "partialArgs") is not None
        if kind == "functionCall" and self.streamed and (known.open is not None or is_piece):
            yield from self._piece_of_call(known, position, inner, f"{known.place}/{known.parts}/{name}")
            return
        where = f"{known.place}/{self._place(known, position)}/{name}"
        known.run = None
        yield _start_of(kind, inner, where, known.choice, position)._replace(block=self.next_block(), frame=self.frame)

    def _text(self, known: _Candidate, position: int, part: Mapping[str, Json]) -> Iterator[Event]:
        kind: Kind = "reasoning" if part.get("thought") is True else "text"
        words, wrong = text(part.get("text")), misshapen_text(part.get("text"))
        if not words and not wrong and not value_of(part, "thoughtSignature"):
            return
        if words and self.streamed and known.run is not None and known.run[0] == kind:
            yield Delta(known.run[1], words, self.frame, position)
            return
        block, where = self.next_block(), f"{known.place}/{self._place(known, position)}"
        start = Start(block, kind, f"{where}/text", known.choice, self.frame, item=position)
        if wrong:
            known.run = None
            yield start._replace(kind="opaque", name=wrong)
        elif not words:  # clients do not show a signature, and the text continues after it
            yield start._replace(kind="reasoning", pointer=where, form="opaque")
        else:
            known.run = (kind, block)
            yield start
            yield Delta(block, words, self.frame, position)

    def _piece_of_call(self, known: _Candidate, position: int, call: Mapping[str, Json], place: str) -> Iterator[Event]:
        """Yield a piece of a call whose arguments arrive value by value. A piece without `willContinue` is the last."""
        if known.open is None:
            known.open = (self.next_block(), PartialArguments())
            self._place(known, position)
            known.run = None
            id_, name = text(call.get("id")) or None, text(call.get("name")) or None
            yield Start(known.open[0], "tool_call", place, known.choice, self.frame, None, id_, name, item=position)
        block, arguments = known.open
        yield Delta(block, arguments.add(value_of(call, "partialArgs")), self.frame, position)
        if value_of(call, "willContinue") is not True:
            known.open = None
            yield Delta(block, arguments.end(), self.frame, position)
            yield Close(block, self.frame)

    def _blocked(self, feedback: Mapping[str, Json], place: str) -> Iterator[Event]:
        """Yield the refusal of a prompt. The reason replaces the candidates."""
        name, given = member(feedback, "blockReason")
        reason = _reason(given)
        if reason is None or 0 in self._stopped:
            return
        self._stopped.add(0)
        block = self.next_block()
        yield Start(block, "refusal", f"{place}/{name}", 0, self.frame)
        yield Delta(block, text(value_of(feedback, "blockReasonMessage")) or reason, self.frame)
        yield Finish(0, reason, f"{place}/{name}", self.frame)

    def _place(self, known: _Candidate, position: int) -> int:
        """Return the number that a new part has in a whole body."""
        if not self.streamed:
            return position
        known.parts += 1
        return known.parts - 1


def _reason(given: Json) -> str | None:
    """Return a finish reason as a word; None if it is unspecified."""
    if (code := number(given)) is not None:
        return _REASONS.get(code, str(code)) if code else None
    return given if isinstance(given, str) and given not in _UNSPECIFIED else None


# --- arguments that arrive value by value -----------------------------------------------------------------------------

_TOKEN = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArguments:
    """Argument text of one call whose values arrive one by one (`partialArgs`, Vertex AI).

        {"jsonPath":"$.address.lines[0]","stringValue":"Pier","willContinue":true}

    Values arrive in document order, so the text can be produced meanwhile: before each value, the brackets and commas
    between the former place and its own. Source: the vendor's API reference (FunctionCall, PartialArg).
    """

    def __init__(self) -> None:
        self._path: list[str | int] | None = None
        self._in_string = False

    def add(self, pieces: Json) -> str:
        """Return the text that these pieces add."""
        return "".join(part for _, piece in mappings(pieces) for part in self._piece(piece))

    def end(self) -> str:
        """Return the text that completes the arguments."""
        if self._path is None:
            return "{}"
        rest = self._leave(-1)
        self._path = None
        return rest

    def _piece(self, piece: Mapping[str, Json]) -> Iterator[str]:
        found = (match.groups() for match in _TOKEN.finditer(text(value_of(piece, "jsonPath")) or ""))
        path = [int(keys[1]) if keys[1] else next(key for key in keys if key is not None) for keys in found]
        if not path:
            return
        kind = next((name for name in _VALUES if value_of(piece, name) is not None), "nullValue")
        value = value_of(piece, kind)
        string = value if isinstance(value, str) and kind == "stringValue" else None
        if not (self._in_string and path == self._path and string is not None):
            yield from self._go_to(path)
            if string is None:
                yield "null" if kind == "nullValue" else json.dumps(value, ensure_ascii=False)
                return
            yield '"'
            self._in_string = True
        yield json.dumps(string, ensure_ascii=False)[1:-1]
        if value_of(piece, "willContinue") is not True:
            self._in_string = False
            yield '"'

    def _go_to(self, path: list[str | int]) -> Iterator[str]:
        """Yield the text between the former value and the one at `path`."""
        former, shared = self._path, -1
        if former is not None:
            most = min(len(path), len(former)) - 1
            shared = next((n for n in range(most) if path[n] != former[n]), most)
            yield f"{self._leave(shared)},{_opened(path[shared])[1:]}"
        self._path = path
        yield from map(_opened, path[shared + 1 :])

    def _leave(self, shared: int) -> str:
        """Return the end of the open string, and of the open containers beyond the first `shared` ones."""
        assert self._path is not None
        quote, self._in_string = '"' if self._in_string else "", False
        return quote + "".join("]" if isinstance(token, int) else "}" for token in reversed(self._path[shared + 1 :]))


def _opened(token: str | int) -> str:
    """Return the bracket of a container, with the name of its member if it is an object."""
    return "[" if isinstance(token, int) else f"{{{json.dumps(token, ensure_ascii=False)}:"


API = ApiSpec("google.generate_content", claims, claims_reply, read_request, Reader, StreamWriter, WholeWriter)
