"""Forms of tool-call ids that targets demand: by model name and API, by host, by an error's text.

Theory of operation. Most servers accept any id. Five targets do not: each checks an id and makes an acceptable one
from it. The model's name decides for Kimi K2 (trained on one form, so other forms work badly instead
of failing) and, with the API, for Claude. The API alone decides for Converse. The host decides for Mistral and OpenAI,
whose own services check ids while other hosts of the same models do not. An error reply that names a constraint takes
precedence.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import orjson

from wirelint import lexicon
from wirelint.apis.traits import traits
from wirelint.fix import Edit, RewriteContext
from wirelint.history.ids import form_of, is_placeholder, restore
from wirelint.jsonvalues import mappings, text
from wirelint.model import Exchange, Json, Request
from wirelint.text.families import family

_PHRASES = lexicon.Phrases("id_demands")


# A demand of a target on ids. `form` completes "the target wants".
#
# `fault` returns the fault of an id as a clause; None for an acceptable id. `mint` returns an acceptable id made from a
# refused one, the same in every run; `ordinal` is the number of a counted id, or the first one to try if it is taken.


class KimiK2:
    """Kimi K2. It accepts any foreign id. A broken native id misleads the model and the parsers that split it."""

    target = "Kimi K2"
    form = "`functions.NAME:N`"

    _NATIVE = re.compile(r"functions\.[^\s:]+:\d+")

    def fault(self, id_: str, name: str | None) -> str | None:
        if self._NATIVE.fullmatch(id_):
            return None
        return next((fault for shape, fault in _PHRASES.table("kimi") if re.fullmatch(shape, id_)), None)

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        if not name or not self._NATIVE.fullmatch(f"functions.{name}:0"):
            return None
        return first_free(f"functions.{name}:", ordinal, taken)


class Mistral:
    target = "Mistral's API"
    form = "nine letters and digits"

    def fault(self, id_: str, name: str | None) -> str | None:
        if re.fullmatch(r"[A-Za-z0-9]{9}", id_):
            return None
        return f"it has {len(id_)} characters" if len(id_) != 9 else "it holds something else"

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        plain = re.sub(r"[^A-Za-z0-9]", "", id_)
        new = plain[-9:].ljust(9, "0")
        return new if plain and new not in taken else _digest(id_, taken, "", 9)


@dataclass(frozen=True, slots=True)
class Bounded:
    """A demand on characters and length. `refused` matches a forbidden character, `most` is the greatest length.

    An id that is made anew has the `prefix` and `digits` characters of a digest. `is_cut`: a long id is cut if that is
    enough; else the cut one gets characters of a digest.
    """

    target: str
    form: str
    prefix: str
    digits: int
    refused: str = r"[^\s\S]"
    most: int = 1 << 62
    is_cut: bool = False

    def fault(self, id_: str, name: str | None) -> str | None:
        if not id_:
            return "it is empty"
        if strange := re.search(self.refused, id_):
            return f"it holds {strange[0]!r}"
        return f"it has {len(id_)} characters" if len(id_) > self.most else None

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        if not id_:
            return _digest(f"{name}:{ordinal}", taken, self.prefix, self.digits)
        new = re.sub(self.refused, "_", id_)
        if len(new) > self.most:
            cut = new[: self.most].rstrip("_")
            free = self.is_cut and cut not in taken
            return cut if free else _digest(id_, taken, f"{new[: self.most - 9].rstrip('_')}_", 8)
        return new if new not in taken else _digest(id_, taken, self.prefix, self.digits)


Demand: TypeAlias = KimiK2 | Mistral | Bounded

ANTHROPIC = Bounded("Anthropic's API", "`[a-zA-Z0-9_-]+`", "toolu_", 24, r"[^a-zA-Z0-9_-]")


def openai(limit: int) -> Bounded:
    """Return OpenAI's limit on length: 64 characters, and 40 on older routes, whose errors name that limit."""
    return Bounded("OpenAI's API", f"1 to {limit} characters", "call_", 24, most=limit, is_cut=True)


def converse(*, claude: bool = False) -> Bounded:
    """Return the demand of Bedrock's Converse: up to 64 characters, for Claude models of fewer kinds."""
    kept = "a-zA-Z0-9_-" if claude else "a-zA-Z0-9_.:-"
    return Bounded("Bedrock's Converse", f"1 to 64 characters of `[{kept}]`", "tooluse_", 22, f"[^{kept}]", 64)


