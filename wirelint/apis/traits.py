"""What the words and fields of each API mean: one table, for all who judge or repair replies of any of them.

Theory of operation. Readers turn bodies into one model but leave the vendor's words as they stand, for a finding quotes
them and a rewriter must put back words of the same vendor. What such a word says is here: `ending` gives the meaning of a
finish reason, `ended` and `calls` the words to write. Servers that imitate an API bring words of the one they wrap
(`eos`, `end_turn`, `STOP` in the shape of OpenAI), and no two vendors use one word for two things, so all words are known
everywhere.

Places are JSON Pointers in a whole body, `{}` the number of the candidate. None for a place: the API has no form for it.

Sources: the vendors' API references, as named in the file of each API.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from wirelint.model import Json, Request

__all__ = ["RAW_APIS", "Ending", "Traits", "ending", "is_foreign", "is_raw", "traits"]

Ending = Literal["ended", "stopped", "calls", "length", "filtered", "refused", "paused", "failed", "unknown"]
"""What a finish reason says. `ended`: the reply is complete. `stopped`: the text is over, by a sequence that the
client gave or a server's own word for its end, which says nothing of calls.
`calls`: it ends in calls, which the client is to run.
`paused`: the provider goes on when asked again. `unknown`: no word of any API, or none at all."""

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


def ending(reason: str | None) -> Ending:
    """The meaning of a finish reason, of whatever vendor."""
    if reason is None:
        return "unknown"
    return _MEANINGS.get(reason) or _MEANINGS.get(reason.lower(), "unknown")


_OWN: dict[str, frozenset[str]] = {
    "openai.chat": frozenset({"stop", "length", "tool_calls", "function_call", "content_filter"}),
    "mistral.chat": frozenset({"stop", "length", "model_length", "tool_calls"}),
    "ollama.chat": frozenset({"stop", "length", "load", "unload"}),
    "cohere.chat": frozenset({"COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL"}),
    "anthropic.messages": frozenset({
        *("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
        "model_context_window_exceeded",
    }),
    "bedrock.converse": frozenset({
        *("end_turn", "tool_use", "max_tokens", "stop_sequence", "guardrail_intervened", "content_filtered"),
        "model_context_window_exceeded",
    }),
    "google.generate_content": frozenset({"STOP", "MAX_TOKENS", "LANGUAGE", "SAFETY"}),
}  # fmt: skip
_COMPLETE: frozenset[Ending] = frozenset({"ended", "stopped", "calls", "length"})


def is_foreign(api: str, reason: str) -> bool:
    """Return True if a finish reason belongs to other APIs and says that the reply is complete, long enough, or calls.

    Words for filters and failures are not judged: servers add to them. Nor are words of no API at all.
    """
    own = _OWN.get(api)
    return own is not None and reason not in own and ending(reason) in _COMPLETE


def own_word(api: str, reason: str) -> str | None:
    """Return the API's own word for a finish reason of other APIs; None for a reason that is not foreign (`is_foreign`)."""
    if not is_foreign(api, reason):
        return None
    own, meaning = sorted(_OWN[api], key=len), ending(reason)
    if spelled := next((word for word in own if word.lower() == reason.lower()), None):
        return spelled
    if meaning in ("ended", "stopped"):
        return traits(api).ended
    return next((word for word in own if ending(word) == meaning), None)


@dataclass(frozen=True, slots=True)
class Traits:
    """What is peculiar to an API, beside the shape of its bodies."""

    ended: str
    """Finish reason of a complete reply."""
    calls: str
    """Finish reason of a reply with calls; the same word where calls end like anything else."""
    finish_at: str
    text_at: str
    reasoning_at: str | None
    reasoning: str
    """What the vendor calls reasoning, as a title of a repair says it."""
    calls_at: str | None

    arguments: Literal["text", "object", "block"] = "text"
    """How arguments stand on the wire: JSON in a string; an object; or an object in a whole body that comes as text in a
    stream, behind a start with an empty one."""
    text_only: bool = False
    """Whether an object in the place of such text is a fault: clients of the API take a string and nothing else."""
    call_ids: bool = True
    """Whether every call has an id. Elsewhere calls are known by their order, and an id is an extra."""
    call_index: bool = True
    """Whether the calls of a stream are numbered, so that a number can be missing or taken."""
    ends_repeat: bool = False
    """Whether a call is told again when it ends, all of it: an id alone begins no other one then, and two that share a
    number cannot be parted."""
    id_model: str | None = "call_" + "A" * 24
    """An id as the vendor makes them; None: it makes none."""
    strict_ids: bool = False
    """Whether ids are of letters, digits, `_` and `-` alone, so that counted ones (`functions.NAME:N`) may be refused."""
    blocks: bool = False
    """Whether a reply is a row of content blocks that begin and end one after the other."""
    head_everywhere: bool = False
    """Whether each event of a stream repeats the id of the reply."""
    finishes: bool = True
    """Whether a complete reply always says why it ended."""
    raw: bool = False
    """Whether the prompt is what a template made of a conversation, so that the reply is the model's own markup."""
    framings: frozenset[str] = frozenset({"events"})
    """The forms of its streams, which its writer writes. A stream in another form is passed on as it came."""
    choosing_ends: bool = False
    """Whether a reply in which the client forced a function ends like any other (OpenAI documents so)."""

    @property
    def opens(self) -> bool:
        """Return True if a stream of the API begins with events that say nothing yet."""
        return self.blocks or self.ends_repeat

    @property
    def tells_calls(self) -> bool:
        """Return True if the finish reason tells a reply with calls from one without."""
        return self.calls != self.ended

    def start_holds_arguments(self, *, streamed: bool) -> bool:
        """Return True if the arguments of a call stand in its start, as a value, and no text follows."""
        return self.arguments == "object" or (self.arguments == "block" and not streamed)


