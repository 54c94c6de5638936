"""Other ids for the calls and results of a request's history: always together, by edits of the body."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from wirelint.apis.traits import history_of, traits
from wirelint.fix import Edit
from wirelint.history.id_demands import Demand, KimiK2, Mistral, is_kimi_k3
from wirelint.history.ids import form_of, key, restore
from wirelint.history.pairing import Answer, Pair
from wirelint.model import ToolCall, ToolResult

_COUNTED = re.compile(r"(?P<stem>(?:[^0-9]*|.*[:_.-])(?<![0-9]))(?P<number>[0-9]{1,6})\Z", re.DOTALL)


def give_id(part: ToolCall | ToolResult, new: str, api: str) -> Edit:
    """The edit that puts an id on a call or on a result, where the API has it."""
    history = history_of(api)
    place = history.call_id if isinstance(part, ToolCall) else history.result_id
    return Edit("replace", f"{part.pointer}/{place}", new)


def rename(pair: Pair, new: str, api: str) -> Iterator[Edit]:
    """The edits that give a call and its result an id; none for what has it already, or may go without one and does."""
    needed = traits(api).call_ids
    if pair.call.id != new and (needed or pair.call.id):
        yield give_id(pair.call, new, api)
    if pair.answer is not None and pair.answer.result.call_id != new and (needed or pair.answer.result.call_id):
        yield give_id(pair.answer.result, new, api)


def rename_repeats(repeats: Iterable[Answer], names: Mapping[str, str], api: str) -> Iterator[Edit]:
    """The edits for further results of calls that are renamed. `names`: new ids by old ones."""
    for repeat in repeats:
        new = names.get(repeat.result.call_id or "")
        if new is not None:
            yield give_id(repeat.result, new, api)


def next_id(id_: str, name: str | None, model: str, demand: Demand | None, taken: Collection[str]) -> str:
    """An id for another call that shares `id_`: the next number of a counted one, else the same with a number behind it.

    The same one every time, so that what a prompt cache has stored stays valid. `name` is the called function's.

    >>> next_id("functions.read:0", "read", "kimi-k2", None, {"functions.read:0"})
    'functions.read:1'
    """
    if isinstance(demand, Mistral) or form_of(id_) == "Mistral":
        return Mistral().mint(f"{id_}2", name, 0, taken) or id_
    native = _native_stem(id_, name, model, demand)
    if native is not None:
        new = _count(native, _number(id_) + 1, taken)
    elif not id_:
        new = _count(f"call_{key(name or '') or 'tool'}_", 1, taken)
    else:
        counted = _COUNTED.fullmatch(id_) if form_of(id_) in (None, "a counter", "Gemini") else None
        stem, number = (counted["stem"] or "", int(counted["number"]) + 1) if counted is not None else (f"{id_}_", 2)
        new = _count(stem, number, taken)
    if demand is not None and demand.fault(new, name) is not None:
        return demand.mint(new, name, 1, taken) or new
    return new


def _native_stem(id_: str, name: str | None, model: str, demand: Demand | None) -> str | None:
    """What stands before the number of Kimi's own ids, where this id is one, or would be taken for a broken one."""
    if not name:
        return None
    form = form_of(id_)
    if form == "Kimi K3":
        return f"functions.{name}:" if isinstance(demand, KimiK2) else f"{name}:"
    kimi = isinstance(demand, KimiK2) or is_kimi_k3(model)
    unknown = form is None or form == "a counter"
    if form == "Kimi K2" or restore(f"{id_}_2", name) is not None or (kimi and unknown):
        return f"{name}:" if is_kimi_k3(model) and form != "Kimi K2" else f"functions.{name}:"
    return None


def _number(id_: str) -> int:
    counted = re.search(r"[0-9]{1,6}\Z", id_)
    return int(counted[0]) if counted is not None else 0


def _count(stem: str, number: int, taken: Collection[str]) -> str:
    """The first free number: among as many as are taken and one more, one is free."""
    numbers = range(number, number + 1 + len(taken))
    return next(new for one in numbers if (new := f"{stem}{one}") not in taken)
