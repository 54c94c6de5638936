"""Frozen values that all modules share: requests, replies, messages, parts. No I/O.

A value describes the bytes on the wire in terms that belong to no single vendor. `None` means unknown or absent; no
default is filled in. Every part carries the JSON Pointer (RFC 6901) of its place in the body, and parts of a streamed
reply carry the pointer they would have in the same API's whole body, so that a finding reads the same for both.
"""

from __future__ import annotations

import bisect
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self, TypeAlias

from wirelint.jsonvalues import Arguments as Arguments
from wirelint.jsonvalues import Json as Json
from wirelint.timing import NO_ARRIVALS, NO_TIMING, Arrivals
from wirelint.timing import End as End
from wirelint.timing import Timing as Timing


class Copied:
    """Base of frozen dataclasses without slots. Copies keep the values that were computed from fields."""

    def but(self, **fields: object) -> Self:
        """Return a copy with other fields, like `dataclasses.replace` but in a fraction of the time.

        Computed values must not depend on the changed fields.
        """
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.update(fields)
        return made


class Offsets:
    """Events that carried the characters of a text, as pairs of (offset at which an event's text begins, event number).

    Takes two integers per event. Do not add to an `Offsets` after it has been shared; `copy` it first.
    """

    __slots__ = ("_events", "_starts")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._starts, self._events = array("Q"), array("Q")
        for start, event in pairs:
            self.add(start, event)

    def add(self, start: int, event: int) -> None:
        """Record that the text of `event` begins at `start`, which is not below the last start."""
        self._starts.append(start)
        self._events.append(event)

    @property
    def starts(self) -> Sequence[int]:
        return self._starts

    def event_at(self, offset: int) -> int | None:
        """Return the event that carried the character at `offset`; None without any event (no stream)."""
        if not self._starts:
            return None
        return self._events[max(bisect.bisect_right(self._starts, offset) - 1, 0)]

    def copy(self) -> Offsets:
        made = Offsets()
        made._starts, made._events = self._starts[:], self._events[:]
        return made

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._events, strict=True)

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Offsets) and (self._starts, self._events) == (other._starts, other._events)

    def __hash__(self) -> int:
        return hash((self._starts.tobytes(), self._events.tobytes()))

    def __repr__(self) -> str:
        return f"Offsets({list(self)!r})"


NOWHERE = Offsets()
"""Offsets of a text that no stream carried."""


# Facts that a capture lacks. A body rebuilt from a log differs from the wire, so rules that need these facts skip it.

MissingInfo = Literal["request", "tools", "arguments", "reasoning", "finish", "framing", "times", "end", "headers"]
"""`request`: the request was rebuilt from a log and differs from the one sent. `tools`: the declared tools are unknown.
`arguments`: the argument text is lost; only the value that a client parsed from it is left. `finish`: the recorder may
have made up finish reasons. `framing`: a stream was folded into a body. `times`: arrival times and pauses are unknown.
`end`: whether the reply arrived completely is unknown."""

_WORDS: dict[MissingInfo, str] = {
    "request": "requests as they were sent",
    "tools": "which tools were declared",
    "arguments": "the text of arguments",
    "reasoning": "reasoning",
    "finish": "finish reasons",
    "framing": "the framing of streams",
    "times": "when the pieces of a reply came",
    "end": "how an exchange ended",
    "headers": "headers",
}


def missing_words(missing: Iterable[MissingInfo]) -> str:
    """Return words for the facts that cannot be checked: `requests as they were sent, finish reasons`."""
    wanted = set(missing)
    return ", ".join(words for lack, words in _WORDS.items() if lack in wanted)


def missing_of(value: object) -> frozenset[MissingInfo]:
    """Return the items of a list that are names of missing facts."""
    return frozenset(lack for lack in _WORDS if lack in value) if isinstance(value, list) else frozenset()


# Violations of the grammar of a stream.