_OPENAI = Traits(
    ended="stop",
    calls="tool_calls",
    finish_at="/choices/{}/finish_reason",
    text_at="/choices/{}/message/content",
    reasoning_at="/choices/{}/message/reasoning_content",
    reasoning="reasoning_content",
    calls_at="/choices/{}/message/tool_calls",
    head_everywhere=True,
    choosing_ends=True,
    text_only=True,
)
_ANTHROPIC = Traits(
    ended="end_turn",
    calls="tool_use",
    finish_at="/stop_reason",
    text_at="/content",
    reasoning_at="/content",
    reasoning="a thinking block",
    calls_at="/content",
    arguments="block",
    id_model="toolu_01" + "A" * 22,
    strict_ids=True,
    blocks=True,
    framings=frozenset({"events", "messages"}),
)
_OLLAMA = Traits(
    ended="stop",
    calls="stop",
    finish_at="/done_reason",
    text_at="/message/content",
    reasoning_at="/message/thinking",
    reasoning="thinking",
    calls_at="/message/tool_calls",
    arguments="object",
    call_ids=False,
    call_index=False,
    id_model=None,
    framings=frozenset({"lines"}),
)
_COMPLETIONS = replace(
    _OPENAI,
    calls="stop",
    text_at="/choices/{}/text",
    reasoning_at="/choices/{}/reasoning",
    reasoning="reasoning",
    calls_at=None,
    raw=True,
)
_TABLE: dict[str, Traits] = {
    "openai.chat": _OPENAI,
    "anthropic.messages": _ANTHROPIC,
    "openai.responses": Traits(
        ended="completed",
        calls="completed",
        finish_at="/status",
        text_at="/output",
        reasoning_at="/output",
        reasoning="a reasoning item",
        calls_at="/output",
        ends_repeat=True,
    ),
    "openai.completions": _COMPLETIONS,
    "deepinfra.inference": replace(
        _COMPLETIONS,
        finish_at="/results/{}/details/finish_reason",
        text_at="/results/{}/generated_text",
        reasoning_at=None,
        finishes=False,
        head_everywhere=False,
    ),
    "google.generate_content": Traits(
        ended="STOP",
        calls="STOP",
        finish_at="/candidates/{}/finishReason",
        text_at="/candidates/{}/content/parts",
        reasoning_at="/candidates/{}/content/parts",
        reasoning="a thought part",
        calls_at="/candidates/{}/content/parts",
        arguments="object",
        call_ids=False,
        call_index=False,
        id_model=None,
        framings=frozenset({"events", "array"}),
        head_everywhere=True,
    ),
    "ollama.chat": _OLLAMA,
    "ollama.generate": replace(_OLLAMA, text_at="/response", reasoning_at="/thinking", calls_at=None),
    "mistral.chat": replace(
        _OPENAI,
        reasoning_at="/choices/{}/message/content",
        reasoning="a thinking chunk",
        id_model="A" * 9,
        text_only=False,
    ),
    "cohere.chat": Traits(
        ended="COMPLETE",
        calls="TOOL_CALL",
        finish_at="/finish_reason",
        text_at="/message/content",
        reasoning_at="/message/content",
        reasoning="a thinking block",
        calls_at="/message/tool_calls",
        text_only=True,
        blocks=True,
    ),
    "bedrock.converse": replace(
        _ANTHROPIC,
        finish_at="/stopReason",
        text_at="/output/message/content",
        reasoning_at="/output/message/content",
        reasoning="a reasoningContent block",
        calls_at="/output/message/content",
        id_model="tooluse_" + "A" * 22,
    ),
}


def traits(api: str) -> Traits:
    """The traits of an API; those of OpenAI's chat for a name that is not known."""
    return _TABLE.get(api, _OPENAI)


RAW_APIS = frozenset({"openai.completions", "deepinfra.inference", "ollama.generate"})
"""APIs whose requests hold one prompt instead of messages."""


def is_raw(api: str, request: Request | None) -> bool:
    """Whether the reply is what the model wrote, with the markup of its template: nobody reads that for the client."""
    if traits(api).raw:
        return True
    raw: Json = request.body.get("raw") if request is not None and api == "ollama.generate" else None
    return raw is True
