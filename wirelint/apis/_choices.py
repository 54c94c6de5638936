r"""Readers and writers that the APIs with candidates (`choices`) share, after the shape of OpenAI Chat Completions.

    data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}
    data: [DONE]

Theory of operation. The writer forwards a frame unchanged if its events are unchanged. It builds any other frame from
its document: the members that events represent (content, reasoning, refusal, calls, the finish reason) are removed and
rebuilt from the events; all other members are kept in place (id, created, model, fingerprint, role, unknown members).
Each call that a rewriter made gets a separate chunk, and the finish reason after them another one, as vendors send
them.

The wire's own index of calls holds until a call changes. From there on the writer numbers the calls of that candidate, in
the order in which they start.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from wirelint.apis.reading import (
    DONE,
    ReplyReader,
    ReplyWriter,
    error_of,
    index_of,
    refusal_of,
    result_text,
    role_of,
    stated_reason,
    tool_choice,
)
from wirelint.apis.writing import (
    MADE,
    BodyWriter,
    frame_document,
    framed,
    groups,
    reply_id_of,
    same,
    text_of,
    with_other_lines,
    without_violations,
)
from wirelint.events import (
    REPEATED,
    CallUpdate,
    Delta,
    Done,
    Event,
    Failure,
    Finish,
    Frame,
    Other,
    ReplyMeta,
    Start,
    StreamViolation,
    Usage,
)
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.model import (
    Arguments,
    FaultKind,
    Json,
    Kind,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

PLAIN = frozenset({"role", "content"})
"""The members of most messages and deltas."""
REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Members that hold reasoning, in the order in which servers with several of them prefer them."""
_LIMITS = ("max_completion_tokens", "max_tokens", "max_new_tokens")
_UNSEEN_TOOLS = frozenset({"tool_search", "mcp", "namespace"})
"""Types of tools whose names the body does not show."""
_SEARCHES = frozenset({"web_search_options", "plugins", "search_parameters", "data_sources"})
_SEARCHING = re.compile(r":online|-search-preview|-search-api|sonar|compound")
"""Names of models that search by themselves."""


def read_chat(body: Mapping[str, Json], path: str = "") -> Request:
    """Return a request in the form of OpenAI's chat."""
    model = text(body.get("model")) or ""
    listed = [(tool, f"/{name}/{n}") for name in ("tools", "functions") for n, tool in mappings(body.get(name))]
    tools = tuple([found for tool, place in listed if (found := read_tool(tool, place)) is not None])
    parallel = body.get("parallel_tool_calls")
    searches = not _SEARCHES.isdisjoint(body) and any(body.get(name) for name in _SEARCHES)
    return Request(
        model=model,
        messages=tuple([_message(message, f"/messages/{n}") for n, message in mappings(body.get("messages"))]),
        tools=tools,
        body=body,
        tool_choice=_choice(body.get("tool_choice", body.get("function_call"))),
        parallel_tool_calls=parallel if isinstance(parallel, bool) else None,
        stream=body.get("stream") is True,
        hosted=any(tool.hosted for tool in tools) or searches or _SEARCHING.search(model) is not None,
        tools_known=_UNSEEN_TOOLS.isdisjoint([tool.type for tool in tools]),
        max_tokens=next((most for name in _LIMITS if (most := number(body.get(name))) is not None), None),
        wants_usage=_wants_usage(body),
    )


def _wants_usage(body: Mapping[str, Json]) -> bool | None:
    """Return OpenAI's `stream_options.include_usage`, or OpenRouter's `usage.include`."""
    places = (mapping(body.get("stream_options")).get("include_usage"), mapping(body.get("usage")).get("include"))
    return next((wish for wish in places if isinstance(wish, bool)), None)


