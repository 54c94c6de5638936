"""A history as turns of the user's side and the assistant, in a form that survives clients' changes.

Clients send the same content in many shapes: one message or several, a string or a list of parts, trimmed, without
thinking, with other ids, with arguments in another JSON text. A turn is all content of one side up to the next of the
other. Its `mark` is the same for every shape: of an assistant, the names of calls and the values of their arguments, or
its text without white space and thinking; of a user, the text without clients' reminders, and the tool results. System
messages are left out: they hold the date.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import orjson

from wirelint import lexicon
from wirelint.jsonvalues import decode_object
from wirelint.model import Arguments, Json, Message, Opaque, Part, Refusal, Request, Text, ToolCall, ToolResult
from wirelint.text.remembered import remembered, sha256, short

_PHRASES = lexicon.Phrases("turns")

_END = 24
_BLANKS = b" \t\r\n"
_WORDS = (Text, Refusal)
_THINKING = re.compile(r"<(think|thinking|thought|reasoning)>")


class Turn:
    """The content of one side, up to the next of the other."""

    def __init__(self, assistant: bool, parts: list[Part]) -> None:
        self.assistant, self.parts = assistant, parts

    @property
    def calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the turn's calls, in order."""
        return tuple([call.id or "" for call in self.calls])

    @property
    def text(self) -> str:
        return "\n".join([part.text for part in self.parts if isinstance(part, _WORDS)])

    @property
    def empty(self) -> bool:
        """Return True if the turn has no content that a client would send back."""
        return not any(
            part.text.strip() if isinstance(part, _WORDS) else isinstance(part, (ToolCall, ToolResult, Opaque))
            for part in self.parts
        )

    @cached_property
    def mark(self) -> bytes:
        if self.assistant and (calls := self.calls):
            each = [content_of(call.name or "", call.arguments.text.strip() or "{}") for call in calls]
            return short(f"calls {' '.join(each)}")
        words = _plain(self.text)
        if self.assistant:
            return short(f"says {words}")
        given = [_given(part.text) for part in self.parts if isinstance(part, ToolResult)]
        return short("\0".join((words, *given, str(sum(isinstance(part, Opaque) for part in self.parts)))))

    @cached_property
    def ends(self) -> tuple[str, str]:
        """The beginning and the end of the text: a client that cuts or extends a turn leaves one of them unchanged.

        Both are the functions' names if the turn has calls, and empty if the text is too short.
        """
        called = " ".join(call.name or "" for call in self.calls)
        if called:
            return f"calls {called}", f"calls {called}"
        plain = _plain(self.text)
        return (plain[:_END], plain[-_END:]) if len(plain) >= _END else ("", "")


def turns_of(request: Request) -> list[Turn]:
    """Return the turns of a history in order, the sides in alternation. System messages are left out."""
    turns: list[Turn] = []
    parts: list[Part] = []
    assistant: bool | None = None
    for message in request.messages:
        if message.role == "system":
            continue
        if (speaks := message.role == "assistant") is not assistant:
            assistant, parts = speaks, []
            turns.append(Turn(speaks, parts))
        parts += message.parts if speaks else _without_reminders(message)
    return turns


def content_of(name: str, arguments: str) -> str:
    """Return a digest of a call's name and arguments: equal for arguments that are equal as JSON."""
    plain = arguments.strip()
    if (value := Arguments(arguments).value) is not None:
        with contextlib.suppress(orjson.JSONEncodeError):  # lone surrogates, numbers beyond 64 bits: the text will do
            plain = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return sha256(f"{name}\0{plain}").hex()[:32]


def _without_reminders(message: Message) -> Sequence[Part]:
    if not [part for part in message.parts if isinstance(part, Text) and part.text[:32].lstrip()[:1] == "<"]:
        return message.parts
    words = message.words
    if len(words) == len(message.text):
        return message.parts
    kept: list[Part] = [part for part in message.parts if not isinstance(part, Text)]
    return [*kept, Text(words, message.pointer)] if words else kept


