"""The interface of a wire API to the mock server. An API is a subclass of `Api` and a row in `apis.json`.

A row has the API's path, abilities, words (finish reasons, tool choices, error kinds), headers, forms of ids, and the
templates of its bodies, in which `"$name"` is replaced by a value. `like` names a row to inherit from. `ask` has the
members of a request that all APIs read in one way (`Api.ask`), as paths such as `tool_choice.name`. The bodies are
independent of wirelint's own writers: the mock is a check on them.
"""

from __future__ import annotations

import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, ClassVar, Literal
from urllib.parse import unquote

from wirelint.jsonvalues import with_strings
from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag
from wirelint.mock.plan import Ask, Choice, Options, Reply, Tool, dump_json, mint_call_id, mint_id
from wirelint.model import Json

Ability = Literal["numbers", "text", "reasons", "chat", "calls", "ids", "counts", "ends", "rpc"]
"""A feature of an API that a fault needs: the call's id and index in each delta (`numbers`), arguments as text (`text`),
a finish reason for calls (`reasons`), replies that are turns and not continuations of a prompt (`chat`), tool calls
(`calls`) and their ids (`ids`), token counts (`counts`) and a finish reason (`ends`) in a stream, JSON-RPC (`rpc`)."""

_ROWS: dict[str, dict[str, Any]] = json.loads(resources.files(__package__).joinpath("apis.json").read_text("utf-8"))


class RequestError(ValueError):
    """A request that the vendor would answer with status 400; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """Values that all events of one answer share. `number` counts the server's requests from 1."""

    model: str
    number: int
    options: Options
    rng: random.Random

    @property
    def created(self) -> int:
        """Unix time of the answer: made up, one second per request, so that equal seeds give equal bytes."""
        return 1_760_000_000 + self.number


class Api(ABC):
    """One wire API, with the facts of its row."""

    key: ClassVar[str]
    ping: bytes = KEEP_ALIVE
    """A keep-alive event; a comment for APIs without one."""

    def __init__(self) -> None:
        row = _ROWS[self.key]
        row = {**_ROWS[row["like"]], **row} if "like" in row else row
        self.name: str = row["name"]
        self.path: str = row["path"]
        """A pattern of paths; its group `model` is the model if a path has it."""
        self.abilities: frozenset[Ability] = frozenset(row["abilities"])
        self.busy_status: int = row.get("busy_status", 429)
        """The status for "overloaded"."""
        self.finish: dict[str, str] = row.get("finish", {})
        self.templates: dict[str, Any] = row["templates"]
        self._row = row

    def serves(self, headers: Mapping[str, str]) -> bool:
        """Return True if a request at the path belongs to this API; the first such API answers it."""
        del headers
        return True

    @abstractmethod
    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        """Parse a request. `target` is the path with its query. Raises RequestError."""

    def ask(self, body: dict[str, Json], model: str, **facts: Any) -> Ask:
        """Return a request with the members that the row's `ask` names, and `facts`. Raises RequestError."""
        paths: dict[str, Any] = self._row["ask"]
        if not model and "no_model" in paths:
            raise RequestError(paths["no_model"])
        parallel, prohibition = paths.get("parallel", ("", None))
        prompt = [find(body, path) for path in paths.get("prompt", ())]
        read: dict[str, Any] = {
            "choice": self.read_choice(find(body, paths["choice"])) if "choice" in paths else "auto",
            "forced": string_of(find(body, paths["forced"])) or None if "forced" in paths else None,
            "stream": body.get("stream") is True,
            "parallel": not parallel or find(body, parallel) is not prohibition,
            "limit": count_of(*(find(body, path) for path in paths["limit"])),
            "usage": find(body, paths["usage"]) is True if "usage" in paths else True,
            "thinking": find(body, paths.get("thinking", "thinking.none")) not in (None, False, "", "disabled"),
            "preamble": paths.get("preamble", False),
            "prompt_tokens": estimate_tokens(prompt[0] if len(prompt) == 1 else prompt),
        }
        return Ask(model=model, **(read | facts))

    @abstractmethod
    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json: ...

    @abstractmethod
    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]: ...

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        """Make a call id. An API without ids on the wire has some too, for markup that leaks."""
        return mint_call_id(model, rng, name, number, position, self._row.get("call_id", ""))

    def make_headers(self, envelope: Envelope) -> Headers:
        forms: dict[str, str] = self._row.get("headers", {})
        return tuple((name, mint_id(envelope.rng, form)) for name, form in forms.items())

    def make_error(self, status: int, message: str, template: str = "error") -> Json:
        """Make an error body."""
        kind, code = self._error_kind(status)
        return _fill(self._row[template], {"status": status, "message": message, "kind": kind, "code": code})

    def make_error_events(self, status: int, message: str) -> list[Event]:
        """Make the events of an error inside a stream that has begun with status 200."""
        value = self.make_error(status, message, "stream_error" if "stream_error" in self._row else "error")
        name = self._row.get("error_event")
        events = [Event("error", dump_json(value), self._error_kind(status)[0] if name == "$kind" else name)]
        return [*events, *self.end_stream()]

    def end_stream(self) -> list[Event]:
        """Return `data: [DONE]` for an API that ends its streams, errors included, in this way."""
        return [Event("done", "[DONE]")] if self._row.get("done") else []

    def fill(self, template: str, values: Mapping[str, Json]) -> dict[str, Json]:
        """Return a copy of a template with its values."""
        return object_of(_fill(self.templates[template], values))

    def mint(self, envelope: Envelope, template: str = "id") -> str:
        return mint_id(envelope.rng, self.templates[template])

    def read_choice(self, choice: Json) -> Choice:
        """Translate the vendor's word for a tool choice."""
        choices: dict[str, Choice] = self._row.get("choices", {})
        return choices.get(string_of(choice), "auto")

    def _error_kind(self, status: int) -> tuple[str, Json]:
        kinds: dict[str, tuple[str, Json]] = self._row.get("errors", {})
        words = (str(status), f"{status // 100}xx", "other")
        return next((kinds[word] for word in words if word in kinds), ("", None))

    def model_in(self, target: str) -> tuple[str, str]:
        """Return the groups `model` and `verb` of a path."""
        found = re.fullmatch(self.path, target.partition("?")[0])
        groups = found.groupdict() if found else {}
        return unquote(groups.get("model") or ""), groups.get("verb") or ""


