"""Traits and history layout of each API, and the meanings of finish reasons. The data is `lexicon/apis.toml`.

Theory of operation. Readers keep a vendor's words unchanged: a finding quotes them, and a writer must use words of the
same vendor. `ending` gives the meaning of a finish reason; `Traits.ended` and `Traits.calls` are the words to write.
Servers that imitate an API send words of the API that they wrap (`eos`, `end_turn`, `STOP` in the shape of OpenAI). No
two vendors use one word for two things, so every word is understood in every API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from wirelint.lexicon import load
from wirelint.model import Choice, Json, Request

_TABLE = load("apis")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Traits:
    """Peculiarities of an API, beside the shape of its bodies.

    Places are JSON Pointers in a whole body, with `{}` for the candidate's number. None: the API has no such place.
    """

    ended: str
    """Finish reason of a complete reply."""
    calls: str
    """Finish reason of a reply with calls; equal to `ended` where calls end like anything else."""
    finish_at: str
    text_at: str
    reasoning: str
    """The vendor's word for reasoning, for titles of fixes."""
    reasoning_at: str | None = None
    calls_at: str | None = None
    finish_reasons: frozenset[str] | None = None
    """The documented finish reasons. None: not documented as a closed list."""
    arguments: Literal["text", "object", "block"] = "text"
    """Form of arguments on the wire: JSON in a string; an object; or `block`, an object in a whole body that a stream sends
    as text after a start with an empty object."""
    has_only_strings: bool = False
    """True if clients of the API accept only a string as the content of a reply, so that an object or a list is a
    fault."""
    has_call_ids: bool = True
    """True if every call has an id. Otherwise calls are identified by their order, and an id is optional."""
    has_call_index: bool = True
    """True if the calls of a stream are numbered, so that a number can be missing or used twice."""
    has_repeated_calls: bool = False
    """True if the end of a call repeats the whole call. Then an id alone starts no other call, and two calls that share a
    number cannot be separated."""
    id_model: str | None = "call_" + "A" * 24
    """A call id in the vendor's format. None: the vendor sends no ids."""
    has_strict_ids: bool = False
    """True if ids consist of letters, digits, `_` and `-` only, so that `functions.NAME:N` may be refused."""
    has_block_events: bool = False
    """True if a reply is a sequence of content blocks that start and stop one after the other."""
    has_id_in_each_event: bool = False
    """True if each event of a stream repeats the id of the reply."""
    has_finish_reason: bool = True
    """True if a complete reply always has a finish reason."""
    is_raw: bool = False
    """True if the prompt is the output of a chat template, so that the reply contains the model's own markup."""
    framings: frozenset[str] = frozenset({"events"})
    """The stream framings that the writer supports. A stream in another framing passes unchanged."""
    has_plain_end_if_forced: bool = False
    """True if a reply to a forced function ends like any other (documented by OpenAI)."""
    has_usage_unasked: bool = False
    """True if streams end with token counts even if the request does not ask for them."""

    @property
    def has_opening_events(self) -> bool:
        """Return True if streams of the API begin with events that carry no content yet."""
        return self.has_block_events or self.has_repeated_calls

    @property
    def has_reason_for_calls(self) -> bool:
        """Return True if the finish reason distinguishes a reply with calls from one without."""
        return self.calls != self.ended

    def start_holds_arguments(self, *, streamed: bool) -> bool:
        """Return True if the start of a call carries its arguments as a value, and no text follows."""
        return self.arguments == "object" or (self.arguments == "block" and not streamed)


@dataclass(frozen=True, slots=True)
class History:
    """Layout of the messages in an API's requests: where calls and results are, and their ids. Default: OpenAI's chat.

    With OpenAI's chat a result is a separate message. With Anthropic, Converse and Gemini it is a block of a message
    that may also hold a user's text. With Responses calls, results and texts are items of one array.
    """

    place: str = "/messages"
    """Pointer of the array of messages or items."""
    content: str | None = "content"
    """The member of a message that lists its blocks, results and calls among them. None: an item is one thing."""
    call_id: str = "id"
    """Place of a call's id, below the call's pointer."""
    result_id: str = "tool_call_id"
    arguments: str = "function/arguments"
    """Place of a call's arguments, below the call's pointer."""
    has_blocks: bool = False
    """True if calls and results are blocks of messages, and a message must not be empty."""
    has_results_next: bool = False
    """True if results must be in the message right after their calls."""
    is_counted: bool = False
    """True if the API refuses a history with more results than calls, with or without ids."""


