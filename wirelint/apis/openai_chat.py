r"""OpenAI Chat Completions, compatible servers (vLLM, SGLang, OpenRouter, Azure, DeepInfra, Ollama's `/v1`), and Mistral.

Requests: `POST …/chat/completions`. Replies: a `chat.completion` body, or `chat.completion.chunk` events with `[DONE]` at
the end. Source: the vendor's API reference (Chat), and recordings of compatible servers for their differences: reasoning
under `reasoning_content` (DeepSeek, vLLM) or `reasoning` (OpenRouter, Groq), keep-alive comments, a first chunk without
choices (Azure), a last one with usage only, an error object in the middle of a stream.

    data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":""}}]}}]}
    data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from wirelint.apis._choices import (
    PLAIN,
    REASONING,
    ChoiceReader,
    ChoiceStreamWriter,
    ChoiceWholeWriter,
    ChoiceWriter,
    is_bare_call,
    is_empty_call,
    read_chat,
)
from wirelint.apis.reading import (
    MISSHAPEN,
    ApiSpec,
    compact,
    is_conversation,
    lists_parts,
    misshapen,
    stated_reason,
    words_of,
)
from wirelint.apis.writing import MADE, same, set_or_drop, text_of
from wirelint.events import CallUpdate, Delta, Event, Finish, Start
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.lexicon import load
from wirelint.model import Json, Kind

_OTHER_APIS = tuple(load("apis")["other_paths"]["openai.chat"].split())
"""Ends of paths with bodies of the same shape that belong to other APIs, or to endpoints without a model's reply."""
_MISTRAL_CLIENTS = ("mistral-client", "mistralai")
_HOSTED_EVIDENCE = ("annotations", "executed_tools", "citations", "search_results")


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if not is_conversation(body):
        return False
    if path.endswith("/chat/completions"):
        return True
    # A gateway may serve this API at any path. The shape decides, unless the path or a header names another API.
    return isinstance(body.get("model"), str) and not path.endswith(_OTHER_APIS) and "anthropic-version" not in headers


def claims_reply(document: Mapping[str, Json]) -> bool:
    kind = document.get("object")
    if isinstance(kind, str) and kind:
        return kind in ("chat.completion", "chat.completion.chunk")
    first = next((choice for _, choice in mappings(document.get("choices"))), {})
    return "message" in first or "delta" in first


# --- usage reports ----------------------------------------------------------------------------------------------------

_AZURE_SINCE = "2024-09-01"
"""The first version of Azure's API that accepts `stream_options`. Earlier ones refuse it as an unknown argument."""


