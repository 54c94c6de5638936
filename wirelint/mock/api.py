"""The interface of a wire API to the mock server. An API is a subclass of `Api` and a row in `apis.json`.

A row has the API's path, abilities, words (finish reasons, tool choices, error kinds), headers, forms of ids, and the
templates of its bodies, in which `"$name"` is replaced by a value. `like` names a row to inherit from. Requests are parsed
by wirelint's own readers. The replies are independent of its writers: the mock is a check on them.
"""

from __future__ import annotations

import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import takewhile
from typing import Any, ClassVar, Literal

from wirelint.apis import by_name
from wirelint.apis.reading import mapping, mappings, number
from wirelint.jsonvalues import with_strings
from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag
from wirelint.mock.plan import Ask, Framing, Options, Reply, Tool, dump_json, mint_call_id, mint_id
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
        self.framing: Framing = row.get("framing", "events")
        self.templates: dict[str, Any] = row["templates"]
        self._row = row
        spec = by_name(self.name)
        assert spec is not None
        self._read = spec.read_request

    def serves(self, headers: Mapping[str, str]) -> bool:
        """Return True if a request at the path belongs to this API; the first such API answers it."""
        del headers
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        """Parse a request. `target` is the path with its query. Raises RequestError."""
        row, read = self._row, self._read(body, target.partition("?")[0])
        for needed, name in ((read.messages, "no_message"), (read.model, "no_model")):
            if not needed and row.get(name):
                raise RequestError(row[name])
        spoken = (message.words for message in reversed(read.messages) if message.role == "user")
        at_end = [*takewhile(lambda message: message.results, reversed(read.messages))][::-1]
        results = [result for message in at_end for result in message.results]
        names = {call.id: call.name for call in reversed(read.calls)}
        # Tools with a type of their own and no schema are run by the provider, or by names that a client knows.
        declared = (tool for tool in read.tools if tool.type == "function" or tool.schema is not None)
        choice = read.tool_choice
        return Ask(
            model=read.model,
            tools=tuple(Tool(one.name, one.schema or {}) for one in declared if one.name),
            choice=choice.mode if choice.mode in ("none", "required") else "auto",
            forced=choice.name,
            user_text=next(filter(None, spoken), ""),
            result="\n".join(result.text for result in results) if results else None,
            result_tool=(names.get(results[-1].call_id) or results[-1].name if results else None) or "the tool",
            calls_before=len(read.calls),
            stream=read.stream,
            framing=self.framing,
            choices=min(max(number(body.get("n")) or 1, 1), 16) if row.get("candidates") else 1,
            limit=max(read.max_tokens or 0, 0) or None,
            usage=read.wants_usage is True or not row.get("usage_on_request"),
            thinking=find(body, row.get("thinking", "thinking.none")) not in (None, False, "", "disabled"),
            preamble=row.get("preamble", False),
            parallel=read.parallel_tool_calls is not False,
            prompt_tokens=estimate_tokens(body),
        )

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
        return mapping(_fill(self.templates[template], values))

    def mint(self, envelope: Envelope, template: str = "id") -> str:
        return mint_id(envelope.rng, self.templates[template])

    def _error_kind(self, status: int) -> tuple[str, Json]:
        kinds: dict[str, tuple[str, Json]] = self._row.get("errors", {})
        words = (str(status), f"{status // 100}xx", "other")
        return next((kinds[word] for word in words if word in kinds), ("", None))


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
            self.add("start", start, place | mapping(one))
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


def find(value: Json, path: str) -> Json:
    """Return the value at a path of members, such as `tool_choice.name`; None if there is none."""
    for name in path.split("."):
        value = mapping(value).get(name)
    return value


def objects_in(value: Json) -> list[dict[str, Json]]:
    """Return the objects of a list; nothing for any other value."""
    return [one for _, one in mappings(value)]
