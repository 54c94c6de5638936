"""Ids for calls that a repair makes: in the form that the conversation's upstream gives them, and no id twice.

Theory of operation. What reads the id next is the client, which sends it back, and the upstream, which may demand a form
or was trained on one. So the form is looked for from the strictest to the vaguest: what the target demands (Mistral's
nine characters), what the model itself writes (Kimi's counted ids), the other ids of the reply, the ids that really
passed in this conversation or stand in its history, the API's own. An id is drawn from the exchange's seed, so that the
same exchange gets the same ids whenever and wherever it is repaired; a counted one goes on from the numbers of the
history.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import NamedTuple

from wirelint import lexicon
from wirelint.apis.traits import traits
from wirelint.fix import RewriteContext
from wirelint.history.id_demands import Mistral, demand_of, is_kimi_k2, is_kimi_k3
from wirelint.history.ids import form_of, is_placeholder
from wirelint.model import Request, ToolCall, ToolResult
from wirelint.text.families import family

_PHRASES = lexicon.Phrases("minting")

_ALPHANUMERIC = string.digits + string.ascii_letters
_COUNTED = re.compile(r"(?:(?P<prefix>functions)[. ])?[\w.-]+:(?P<number>[0-9]{1,9})")
# Makers whose ids can be drawn anew; others count, or are made by clients and no upstream ever gave them.
_DRAWN = frozenset(_PHRASES.words("drawn"))
_KEPT = _PHRASES.pattern("kept")
_PLAIN_MODEL = traits("").id_model
_KEPT_END = re.compile(r"_\d{1,3}\Z")
_TELLING = 9
_MOST_LOOKED_AT = 256
"""Ids of the reply whose numbers are looked at; beyond it only equal ids are avoided."""


class _History(NamedTuple):
    """The ids of a request: all of them, the next number of counted ones, and the last call's that has a known form."""

    ids: frozenset[str]
    next_number: int
    sample: str | None


_NOTHING = _History(frozenset(), 0, None)


def mint(context: RewriteContext, name: str | None) -> str:
    """A new id for a call of `name`; it is then among `situation.taken`.

    Unique among the ids of the request and those taken. The same at every run over the exchange, if ids are asked for in
    the same order.
    """
    request = context.exchange.request
    history = _history_of(request) if request is not None else _NOTHING
    prefix = _counted_prefix(context, history)
    if prefix is not None and name and not re.search(r"[\s:]", name):
        new = _count(context, f"{prefix}{name}", history)
    else:
        new = _draw(context, _model_id(context, history), history)
    context.taken.add(new)
    return new


def mint_where_used(context: RewriteContext, name: str | None) -> str | None:
    """A new id; None where the API's calls need none and no call of this conversation came with one."""
    if traits(context.exchange.api).call_ids:
        return mint(context, name)
    request = context.exchange.request
    history = _history_of(request) if request is not None else _NOTHING
    sample = _sample(context, history) or ""
    return mint(context, name) if form_of(sample) in _DRAWN or _COUNTED.fullmatch(sample) else None


def _counted_prefix(context: RewriteContext, history: _History) -> str | None:
    """What stands before the name where ids are counted: `functions.` (Kimi K2), nothing (K3); None where they are not."""
    model = context.exchange.model
    # Where ids are strict a client may refuse such an id; it is given only to one that has been given it before.
    if traits(context.exchange.api).strict_ids or not (is_kimi_k2(model) or is_kimi_k3(model)):
        return None if isinstance(demand_of(context.exchange), Mistral) else _counted_before(context, history)
    return "functions." if is_kimi_k2(model) else ""


def _counted_before(context: RewriteContext, history: _History) -> str | None:
    told = traits(context.exchange.api).strict_ids  # what passed elsewhere is no word of this client's
    counted = _COUNTED.fullmatch((history.sample if told else _sample(context, history)) or "")
    if counted is None:
        return None
    return "functions." if counted["prefix"] else ""


def _count(context: RewriteContext, stem: str, history: _History) -> str:
    number = max(history.next_number, context.next_number)
    if len(context.taken) <= _MOST_LOOKED_AT:
        number = max(number, *(_number(id_) + 1 for id_ in context.taken), 0)
    while (new := f"{stem}:{number}") in context.taken or new in history.ids:
        number += 1
    context.next_number = number + 1
    return new


def _model_id(context: RewriteContext, history: _History) -> str:
    """An id whose form the new one is to have."""
    exchange = context.exchange
    demand = demand_of(exchange)
    if isinstance(demand, Mistral):
        return "A" * 9
    sample = _sample(context, history)
    if sample and form_of(sample) in _DRAWN and (demand is None or demand.fault(sample, None) is None):
        return sample
    usual = traits(exchange.api).id_model or "call_" + "A" * 8
    return "A" * 9 if usual == _PLAIN_MODEL and family(exchange.model) in ("mistral", "magistral") else usual


def _sample(context: RewriteContext, history: _History) -> str | None:
    """An id of a known form: of this reply, else the last that the conversation's upstream gave, else of the history."""
    if len(context.taken) <= _MOST_LOOKED_AT:
        siblings = [id_ for id_ in context.taken if id_ not in history.ids and form_of(id_) is not None]
        if siblings:
            return min(siblings)
    issued = context.ledger.calls(context.exchange.conversation)[-8:]
    passed = (call.id for call in reversed(issued) if form_of(call.id) is not None)
    return next(passed, history.sample)


def _draw(context: RewriteContext, sample: str, history: _History) -> str:
    while True:
        new = _imitate(sample, context.seed())
        if new not in context.taken and new not in history.ids:
            return new


def _imitate(sample: str, seed: str) -> str:
    """An id with the fixed parts, the length and the kind of characters of another.

    >>> _imitate("chatcmpl-tool-0a1b2c3d4e5f6071", "7" * 64)
    'chatcmpl-tool-7777777777777777'
    """
    kept = _KEPT.match(sample)
    start = kept.end() if kept is not None else 0
    counter = _KEPT_END.search(sample, start)
    end = counter.start() if counter is not None and sample.startswith("call_function_") else len(sample)
    alphabet = _alphabet(sample[start:end])
    number = int(seed, 16)
    drawn: list[str] = []
    for character in sample[start:end]:
        if character not in alphabet:
            drawn.append(character)  # the dashes of a UUID, a sign
            continue
        number, digit = divmod(number, len(alphabet))
        drawn.append(alphabet[digit])
    return sample[:start] + "".join(drawn) + sample[end:]


def _alphabet(text: str) -> str:
    """The characters that ids like this are made of."""
    used = set(text) - set("-_")
    # A few characters can be digits by chance.
    narrow: tuple[str, ...] = (string.digits, string.digits + "abcdef") if len(text) >= _TELLING else ()
    for alphabet in (*narrow, string.digits + string.ascii_lowercase):
        if used <= set(alphabet):
            return alphabet
    return _ALPHANUMERIC


@lru_cache(maxsize=1)  # asked again for every call of a reply
def _history_of(request: Request) -> _History:
    calls = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    ids = [call.id for call in calls if call.id]
    results = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    answered = [result.call_id for result in results if result.call_id]
    known = [id_ for id_ in ids[-32:] if form_of(id_) is not None and not is_placeholder(id_)]
    return _History(
        frozenset((*ids, *answered)),
        max(len(calls), *(_number(id_) + 1 for id_ in ("", *ids, *answered))),
        known[-1] if known else None,
    )


def _number(id_: str) -> int:
    """The number of a counted id, -1 for others."""
    counted = _COUNTED.fullmatch(id_)
    return int(counted["number"]) if counted is not None else -1