@lru_cache(maxsize=64)
def usage_report(url: str) -> Literal["always", "asked", "unknown"]:
    """Return when a service with this URL reports the token counts of a stream. Source: the vendors' API references."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if _is_host(host, load("apis")["counts_unasked"]):
        return "always"
    if _is_host(host, load("apis")["counts_unknown"]):
        return "unknown"
    if _is_host(host, ("openai.azure.com",)) and "/openai/v1/" not in parts.path:
        version = parse_qs(parts.query).get("api-version", [""])[0]
        return "asked" if version >= _AZURE_SINCE else "unknown"
    return "asked"


def _is_host(host: str, domains: Sequence[str]) -> bool:
    return f".{host}".endswith(tuple(f".{domain}" for domain in domains))


class Reader(ChoiceReader):
    """Reader of replies. The index identifies the calls of a stream; a missing index reads as 0, as clients read it."""

    evidence = ("citations", "search_results")

    def __init__(self, *, streamed: bool) -> None:
        super().__init__(streamed=streamed)
        self.calls: dict[int, int] = {}
        """Number of calls by candidate."""
        self.labels: dict[int, tuple[str, str]] = {}
        """Id and name of each call."""
        self._pointers: dict[int, str] = {}
        self._repeated: set[int] = set()
        self._without_reason: set[int] = set()

    def read_choice(self, choice: int, body: Mapping[str, Json]) -> None:
        message = mapping(body.get("delta")) or mapping(body.get("message"))
        content = message.get("content")
        place = f"/choices/{choice}/message"
        simple = message.keys() <= PLAIN
        if not simple:
            self._reasoning(choice, message, place)
        if content:
            self.read_content(choice, content, f"{place}/content")
        if not simple:
            self._others(choice, message, place)
        self.out += self.failure(body.get("error") or None)  # OpenRouter: of the upstream, with finish reason `error`
        written = body.get("finish_reason")
        if (reason := stated_reason(written)) is not None:
            self.add_finish(choice, reason)
        elif isinstance(written, str) and (written or choice not in self._without_reason):
            # "null" counts in each event, an empty text once. Before the text: rewriters that hold text back forward a
            # violation at once.
            self._without_reason.add(choice)
            detail = f"/choices/{choice}/finish_reason {written}"
            self.out.insert(self.choices_from, self.violation("written-null", detail))

    def _others(self, choice: int, message: Mapping[str, Json], place: str) -> None:
        if refusal := text(message.get("refusal")):
            self.add_text(choice, "refusal", 0, f"{place}/refusal", refusal)
        for position, call in mappings(message.get("tool_calls")):
            self.read_call(choice, position, call, place)
        if isinstance(legacy := message.get("function_call"), dict):
            self._legacy(choice, legacy, f"{place}/function_call")
        for name in _HOSTED_EVIDENCE:
            if message.get(name):
                self.add_once(choice, name, f"{place}/{name}")
        for name in ("audio", "images"):
            if message.get(name):
                self.add_once(choice, name, f"{place}/{name}", "opaque")

    def _reasoning(self, choice: int, message: Mapping[str, Json], place: str) -> None:
        # Servers with two names for reasoning send the same text under both.
        for name in REASONING:
            if piece := text(message.get(name)):
                self.add_text(choice, "reasoning", 0, f"{place}/{name}", piece)
                return
        for _, detail in mappings(message.get("reasoning_details")):
            if piece := text(detail.get("text")) or text(detail.get("summary")):
                self.add_text(choice, "reasoning", 0, f"{place}/reasoning_details", piece)

    def read_content(self, choice: int, content: Json, place: str) -> None:
        if isinstance(content, str):
            self.add_text(choice, "text", 0, place, content)
            return
        if not lists_parts(content):
            block = self.add_once(choice, misshapen(content), place, "opaque", MISSHAPEN)
            self.out.append(Delta(block, words_of(content), self.frame))
            return
        for position, part in mappings(content):
            slot = 0 if self.streamed else position  # in a stream every delta counts its parts from 0
            if piece := text(part.get("text")):
                self.add_text(choice, "text", slot, f"{place}/{position}/text", piece, position)
            thinking = part.get("thinking")
            thoughts = [thinking] if isinstance(thinking, str) else [one.get("text") for _, one in mappings(thinking)]
            for thought in thoughts:
                if piece := text(thought):
                    self.add_text(choice, "reasoning", slot, f"{place}/{position}/thinking", piece, position)

    def read_call(self, choice: int, position: int, call: Mapping[str, Json], place: str) -> None:
        bare = is_bare_call(call)
        function, custom = call if bare else mapping(call.get("function")), mapping(call.get("custom"))
        index = number(call.get("index")) if self.streamed else position
        id_, name = text(call.get("id")), text(function.get("name")) or text(custom.get("name"))
        arguments = function.get("arguments", custom.get("input"))
        key = (choice, "tool_call", index or 0)
        block = self.blocks.get(key)
        is_new = block is None
        if block is None:
            block = self.new_block(key)
            ordinal = self.calls.get(choice, 0)
            self.calls[choice] = ordinal + 1
            self._pointers[block] = f"{place}/tool_calls/{ordinal}"
        if bare or (not is_new and isinstance(arguments, dict | list)):
            detail = f"{self._pointers[block]} {'outside' if bare else 'object'}"
            self.out.insert(self.choices_from, self.violation("misshapen-call", detail))
        before = len(self.out)
        if is_new:
            # Snowflake puts a zero-valued `custom` beside every function.
            form = "custom" if (custom and not function) or call.get("type") == "custom" else "function"
            self.labels[block] = (id_ or "", name or "")
            # Some servers send an object where the API has text. It is the value of the start.
            given = arguments if isinstance(arguments, dict | list) else None
            pointer = self._pointers[block]
            self.out.append(
                Start(block, "tool_call", pointer, choice, self.frame, index, id_, name, given, form, position)
            )
            if given is not None:
                return
        elif index is None or self._is_news(block, id_, name):
            self.out.append(CallUpdate(block, index, id_, name, self.frame, position))
        elif id_ or name:
            if block not in self._repeated:  # once for each call
                self._repeated.add(block)
                self.out.append(self.violation("said-again", name or id_ or ""))
                before += 1
            arguments = "" if arguments is None else arguments
        if isinstance(arguments, str):
            # An empty delta must follow its call where a fix removes the call or changes its number.
            if arguments or len(self.out) == before:
                self.out.append(Delta(block, arguments, self.frame, position))
        elif arguments is not None:
            self.out.append(Delta(block, compact(arguments), self.frame, position))

    def _is_news(self, block: int, id_: str | None, name: str | None) -> bool:
        """Return True if an id or a name differs from the first one of the call."""
        known_id, known_name = self.labels[block]
        if (not id_ or id_ == known_id) and (not name or name == known_name):
            return False
        self.labels[block] = (known_id or id_ or "", known_name or name or "")
        return True

    def _legacy(self, choice: int, call: Mapping[str, Json], place: str) -> None:
        key = (choice, "legacy", 0)
        block = self.blocks.get(key)
        name, arguments = text(call.get("name")), text(call.get("arguments"))
        if block is None:
            if is_empty_call(call):  # Snowflake sends an empty one beside every text
                self.out.insert(self.choices_from, self.violation("empty-call", place))
                return
            block = self.new_block(key)
            self.labels[block] = ("", name or "")
            self.out.append(Start(block, "tool_call", place, choice, self.frame, None, None, name, None, "legacy"))
        elif name and name == self.labels[block][1] and block not in self._repeated:
            self._repeated.add(block)
            self.out.append(self.violation("said-again", name))
        if arguments:
            self.out.append(Delta(block, arguments, self.frame))


@dataclass(slots=True)
class Piece:
    """The content of one chunk for one candidate."""

    texts: dict[Kind, list[Delta]] = field(default_factory=lambda: {"text": [], "reasoning": [], "refusal": []})
    calls: dict[int, list[Event]] = field(default_factory=dict)
    legacy: list[Event] = field(default_factory=list)
    reason: str | None = None

    @property
    def empty(self) -> bool:
        return not (any(self.texts.values()) or self.calls or self.legacy or self.reason)

    def add(self, event: Event, start: Start | None) -> None:
        if isinstance(event, Finish):
            self.reason = event.reason
        elif start is not None and start.kind == "tool_call":
            (self.legacy if start.form == "legacy" else self.calls.setdefault(start.block, [])).append(event)
        elif start is not None and isinstance(event, Delta) and start.kind in self.texts:
            self.texts[start.kind].append(event)


def _thinking(deltas: Sequence[Delta]) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text_of(deltas)}]}


def _chunks(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _is_thinking(chunk: Json) -> bool:
    return isinstance(chunk, dict) and "thinking" in chunk


class _ChatWriter(ChoiceWriter):
    """`thinks_in_content`: always write reasoning as a chunk of the content, and not in the server's own member for it."""

    def __init__(self, *, thinks_in_content: bool = False) -> None:
        super().__init__()
        self.thinks_in_content = thinks_in_content

    def has_thinking(self, source: Mapping[str, Json]) -> bool:
        """Return True if the reasoning of a message is a chunk of its content: `{"type":"thinking","thinking":…}`."""
        return self.thinks_in_content or any(map(_is_thinking, _chunks(source.get("content"))))

    def pieces(self, events: Sequence[Event]) -> Iterator[Piece]:
        """Yield the content of the chunks to write for the events of one candidate."""
        piece, current = Piece(), None  # the call of a rewriter that the chunk is for
        for event in events:
            start = self.start_of(event)
            made = start.block if start is not None and start.kind == "tool_call" and start.block >= MADE else None
            if start is None:
                ends = isinstance(event, Finish) and current is not None
            else:
                ends = piece.reason is not None or (made != current and not piece.empty)
            if ends:
                yield piece
                piece, current = Piece(), None
            if start is not None and start.kind == "tool_call":
                current = made
            piece.add(event, start)
        if not piece.empty:
            yield piece

    def whole(self, events: Sequence[Event]) -> Piece:
        """Return the content of one candidate of a whole body."""
        piece = Piece()
        for event in events:
            piece.add(event, self.start_of(event))
        return piece

    def entries(self, source: Mapping[str, Json], piece: Piece, *, numbered: bool) -> list[Json]:
        items = dict(mappings(source.get("tool_calls")))
        made: list[Json] = []
        for block, events in piece.calls.items():
            first = next(event for event in events if isinstance(event, (Start, Delta, CallUpdate)))
            index = self.numbers[block] if numbered else None
            made.append(_call_entry(items.get(first.item, {}), self.starts[block], events, index))
        return made


