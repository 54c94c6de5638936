"""Differences between a conversation that a server keeps and the one that the client has.

Theory of operation. With `previous_response_id` (OpenAI's Responses), a stored conversation or a message thread
(Anthropic) the next request holds new items only, and results name their calls by id:

    {"previous_response_id": "resp_1", "input": [{"type": "function_call_output", "call_id": "call_A", "output": "7"}]}

The server knows `call_A` only if it made it. After a repair of reply `resp_1` it may not have: the call was found in
text, has a new id, or is half of two joined calls. Without any repair the same happens when a stream gives one call two
ids: the server stores the last one, and many clients keep the first. While the stream passes, neither the id that the
client keeps nor the last id is known. So the difference is settled in the next request, where both are known: ids are
translated back, calls that the server never made are inserted before their results, and calls that the client never got
are answered. A client that sends the whole history needs none of this.

Translation is not enough if a repaired call is still broken at the server: arguments that are no JSON, two joined calls,
an unknown tool name, one id for two calls. Servers refuse such a history, or treat the call as failed. The reply is then
abandoned. OpenAI's Responses can continue from any reply, so the next request continues from the one before, and holds
the client's version of everything since. A message thread can be continued only once from each reply, but a server may
forget it at any time. The SDKs then send the whole history in a new thread:

{"type": "error", "error": {"type": "not_found_error", "message": "…", "details": {"error_code": "thread_not_found"}}}

Sources: platform.openai.com/docs/guides/conversation-state;
platform.claude.com/docs/en/build-with-claude/message-threads ("If the API can no longer continue the thread, a
continue request returns a 404 error. Send the full conversation again")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import orjson

from wirelint.apis.traits import history_of
from wirelint.fix import Answer as Reaction
from wirelint.fix import AppliedFix, Edit, RequestFix
from wirelint.history.pairing import Answer, announced, give_id, pair
from wirelint.history.turns import content_of
from wirelint.model import Arguments, Exchange, Json, Part, Reasoning, Reply, Request, Text, Tool, ToolCall
from wirelint.text.escaping import REDACTED, excerpt, printable
from wirelint.text.pointers import at

CODE, NAME = "IN002", "server-state"
"""Code and name of repairs in a continuing request: they follow from repairs of the reply before, of any rule."""

_PATCH = 2000
"""Most characters of a patch's before or after that are kept."""
_UNANSWERED = "This call was not run: wirelint took it out of the reply."
_LOST = (
    "wirelint repaired a call of the reply before, which the thread does not have. Send the full conversation again."
)
_HELPER = "message-thread"
_LONGEST = 4 << 20
"""Most bytes of a conversation that is kept to be sent again."""


class Replay(NamedTuple):
    """The client's conversation: `items` (a JSON array) that follow the reply `previous`; None: they begin it."""

    previous: str | None
    items: bytes


@dataclass(frozen=True, slots=True)
class ServerState:
    """The differences between the server's and the client's conversation after a reply.

    `ids` are the server's ids by those of the client, `added` the calls that only the client has, by id, and `dropped`
    those that only the server has. `tools` are the tools that a thread keeps, None if every request declares them.
    `broken`: the server cannot continue from its form of a call. `replay` abandons the reply; the other fields then
    describe the reply that it continues from.
    """

    ids: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, ToolCall] = field(default_factory=dict)
    dropped: tuple[ToolCall, ...] = ()
    tools: tuple[Tool, ...] | None = None
    hosted: bool = False
    tools_known: bool = True
    broken: bool = False
    replay: Replay | None = None

    @property
    def size(self) -> int:
        return len(self.replay.items) if self.replay is not None else 0

    def completed(self, request: Request) -> Request:
        if self.tools is None or request.tools:
            return request
        return request.but(tools=self.tools, hosted=request.hosted or self.hosted, tools_known=self.tools_known)


