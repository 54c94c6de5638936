"""Meanings of finish reasons, and the traits and history layout of an API by its name.

Theory of operation. Readers leave a vendor's words as they are: a finding quotes them, and a writer must put back words of
the same vendor. `ending` gives the meaning of a finish reason; `Traits.ended` and `Traits.calls` are the words to write.
Servers that imitate an API send words of the API that they wrap (`eos`, `end_turn`, `STOP` in the shape of OpenAI). No two
vendors use one word for two things, so every word is understood in every API.

Sources: the vendors' API references, as named in the module of each API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from wirelint.apis import APIS, openai_chat
from wirelint.apis.spec import History, Traits
from wirelint.model import Choice, Json, Request

__all__ = [
    "RAW_APIS",
    "Ending",
    "History",
    "Traits",
    "ended_by_itself",
    "ending",
    "has_stop_words",
    "history_of",
    "is_foreign",
    "is_raw",
    "is_signed",
    "is_text",
    "output_tokens",
    "own_word",
    "traits",
]

_TRAITS: dict[str, Traits] = {api.name: api.traits for api in APIS if api.channel == "model"}
_HISTORIES: dict[str, History] = {api.name: api.history for api in APIS}


def traits(api: str) -> Traits:
    """Return the traits of an API; those of OpenAI's chat for an unknown name."""
    return _TRAITS.get(api, openai_chat.API.traits)


def history_of(api: str) -> History:
    """Return the history layout of an API; that of OpenAI's chat for an unknown name."""
    return _HISTORIES.get(api, openai_chat.API.history)


RAW_APIS = frozenset({"openai.completions", "deepinfra.inference", "ollama.generate"})
"""APIs whose requests hold one prompt instead of messages."""


# --- finish reasons ---------------------------------------------------------------------------------------------------

Ending = Literal["ended", "stopped", "calls", "length", "filtered", "refused", "paused", "failed", "unknown"]
"""Meaning of a finish reason.

`ended`: the reply is complete. `stopped`: the text ended at a stop sequence of the client, or with a server's own word for
its end, which does not exclude calls. `calls`: the reply ends in calls that the client is to run. `paused`: the provider
continues when asked again. `unknown`: no reason, or a word of no API."""

_WORDS: dict[Ending, str] = {
    "ended": "stop end_turn completed complete",
    "stopped": "stop_sequence eos eos_token endoftext",
    "calls": "tool_calls tool_call tool_use function_call",
    "length": "length max_tokens max_output_tokens maximum_tokens model_length model_context_window_exceeded",
    "filtered": "content_filter content_filtered guardrail_intervened safety recitation blocklist prohibited_content spii"
    " model_armor image_safety image_prohibited_content image_recitation jailbreak language sensitive",
    "refused": "refusal error_toxic",
    "paused": "pause_turn",
    "failed": "error failed cancelled canceled abort aborted incomplete malformed_function_call unexpected_tool_call"
    " too_many_tool_calls missing_thought_signature malformed_response malformed_model_output malformed_tool_use"
    " insufficient_system_resource insufficient_resource network_error timeout image_other no_image",
}
_MEANINGS: dict[str, Ending] = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
_COMPLETE: frozenset[Ending] = frozenset({"ended", "stopped", "calls", "length"})
_SERVERS_OWN = frozenset({"eos", "eos_token", "endoftext"})
"""Words of servers for the model's own end of the text. A stop sequence is the client's."""


def ending(reason: str | None) -> Ending:
    """Return the meaning of a finish reason of any vendor."""
    if reason is None:
        return "unknown"
    return _MEANINGS.get(reason) or _MEANINGS.get(reason.lower(), "unknown")


def is_foreign(api: str, reason: str) -> bool:
    """Return True if a finish reason belongs to other APIs and means that the reply is complete, long enough, or calls.

    Words for filters and failures are not judged, since servers add to them; nor are words of no API.
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
    if meaning in ("ended", "stopped"):
        return traits(api).ended
    return next((word for word in own if ending(word) == meaning), None)


def ended_by_itself(choice: Choice) -> bool:
    """Return True if the model ended a candidate, so that nothing was cut off."""
    return ending(choice.finish_reason) in ("ended", "calls") or choice.finish_reason in _SERVERS_OWN


_STOPS = ("stop", "stop_sequences", "stopSequences", "stop_token_ids")
_PLACES = ("inferenceConfig", "generationConfig", "generation_config", "options")


def has_stop_words(request: Request) -> bool:
    """Return True if the client set stop sequences, which end a text without being in it."""
    places = (request.body, *(request.body.get(name) for name in _PLACES))
    return any(bool(place.get(name)) for place in places if isinstance(place, Mapping) for name in _STOPS)


_OUTPUT = (
    *("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount", "candidates_token_count"),
    *("eval_count", "num_output_tokens", "tokens_generated"),
)
_DETAILS = ("completion_tokens_details", "output_tokens_details")


def output_tokens(usage: Mapping[str, Json] | None) -> int | None:
    """Return the counted tokens of a reply without those of hidden reasoning; None if there is no count."""
    if usage is None:
        return None
    counts = usage.get("tokens") if isinstance(usage.get("tokens"), dict) else usage
    if not isinstance(counts, dict):
        return None
    total = next((count for name in _OUTPUT if isinstance(count := counts.get(name), int)), None)
    details = next((found for name in _DETAILS if isinstance(found := counts.get(name), dict)), None)
    hidden = details.get("reasoning_tokens") if details is not None else None
    return total - hidden if total is not None and isinstance(hidden, int) else total


# --- requests ---------------------------------------------------------------------------------------------------------


def is_raw(api: str, request: Request | None) -> bool:
    """Return True if the reply is the model's text with its template's markup, which no server parses for the client."""
    if traits(api).raw:
        return True
    raw: Json = request.body.get("raw") if request is not None and api == "ollama.generate" else None
    return raw is True


def is_text(block: Mapping[str, Json]) -> bool:
    """Return True if a block of a message is text: by its type, or by its only member in an API without types."""
    return block.get("type", "text") == "text" and ("type" in block or "text" in block)


def is_signed(block: Json) -> bool:
    """Return True if a block carries Gemini's signature, which the client must send back."""
    return isinstance(block, dict) and any(block.get(name) for name in ("thoughtSignature", "thought_signature"))