def _call_entry(source: Mapping[str, Json], start: Start, events: Sequence[Event], index: int | None) -> Json:
    """Return an entry of `tool_calls` from the events of one call. `source`: the entry that they were read from."""
    begins = next((event for event in events if isinstance(event, Start)), None)
    label = next((event for event in events if isinstance(event, CallUpdate)), None)
    has_text = any(isinstance(event, Delta) for event in events)
    custom = start.form == "custom"
    inner, words = ("custom", "input") if custom else ("function", "arguments")
    body = dict(mapping(source.get(inner)))
    outside = ("name", "arguments") if is_bare_call(source) else ()
    entry: dict[str, Json] = {name: value for name, value in source.items() if name not in ("id", inner, *outside)}
    named = begins or label
    made: dict[str, Json] = {"index": index} if index is not None else {}
    if named is not None and named.id is not None:
        made["id"] = named.id
    if begins is not None:
        made["type"] = inner
    elif label is None:
        entry.pop("type", None)  # the start of the call had it
    entry = {**made, **entry, **made}
    body.pop("name", None)
    if named is not None and named.name is not None:
        body = {"name": named.name, **body}
    if begins is not None and begins.input is not None and not has_text:
        body[words] = begins.input
    elif has_text or begins is not None:
        body[words] = text_of(events)
    else:
        body.pop(words, None)
    if body:
        entry[inner] = body
    return entry


