"""Which form of tool-call id a target demands: by the model's name and the API, by the host, by what an error says.

Theory of operation. Most servers take any id. Five targets do not, and each is an object of one small class that judges
an id and mints an acceptable one from it. A model's name decides for Kimi K2 (whose templates were trained on one form, so
that others work badly rather than fail) and, with the API, for Claude; the API alone decides for Converse; the host decides
where the vendor's own service checks and the many others that serve the same models do not (Mistral, OpenAI). An error
reply that names the constraint decides before all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import orjson

from wirelint.apis.reading import mappings, text
from wirelint.fix import Edit
from wirelint.history.ids import is_placeholder, restore
from wirelint.model import Exchange, Json


class Demand(Protocol):
    """What a target demands of ids. `form` says it in words that follow "the target wants"."""

    @property
    def target(self) -> str: ...

    @property
    def form(self) -> str: ...

    def fault(self, id_: str, name: str | None) -> str | None:
        """What is wrong with an id, as a clause; None when the target takes it."""
        ...

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        """An id that the target takes, made from a refused one; the same one every time.

        `ordinal` is the number that a counted id gets; it, or the next that is free.
        """
        ...


class KimiK2:
    """Any foreign id is fine; a broken one of its own kind misleads the model, and parsers that split it."""

    target = "Kimi K2"
    form = "`functions.NAME:N`"

    _NATIVE = re.compile(r"functions\.[^\s:]+:\d+")
    _SHAPES = (
        (re.compile(r"functions?[.:]{0,2}\d{1,4}|:\d{1,4}"), "the function's name is missing"),
        (re.compile(r"[A-Za-z_][\w.-]*:\d+"), "the prefix `functions.` is missing"),
        (re.compile(r"functions?\.[\w.-]+:?"), "the number is missing"),
        (re.compile(r"\d{1,4}"), "it is a bare number"),
    )

    def fault(self, id_: str, name: str | None) -> str | None:
        if self._NATIVE.fullmatch(id_):
            return None
        return next((fault for shape, fault in self._SHAPES if shape.fullmatch(id_)), None)

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        if not name:
            return None
        numbers = range(ordinal, ordinal + 1 + len(taken))
        return next(new for number in numbers if (new := f"functions.{name}:{number}") not in taken)


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


class Anthropic:
    target = "Anthropic's API"
    form = "`[a-zA-Z0-9_-]+`"

    def fault(self, id_: str, name: str | None) -> str | None:
        strange = re.search(r"[^a-zA-Z0-9_-]", id_)
        return f"it holds {strange[0]!r}" if strange else None if id_ else "it is empty"

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        new = re.sub(r"[^a-zA-Z0-9_-]", "_", id_)
        return new if new and new not in taken else _digest(id_ or f"{name}:{ordinal}", taken, "toolu_", 24)


class Converse:
    """Bedrock's Converse takes up to 64 characters, and passes them on: Claude behind it takes fewer kinds of them."""

    target = "Bedrock's Converse"
    _MOST = 64

    def __init__(self, *, claude: bool = False) -> None:
        self._kept = "a-zA-Z0-9_-" if claude else "a-zA-Z0-9_.:-"
        self.form = f"1 to {self._MOST} characters of `[{self._kept}]`"

    def fault(self, id_: str, name: str | None) -> str | None:
        if not id_:
            return "it is empty"
        if strange := re.search(f"[^{self._kept}]", id_):
            return f"it holds {strange[0]!r}"
        return f"it has {len(id_)} characters" if len(id_) > self._MOST else None

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        if not id_:
            return _digest(f"{name}:{ordinal}", taken, "tooluse_", 22)
        new = re.sub(f"[^{self._kept}]", "_", id_)
        if len(new) > self._MOST:
            return _digest(id_, taken, f"{new[: self._MOST - 9].rstrip('_')}_", 8)
        return new if new not in taken else _digest(id_, taken, "tooluse_", 22)


class Limited:
    """OpenAI's limits on length: one to 64 characters everywhere, 40 on older routes, which then say so."""

    target = "OpenAI's API"

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.form = f"1 to {limit} characters"

    def fault(self, id_: str, name: str | None) -> str | None:
        if not id_:
            return "it is empty"
        return f"it has {len(id_)} characters" if len(id_) > self.limit else None

    def mint(self, id_: str, name: str | None, ordinal: int, taken: Collection[str]) -> str | None:
        if not id_:
            return _digest(f"{name}:{ordinal}", taken, "call_", 24)
        new = id_[: self.limit].rstrip("_")
        return new if new not in taken else _digest(id_, taken, f"{id_[: self.limit - 9].rstrip('_')}_", 8)


