"""Finish reasons of all APIs by what they mean for what is missing from a reply."""

from __future__ import annotations

from collections.abc import Mapping

from wirelint.apis.traits import ending
from wirelint.model import Choice, Json, Request

_SERVERS_OWN = frozenset({"eos", "eos_token", "endoftext"})
"""Words of servers for the end of the text: the model's own, where a stop sequence is the caller's."""
_STOPS = ("stop", "stop_sequences", "stopSequences", "stop_token_ids")
_PLACES = ("inferenceConfig", "generationConfig", "generation_config", "options")


def by_itself(choice: Choice) -> bool:
    """Return True if a model ended a candidate of its own will, so that what is not there will not have been cut off."""
    return ending(choice.finish_reason) in ("ended", "calls") or choice.finish_reason in _SERVERS_OWN


def stop_words(request: Request) -> bool:
    """Return True if the caller set words that end the text, of which a candidate then says nothing."""
    places = (request.body, *(request.body.get(name) for name in _PLACES))
    return any(bool(place.get(name)) for place in places if isinstance(place, Mapping) for name in _STOPS)


def tokens_said(usage: Mapping[str, Json] | None) -> int | None:
    """The tokens of a reply that were counted, those of hidden reasoning left out; None when that is not told."""
    if usage is None:
        return None
    counts = usage.get("tokens") if isinstance(usage.get("tokens"), dict) else usage
    if not isinstance(counts, dict):
        return None
    said = next((count for name in _SAID if isinstance(count := counts.get(name), int)), None)
    details = next((found for name in _DETAILS if isinstance(found := counts.get(name), dict)), None)
    hidden = details.get("reasoning_tokens") if details is not None else None
    return said - hidden if said is not None and isinstance(hidden, int) else said


_SAID = (
    *("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount", "candidates_token_count"),
    *("eval_count", "num_output_tokens", "tokens_generated"),
)
_DETAILS = ("completion_tokens_details", "output_tokens_details")