def _legacy_call(source: Mapping[str, Json], events: Sequence[Event]) -> Json:
    name = next((event.name for event in events if isinstance(event, Start)), None)
    body = {key: value for key, value in source.items() if key not in ("name", "arguments")}
    return {**body, **({"name": name} if name is not None else {}), "arguments": text_of(events)}


def _content(source: Json, deltas: Sequence[Delta]) -> Json:
    """Return text in the form of the former content: a string, or the parts of a list."""
    if not isinstance(source, list):
        return text_of(deltas)
    parts: list[Json] = []
    texts = defaultdict[int, str](str)
    for delta in deltas:
        texts[delta.item] += delta.text
    for position, part in enumerate(source):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            if position in texts:
                parts.append({**part, "text": texts.pop(position)})
        elif not (isinstance(part, dict) and "thinking" in part):
            parts.append(part)
    parts += [{"type": "text", "text": words} for words in texts.values()]
    return parts


class StreamWriter(_ChatWriter, ChoiceStreamWriter):
    def choices(self, choice: Mapping[str, Json], before: Sequence[Event], after: Sequence[Event]) -> list[Json]:
        name = "message" if not mapping(choice.get("delta")) and mapping(choice.get("message")) else "delta"
        source = mapping(choice.get(name))
        kinds: tuple[Kind, ...] = ("text", "reasoning")
        # Unchanged text keeps its form.
        kept = {kind for kind in kinds if (old := self.text_for(before, kind)) and old == self.text_for(after, kind)}
        rest = self.rest(source, before, kept)
        if not isinstance(rest.get("content"), str | list | None) and not self.text_for(after, "opaque"):
            rest["content"] = ""  # content of another type has become text
        pieces = list(self.pieces(after))
        if not pieces:
            # Some servers repeat the role in every delta.
            begins = any(isinstance(event, Start) for event in before)
            said = [value for name, value in rest.items() if name != "role" or begins]
            if before and not any(value not in (None, "", [], {}) for value in said):
                return []
            return [
                {**choice, name: rest, "finish_reason": None if before else stated_reason(choice.get("finish_reason"))}
            ]
        changed = [e for e in before if isinstance(e, Delta)] != [e for e in after if isinstance(e, Delta)]
        made: list[Json] = []
        for place, piece in enumerate(pieces):
            piece.texts.update((kind, []) for kind in kept)
            delta = dict(rest) if place == 0 else {}
            self.put(delta, source, piece)
            entry: dict[str, Json] = {**choice, name: delta, "finish_reason": piece.reason}
            if "logprobs" in choice and (place or changed):
                entry["logprobs"] = None
            made.append(entry)
        return made

    def rest(self, source: Mapping[str, Json], before: Sequence[Event], kept: set[Kind]) -> dict[str, Json]:
        """Return the members of a delta that no event represents, and those of unchanged text."""
        kinds = {self.kind_of(event) for event in before} - kept
        rest = dict(source)
        if "text" in kinds and rest.get("content"):
            rest["content"] = None if rest.get("tool_calls") else ""
        if isinstance(chunks := source.get("content"), list) and self.has_thinking(source):
            rest["content"] = [one for one in chunks if ("reasoning" if _is_thinking(one) else "text") not in kinds]
        for name in (*REASONING, "reasoning_details") if "reasoning" in kinds else ():
            if rest.get(name) or name == "reasoning_details":
                rest.pop(name, None)
        if "refusal" in kinds:
            rest.pop("refusal", None)
        rest.pop("function_call", None)
        rest.pop("tool_calls", None)
        return rest

    def put(self, delta: dict[str, Json], source: Mapping[str, Json], piece: Piece) -> None:
        """Put a piece into a delta. `source`: the delta that the events were read from."""
        lead: list[Json] = []
        if self.has_thinking(source):
            lead = [chunk for chunk in _chunks(delta.get("content")) if _is_thinking(chunk)]
            lead = [_thinking(piece.texts["reasoning"])] if piece.texts["reasoning"] else lead
        if piece.texts["text"]:
            delta["content"] = _content(source.get("content"), piece.texts["text"])
        if piece.texts["reasoning"] and not lead:
            delta[self.reasoning] = text_of(piece.texts["reasoning"])
        if piece.texts["refusal"]:
            delta["refusal"] = text_of(piece.texts["refusal"])
        if piece.calls:
            if delta.get("content") == "" and not piece.texts["text"]:
                delta.pop("content")
            delta["tool_calls"] = self.entries(source, piece, numbered=True)
        if piece.legacy:
            delta["function_call"] = _legacy_call(mapping(source.get("function_call")), piece.legacy)
        if lead:
            delta["content"] = [*lead, *(chunk for chunk in _chunks(delta.get("content")) if not _is_thinking(chunk))]