def _message(message: Mapping[str, Json], place: str) -> Message:
    role = role_of(message)
    content = message.get("content")
    if role == "tool":
        name = text(message.get("tool_name")) or text(message.get("name"))
        return Message(role, (ToolResult(text(message.get("tool_call_id")), result_text(content), place, name),), place)
    if isinstance(content, str) and message.keys() == PLAIN:
        return Message(role, (Text(content, f"{place}/content"),) if content else (), place)
    parts: list[Part] = []
    for member in (*REASONING, "tool_plan"):  # the last is Cohere's
        if thought := text(message.get(member)):
            parts.append(Reasoning(thought, f"{place}/{member}"))
            break
    parts += _content(content, f"{place}/content")
    images = message.get("images")  # Ollama's
    parts += [Opaque("image", f"{place}/images/{n}") for n, _ in enumerate(images if isinstance(images, list) else ())]
    if refusal := text(message.get("refusal")):
        parts.append(Refusal(refusal, f"{place}/refusal"))
    parts += [_call(call, f"{place}/tool_calls/{n}") for n, call in mappings(message.get("tool_calls"))]
    legacy = mapping(message.get("function_call"))
    if legacy and not is_empty_call(legacy):  # Go clients send an empty one with every message
        arguments = Arguments(text(legacy.get("arguments")) or "")
        parts.append(ToolCall(None, text(legacy.get("name")), arguments, f"{place}/function_call", "legacy"))
    return Message(role, tuple(parts), place)


def _content(content: Json, place: str) -> Iterator[Part]:
    if isinstance(content, str) and content:
        yield Text(content, place)
    for n, part in mappings(content):
        kind, words, thought = text(part.get("type")) or "", text(part.get("text")), part.get("thinking")
        if isinstance(thought, str):
            yield Reasoning(thought, f"{place}/{n}/thinking")
        elif kind == "thinking" or kind == "reasoning":
            yield Reasoning(result_text(thought) if thought is not None else words or "", f"{place}/{n}")
        elif kind == "refusal":
            yield Refusal(text(part.get("refusal")) or "", f"{place}/{n}")
        elif words is None:
            yield Opaque(kind, f"{place}/{n}")
        elif words:
            yield Text(words, f"{place}/{n}/text")


def _call(call: Mapping[str, Json], place: str) -> ToolCall:
    custom = mapping(call.get("custom"))
    function = custom or mapping(call.get("function"))
    given = function.get("input") if custom else function.get("arguments")  # some servers send a value
    arguments = Arguments(given or "") if given is None or isinstance(given, str) else Arguments.of(given)
    id_, name = text(call.get("id")), text(function.get("name"))
    return ToolCall(id_, name, arguments, place, "custom" if custom else "function")


def read_tool(tool: Mapping[str, Json], place: str) -> Tool | None:
    """Return a declared tool; None for a function without a name."""
    kind = text(tool.get("type")) or "function"
    inner = mapping(tool.get(kind)) or tool
    name, described = text(inner.get("name")), text(inner.get("description")) or ""
    if kind == "custom":
        return Tool(name or "", place, described, None, type="custom")
    if kind == "function" or "parameters" in inner or "input_schema" in inner:
        declared = mapping(inner.get("parameters", inner.get("input_schema"))) or None
        return Tool(name, place, described, declared) if name else None
    return Tool(name or kind, place, described, None, hosted=True, type=kind)


def _choice(choice: Json) -> ToolChoice:
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return tool_choice(choice)
    allowed = mapping(choice.get("allowed_tools"))
    names = [
        text(mapping(tool.get(text(tool.get("type")) or "")).get("name")) for _, tool in mappings(allowed.get("tools"))
    ]
    known = tuple(name for name in names if name) if all(names) else ()  # a tool without a name may be any
    return ToolChoice("required" if allowed.get("mode") == "required" else "auto", names=known)


