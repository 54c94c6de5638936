"""Mentions of markup, tokens and tags in a request: a reply with markup that the request wants is no leak.

*Instructions* are the system prompt, the tools' descriptions, the user's messages and a prefilled answer. Tool results and
the arguments of earlier calls are further text of the request, which an answer may repeat. Earlier messages of the
assistant count for neither: a leak in the history tends to recur, and is a leak each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from wirelint import lexicon
from wirelint.model import Request, Text
from wirelint.text.prose import mentions

_PHRASES = lexicon.Phrases("asking")

# `without any <think> tags`, `do not write <scratchpad>`: the markup is unwanted.
_NEGATION = re.compile(r"(?:\b(?:no|not|never|without|avoid|omit|cannot)\b|n['’]t\b)[^.!?\n]{0,60}\Z", re.IGNORECASE)
_NEGATION_REACH = 80

_CALLS = re.compile(r"(?:tool|function)[ _-]?(?:calls?|calling|use)\b|\binvocations?\b|\binvoke\b", re.IGNORECASE)
_CALL_CUES = ("tool", "funct", "nvo")
_TOKEN_CUES = ("token", "template", "prompt", "chatml", "harmony", "jinja", "end of", "end-of")
_TAG_CUES = (
    ("think", "reason", "thought", "scratchpad", "reflection", "chain", "cot", "xml"),
    ("tag", "token", "marker", "delimiter", "block", "element", "section", "trace"),
)


def instructions_hold(request: Request, *literals: str) -> bool:
    """Return True if the instructions hold one of the literals outside of a prohibition."""
    patterns = [re.compile(re.escape(literal)) for literal in literals]
    return _uses(found for text in _asking(request) for pattern in patterns for found in pattern.finditer(text))


def request_holds(request: Request, *literals: str) -> bool:
    """Return True if the request holds one of the literals outside of earlier messages of the assistant."""
    heard = (*(result.text for result in request.results), *(call.arguments.text for call in request.calls))
    texts = [*_asking(request), *heard]
    return any(literal in text for text in texts for literal in literals)


def demands_json(request: Request) -> bool:
    """Return True if the request demands an answer in JSON: `response_format` and its counterparts in other APIs."""
    for field in ("response_format", "format", "text", "output_config"):
        value = request.body.get(field)
        inner = value.get("format", value) if isinstance(value, dict) else value
        kind = inner.get("type") if isinstance(inner, dict) else inner
        if kind in ("json_object", "json_schema", "json", "object"):
            return True
    config = request.body.get("generationConfig", request.body.get("generation_config"))
    wanted = config.get("responseMimeType", config.get("response_mime_type")) if isinstance(config, dict) else None
    return wanted == "application/json"


def asks_about_calls(request: Request) -> bool:
    """Return True if the user's last message is about the notation of tool calls."""
    words = last_user_text(request)
    if not mentions(words, _CALL_CUES) or _CALLS.search(words) is None:
        return False
    return _PHRASES["notation"].search(words) is not None or _PHRASES["call_as_json"].search(words) is not None


def asks_about_tokens(request: Request) -> bool:
    """Return True if the user's last message is about chat templates or their tokens."""
    words = last_user_text(request)
    return mentions(words, _TOKEN_CUES) and _PHRASES["tokens"].search(words) is not None


def asks_about_thinking_tags(request: Request) -> bool:
    """Return True if the user's last message is about the tags around reasoning."""
    words = last_user_text(request)
    return mentions(words, *_TAG_CUES) and _PHRASES["tags"].search(words) is not None


def prompts_for_thinking_tags(request: Request) -> bool:
    """Return True if the instructions mention tags or blocks for reasoning without their names."""
    texts = (text for text in _asking(request) if mentions(text, *_TAG_CUES))
    return _uses(found for text in texts for found in _PHRASES["tags"].finditer(text))


def asks_for_dialogue(request: Request) -> bool:
    """Return True if the request wants a text with speakers: a play, a transcript, an example of a prompt."""
    return any(_PHRASES["dialogue"].search(text) is not None for text in _asking(request))


def last_user_text(request: Request) -> str:
    """Return the text of the user's last message; empty if it is unknown."""
    return request.last_user.text if request.last_user is not None else ""


def _asking(request: Request) -> Iterator[str]:
    for message in request.messages:
        if message.role in ("system", "user"):
            yield from (part.text for part in message.parts if isinstance(part, Text))
    for tool in request.tools:
        yield tool.description
    last = request.messages[-1] if request.messages else None
    yield last.text if last is not None and last.role == "assistant" and not last.calls else ""  # a prefilled answer


def _uses(spans: Iterable[re.Match[str]]) -> bool:
    """Return True if one of the matches is in no prohibition."""
    reach = ((found, max(found.start() - _NEGATION_REACH, 0)) for found in spans)
    return any(_NEGATION.search(found.string, start, found.start()) is None for found, start in reach)