def state_after(exchange: Exchange, before: ServerState | None) -> ServerState | None:
    """Return the server's state after an exchange; None if the client holds the same, or the server keeps nothing.

    `before`: state under the reply that the request continues; its open differences carry over.
    """
    request, reply = exchange.request, exchange.reply
    if request is None or reply is None or exchange.api not in ("openai.responses", "anthropic.messages"):
        return None
    in_thread = exchange.api == "anthropic.messages"
    if in_thread and not isinstance(request.body.get("thread"), dict):
        return None
    found = _differences(exchange, reply)
    if found.broken and not in_thread and (replay := _replay(exchange, before)) is not None:
        return replace(before or ServerState(), replay=replay)
    if before is not None:
        answered = {result.call_id for result in request.results}
        ids = {id_: known for id_, known in before.ids.items() if id_ not in answered}
        added = {id_: call for id_, call in before.added.items() if id_ not in answered}
        found = replace(found, ids={**ids, **found.ids}, added={**added, **found.added})
    if in_thread:
        return replace(found, tools=request.tools, hosted=request.hosted, tools_known=request.tools_known)
    return found if found.ids or found.added or found.dropped else None


def ids_of(call: ToolCall, api: str) -> tuple[str, ...]:
    """Return the ids of a call in a reply, in order: several if a stream changes the id."""
    return tuple(dict.fromkeys(id_ for one in _made(call, api) for id_ in one.ids))


def settle(request: Request, state: ServerState) -> Iterator[RequestFix]:
    """Yield edits that adapt a continuing request to the server's state."""
    unknown = [answer for answer in pair(request).orphans if answer.result.call_id]
    for answer in unknown:
        given_id = answer.result.call_id or ""
        if (known := state.ids.get(given_id)) is not None:
            title = f"answered `{excerpt(known)}`, which is the server's id of the call `{excerpt(given_id)}`"
            edit = give_id(answer.result, known, request.api)
            yield (edit,), _repair(title, answer.result.pointer, given_id, known)
    added = [answer for answer in unknown if answer.result.call_id in state.added]
    yield from _insert_calls(request, state, added)
    given = {answer.result.call_id or "" for answer in unknown}
    answered = {state.ids.get(id_, id_) for id_ in given}
    left = [call for call in state.dropped if call.id and call.id not in answered]
    if left:
        yield from _answer(request, left)


def resend(request: Request, replay: Replay) -> Iterator[RequestFix]:
    """Yield edits that make a request continue from before a reply, with everything the client has since then."""
    place, last = "/previous_response_id", request.previous or ""
    first = Edit("replace", place, replay.previous) if replay.previous else Edit("remove", place)
    title = f"continued from before `{excerpt(last)}`, where the server holds a call that was repaired"
    yield [first, *_put_first(request, orjson.loads(replay.items))], _repair(title, place, last, replay.previous or "")


def lost(exchange: Exchange, state: ServerState) -> Reaction | None:
    """Return an error on which the SDKs' thread helper sends its whole history, if the message thread is broken."""
    request = exchange.request
    if not state.broken or exchange.api != "anthropic.messages" or request is None or request.previous is None:
        return None
    if _HELPER not in exchange.request_headers.get("x-stainless-helper", ""):
        return None
    details: dict[str, Json] = {"error_code": "thread_not_found"}
    error: dict[str, Json] = {"type": "not_found_error", "message": _LOST, "details": details}
    title = "asked the client for the whole conversation: the server's thread holds a call that was repaired"
    repair = _repair(title, "/thread/previous_message_id", request.previous, "")
    return Reaction({"type": "error", "error": error}, repair, status=404)


def _repair(title: str, pointer: str, before: str, after: str) -> AppliedFix:
    return AppliedFix(CODE, NAME, "safe", "request", printable(title), pointer, None, before, excerpt(after, _PATCH))


# --- differences between a reply and its delivered form -----------------------------------------------------------------


class _Made(NamedTuple):
    """Call as the server has it, with all ids of its stream; the server stores the last one."""

    call: ToolCall
    ids: tuple[str, ...]