class ChoiceReader(ReplyReader):
    """Reader of replies with candidates. A block is known by its candidate, its kind and its number among those."""

    has_done_marker = True
    terminator = DONE
    evidence: ClassVar[tuple[str, ...]] = ()
    """Members of a document that only a search of the provider adds."""

    def __init__(self, *, streamed: bool) -> None:
        super().__init__(streamed=streamed)
        self.blocks: dict[tuple[int, str, int], int] = {}
        self._counted = False
        self.choices_from = 0
        """Position in `out` at which the events of the document's candidates begin."""

    # The methods below append to `out`: a generator for each of them would cost more than they do.

    def read_document(self, document: dict[str, Json]) -> Iterable[Event]:
        choices = document.get("choices")
        error = error_of(document)
        if not self.is_done:
            self.out += self.meta(text(document.get("id")), text(document.get("model")))
        elif choices or error:
            self.out.append(self.violation("after-end", (self.frame.data or "")[:60]))
            choices = None  # clients have left
        elif document.get("usage") and not self._counted:
            self.out.append(self.violation("late-usage", ""))
        if error is None and not choices:
            error = dict(document) if self.frame.event == "error" else refusal_of(document)
        self.out += self.failure(error)
        self.choices_from = len(self.out)
        for position, choice in mappings(choices):
            self.read_choice(index_of(choice, position), choice)
        counts = document.get("usage") or ("x_groq" in document and mapping(document["x_groq"]).get("usage"))
        if counts and (usage := mapping(counts)):
            self._counted = True
            self.out.append(Usage(usage, self.frame))
        for name in self.evidence:
            if document.get(name):
                self.add_once(0, name, f"/{name}")
        return ()

    def read_undecoded(self, frame: Frame) -> Iterable[Event]:
        return (Failure(frame.data, frame),) if frame.event == "error" else ()

    @abstractmethod
    def read_choice(self, choice: int, body: Mapping[str, Json]) -> None: ...

    def add_finish(self, choice: int, reason: str) -> None:
        self.is_finished = True
        self.out.append(Finish(choice, reason, f"/choices/{choice}/finish_reason", self.frame))

    def add_text(self, choice: int, kind: Kind, slot: int, place: str, piece: str, item: int = -1) -> None:
        key = (choice, kind, slot)
        block = self.blocks.get(key)
        if block is None:
            block = self.new_block(key)
            self.out.append(Start(block, kind, place, choice, self.frame, item=item))
        self.out.append(Delta(block, piece, self.frame, item))

    def add_once(self, choice: int, name: str, place: str, kind: Kind = "hosted_result", key: str = "") -> int:
        """Append the start of a block without text, unless the candidate has one of this name. Return its number."""
        block = self.blocks.get((choice, key or name, 0))
        if block is None:
            block = self.new_block((choice, key or name, 0))
            self.out.append(Start(block, kind, place, choice, self.frame, name=name))
        return block

    def new_block(self, key: tuple[int, str, int]) -> int:
        block = self.blocks[key] = self.next_block()
        return block


class ChoiceWriter:
    """Base of the writers of streams and of whole bodies: the blocks by number, and the numbers of calls."""

    reasoning = "reasoning_content"
    """The member in which this server sends reasoning."""

    def __init__(self) -> None:
        self.starts: dict[int, Start] = {}
        self.numbers: dict[int, int] = {}
        self._removed: dict[int, Start] = {}
        self._highest: dict[int, int] = {}
        self._altered: set[int] = set()  # candidates whose calls are numbered here

    def note(self, out: Sequence[Event]) -> None:
        """Record the blocks that start, and the numbers of calls."""
        for event in out:
            if type(event) is not Start or event.block in self.starts:
                continue
            self.starts[event.block] = event
            if event.kind == "reasoning" and event.block < MADE:
                name = event.pointer.rpartition("/")[2]
                self.reasoning = name if name in REASONING else self.reasoning
            if event.kind == "tool_call" and event.form != "legacy":
                highest, own = self._highest.get(event.choice, -1), event.wire_index
                is_ours = own is None or event.choice in self._altered or event.block >= MADE
                self.numbers[event.block] = highest + 1 if is_ours or own is None else own
                self._highest[event.choice] = max(highest, self.numbers[event.block])

    def mark_altered(self, events: Sequence[Event], out: Sequence[Event]) -> None:
        """Note which candidates have calls inserted or removed, and which blocks are gone."""
        left = {id(event) for event in out}
        for event in (*events, *out):
            if isinstance(event, Start):
                gone = id(event) not in left
                if event.kind == "tool_call" and (gone or event.block >= MADE or event.wire_index is None):
                    self._altered.add(event.choice)
                if gone and event.block not in self.starts:
                    self._removed[event.block] = event

    def start_of(self, event: Event) -> Start | None:
        """Return the start of the block of an event; None if it belongs to no block."""
        match event:
            case Start():
                return event
            case Delta(block=block) | CallUpdate(block=block):
                return self.starts.get(block) or self._removed.get(block)
            case _:
                return None

    def of_choice(self, events: Sequence[Event], choice: int) -> list[Event]:
        return [event for event in events if self.choice_of(event) == choice]

    def choice_of(self, event: Event) -> int | None:
        if isinstance(event, Finish):
            return event.choice
        start = self.start_of(event)
        return start.choice if start is not None else None

    def kind_of(self, event: Event) -> Kind | None:
        start = self.start_of(event)
        return start.kind if start is not None else None

    def text_for(self, events: Sequence[Event], kind: Kind) -> str:
        return text_of(event for event in events if self.kind_of(event) == kind)


