"""Ids of the items of a Responses history that are not what the vendor made: `call_…` where `fc_…` was.

Theory of operation. An item that the model made has an id of its own (`fc_…`, `msg_…`, `rs_…`); a call has another one,
that pairs it with its output (`call_id`). Clients that know one id per call put it into both. OpenAI's service looks at
the first letters of an item's id and refuses the whole request; other servers of this API make item ids of any form. So
an id counts as wrong only there, or where a reply refuses it. The API takes items without an id, so a wrong one can go:
nothing refers to it but the vendor's own store, which never had it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from wirelint.apis.reading import mappings, text
from wirelint.fix import Edit
from wirelint.history.id_demands import is_openai
from wirelint.history.ids import is_placeholder
from wirelint.model import Exchange, Json

_BEGINNINGS = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "reasoning": "rs",
}
_MOST = 64
_OF_A_CALL = re.compile(r"(?:call|toolu|tooluse|chatcmpl-?tool|functions?)[._-]?|(?:functions\.)?[\w.-]+:\d+\Z")
_OF_ANOTHER = re.compile(r"(?:fco?|ctco?|msg|rs|resp|tsc|ws|cmp)_")
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_REFUSED = re.compile(r"input\[(\d{1,6})\]\.id\b")


@dataclass(frozen=True, slots=True)
class ItemId:
    """A wrong id of an item. `mixed_up`: it is recognisably the id of something else, or no id at all."""

    pointer: str
    id: str
    what: str
    """The item in a few words: its function, or its kind."""
    fault: str
    mixed_up: bool
    refused: bool
    edit: Edit | None

    @property
    def place(self) -> str:
        return f"{self.pointer}/id"


def wrong_item_ids(exchange: Exchange) -> Iterator[ItemId]:
    """The items of a request whose ids the target refuses, in order."""
    request = exchange.request
    if request is None or request.api != "openai.responses":
        return
    refused = _refused(exchange)
    if not refused and not is_openai(exchange.url):
        return
    for n, item in mappings(request.body.get("input")):
        id_, kind = item.get("id"), text(item.get("type")) or "message"
        begins = _BEGINNINGS.get(kind)
        if begins is None or not isinstance(id_, str) or "[redacted:" in id_:
            continue
        mix = _mix(id_, item, begins)
        fault = mix or _fault(id_, begins)
        if fault is None and n in refused:
            fault = "the API refuses it"
        if fault is None or (refused and n not in refused and not is_openai(exchange.url)):
            continue
        # Thoughts that the server does not find by their id are lost; they may be unreadable without it.
        edit = None if kind == "reasoning" else Edit("remove", f"/input/{n}/id")
        what = f"`{name}` item" if (name := text(item.get("name"))) else f"{kind} item"
        yield ItemId(f"/input/{n}", id_, what, fault, mix is not None, n in refused, edit)


def _mix(id_: str, item: Mapping[str, Json], begins: str) -> str | None:
    """Of what else an id is, as a clause."""
    if id_ and id_ == item.get("call_id") and not id_.startswith(begins):
        return "it is the id of its call"
    if is_placeholder(id_) or is_placeholder(id_.partition("_")[2]):
        return "it is the word for no value"
    if "|" in id_:
        return "two ids are joined in it"
    if id_.startswith(begins):
        return None
    if _OF_A_CALL.match(id_):
        return "it is the id of a call"
    return "it is the id of another kind of item" if _OF_ANOTHER.match(id_) else None


def _fault(id_: str, begins: str) -> str | None:
    if not id_:
        return "it is empty"
    if not id_.startswith(begins):
        return f"it does not begin with `{begins}`"
    if strange := _STRANGE.search(id_):
        return f"it holds {strange[0]!r}"
    return f"it has {len(id_)} characters" if len(id_) > _MOST else None


def _refused(exchange: Exchange) -> frozenset[int]:
    """The numbers of the items whose ids an error reply names."""
    error = exchange.reply.error if exchange.reply is not None else None
    if error is None:
        return frozenset()
    words = error if isinstance(error, str) else orjson.dumps(error).decode()
    return frozenset(int(number) for number in _REFUSED.findall(words[:10_000]))