FaultKind = Literal[
    "missing-blank-line",  # several JSON documents in one event, a line each
    "leading-space",  # white space before a field name
    "unknown-field",  # a line that is no field of the SSE grammar
    "broken-json",  # data that is no JSON document
    "doubled-field",  # the field's name twice: `data: data: {…}`
    "split-json",  # one JSON document, over several events
    "event-mismatch",  # the event name contradicts the `type` inside
    "parted-name",  # a blank line between the event name and its data
    "event-missing",  # an event without a name, in an API that names its events
    "undeclared-part",  # a delta for a part that was never started
    "restarted-part",  # a part that is started twice
    "unfinished-part",  # a part that was never stopped before the message ended
    "after-end",  # events after the terminator
    "late-usage",  # the token counts after the terminator, and not before it
    "missing-end",  # finished without a terminator
    "cut-event",  # the last event lacks its blank line
    "bad-utf8",
    "empty-call",  # a legacy `function_call` without name and arguments: no call
    "misshapen-call",  # a call's name and arguments outside `function`, or arguments that go on as an object
    "repeated-start",  # deltas of arguments after a start that carried arguments itself
    "said-again",  # a call's id or name again in a later delta; clients concatenate them
    "other-item",  # an event for an output item with another id than its start had
    "shared-item",  # an output item of a call with the id of an earlier one
    "written-null",  # a finish reason that means none: an empty text, "null"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fact that the grammar of the stream does not allow. `detail` quotes the evidence, shortened."""

    kind: FaultKind
    event: int
    detail: str


# Messages of JSON-RPC 2.0, used by tool servers (MCP).


@dataclass(frozen=True, slots=True)
class Rpc:
    """A JSON-RPC message that is neither a tool call nor a tool result.

    `id` is the JSON text of its id (`7` and `"7"` are two ids), None if it has none. `method` is empty in responses.
    `value` holds its params, result or error. `event` is its stream event.
    """

    form: Literal["request", "notification", "result", "error"]
    id: str | None
    method: str
    value: Json
    pointer: str
    event: int | None = None

    @property
    def error(self) -> str | None:
        """The text of an error; None for other messages and for an error without a text."""
        message = self.value.get("message") if self.form == "error" and isinstance(self.value, dict) else None
        return message if isinstance(message, str) else None


@dataclass(frozen=True, slots=True)
class Link:
    """The earlier exchange that an exchange continues, and how.

    `turn`: the history is that exchange and its answer. `fork`: so is that of another, earlier exchange. `compaction`:
    the history was replaced by a summary that the earlier exchange gave.
    """

    exchange: str
    how: Literal["turn", "fork", "compaction"] = "turn"


Severity = Literal["error", "warning", "info"]
"""`error`: the exchange is broken. `warning`: likely broken. `info`: worth knowing, never counts for the exit status."""
Confidence = Literal["high", "medium", "low"]
Layer = Literal["model", "gateway", "client", "tool", "wirelint"]
"""The layer at fault. `wirelint` only for failures of wirelint itself."""
Side = Literal["request", "response"]

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal[
    "text", "reasoning", "refusal", "tool_call", "hosted_call", "hosted_result", "tool_result", "rpc", "opaque"
]  # fmt: skip
"""Kind of a part of a reply. `hosted_*`: run by the provider, never by the client. `opaque`: known, not text.

`tool_result` and `rpc` come from tool servers (MCP); a model's reply has neither."""


class _Streamed:
    """Base of the parts whose `events` map the offsets of their text to stream events."""

    __slots__ = ()
    events: Offsets

    def event_at(self, offset: int) -> int | None:
        """Return the number of the stream event with the character at `offset`."""
        return self.events.event_at(offset)


@dataclass(frozen=True, slots=True)
class Text(_Streamed):
    """Text that the user sees."""

    text: str
    pointer: str
    events: Offsets = NOWHERE


@dataclass(frozen=True, slots=True)
class Reasoning(_Streamed):
    """Thinking, in the field the API has for it. `opaque` when it is encrypted or redacted by the provider."""

    text: str
    pointer: str
    opaque: bool = False
    events: Offsets = NOWHERE


@dataclass(frozen=True, slots=True)
class Refusal:
    text: str
    pointer: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One announcement of a call in a stream: an event that carried an id, a name or an index for it.

    `offset` is the length of the call's argument text before this event, `index` the wire's own index (None: missing).
    Deltas that continue the call with the same index and neither id nor name leave no piece.
    """

    event: int
    index: int | None
    id: str | None
    name: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class ToolCall(_Streamed):
    """A tool call for the client. `id` and `name` are None if the reply had none.

    `arguments` are assembled by the rules of the API. `start_input` is a non-empty JSON value, if the arguments were
    not text: the input of an Anthropic block or of its start, or an object where OpenAI has text. `deltas` is the
    argument text after it. `form` is `function` (JSON arguments), `custom` (free text) or `legacy` (OpenAI's
    `function_call`). `pieces` has at least one entry for a streamed call and none for a whole body.
    """

    id: str | None
    name: str | None
    arguments: Arguments
    pointer: str
    form: Literal["function", "custom", "legacy"] = "function"
    start_input: Arguments | None = None
    deltas: str = ""
    pieces: tuple[Piece, ...] = ()
    events: Offsets = NOWHERE

    @property
    def event(self) -> int | None:
        return self.pieces[0].event if self.pieces else None

    @property
    def is_empty(self) -> bool:
        """True for a call without a name and arguments, which no client can run."""
        return not self.name and self.start_input is None and self.form == "function" and are_empty(self.deltas)


def are_empty(arguments: str) -> bool:
    """Return True if arguments are missing, or an empty object, once or several times."""
    return len(arguments) <= _LONGEST_EMPTY and not arguments.replace("{}", "").strip()


_LONGEST_EMPTY = 64


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call. `text` joins the textual content; `is_error` is None if the API has no such field or
    omitted it.

    `event` is the stream event with the result, if a tool server streams its answers.
    """

    call_id: str | None
    text: str
    pointer: str
    name: str | None = None
    is_error: bool | None = None
    event: int | None = None


@dataclass(frozen=True, slots=True)
class HostedCall:
    """A call that the provider itself runs (web search, code execution, a remote MCP server)."""

    id: str | None
    name: str | None
    pointer: str


@dataclass(frozen=True, slots=True)
class HostedResult:
    call_id: str | None
    pointer: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that is known to exist and is not text: images, audio, documents, part types of newer API versions."""

    kind: str
    pointer: str


Part: TypeAlias = Text | Reasoning | Refusal | ToolCall | ToolResult | HostedCall | HostedResult | Rpc | Opaque


_REMINDER = re.compile(r"\s*<(system-reminder|system_reminder|environment_details|env|context)\b[\s\S]*</\1>\s*\Z")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request's history. `pointer` is its place (`/messages/3`, `/system`)."""

    role: Role
    parts: tuple[Part, ...]
    pointer: str

    @property
    def text(self) -> str:
        return "\n".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolResult)])

    @property
    def words(self) -> str:
        """The text without the reminders that clients put beside it (`<system-reminder>…</system-reminder>`)."""
        texts = [part.text for part in self.parts if isinstance(part, Text)]
        return "\n".join([text for text in texts if not _REMINDER.match(text)])

    @property
    def speaks(self) -> bool:
        """Return True if a user wrote the message. Text beside tool results, and reminders, come from the client."""
        if self.role != "user" or self.results:
            return False
        said = [part for part in self.parts if isinstance(part, (Opaque, Text))]
        return bool([part for part in said if isinstance(part, Opaque) or not _REMINDER.match(part.text)])


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A declared tool. `schema` is the JSON Schema of its arguments, None when the declaration has none.

    `hosted`: the provider runs it. A tool of a vendor-defined type that the client runs (`bash_20250124`) is not hosted
    and has no schema.
    """

    name: str
    pointer: str
    description: str = ""
    schema: dict[str, Json] | None = None
    hosted: bool = False
    type: str = "function"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`mode` none | auto | required | named; `name` with `named` only; `names`: the permitted tools, if limited."""

    mode: Literal["none", "auto", "required", "named"] = "auto"
    name: str | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Request(Copied):
    """A request as parsed by its API's reader. `body` is the decoded body itself, not a copy.

    `tools_known` is False if tools may exist that this body does not show (loaded in mid-conversation, a remote MCP
    server, a stored prompt): then a rule must not report an undeclared tool. `max_tokens`: the caller's limit.
    `on_server` says where the server holds messages that the body lacks (`previous_response_id`, a conversation, a
    message thread, cached content): nowhere, before the body's first message, or anywhere among them (references to
    stored items). Such messages are unknown, not missing. `previous` is the id of the reply that the request continues,
    `stored` that of the conversation to which the server adds it. `wants_usage`: the request asks for token counts in
    the stream, if the API has such an option; None if the request does not set it.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    body: Mapping[str, Json]
    api: str = ""
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool | None = None
    stream: bool = False
    hosted: bool = False
    tools_known: bool = True
    max_tokens: int | None = None
    wants_usage: bool | None = None
    on_server: Literal["nothing", "before", "anywhere"] = "nothing"
    previous: str | None = None
    stored: str | None = None

    @property
    def is_continued(self) -> bool:
        """Return True if the request names a reply or a conversation that the server keeps.

        Only then may a ledger know more of it. To ask the proxy's ledger takes long: it first judges all that has ended.
        """
        return bool(self.previous or self.stored)

    @property
    def is_partial(self) -> bool:
        """Return True if the server holds a part of the conversation, so that the body does not show all of it."""
        return self.on_server != "nothing"

    @property
    def shows_turn(self) -> bool:
        """Return True if the body shows everything since the user last spoke."""
        return not self.is_partial or (self.on_server == "before" and self.last_user is not None)

    @property
    def parts(self) -> list[Part]:
        """The parts of all messages, in order."""
        return [part for message in self.messages for part in message.parts]

    @property
    def calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def results(self) -> list[ToolResult]:
        return [part for part in self.parts if isinstance(part, ToolResult)]

    @cached_property
    def client_tools(self) -> tuple[Tool, ...]:
        return tuple([tool for tool in self.tools if not tool.hosted])

    def tool(self, name: str | None) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    @cached_property
    def has_history(self) -> bool:
        """Return True if the messages hold calls or results, or items with ids as in OpenAI's Responses."""
        if self.api == "openai.responses":
            return True
        return any(isinstance(part, (ToolCall, ToolResult)) for part in self.parts)

    @cached_property
    def turn(self) -> tuple[Message, ...]:
        """The messages after the last one in which the user spoke; all messages if no user spoke."""
        position = self._last_spoken
        return self.messages if position is None else self.messages[position + 1 :]

    @property
    def last_user(self) -> Message | None:
        """The message in which the user last spoke."""
        position = self._last_spoken
        return None if position is None else self.messages[position]

    @cached_property
    def _last_spoken(self) -> int | None:
        for position in range(len(self.messages) - 1, -1, -1):
            message = self.messages[position]
            if not message.speaks:
                continue
            # It may only carry images and files of a tool result. Some APIs accept them only from the user role.
            if not (
                position
                and self.messages[position - 1].results
                and [one for one in message.parts if isinstance(one, Opaque)]
            ):
                return position
        return None