def _differences(exchange: Exchange, reply: Reply) -> ServerState:
    """Return the state after a reply: changed ids, calls that only one side has, and whether a server's call is broken."""
    delivered = exchange.delivered
    made = [one for call in reply.calls for one in _made(call, exchange.api)]
    ids = {id_: one.ids[-1] for one in made for id_ in one.ids[:-1]}
    if delivered is None:
        return ServerState(ids)
    got = delivered.calls
    served = [id_ for one in made for id_ in one.ids]
    added: dict[str, ToolCall] = {}
    dropped: list[ToolCall] = []
    broken = False
    for one, other in _couples(made, got):
        new = other.id if other is not None and other.id not in served else None
        if one is not None and other is not None:
            if new and one.ids:
                ids[new] = one.ids[-1]
                broken = broken or served.count(one.ids[-1]) > 1
            # The server's form of the call is unusable: a wrong name, or arguments that are no object.
            unread = one.call.form == "function" and one.call.arguments.mapping is None
            broken = broken or one.call.name != other.name or (unread and _content(one.call) != _content(other))
        elif other is not None and new:
            added[new] = other
        elif one is not None and one.ids:
            dropped.append(replace(one.call, id=one.ids[-1]))
    return ServerState(ids, added, tuple(dropped), broken=broken)


def _replay(exchange: Exchange, before: ServerState | None) -> Replay | None:
    """Return the client's conversation up to the end of a reply; None if it is unknown or cannot be sent again."""
    request, delivered = exchange.request, exchange.delivered
    if request is None or request.stored or request.on_server == "anywhere":
        return None
    if delivered is None or not delivered.finished or len(delivered.choices) != 1:
        return None
    if exchange.end not in ("complete", "unknown"):
        return None
    base = before.replay if before is not None and before.replay is not None else Replay(request.previous, b"[]")
    if base.previous is not None and request.body.get("store") is False:
        return None  # over a WebSocket, where the server keeps only the last reply
    given = request.body.get("input")
    own = _as_items(given) if isinstance(given, str) else given
    said = _items(delivered.choices[0].parts)
    if not isinstance(own, list) or said is None:
        return None
    try:
        items = orjson.dumps([*orjson.loads(base.items), *own, *said])
    except orjson.JSONEncodeError:  # lone surrogates, numbers beyond 64 bits
        return None
    return Replay(base.previous, items) if len(items) <= _LONGEST and REDACTED.encode() not in items else None


def _items(parts: Sequence[Part]) -> list[Json] | None:
    """Return the parts of a reply as input items without reasoning; None if there is more than text and calls."""
    items: list[Json] = []
    for part in parts:
        if isinstance(part, Text):
            items.append({"role": "assistant", "content": part.text})
        elif isinstance(part, ToolCall) and part.id and part.name:
            items.append(_item_of(part))
        elif not isinstance(part, Reasoning):
            return None
    return items


def _made(call: ToolCall, api: str) -> Iterator[_Made]:
    """Yield the server's calls that a reply has as one: several if they shared an index in the stream."""
    parts: list[tuple[int, list[str | None], str | None]] = [(0, [call.id], call.name)]
    for found in announced(call, api):
        if found.verdict == "anew":
            parts.append((found.piece.offset, [found.piece.id], found.piece.name or call.name))
        else:
            parts[-1][1].append(found.piece.id)
    for (start, given, name), (end, *_) in pairwise([*parts, (len(call.deltas), [], None)]):
        ids, made = tuple(dict.fromkeys(id_ for id_ in given if id_)), call
        if len(parts) > 1:
            text = Arguments(call.deltas[start:end])
            made = replace(call, id=ids[0] if ids else None, name=name, arguments=text)
        yield _Made(made, ids)