@remembered
def _given(text: str) -> str:
    """Return a digest of a result without white space and thinking."""
    return short(_plain(text)).hex()


def _plain(text: str) -> str:
    if "<" in text and ("</th" in text or "</reason" in text):
        kept: list[str] = []
        closers: dict[str, int] = {}  # where the search for each closing tag goes on
        place = 0
        for opener in _THINKING.finditer(text):
            if opener.start() < place:
                continue
            closer = f"</{opener[1]}>"
            at = closers.get(closer, 0)
            if 0 <= at < opener.end():
                at = closers[closer] = text.find(closer, opener.end())
            if at >= 0:
                kept.append(text[place : opener.start()])
                place = at + len(closer)
        text = "".join((*kept, text[place:]))
        text = text.rpartition("</think>")[2]  # templates open it in the prompt
    return text.encode("utf-8", "surrogatepass").translate(None, _BLANKS).decode("utf-8", "surrogatepass")


# A client's own name for the conversation of a request: session headers, and fields of the body.
#
# The names are those of OpenAI's Responses API (`conversation`), Claude Code (`x-claude-code-session-id`,
# `metadata.user_id`), Codex (`session_id`, `thread-id`, `conversation_id`), OpenCode (`x-opencode-session`,
# `x-session-affinity`), OpenRouter (`session_id`, `x-session-id`), LiteLLM (`litellm_session_id`), Langfuse,
# Helicone and xAI
# (`x-grok-conv-id`). `user`, and a `metadata.user_id` without a session in it, name a user, who has many conversations.

_HEADERS = _PHRASES.words("headers")

_KNOWN_HEADERS = frozenset(_HEADERS)
_NAMED = re.compile(r"x-[a-z0-9-]{1,40}-(?:session|conversation)-id")
"""Headers with similar names, of other clients and gateways."""

_FIELDS = ("conversation_id", "session_id", "litellm_session_id")
_METADATA = _PHRASES.words("metadata")
_CLAUDE_CODE = re.compile(r"_session_(?P<session>[0-9A-Za-z-]{8,})\Z")
_EMPTY = frozenset({"", "-", "0", "null", "nil", "none", "undefined", "default", "unknown", "[object object]"})


def session_of(request: Request, headers: Mapping[str, str]) -> str | None:
    """Return the client's unchanged name of the conversation; None if it has none.

    `headers` are lower-cased. A `prompt_cache_key` counts if it was drawn for one conversation (`019a…-73c1-…`): a
    readable one (`support-bot-v2`) is usually the name of a prompt that many conversations share.
    """
    if request.api == "mcp":
        return headers.get("mcp-session-id") or None
    named = next(_said(headers, request.body), None)
    if named is not None:
        return named
    key = request.body.get("prompt_cache_key")
    return key if isinstance(key, str) and _PHRASES["drawn"].search(key) else None


def _said(headers: Mapping[str, str], body: Mapping[str, Json]) -> Iterator[str]:
    candidates: list[Json] = []
    if not _KNOWN_HEADERS.isdisjoint(headers):
        candidates += [headers.get(name) for name in _HEADERS]
    candidates += [value for name, value in headers.items() if name[:2] == "x-" and _NAMED.fullmatch(name)]
    conversation = body.get("conversation")
    candidates.append(conversation.get("id") if isinstance(conversation, dict) else conversation)
    candidates += [body.get(name) for name in _FIELDS]
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        candidates += [metadata.get(name) for name in _METADATA]
        candidates.append(_claude_code(metadata.get("user_id")))
    for candidate in candidates:
        if isinstance(candidate, str) and candidate.strip().lower() not in _EMPTY:
            yield candidate.strip()


def _claude_code(user: Json) -> Json:
    """Return the session in Claude Code's user field: `user_…_session_…`, since 2.1.78 a JSON object."""
    if not isinstance(user, str):
        return None
    if user.startswith("{"):
        return decode_object(user).get("session_id")
    found = _CLAUDE_CODE.search(user)
    return found["session"] if found is not None else None