def first_free(stem: str, number: int, taken: Collection[str]) -> str:
    """Return the first untaken id of a stem and a number, from `number` on."""
    numbers = range(number, number + 1 + len(taken))
    return next(new for one in numbers if (new := f"{stem}{one}") not in taken)


def _digest(text: str, taken: Collection[str], prefix: str, length: int) -> str:
    """Return an untaken id of a prefix and digits of a hash, the same in every run."""
    for salt in range(len(taken) + 1):
        made = hashlib.sha256(f"{salt}:{text}".encode("utf-8", "surrogatepass")).hexdigest()
        if f"{prefix}{made[:length]}" not in taken:
            break
    return f"{prefix}{made[:length]}"


_KIMI_K2 = re.compile(r"(?:kimi|moonshot)[a-z]*[-_ /.]?(?:[a-z0-9.]+[-_/])?k2(?![0-9])", re.IGNORECASE)
_OPENAI = ("openai.com", "openai.azure.com", "cognitiveservices.azure.com", "chatgpt.com")
_KIMI_K3 = re.compile(r"kimi[-_ /.]?k3(?![0-9])", re.IGNORECASE)


def is_kimi_k2(model: str) -> bool:
    """Return True for a model of the K2 family (K2, K2 Thinking, K2.5, K2.6), in the spelling of any host."""
    return _KIMI_K2.search(model) is not None


def is_kimi_k3(model: str) -> bool:
    return _KIMI_K3.search(model) is not None


def demand_of(exchange: Exchange) -> Demand | None:
    """Return the demand of an exchange's target; None if it accepts any id, or if its demand is unknown."""
    if is_kimi_k2(exchange.model):
        return KimiK2()
    host, is_claude = urlsplit(exchange.url).hostname or "", "claude" in exchange.model.lower()
    if exchange.api == "anthropic.messages":
        return ANTHROPIC if is_claude or _is(host, "anthropic.com") else None
    if exchange.api == "bedrock.converse":
        return converse(claude=is_claude)
    if _is(host, "mistral.ai"):
        return Mistral()
    return openai(64) if is_openai(exchange.url) else None


def is_openai(url: str) -> bool:
    """Return True if a request goes to OpenAI's own service or to Azure's."""
    host = urlsplit(url).hostname or ""
    return any(_is(host, domain) for domain in _OPENAI)