class WholeWriter(_ChatWriter, ChoiceWholeWriter):
    def choice(self, choice: dict[str, Json], before: Sequence[Event], after: Sequence[Event]) -> dict[str, Json]:
        name = "delta" if mapping(choice.get("delta")) else "message"
        source = mapping(choice.get(name))
        message = dict(source)
        piece, old = self.whole(after), self.whole(before)
        self.patch_text(message, source, piece, old)
        calls = [[event for events in one.calls.values() for event in events] for one in (old, piece)]
        if not same(*calls):
            set_or_drop(message, "tool_calls", self.entries(source, piece, numbered=False))
        if not same(old.legacy, piece.legacy):
            call = _legacy_call(mapping(source.get("function_call")), piece.legacy) if piece.legacy else None
            set_or_drop(message, "function_call", call)
        reason = {"finish_reason": piece.reason} if piece.reason is not None else {}
        return {**choice, name: message, **reason}

    def patch_text(self, message: dict[str, Json], source: Mapping[str, Json], piece: Piece, old: Piece) -> None:
        """Put changed text, reasoning and refusal into a message."""
        if text_of(old.texts["text"]) != text_of(piece.texts["text"]):
            message["content"] = _content(source.get("content"), piece.texts["text"]) or None
        changed = text_of(old.texts["reasoning"]) != text_of(piece.texts["reasoning"])
        if self.has_thinking(source):
            lead = [chunk for chunk in _chunks(source.get("content")) if _is_thinking(chunk)]
            if changed:
                lead = [_thinking(piece.texts["reasoning"])] if piece.texts["reasoning"] else []
            if lead or old.texts["reasoning"]:
                others = [chunk for chunk in _chunks(message.get("content")) if not _is_thinking(chunk)]
                message["content"] = [*lead, *others]
        elif changed:
            for name in (*(REASONING if old.texts["reasoning"] else ()), "reasoning_details"):
                message.pop(name, None)
            set_or_drop(message, self.reasoning, text_of(piece.texts["reasoning"]))
        if not same(old.texts["refusal"], piece.texts["refusal"]):
            message["refusal"] = text_of(piece.texts["refusal"]) or None