@dataclass(slots=True)
class EventWriter:
    """Collects the events of one stream. `form` writes the JSON of an event, by default with its name as `type`."""

    form: Callable[[str, dict[str, Json]], str] = lambda name, value: dump_json({"type": name, **value})
    events: list[Event] = field(default_factory=list)

    def add(self, tag: Tag, name: str, value: dict[str, Json]) -> None:
        self.events.append(Event(tag, self.form(name, value), name))

    def add_block(
        self, names: tuple[str, str, str], place: dict[str, Json], starts: Sequence[Json], deltas: Sequence[Json]
    ) -> None:
        """Add the events of a block: its starts, its deltas, its end. `place` is in each of them."""
        start, delta, stop = names
        for one in starts:
            self.add("start", start, place | object_of(one))
        for one in deltas:
            self.add("delta", delta, {**place, "delta": one})
        self.add("stop", stop, place)


def _fill(template: Json, values: Mapping[str, Json]) -> Json:
    return with_strings(template, lambda text: values[text[1:]] if text.startswith("$") else text)


def usage_of(replies: tuple[Reply, ...], ask: Ask) -> dict[str, Json]:
    """Return the token counts for a template."""
    completion = sum(reply.tokens for reply in replies)
    return {"prompt": ask.prompt_tokens, "completion": completion, "total": ask.prompt_tokens + completion}


def estimate_tokens(value: Json) -> int:
    """Return a plausible count of the tokens of a request."""
    return max(len(dump_json(value)) // 4, 1)


def text_of(content: Json) -> str:
    """Return the text of a message's content: a string, or a list of parts of which those with text count."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") or part.get("content") for part in objects_in(content)]
    return "\n".join(text_of(text) for text in texts if text)


def last_user_text(messages: list[dict[str, Json]], content: str = "content") -> str:
    """Return the text of the last message of a user that has any, without tool results in it (Anthropic).

    `content` is the member with the content.
    """
    for given in (one.get(content) for one in reversed(messages) if one.get("role", "user") == "user"):
        written: list[Json] = [one for one in objects_in(given) if one.get("type") != "tool_result"]
        if text := text_of(written if isinstance(given, list) else given):
            return text
    return ""


def read_tools(declared: Iterable[dict[str, Json]], schema: str) -> tuple[Tool, ...]:
    """Return the declared tools. `schema` is the path of the JSON Schema."""
    return tuple(Tool(string_of(one.get("name")), object_of(find(one, schema))) for one in declared if one.get("name"))


def read_results(
    results: Sequence[dict[str, Json]],
    calls: Sequence[dict[str, Json]],
    text: Callable[[dict[str, Json]], str],
    *,
    id_member: str = "",
    call_id: str = "id",
    name: str = "name",
) -> dict[str, Any]:
    """Return the facts about the tool results at the end of a request: their text (None without any), the last one's tool.

    `calls` are those of the history. A result whose call is unknown names its tool itself.
    """
    if not results:
        return {"calls_before": len(calls)}
    names = {string_of(call.get(call_id)): string_of(find(call, name)) for call in reversed(calls)}
    tool = names.get(string_of(results[-1].get(id_member))) or string_of(results[-1].get("name"), "the tool")
    return {"calls_before": len(calls), "result": "\n".join(map(text, results)), "result_tool": tool}


def messages_of(body: dict[str, Json]) -> list[dict[str, Json]]:
    messages = objects_in(body.get("messages"))
    if not messages:
        raise RequestError("messages: a list with at least one message is required")
    return messages


def objects_in(value: Json) -> list[dict[str, Json]]:
    """Return the objects of a list; nothing for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def find(value: Json, path: str) -> Json:
    """Return the value at a path of members, such as `tool_choice.name`; None if there is none."""
    for name in filter(None, path.split(".")):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def string_of(value: Json, otherwise: str = "") -> str:
    return value if isinstance(value, str) else otherwise


def object_of(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def count_of(*values: Json) -> int | None:
    """Return the first value that is a positive integer."""
    return next((one for one in values if isinstance(one, int) and not isinstance(one, bool) and one > 0), None)