@dataclass(frozen=True)
class Choice:
    """One candidate of a reply (OpenAI's `n`), with its parts in wire order. `finish_pointer`: place of the reason."""

    index: int
    parts: tuple[Part, ...]
    finish_reason: str | None
    finish_pointer: str
    finish_event: int | None = None

    @property
    def text(self) -> str:
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @cached_property
    def hosted(self) -> bool:
        return bool([part for part in self.parts if isinstance(part, (HostedCall, HostedResult))])


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """A reply as a client of its API reads it.

    `finished`: every candidate has a finish reason, or the terminal event was read. `terminated`: the terminator of the
    protocol was read (`[DONE]`, `message_stop`; always True for a whole body). `error` is the provider's error object,
    `error_event` its event. `ids` are the different reply ids of a stream with their first events.
    """

    id: str | None
    model: str | None
    choices: tuple[Choice, ...]
    usage: Mapping[str, Json] | None = None
    error: Json = None
    streamed: bool = False
    finished: bool = True
    terminated: bool = True
    events: int = 0
    faults: tuple[Fault, ...] = ()
    ids: tuple[tuple[str, int], ...] = ()
    error_event: int | None = None

    @property
    def parts(self) -> list[Part]:
        """The parts of all candidates, in order."""
        return [part for choice in self.choices for part in choice.parts]

    @property
    def calls(self) -> list[ToolCall]:
        return [call for choice in self.choices for call in choice.calls]

    @property
    def answers(self) -> list[ToolResult | Rpc]:
        """The answers of a tool server: results of calls, and other results and errors of JSON-RPC."""
        found = (part for part in self.parts if isinstance(part, (ToolResult, Rpc)))
        return [part for part in found if isinstance(part, ToolResult) or part.form in ("result", "error")]

    @property
    def is_plain(self) -> bool:
        """Return True if it is text alone with a normal end: no calls, no faults, no error, complete."""
        if self.error is not None or self.faults or len(self.ids) > 1 or not (self.finished and self.terminated):
            return False
        for choice in self.choices:
            if choice.finish_reason not in _ENDED or choice.calls:
                return False
            if not [part for part in choice.parts if isinstance(part, Text) and not part.text.isspace()]:
                return False
        return bool(self.choices)