API = ApiSpec("openai.chat", claims, claims_reply, read_chat, Reader, StreamWriter, WholeWriter)


# --- Mistral ----------------------------------------------------------------------------------------------------------


def _is_mistral(_path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    """Return True if the host is the vendor's, or the client its SDK.

    The body does not identify the API, and other hosts serve the same models in exactly OpenAI's shape.
    """
    ours = _is_host(headers.get("host", "").partition(":")[0].lower(), ("mistral.ai",))
    return (ours or headers.get("user-agent", "").lower().startswith(_MISTRAL_CLIENTS)) and is_conversation(body)


class MistralReader(Reader):
    """Reader of Mistral's replies. Source: the vendor's API reference and recordings.

    Content may be a list of chunks; thinking is a chunk of type `thinking`, itself a list of text chunks. In a stream the
    answer after the thinking is plain text, which a client appends as a further chunk. A call comes in one piece; calls
    in one delta without an `index` are separate calls.
    """

    def read_content(self, choice: int, content: Json, place: str) -> None:
        if self.streamed and isinstance(content, str) and (choice, "reasoning", 0) in self.blocks:
            self.add_text(choice, "text", 0, f"{place}/1/text", content)
        else:
            super().read_content(choice, content, place)

    def read_call(self, choice: int, position: int, call: Mapping[str, Json], place: str) -> None:
        if self.streamed and number(call.get("index")) is None:
            id_ = text(call.get("id"))
            known = (
                key[2]
                for key, block in self.blocks.items()
                if key[:2] == (choice, "tool_call") and id_ and self.labels.get(block, ("", ""))[0] == id_
            )
            call = {**call, "index": next(known, self.calls.get(choice, 0))}
        if call.get("id") == "null" and (choice, "tool_call", number(call.get("index")) or 0) in self.blocks:
            call = {**call, "id": None}  # the vendor's word for an id sent in an earlier delta
        super().read_call(choice, position, call, place)


MISTRAL = ApiSpec(
    "mistral.chat",
    _is_mistral,
    lambda _document: False,  # a reply looks like OpenAI's
    read_chat,
    MistralReader,
    partial(StreamWriter, thinks_in_content=True),
    partial(WholeWriter, thinks_in_content=True),
    paths=re.compile(r"/(?:chat|agents)/completions\Z"),
)