def _read(kind: type[T], row: Mapping[str, Any]) -> T:
    """Return a dataclass from a table. A list becomes a set, an empty text None."""
    return kind(
        **{
            name: frozenset(value) if isinstance(value, list) else None if value == "" else value
            for name, value in row.items()
        }
    )


_TRAITS: dict[str, Traits] = {
    api: _read(Traits, {name: value for name, value in row.items() if name != "history"})
    for api, row in _TABLE["traits"].items()
}
_HISTORIES: dict[str, History] = {api: _read(History, row.get("history", {})) for api, row in _TABLE["traits"].items()}


def traits(api: str) -> Traits:
    """Return the traits of an API; those of OpenAI's chat for an unknown name."""
    return _TRAITS.get(api, _TRAITS["openai.chat"])


def history_of(api: str) -> History:
    """Return the history layout of an API; that of OpenAI's chat for an unknown name."""
    return _HISTORIES.get(api, _HISTORIES["openai.chat"])


RAW_APIS = frozenset({"openai.completions", "deepinfra.inference", "ollama.generate"})
"""APIs whose requests hold one prompt instead of messages."""


# --- finish reasons ---------------------------------------------------------------------------------------------------

Ending = Literal["ended", "stopped", "calls", "length", "filtered", "refused", "paused", "failed", "unknown"]
"""Meaning of a finish reason.

`ended`: the reply is complete. `stopped`: the text ended at a stop sequence of the client, or with a server's own word for
its end, which does not exclude calls. `calls`: the reply ends in calls that the client is to run. `paused`: the provider
continues when asked again. `unknown`: no reason, or a word of no API."""

_MEANINGS: dict[str, Ending] = {word: meaning for meaning, words in _TABLE["endings"].items() for word in words.split()}
_COMPLETE: frozenset[Ending] = frozenset({"ended", "stopped", "calls", "length"})


def ending(reason: str | None) -> Ending:
    """Return the meaning of a finish reason of any vendor, also as Python prints an enumeration: `FinishReason.STOP`."""
    if reason is None:
        return "unknown"
    return _MEANINGS.get(reason) or _MEANINGS.get(reason.rpartition(".")[2].lower(), "unknown")


def is_foreign(api: str, reason: str) -> bool:
    """Return True if a finish reason belongs to other APIs and means that the reply is complete, long enough, or calls.

    Words for filters and failures are not checked, since servers add their own; neither are words of no API.
    """
    own = traits(api).finish_reasons
    return own is not None and reason not in own and ending(reason) in _COMPLETE


def own_word(api: str, reason: str) -> str | None:
    """Return the API's own word for a foreign finish reason (`is_foreign`); None for any other reason."""
    if not is_foreign(api, reason):
        return None
    own, meaning = sorted(traits(api).finish_reasons or (), key=len), ending(reason)
    if spelled := next((word for word in own if word.lower() == reason.lower()), None):
        return spelled
    if meaning in ("ended", "stopped", "calls"):
        return traits(api).calls if meaning == "calls" else traits(api).ended
    return next((word for word in own if ending(word) == meaning), None)


def ended_by_itself(choice: Choice) -> bool:
    """Return True if the model ended a candidate, so that nothing was cut off."""
    return ending(choice.finish_reason) in ("ended", "calls") or choice.finish_reason in _TABLE["servers_own"]


def has_stop_words(request: Request) -> bool:
    """Return True if the client set stop sequences. They end a text without appearing in it."""
    places = (request.body, *(request.body.get(name) for name in _TABLE["option_objects"]))
    return any(
        bool(place.get(name)) for place in places if isinstance(place, Mapping) for name in _TABLE["stop_sequences"]
    )


def is_raw(api: str, request: Request | None) -> bool:
    """Return True if the reply is the model's text with its template's markup, which no server parses for the client."""
    if traits(api).is_raw:
        return True
    raw: Json = request.body.get("raw") if request is not None and api == "ollama.generate" else None
    return raw is True


def is_text(block: Mapping[str, Json]) -> bool:
    """Return True if a block of a message is text: by its type, or by its only member in an API without types."""
    return block.get("type", "text") == "text" and ("type" in block or "text" in block)


def is_signed(block: Json) -> bool:
    """Return True if a block carries Gemini's signature, which the client must send back."""
    return isinstance(block, dict) and any(block.get(name) for name in ("thoughtSignature", "thought_signature"))