def _couples(made: Sequence[_Made], got: Sequence[ToolCall]) -> Iterator[tuple[_Made | None, ToolCall | None]]:
    """Match the server's calls and the client's: by unique id, by content, then by name in order."""
    left, open_ = list(made), list(got)
    shared = [id_ for one in made for id_ in one.ids]
    for fits in (
        lambda one, other: other.id in one.ids and shared.count(other.id or "") == 1,
        lambda one, other: _content(one.call) == _content(other),
        lambda one, other: one.call.name == other.name,
    ):
        for other in tuple(open_):
            one = next((each for each in left if fits(each, other)), None)
            if one is not None:
                left = [each for each in left if each is not one]
                open_ = [call for call in open_ if call is not other]
                yield one, other
    yield from ((None, other) for other in open_)
    yield from ((one, None) for one in left)


def _content(call: ToolCall) -> str:
    return content_of(call.name or "", call.arguments.text)


# --- edits of the next request ------------------------------------------------------------------------------------------


def _insert_calls(request: Request, state: ServerState, answers: Sequence[Answer]) -> Iterator[RequestFix]:
    """Insert calls that the server never made before their results."""
    places: dict[str, list[ToolCall]] = {}
    blocks = history_of(request.api).has_blocks
    for answer in answers:
        place = request.messages[answer.position].pointer
        first = place if blocks or not places else next(iter(places))  # items: all calls before the first result
        places.setdefault(first, []).append(state.added[answer.result.call_id or ""])
    for place, calls in places.items():
        names = ", ".join(f"`{excerpt(call.name or '')}`" for call in calls)
        title = f"put the call of {names} before its result: the server made no such call"
        values: list[dict[str, Json]] = [_item_of(call) for call in calls]
        if blocks:  # a message of Anthropic's assistant
            uses: list[Json] = [
                {"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments.mapping or {}}
                for one in calls
            ]
            values = [{"role": "assistant", "content": uses}]
        edits = [Edit("insert", place, value) for value in values]
        yield edits, _repair(title, place, "", "\n".join(f"{call.name}({call.arguments.text})" for call in calls))


def _put_first(request: Request, items: Sequence[Json]) -> Iterator[Edit]:
    """Insert items before the input of OpenAI Responses."""
    value = request.body.get("input")
    if isinstance(value, list) and value:
        yield from (Edit("insert", "/input/0", item) for item in items)
        return
    words = _as_items(value) if isinstance(value, str) and value else []
    yield Edit("replace", "/input", [*items, *words])


def _as_items(words: str) -> list[Json]:
    return [{"role": "user", "content": words}]


def _item_of(call: ToolCall) -> dict[str, Json]:
    """Return a call as an item of OpenAI Responses."""
    member = "input" if call.form == "custom" else "arguments"
    return {"type": _kind_of(call), "call_id": call.id, "name": call.name, member: call.arguments.text}


def _kind_of(call: ToolCall) -> str:
    return "custom_tool_call" if call.form == "custom" else "function_call"


def _answer(request: Request, calls: Sequence[ToolCall]) -> Iterator[RequestFix]:
    """Add results to calls that the client never received: the server requires a result for each."""
    names = ", ".join(f"`{excerpt(call.name or '')}`" for call in calls)
    title = f"answered the call of {names}, which was removed from the previous reply"
    history = history_of(request.api)
    value = at(request.body, history.place)
    if not history.has_blocks:
        items: list[Json] = [
            {"type": f"{_kind_of(call)}_output", "call_id": call.id, "output": _UNANSWERED} for call in calls
        ]
        yield list(_put_first(request, items)), _repair(title, history.place, "", _UNANSWERED)
        return
    results: list[Json] = [
        {"type": "tool_result", "tool_use_id": call.id, "content": _UNANSWERED, "is_error": True} for call in calls
    ]
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, dict) or first.get("role") != "user":
        return
    place, content = f"{history.place}/0/content", first.get("content")
    if isinstance(content, list) and content:
        edits = [Edit("insert", f"{place}/0", result) for result in results]
    else:
        said: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
        edits = [Edit("replace", place, [*results, *said])]
    yield edits, _repair(title, place, "", _UNANSWERED)