class ChoiceStreamWriter(ChoiceWriter, ReplyWriter, ABC):
    """Writer of chunks. A subclass builds the entries of `choices`."""

    empty_choice: Mapping[str, Json] = {"delta": {}, "finish_reason": None}

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Json] = {}
        """The members of a chunk beside `choices` and `usage`, for chunks that the upstream did not send."""

    @abstractmethod
    def choices(self, choice: Mapping[str, Json], before: Sequence[Event], after: Sequence[Event]) -> list[Json]:
        """Return the entries that replace an entry of `choices`, each for a separate chunk.

        `before` are the events that were read from it, `after` those that replace them.
        """

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if same(events, out) and not (self._altered and self._is_renumbered(frame, out)):
            self.note(out)
            if not self._last:
                self._remember(frame_document(frame))
            return frame.raw
        self.mark_altered(events, out)
        made: list[bytes] = []
        rest = {id(event.frame): event.frame for event in events if event.frame is not None}
        for place, own, group in groups(frame, events, out):
            made += self._group(place, own, group)
            rest.pop(id(place), None)
        # Documents without remaining events still have their other members to send, except after the end.
        late = any(isinstance(event, StreamViolation) and event.kind == "after-end" for event in events)
        for place in () if late else rest.values():
            made += self._group(place, [event for event in events if event.frame is place], [])
        return with_other_lines(frame, made)

    def close(self, out: Sequence[Event]) -> bytes:
        self.mark_altered((), out)
        late = [event for event in out if isinstance(event, (Start, Delta, CallUpdate, Finish))]
        made = list(self._chunks(dict(self._last), [], late, Frame(0, b"", None, None))) if late else []
        return b"".join([*made, *(framed(None, data=DONE) for event in out if isinstance(event, Done))])

    def _remember(self, document: Mapping[str, Json]) -> None:
        if document.get("choices"):  # the first chunk of Azure has none, and an empty id
            self._last = {name: document[name] for name in document if name not in ("choices", "usage", "error")}

    def _is_renumbered(self, frame: Frame, out: Sequence[Event]) -> bool:
        """Return True if a call in an unchanged frame has another number now, or may be a removed one."""
        calls = (Start, Delta, CallUpdate)
        if '"tool_calls"' in (frame.data or "") and not any(isinstance(event, calls) for event in out):
            return True  # `{"index":0,"function":false}` has no event, but clients start a call with it
        for event in out:
            if type(event) is Start and event.choice in self._altered:
                self.note([event])
            start = self.start_of(event)
            if start is not None and start.block in self.numbers and self.numbers[start.block] != start.wire_index:
                return True
        return False

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = frame_document(frame)
        is_done = any(isinstance(event, Done) for event in out)
        others = [event for event in out if not isinstance(event, Done)]
        if document:
            yield from self._chunks(document, own, others, frame)
        elif any(isinstance(event, (Start, Delta, CallUpdate, Finish)) for event in others):
            yield from self._chunks(dict(self._last), [], others, frame)
        elif not is_done and any(isinstance(event, (Other, StreamViolation)) for event in others):
            yield frame.raw
        if is_done:
            yield framed(None, data=DONE)

    def _chunks(
        self, document: dict[str, Json], own: Sequence[Event], out: Sequence[Event], frame: Frame
    ) -> Iterator[bytes]:
        """Yield the chunks that a document becomes."""
        self._remember(document)
        self.note(out)
        unchanged = bool(own) and same(without_violations(own), without_violations(out))
        if frame.data is not None and unchanged and not self._is_renumbered(frame, out):
            yield framed(None, frame.event, data=frame.data)
            return
        if (id_ := reply_id_of(out)) is not None and "id" in document:
            document = {**document, "id": id_}
            self._last["id"] = id_
        rows = [(index_of(choice, position), choice) for position, choice in mappings(document.get("choices"))]
        extra = {c for event in out if (c := self.choice_of(event)) is not None} - {index for index, _ in rows}
        rows += [(index, {"index": index, **self.empty_choice}) for index in sorted(extra)]
        made = [self.choices(row, self.of_choice(own, index), self.of_choice(out, index)) for index, row in rows]
        made = [entries for entries in made if entries]
        removed = any(isinstance(event, Usage) for event in own) and not any(isinstance(event, Usage) for event in out)
        if removed or (not own and document.get("usage")):  # a fix removed the counts, or they were sent before
            document = {name: value for name, value in document.items() if name != "usage"}
        if not made and not document.get("usage") and not any(_stays(event, removed) for event in out):
            return
        flat = [entry for entries in made for entry in entries]
        if flat or "choices" in document:
            document = {**document, "choices": flat}
        if len(flat) > len(made):  # a chunk for each entry, the last one with the usage
            plain = {**document, **({"usage": None} if "usage" in document else {})}
            for entry in flat[:-1]:
                yield framed({**plain, "choices": [entry]}, frame.event)
            document = {**document, "choices": flat[-1:]}
        yield framed(document, frame.event)