def _digest(text: str, taken: Collection[str], prefix: str, length: int) -> str:
    """An id of a prefix and letters and digits made from a text; the same every time, and none that is taken."""
    for salt in range(len(taken) + 1):
        made = hashlib.sha256(f"{salt}:{text}".encode("utf-8", "surrogatepass")).hexdigest()
        if f"{prefix}{made[:length]}" not in taken:
            break
    return f"{prefix}{made[:length]}"


_KIMI_K2 = re.compile(r"(?:kimi|moonshot)[a-z]*[-_ /.]?(?:[a-z0-9.]+[-_/])?k2(?![0-9])", re.IGNORECASE)
_KIMI_K3 = re.compile(r"kimi[-_ /.]?k3(?![0-9])", re.IGNORECASE)
_CLAUDE = re.compile(r"claude", re.IGNORECASE)


def is_kimi_k2(model: str) -> bool:
    """Return True if a model's name, as any host writes it, means one of the K2 family (K2, K2 Thinking, K2.5, K2.6)."""
    return _KIMI_K2.search(model) is not None


def is_kimi_k3(model: str) -> bool:
    return _KIMI_K3.search(model) is not None


def demand_of(exchange: Exchange) -> Demand | None:
    """What the target of an exchange demands; None where any id will do, or where that is not known."""
    if is_kimi_k2(exchange.model):
        return KimiK2()
    host = urlsplit(exchange.url).hostname or ""
    if exchange.api == "anthropic.messages":
        return Anthropic() if _CLAUDE.search(exchange.model) or _is(host, "anthropic.com") else None
    if exchange.api == "bedrock.converse":
        return Converse(claude=_CLAUDE.search(exchange.model) is not None)
    if _is(host, "mistral.ai"):
        return Mistral()
    return Limited(64) if is_openai(exchange.url) else None


def is_openai(url: str) -> bool:
    """Return True if a request goes to OpenAI's own service, or to the one that Azure runs."""
    host = urlsplit(url).hostname or ""
    return any(_is(host, domain) for domain in _OPENAI)


_OPENAI = ("openai.com", "openai.azure.com", "cognitiveservices.azure.com", "chatgpt.com")


def _is(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


_NINE = re.compile(r"length of 9\b|length 9\b|9 alphanumeric", re.IGNORECASE)
_PATTERN = re.compile(r"a-zA-Z0-9_\\?-|letters, numbers, underscores", re.IGNORECASE)
_PATTERN_OF_AWS = re.compile(r"a-zA-Z0-9_.:-", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"(?:maximum|max\.?) length(?: of| is)? (\d{1,3})|less than or equal to (\d{1,3})", re.IGNORECASE
)
_ABOUT_IDS = re.compile(
    r"tool[ _]?(?:call|use)s?(?:\[\d+\]|\.\d+)?[ _.]*(?:id|ids)\b|tool_use_id|toolUseId|call_id", re.IGNORECASE
)


def complaint(exchange: Exchange) -> Demand | None:
    """What the error reply of an exchange demands of ids, when it speaks of ids at all."""
    error = exchange.reply.error if exchange.reply is not None else None
    if error is None:
        return None
    words = error if isinstance(error, str) else orjson.dumps(error).decode()
    if len(words) > 10_000 or not _ABOUT_IDS.search(words):
        return None
    if _NINE.search(words):
        return Mistral()
    if exchange.api == "bedrock.converse":
        claude = _PATTERN.search(words) is not None
        return Converse(claude=claude) if claude or _TOO_LONG.search(words) or _PATTERN_OF_AWS.search(words) else None
    if limit := _TOO_LONG.search(words):
        return Limited(int(limit[1] or limit[2]))
    return Anthropic() if _PATTERN.search(words) else None


def is_broken_native(id_: str, name: str | None) -> bool:
    """Return True if an id is a mangled `functions.NAME:N` for a call of this very function."""
    origin = restore(id_, name)
    return bool(name) and origin is not None and (origin.id or "").startswith(f"functions.{(name or '').strip()}:")


# Ids of the items of a Responses history that are not what the vendor made: `call_…` where `fc_…` was.
#
# Theory of operation. An item that the model made has an id of its own (`fc_…`, `msg_…`, `rs_…`); a call has another one,
# that pairs it with its output (`call_id`). Clients that know one id per call put it into both. OpenAI's service looks at
# the first letters of an item's id and refuses the whole request; other servers of this API make item ids of any form. So
# an id counts as wrong only there, or where a reply refuses it. The API takes items without an id, so a wrong one can go:
# nothing refers to it but the vendor's own store, which never had it.

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