_ENDED = frozenset({"stop", "end_turn", "STOP", "completed"})
"""Finish reasons of a normal end."""


@dataclass(frozen=True, eq=False)
class Exchange(Copied):
    """One request with its reply, as the rules see it. `request` or `reply` is None if it could not be read.

    Headers are a mapping of lower-case names; repeated ones are joined by a comma (RFC 9110, 5.3). `chunks` are the
    arrivals of the body as (milliseconds after the request, bytes), and `arrivals` is their summary; both are empty if
    times are not known. `open`: the exchange has not ended, and `timing.duration` is its age. `reply` is the reply of
    the upstream, `delivered` the one that the client got, if that differs. The ledger sets `conversation`, `root` and
    `link`; until then, `conversation` is derived from the request alone. `root` is the conversation from which this one
    branched off, under the name that every proxy gives it. `missing` names the facts that a capture lacks.
    """

    id: str
    api: str
    method: str
    url: str
    request_headers: Mapping[str, str]
    request: Request | None
    status: int | None
    response_headers: Mapping[str, str]
    reply: Reply | None
    end: End = "complete"
    error: str | None = None
    timing: Timing = NO_TIMING
    chunks: tuple[tuple[float, int], ...] = ()
    arrivals: Arrivals = NO_ARRIVALS
    open: bool = False
    conversation: str | None = None
    notes: tuple[str, ...] = ()
    delivered: Reply | None = None
    link: Link | None = None
    missing: frozenset[MissingInfo] = frozenset()
    root: str | None = None

    @property
    def model(self) -> str:
        """The requested model, else the one named in the reply."""
        if self.request is not None and self.request.model:
            return self.request.model
        return (self.reply.model or "") if self.reply is not None else ""

    @property
    def asked(self) -> list[Part]:
        """The parts of the request, in order; none if it could not be read."""
        return self.request.parts if self.request is not None else []

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The candidates of the reply; none without a reply."""
        return self.reply.choices if self.reply is not None else ()

    @property
    def calls(self) -> list[tuple[Choice, ToolCall]]:
        """The calls of the reply, each with its candidate."""
        return [(choice, call) for choice in self.choices for call in choice.calls]

    @property
    def ok(self) -> bool:
        """Return True if the reply can be checked: it was read, and its status is 2xx."""
        return self.reply is not None and self.status is not None and 200 <= self.status < 300 and self.end != "unread"

    @property
    def succeeded(self) -> bool:
        """Return True if the reply can be checked and holds no error."""
        return self.ok and self.reply is not None and self.reply.error is None