def _stays(event: Event, counts_removed: bool) -> bool:
    """Return True if a chunk is written for an event that belongs to no candidate."""
    if isinstance(event, StreamViolation):
        return not counts_removed and event.kind not in REPEATED
    return isinstance(event, (Other, ReplyMeta, Usage, Failure))


def is_empty_call(call: Mapping[str, Json]) -> bool:
    """Return True if a `function_call` has neither a name nor arguments."""
    return not call.get("name") and call.get("arguments") in (None, "", "{}", {})


def is_bare_call(call: Mapping[str, Json]) -> bool:
    """Return True if an entry of `tool_calls` has its name and arguments outside `function`."""
    if "function" in call or "custom" in call or call.get("type") not in (None, "", "function"):
        return False
    return "name" in call or "arguments" in call


def _wrapped(call: Json) -> Json:
    """Return an entry of `tool_calls` with its name and arguments in `function`."""
    if not isinstance(call, dict) or not is_bare_call(call):
        return call
    outer = dict(call)
    inner: dict[str, Json] = {name: outer.pop(name) for name in call if name in ("name", "arguments")}
    return {**outer, "function": inner}


def _without_empty(choice: dict[str, Json], dropped: frozenset[FaultKind]) -> dict[str, Json]:
    """Return a candidate without the empty members, and with misshapen calls written anew, if the violation was dropped."""
    if "written-null" in dropped and stated_reason(choice.get("finish_reason")) is None:
        choice = {**choice, "finish_reason": None}
    message = mapping(choice.get("message"))
    calls = message.get("tool_calls")
    if "misshapen-call" in dropped and isinstance(calls, list):
        message = {**message, "tool_calls": [_wrapped(call) for call in calls]}
        choice = {**choice, "message": message}
    call = mapping(message.get("function_call"))
    if "empty-call" in dropped and is_empty_call(call):
        choice = {**choice, "message": {name: message[name] for name in message if name != "function_call"}}
    return choice


class ChoiceWholeWriter(BodyWriter, ChoiceWriter):
    """Writer of whole bodies. A subclass patches the entries of `choices`."""

    @abstractmethod
    def choice(self, choice: dict[str, Json], before: Sequence[Event], after: Sequence[Event]) -> dict[str, Json]: ...

    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        self.mark_altered(events, out)
        self.note(events)
        self.note(out)
        listed = document.get("choices")
        choices: list[Json] = list(listed) if isinstance(listed, list) else []
        kinds = [{one.kind for one in some if isinstance(one, StreamViolation)} for some in (events, out)]
        dropped = (REPEATED & kinds[0]) - kinds[1]
        for position, choice in mappings(choices):
            index = index_of(choice, position)
            before, after = self.of_choice(events, index), self.of_choice(out, index)
            choices[position] = cleaned = _without_empty(choice, dropped)
            if not same(before, after):
                choices[position] = self.choice(cleaned, before, after)
        return {**document, "choices": choices}
