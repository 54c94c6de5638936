"""OpenAI Responses, from the vendor and from the servers that imitate it (Azure, OpenRouter, vLLM, DeepSeek, LM Studio).

Requests: `POST …/responses`. Replies: a `response` body whose `output` is a list of items, or typed events: per item
`response.output_item.added`, its deltas, `response.output_item.done`, and at the end `response.completed` (`.incomplete`,
`.failed`) with the whole body once more. Source: the vendor's API reference (Responses, Streaming events), and recordings
of compatible servers for their differences: no event names, no sequence numbers, `[DONE]` at the end, comments before the
first event, items that only the last event has.

    event: response.output_text.delta
    data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi"}

The wire has no finish reason. The reader reports `status` (`completed`, `failed`, `cancelled`), or for an `incomplete`
reply the reason in `incomplete_details` (`max_output_tokens`, `content_filter`), if there is one.

`Delta.item` is the offset of a delta's text in its block. The writer needs it to patch the places that repeat the text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from wirelint.apis._choices import read_tool
from wirelint.apis.openai_responses_writer import CALLS, ENDS, StreamWriter, WholeWriter
from wirelint.apis.reading import (
    ApiSpec,
    ReplyReader,
    compact,
    error_of,
    lists_parts,
    misshapen,
    misshapen_text,
    role_of,
    tool_choice,
)
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Other, Start, part_of
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.lexicon import load
from wirelint.model import Arguments, Json, Kind, Message, Opaque, Request, Text, Tool, ToolChoice, ToolResult

_OTHER_APIS = tuple(load("apis")["other_paths"]["openai.responses"].split())
_ITEMS = frozenset({"message", "function_call", "function_call_output", "reasoning", "custom_tool_call_output"})


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if path.endswith("/responses"):
        return "messages" not in body and any(name in body for name in ("input", "prompt", "previous_response_id"))
    # A gateway may serve this API at any path. No other API has a list of typed items.
    items = mappings(body.get("input"))
    if not items or "messages" in body or path.endswith(_OTHER_APIS) or not isinstance(body.get("model"), str):
        return False
    return all(isinstance(item.get("role"), str) or text(item.get("type")) in _ITEMS for _, item in items)


def claims_reply(document: Mapping[str, Json]) -> bool:
    kind = document.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        # A realtime session has events of these names too, but each event has an id.
        return "event_id" not in document
    return document.get("object") == "response" and isinstance(document.get("output"), list)


# --- items, which a request's `input` and a reply's `output` share ------------------------------------------------------

_TEXTS = frozenset({"output_text", "input_text", "text", "summary_text", "reasoning_text"})
BUILT_IN = frozenset(name for _, name in CALLS.values() if name)
"""Names of calls whose items have a type of their own and no name, so that they can be neither renamed nor removed."""
_RESULTS = frozenset({*(f"{kind}_output" for kind in CALLS if kind != "tool_search_call"), "tool_search_output"})
_NAME = re.compile(r"response(?:\.[a-z_]+)+")
"""The name of an event. A damaged one, like `response.created}`, renames no event."""
_STREAMED_CALLS = ("function_call", "custom_tool_call")
"""Calls whose arguments are text, and arrive as deltas in a stream."""


def _item_parts(item: Mapping[str, Json], place: str) -> Iterator[Start]:
    """Yield the parts of an item as starts whose `given` is the whole text. `place`: its pointer in the body."""
    kind = text(item.get("type")) or "message"
    match kind:
        case "message":
            yield from _content(item.get("content"), f"{place}/content")
        case "reasoning":
            yield from _reasoning(item, place)
        case _ if kind in CALLS:
            yield _call(kind, item, place)
        case _ if kind in _RESULTS:  # in a reply: of a tool that the provider ran
            yield Start(0, "hosted_result", place, 0, None, id=text(item.get("call_id")), name=kind)
        case _ if kind.endswith("_call") or kind == "mcp_list_tools":
            name = text(item.get("name")) or kind.removesuffix("_call")
            yield Start(0, "hosted_call", place, 0, None, id=text(item.get("id")), name=name)
            for member in ("output", "outputs", "results", "result", "tools"):
                if item.get(member):
                    yield Start(0, "hosted_result", f"{place}/{member}", 0, None, id=text(item.get("id")), name=kind)
        case _:
            yield Start(0, "opaque", place, 0, None, id=text(item.get("id")), name=kind)


def _content(value: Json, place: str) -> Iterator[Start]:
    if isinstance(value, str):
        yield Start(0, "text", place, 0, None, given=value)
    elif value and not lists_parts(value):
        yield Start(0, "opaque", place, 0, None, name=misshapen(value))
    for n, part in mappings(value):
        kind = text(part.get("type")) or ""
        if kind in _TEXTS and (wrong := misshapen_text(part.get("text"))):
            yield Start(0, "opaque", f"{place}/{n}/text", 0, None, name=wrong)
        elif kind in _TEXTS:
            shown: Kind = "reasoning" if kind == "reasoning_text" else "text"
            yield Start(0, shown, f"{place}/{n}/text", 0, None, given=text(part.get("text")) or "")
        elif kind == "refusal":
            yield Start(0, "refusal", f"{place}/{n}/refusal", 0, None, given=text(part.get("refusal")) or "")
        else:
            yield Start(0, "opaque", f"{place}/{n}", 0, None, name=kind)


def _reasoning(item: Mapping[str, Json], place: str) -> Iterator[Start]:
    """Yield summaries and reasoning text (open models); an opaque part if the item has neither."""
    found = [
        Start(0, "reasoning", f"{place}/{member}/{n}/text", 0, None, given=words)
        for member in ("summary", "content")
        for n, part in mappings(item.get(member))
        if (words := text(part.get("text")))
    ]
    yield from found or [Start(0, "reasoning", place, 0, None, id=text(item.get("id")), form="opaque")]


def _is_hosted(kind: str, item: Mapping[str, Json]) -> bool:
    """Return True if the provider runs a search for tools or a shell: a tool of a request, or a call."""
    if kind.startswith("tool_search"):
        return item.get("execution") != "client"
    environment = text(mapping(item.get("environment")).get("type")) or ""
    return kind.startswith("shell") and environment.startswith("container")


def _call(kind: str, item: Mapping[str, Json], place: str) -> Start:
    member, name = CALLS[kind]
    id_, named = text(item.get("call_id")), text(item.get("name")) or name or None
    if _is_hosted(kind, item):
        return Start(0, "hosted_call", place, 0, None, id=id_ or text(item.get("id")), name=named)
    given = item.get(member)
    if kind == "computer_call" and given is None:
        given = item.get("actions")
    form = "custom" if kind == "custom_tool_call" else "built-in" if CALLS[kind][1] else "function"
    words, value = (given, None) if isinstance(given, str) else ("", given)
    return Start(0, "tool_call", place, 0, None, None, id_, named, value, form, given=words)


def _result_text(output: Json) -> str:
    """Return the text of a result: a string, the text parts of a list, or else the JSON itself."""
    if isinstance(output, str):
        return output
    parts = mappings(output)
    texts = [words for _, part in parts if (words := text(part.get("text"))) is not None]
    if parts and (texts or all(isinstance(part.get("type"), str) for _, part in parts)):
        return "\n".join(texts)
    return compact(output)


_CLIENT_TOOLS: dict[str, str] = load("apis")["client_tools"]["openai.responses"]
"""Types of tools that the vendor defines and the client runs, with the names of their calls."""
_LOADING = frozenset({"tool_search", "mcp"})
"""Types of tools that add further tools, whose names the body does not show."""
_SUMMARIES = frozenset({"compaction", "compaction_summary"})
"""Items that replace all messages before them."""


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    tools = tuple(_tools(body))
    parallel = body.get("parallel_tool_calls")
    on_server = _on_server(body)
    is_complete = not body.get("prompt") and (bool(tools) or on_server == "nothing")
    return Request(
        model=text(body.get("model")) or "",
        messages=tuple(_messages(body)),
        tools=tools,
        body=body,
        tool_choice=_tool_choice(body.get("tool_choice")),
        parallel_tool_calls=parallel if isinstance(parallel, bool) else None,
        stream=body.get("stream") is True or body.get("type") == "response.create",  # in a WebSocket all replies are
        hosted=any(tool.hosted for tool in tools) or bool(body.get("prompt")),
        tools_known=is_complete and not any(tool.type in _LOADING for tool in tools),
        max_tokens=number(body.get("max_output_tokens")),
        on_server=on_server,
        previous=text(body.get("previous_response_id")) or None,
        stored=text(mapping(body.get("conversation")).get("id", body.get("conversation"))) or None,
    )


def _on_server(body: Mapping[str, Json]) -> Literal["nothing", "before", "anywhere"]:
    """Return where the server holds items that the body lacks. A reference can replace a call or a result anywhere."""
    kinds = {text(item.get("type")) for _, item in mappings(body.get("input"))}
    if "item_reference" in kinds:
        return "anywhere"
    named = any(body.get(name) for name in ("previous_response_id", "conversation", "prompt"))
    return "before" if named or kinds & _SUMMARIES else "nothing"


def _messages(body: Mapping[str, Json]) -> Iterator[Message]:
    """Yield the messages. Neighbouring items of the model are one message; each part has the pointer of its item."""
    if instructions := text(body.get("instructions")):
        yield Message("system", (Text(instructions, "/instructions"),), "/instructions")
    given = body.get("input")
    if isinstance(given, str):
        yield Message("user", (Text(given, "/input"),) if given else (), "/input")
        return
    items = (_item(item, f"/input/{n}") for n, item in mappings(given))
    messages = [message for message in items if message is not None]
    for is_model, group in itertools.groupby(messages, key=lambda message: message.role == "assistant"):
        run = list(group)
        if is_model:
            yield Message("assistant", tuple([part for message in run for part in message.parts]), run[0].pointer)
        else:
            yield from run


def _item(item: Mapping[str, Json], place: str) -> Message | None:
    kind = text(item.get("type")) or "message"
    if kind == "additional_tools":
        return None
    if kind in _RESULTS and not (kind == "tool_search_output" and item.get("execution") != "client"):
        shown = _result_text(item.get("tools" if kind == "tool_search_output" else "output"))
        failed = True if kind == "apply_patch_call_output" and item.get("status") == "failed" else None
        result = ToolResult(text(item.get("call_id")), shown, place, text(item.get("name")), failed)
        return Message("tool", (result,), place)
    if kind == "mcp_approval_response":
        return Message("user", (Opaque(kind, place),), place)
    role = role_of(item) if kind == "message" else "assistant"
    parts = (part_of(one, one.given) for one in _item_parts(item, place))
    return Message(role, tuple(part for part in parts if part is not None), place)


def _tools(body: Mapping[str, Json]) -> Iterator[Tool]:
    for n, tool in mappings(body.get("tools")):
        yield from _tool(tool, f"/tools/{n}")
    for n, item in mappings(body.get("input")):
        if item.get("type") in ("additional_tools", "tool_search_output"):
            for m, tool in mappings(item.get("tools")):
                yield from _tool(tool, f"/input/{n}/tools/{m}")


def _tool(tool: Mapping[str, Json], place: str) -> Iterator[Tool]:
    kind = text(tool.get("type")) or "function"
    inner = mapping(tool.get(kind)) or tool  # nested as in Chat Completions, where a gateway forwards that form
    described = text(inner.get("description")) or ""
    if kind == "namespace":
        for n, each in mappings(tool.get("tools")):
            yield from _tool(each, f"{place}/tools/{n}")
    elif kind in _CLIENT_TOOLS or kind.startswith("computer_use"):
        yield Tool(_CLIENT_TOOLS.get(kind, "computer"), place, described, None, type=kind)
    elif kind in ("shell", "tool_search"):
        declared = mapping(tool.get("parameters")) if kind == "tool_search" else None
        yield Tool(kind, place, described, declared or None, _is_hosted(kind, tool), kind)
    elif kind not in ("function", "custom"):
        yield Tool(text(inner.get("name")) or kind, place, described, None, hosted=True, type=kind)
    elif (made := read_tool(tool, place)) is not None:
        yield made


def _tool_choice(choice: Json) -> ToolChoice:
    match choice:
        case {"type": "allowed_tools"}:
            allowed = mapping(choice)
            names = tuple(name for _, tool in mappings(allowed.get("tools")) if (name := text(tool.get("name"))))
            return ToolChoice("required" if allowed.get("mode") == "required" else "auto", names=names)
        case {"type": "mcp", "server_label": str()}:
            return ToolChoice("required")
        case {"type": str(kind)} if kind not in ("auto", "function", "custom") and tool_choice(choice).name is None:
            return ToolChoice("named", "computer" if kind.startswith("computer") else kind)
        case _:
            return tool_choice(choice)


_DELTAS: dict[str, tuple[Kind, str, str]] = {
    "response.output_text": ("text", "content_index", "/content/{}/text"),
    "response.refusal": ("refusal", "content_index", "/content/{}/refusal"),
    "response.reasoning_text": ("reasoning", "content_index", "/content/{}/text"),
    "response.reasoning_summary_text": ("reasoning", "summary_index", "/summary/{}/text"),
    "response.function_call_arguments": ("tool_call", "", ""),
    "response.custom_tool_call_input": ("tool_call", "", ""),
}
"""Stems of events with text: the kind of block, the member with its number in the item, and its place in the item."""
_WORDS = ("text", "refusal", "arguments", "input")
_HEADS = frozenset({"response.created", "response.in_progress", "response.queued"})


class Reader(ReplyReader):
    """Reader of replies. A block is identified by its pointer. Text that was streamed is not read again."""

    def __init__(self, *, streamed: bool) -> None:
        super().__init__(streamed=streamed)
        self._blocks: dict[str, int] = {}
        self._lengths: list[int] = []
        self._labels: dict[int, tuple[str | None, str | None]] = {}
        self._places: dict[str, int] = {}
        self._names: dict[int, str | None] = {}  # the first id of each item; None once an event had another
        self._given: dict[str, str] = {}  # the arguments in the announcement of a call, by its pointer
        self._item_ids: dict[str, int] = {}  # the first item of a call with this id
        self._begun: set[int] = set()
        self._with_blocks: set[int] = set()
        self._ended: set[int] = set()
        self._unfinished: set[int] = set()  # messages and calls that have begun and not ended
        self._next = 0

    def read_document(self, document: dict[str, Json]) -> Iterable[Event]:
        before = len(self.out)
        if self.streamed:
            self._event(document)
        else:
            self._response(document)
        return () if len(self.out) > before else (Other(self.frame),)

    def _event(self, document: Mapping[str, Json]) -> None:
        kind = text(document.get("type")) or ""
        named = self.frame.event or ""
        if self.is_alone and named != kind and _NAME.fullmatch(named) and _NAME.fullmatch(kind):
            self.out.append(self.violation("event-mismatch", f"event {named}, type {kind}"))
        if self.is_done and kind.startswith("response."):
            self.out.append(self.violation("after-end", kind))
            return  # clients have left
        stem, _, verb = kind.rpartition(".")
        match kind:
            case _ if verb in ("delta", "done") and stem in _DELTAS:
                self._text(stem, document, delta=verb == "delta")
            case "response.output_item.added":
                self._added(document)
            case "response.output_item.done":
                self._item_done(document)
            case _ if kind in _HEADS:
                response = mapping(document.get("response"))
                self.out += self.meta(text(response.get("id")), text(response.get("model")))
            case _ if kind in ENDS:
                status = kind.removeprefix("response.")
                self._response({"status": status, **mapping(document.get("response"))})
                if status == "completed" and self._unfinished:
                    detail = f"output item {min(self._unfinished)} was never done"
                    self.out.append(self.violation("unfinished-part", detail))
                self.is_done = True
                self.out.append(Done(self.frame))
            case "error":
                self.out += self.failure(error_of(document) or dict(document))
            case "" if document.get("object") == "response":
                self._response(document)
            case _ if not kind.startswith("response.") and error_of(document) is not None:
                self.out += self.failure(error_of(document))

    def _text(self, stem: str, document: Mapping[str, Json], *, delta: bool) -> None:
        kind, numbered, within = _DELTAS[stem]
        index = self._index(document)
        self._check_id(index, document.get("item_id"))
        pointer = f"/output/{index}" + within.format(number(document.get(numbered)) or 0)
        given = document.get("delta") if delta else next((document[w] for w in _WORDS if w in document), None)
        words = text(given) or ""
        if misshapen_text(given) or (not delta and (not words or self._has_text(pointer))):
            return  # text of another JSON type is read at the end of its item
        if index not in self._begun:
            self._begun.add(index)
            self.out.append(self.violation("undeclared-part", f"{stem} for output item {index}, never added"))
        if pointer not in self._blocks:
            form = "custom" if stem.startswith("response.custom") else "function"
            name = text(document.get("name"))
            self._start(Start(0, kind, pointer, 0, None, name=name, form=form), index)
        if delta and words and (given := self._given.pop(pointer, "")):
            if Arguments(given).mapping is None and not (words.startswith(given) or given.startswith(words)):
                words = given + words  # the announcement had the beginning of the arguments, and this continues it
            else:
                self.out.append(self.violation("repeated-start", f"{pointer} {given}"))
        self._delta(pointer, words)

    def _added(self, document: Mapping[str, Json]) -> None:
        index = number(document.get("output_index"))
        index = self._next if index is None else index
        item = mapping(document.get("item"))
        anew = index in self._begun
        if anew:
            self.out.append(self.violation("restarted-part", f"output item {index}"))
        self._begun.add(index)
        self._next = max(self._next, index + 1)
        if item.get("type") in ("message", *_STREAMED_CALLS):
            self._unfinished.add(index)
        if id_ := text(item.get("id")):
            self._places[id_] = index
            self._names[index] = None if anew else id_
        for one in _item_parts(item, f"/output/{index}"):
            # Other kinds of items may change until they end.
            if one.kind == "hosted_call" or (one.kind == "tool_call" and item.get("type") in _STREAMED_CALLS):
                if one.pointer not in self._blocks:
                    given = one.given if one.form == "function" and one.given.strip() else ""
                    if given:
                        self._given[one.pointer] = given
                    is_null = item.get("id", "") is None  # the deltas name the item by null, too
                    self._check_shared_id(one, index, {**item, "id": ""} if is_null else item)
                    self._start(one, index, given)
                elif one.kind == "tool_call":
                    self._update(one, index, anew=anew)

    def _item_done(self, document: Mapping[str, Json]) -> None:
        item = mapping(document.get("item"))
        index = self._index(document, item)
        self._check_id(index, item.get("id"))
        self._begun.add(index)
        self._next = max(self._next, index + 1)
        self._item(index, item)
        self._ended.add(index)
        self._unfinished.discard(index)
        if (block := self._blocks.get(f"/output/{index}")) is not None:
            self.out.append(Close(block, self.frame))

    def _index(self, document: Mapping[str, Json], item: Mapping[str, Json] | None = None) -> int:
        index = number(document.get("output_index"))
        if index is not None:
            return index
        id_ = text(document.get("item_id")) or text((item or {}).get("id")) or ""
        return self._places.get(id_, max(self._next - 1, 0))

    def _check_id(self, index: int, id_: Json) -> None:
        """Append, once for each item, the violation of an id that differs from the item's first one."""
        first = self._names.get(index)
        if id_ != first and first and id_ and isinstance(id_, str):
            self._names[index] = None
            self.out.append(self.violation("other-item", f"{first} {id_}"))

    def _check_shared_id(self, one: Start, index: int, item: Mapping[str, Json]) -> None:
        """Append the violation of a call whose item has the id of an earlier call's item."""
        id_ = text(item.get("id"))
        if one.kind == "tool_call" and id_ is not None and (first := self._item_ids.setdefault(id_, index)) != index:
            self.out.append(self.violation("shared-item", f"{one.pointer} /output/{first} {id_}"))

    def _response(self, response: Mapping[str, Json]) -> None:
        """Read a whole response: a body, or the end of a stream."""
        self.out += self.meta(text(response.get("id")), text(response.get("model")))
        self.out += self.failure(error_of(response))
        for index, item in mappings(response.get("output")):
            if index not in self._ended:
                self._item(index, item)
        status = text(response.get("status"))
        details = text(mapping(response.get("incomplete_details")).get("reason"))
        if status == "incomplete" and details:
            self.out.append(Finish(0, details, "/incomplete_details/reason", self.frame))
        elif status in ("completed", "incomplete", "failed", "cancelled"):
            self.out.append(Finish(0, status, "/status", self.frame))
        self.out += self.usage(response.get("usage"))

    def _item(self, index: int, item: Mapping[str, Json]) -> None:
        """Read the parts of a complete item that the stream has not sent yet."""
        for one in _item_parts(item, f"/output/{index}"):
            if one.pointer not in self._blocks:
                is_known = one.form == "opaque" and index in self._with_blocks
                if not one.given and (one.kind in ("text", "refusal") or is_known):
                    continue
                self._check_shared_id(one, index, item)
                self._start(one, index)
            elif one.kind == "tool_call":
                self._update(one, index)
            if one.given and not self._has_text(one.pointer):
                self._delta(one.pointer, one.given)

    def _start(self, one: Start, index: int, given: str = "") -> None:
        block = self._blocks[one.pointer] = self.next_block()
        self._lengths.append(0)
        self._with_blocks.add(index)
        self._labels[block] = (one.id, one.name)
        self.out.append(one._replace(block=block, frame=self.frame, wire_index=index, item=index, given=given))

    def _update(self, one: Start, index: int, *, anew: bool = False) -> None:
        """Append an id or a name that differs from the one before. `anew`: the item was announced again."""
        block = self._blocks[one.pointer]
        id_, name = self._labels[block]
        other_id, other_name = bool(one.id and one.id != id_), bool(one.name and one.name != name)
        self._labels[block] = (one.id or id_, one.name or name)
        if anew and (other_id or other_name):
            self.out.append(CallUpdate(block, index, one.id, one.name, self.frame))
            return
        # The number of the item identifies the call: another id and another name, told apart, start no other one.
        if other_id:
            self.out.append(CallUpdate(block, index, one.id, None, self.frame))
        if other_name:
            self.out.append(CallUpdate(block, index, None if other_id else one.id, one.name, self.frame))

    def _delta(self, pointer: str, words: str) -> None:
        block = self._blocks[pointer]
        self.out.append(Delta(block, words, self.frame, self._lengths[block]))
        self._lengths[block] += len(words)

    def _has_text(self, pointer: str) -> bool:
        return pointer in self._blocks and self._lengths[self._blocks[pointer]] > 0


API = ApiSpec("openai.responses", claims, claims_reply, read_request, Reader, StreamWriter, WholeWriter)