def _is(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


_NINE = re.compile(r"length of 9\b|length 9\b|9 alphanumeric", re.IGNORECASE)
_PATTERN = re.compile(r"a-zA-Z0-9_\\?-|letters, numbers, underscores", re.IGNORECASE)
_PATTERN_OF_AWS = re.compile(r"a-zA-Z0-9_.:-", re.IGNORECASE)


def complaint(exchange: Exchange) -> Demand | None:
    """Return the demand in an error reply; None if the error is not about ids."""
    words = _error_of(exchange)
    if len(words) > 10_000 or not _PHRASES["about_ids"].search(words):
        return None
    if _NINE.search(words):
        return Mistral()
    if exchange.api == "bedrock.converse":
        claude = _PATTERN.search(words) is not None
        named = claude or _PHRASES["too_long"].search(words) or _PATTERN_OF_AWS.search(words)
        return converse(claude=claude) if named else None
    if limit := _PHRASES["too_long"].search(words):
        return openai(int(limit[1] or limit[2]))
    return ANTHROPIC if _PATTERN.search(words) else None


def _error_of(exchange: Exchange) -> str:
    """Return the error of a reply as text; empty without one."""
    error = exchange.reply.error if exchange.reply is not None else None
    return error if isinstance(error, str) else orjson.dumps(error).decode() if error is not None else ""


def is_broken_native(id_: str, name: str | None) -> bool:
    """Return True if an id is a mangled `functions.NAME:N` for a call of this function."""
    origin = restore(id_, name)
    return bool(name) and origin is not None and (origin.id or "").startswith(f"functions.{(name or '').strip()}:")


# Wrong ids of items in a Responses history: `call_…` in place of `fc_…`.
#
# Theory of operation. An item of the model has an item id (`fc_…`, `msg_…`, `rs_…`), and a call has another id that
# pairs it with its output (`call_id`). Clients with one id per call put it into both. OpenAI's service checks the first
# letters of an item's id and refuses the whole request; other servers of this API make item ids of any form. So an id
# is wrong only at OpenAI, or if a reply refuses it. The API accepts items without an id, so a wrong id can be removed:
# only the vendor's store refers to it, and does not have it.

_BEGINNINGS: dict[str, str] = _PHRASES.table("beginnings")
_ITEM = Bounded("OpenAI's API", "1 to 64 of `[A-Za-z0-9_-]`", "", 0, r"[^A-Za-z0-9_-]", 64)
_OF_A_CALL = re.compile(r"(?:call|toolu|tooluse|chatcmpl-?tool|functions?)[._-]?|(?:functions\.)?[\w.-]+:\d+\Z")
_OF_ANOTHER = re.compile(r"(?:fco?|ctco?|msg|rs|resp|tsc|ws|cmp)_")
_REFUSED = re.compile(r"input\[(\d{1,6})\]\.id\b")


@dataclass(frozen=True, slots=True)
class ItemId:
    """A wrong id of an item. `mixed_up`: it belongs to another object (the call, a message), or is no id."""

    pointer: str
    id: str
    what: str
    """The item in a few words: its function, or its kind."""
    fault: str
    mixed_up: bool
    refused: bool
    edit: Edit | None


def wrong_item_ids(exchange: Exchange) -> Iterator[ItemId]:
    """Yield the items of a request whose ids the target refuses, in order."""
    request = exchange.request
    if request is None or request.api != "openai.responses":
        return
    refused = set(map(int, _REFUSED.findall(_error_of(exchange)[:10_000])))
    if not refused and not is_openai(exchange.url):
        return
    for n, item in mappings(request.body.get("input")):
        id_, kind = item.get("id"), text(item.get("type")) or "message"
        begins = _BEGINNINGS.get(kind)
        if begins is None or not isinstance(id_, str) or "[redacted:" in id_:
            continue
        mix = _mix(id_, item, begins)
        wrong = f"it does not begin with `{begins}`" if id_ and not id_.startswith(begins) else None
        fault = mix or wrong or _ITEM.fault(id_, None) or ("the API refuses it" if n in refused else None)
        if fault is None or (refused and n not in refused and not is_openai(exchange.url)):
            continue
        # Without its id the server may lose a thought.
        edit = None if kind == "reasoning" else Edit("remove", f"/input/{n}/id")
        what = f"`{name}` item" if (name := text(item.get("name"))) else f"{kind} item"
        yield ItemId(f"/input/{n}/id", id_, what, fault, mix is not None, n in refused, edit)


def _mix(id_: str, item: Mapping[str, Json], begins: str) -> str | None:
    """Return the other owner of an id as a clause; None without one."""
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


# Ids for calls that a fix makes: in the form of the conversation's upstream, and unique.
#
# Theory of operation. The client reads the id and sends it back to the upstream, which may demand a form or was trained on
# one. The form comes from the first of these sources: the target's demand (Mistral's nine characters), the model's own form
# (Kimi's counted ids), other ids of the reply, ids that passed in this conversation or are in its history, the API. An id
# is drawn from the exchange's seed, so that an exchange gets the same ids in every run. Counted ids continue the numbers of
# the history.


_COUNTED = re.compile(r"(?:(?P<prefix>functions)[. ])?[\w.-]+:(?P<number>[0-9]{1,9})")
# Makers whose ids can be drawn anew. Other forms are counters, or forms of clients.
_DRAWN = frozenset(_PHRASES.words("drawn"))
_PLAIN_MODEL = traits("").id_model
_KEPT_END = re.compile(r"_\d{1,3}\Z")
_TELLING = 9
_ALPHABETS = (
    string.digits,
    string.digits + "abcdef",
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_letters,
)
_MOST_LOOKED_AT = 256
"""Most ids of a reply whose numbers are compared. In a longer reply, only equal ids are avoided."""


class _History(NamedTuple):
    """The ids of a request, the next number of counted ids, and the last id of a known form."""

    ids: frozenset[str]
    next_number: int
    sample: str | None


def mint(context: RewriteContext, name: str | None) -> str:
    """Return a new id for a call that a fix makes, the same in every run, and note it as taken."""
    history = _history_of(context.exchange.request)
    prefix = _counted_prefix(context, history)
    if prefix is not None and name and not re.search(r"[\s:]", name):
        stem = f"{prefix}{name}"
        number = max(history.next_number, context.next_number)
        if len(context.taken) <= _MOST_LOOKED_AT:
            number = max(number, *(_number(id_) + 1 for id_ in context.taken), 0)
        while (new := f"{stem}:{number}") in context.taken or new in history.ids:
            number += 1
        context.next_number = number + 1
    else:
        sample = _model_id(context, history)
        while (new := _imitate(sample, context.seed())) in context.taken or new in history.ids:
            pass
    context.taken.add(new)
    return new


def mint_where_used(context: RewriteContext, name: str | None) -> str | None:
    """Return a new id; None if the API needs no ids and no call of this conversation had one."""
    if traits(context.exchange.api).has_call_ids:
        return mint(context, name)
    sample = _sample(context, _history_of(context.exchange.request)) or ""
    return mint(context, name) if form_of(sample) in _DRAWN or _COUNTED.fullmatch(sample) else None


def _counted_prefix(context: RewriteContext, history: _History) -> str | None:
    """Return the prefix of counted ids: `functions.` (Kimi K2), empty (K3); None for ids that are not counted."""
    exchange = context.exchange
    # Clients of APIs with strict ids may refuse such an id. Ids of other exchanges are no evidence for them.
    strict = traits(exchange.api).has_strict_ids
    if not strict and (is_kimi_k2(exchange.model) or is_kimi_k3(exchange.model)):
        return "functions." if is_kimi_k2(exchange.model) else ""
    if isinstance(demand_of(exchange), Mistral):
        return None
    counted = _COUNTED.fullmatch((history.sample if strict else _sample(context, history)) or "")
    return None if counted is None else "functions." if counted["prefix"] else ""


def _model_id(context: RewriteContext, history: _History) -> str:
    """Return the id whose form a new id imitates."""
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
    """Return an id of a known form: of this reply, else the last from the upstream, else of the history."""
    if len(context.taken) <= _MOST_LOOKED_AT:
        siblings = [id_ for id_ in context.taken if id_ not in history.ids and form_of(id_) is not None]
        if siblings:
            return min(siblings)
    issued = context.ledger.calls(context.exchange.conversation)[-8:]
    passed = (call.id for call in reversed(issued) if form_of(call.id) is not None)
    return next(passed, history.sample)


def _imitate(sample: str, seed: str) -> str:
    """Return an id with the fixed parts, the length and the kind of characters of another.

    >>> _imitate("chatcmpl-tool-0a1b2c3d4e5f6071", "7" * 64)
    'chatcmpl-tool-7777777777777777'
    """
    kept = _PHRASES["kept"].match(sample)
    start = kept.end() if kept is not None else 0
    counter = _KEPT_END.search(sample, start)
    end = counter.start() if counter is not None and sample.startswith("call_function_") else len(sample)
    used = set(sample[start:end]) - set("-_")
    # A few characters can be digits by chance.
    alphabets = _ALPHABETS if end - start >= _TELLING else _ALPHABETS[2:]
    alphabet = next((one for one in alphabets if used <= set(one)), _ALPHABETS[-1])
    number = int(seed, 16)
    drawn: list[str] = []
    for character in sample[start:end]:
        if character in alphabet:  # the dashes of a UUID are not
            number, digit = divmod(number, len(alphabet))
            character = alphabet[digit]
        drawn.append(character)
    return sample[:start] + "".join(drawn) + sample[end:]


@lru_cache(maxsize=1)  # needed for every call of a reply
def _history_of(request: Request | None) -> _History:
    if request is None:
        return _History(frozenset(), 0, None)
    calls = request.calls
    ids = [call.id for call in calls if call.id]
    answered = [result.call_id for result in request.results if result.call_id]
    known = [id_ for id_ in ids[-32:] if form_of(id_) is not None and not is_placeholder(id_)]
    return _History(
        frozenset((*ids, *answered)),
        max(len(calls), *(_number(id_) + 1 for id_ in ("", *ids, *answered))),
        known[-1] if known else None,
    )


def _number(id_: str) -> int:
    """Return the number of a counted id, -1 for others."""
    counted = _COUNTED.fullmatch(id_)
    return int(counted["number"]) if counted is not None else -1
