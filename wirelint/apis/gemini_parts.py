"""Parts of Gemini's contents from events: texts, thoughts, calls, and what no event stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wirelint.apis.gemini_request import kind_of
from wirelint.apis.gemini_schema import value_of
from wirelint.apis.reading import mapping
from wirelint.apis.writing import MADE, same
from wirelint.events import CallUpdate, Close, Delta, Event, Start, Usage
from wirelint.jsonvalues import Arguments
from wirelint.model import Json

_TEXTS = ("text", "reasoning", "refusal")
_SIGNED = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Models that refuse a history with a call that has no signature."""
_NO_SIGNATURE = "skip_thought_signature_validator"
"""What the vendor has clients put on calls that did not come from the model (Thought signatures, FAQ)."""
_PARTIAL = ("partialArgs", "partial_args", "willContinue", "will_continue")


@dataclass(slots=True)
class Call:
    """A call on its way. `source`: the part that it was read from."""

    start: Start
    source: Mapping[str, Json]
    texts: list[str] = field(default_factory=list)
    name: str | None = None
    id: str | None = None

    @property
    def complete(self) -> bool:
        said = "".join(self.texts)
        return Arguments(said).mapping is not None if said else self.start.input is not None

    def part(self) -> dict[str, Json]:
        """The part that a whole call is. Raises ValueError for arguments that the API has no form for."""
        name, inner = next(
            ((n, i) for n in ("functionCall", "function_call") if (i := mapping(self.source.get(n)))), ("", {})
        )
        said = "".join(self.texts)
        arguments = Arguments(said).mapping if said else self.start.input
        if said and arguments is None:
            raise ValueError("arguments that are no object cannot be sent to a client of this API")
        call = {key: value for key, value in inner.items() if key not in _PARTIAL}
        if self.id is not None:
            call["id"] = self.id
        if self.name is not None:
            call["name"] = self.name
        call["args"] = {} if arguments is None else arguments
        rest = {key: value for key, value in self.source.items() if key != name}
        return {(name or "functionCall"): call, **rest}


def alike(events: Sequence[Event], out: Sequence[Event]) -> bool:
    """Return True if the same came out, be it that a text was held for a moment: in two pieces, or behind the usage."""
    return same(events, out) or _joined(events) == _joined(out)


def _joined(events: Sequence[Event]) -> list[Event]:
    made: list[Event] = [event for event in events if isinstance(event, Usage)]
    for event in events:
        if isinstance(event, Usage):
            continue
        last = made[-1] if made else None
        if isinstance(event, Delta):
            event = event._replace(item=-1)
            if isinstance(last, Delta) and last.block == event.block and last.frame is event.frame:
                made[-1] = last._replace(text=last.text + event.text)
                continue
        made.append(event)
    return made


@dataclass(slots=True)
class Calls:
    """What a writer knows from one document to the next."""

    starts: dict[int, Start] = field(default_factory=dict)
    pending: dict[int, Call] = field(default_factory=dict)
    """Calls that are not complete yet."""
    told: set[int] = field(default_factory=set)
    """Calls whose beginning left as it came."""

    def note(self, events: Sequence[Event]) -> None:
        """Takes in how blocks begin."""
        for event in events:
            if type(event) is Start:
                self.starts.setdefault(event.block, event)

    def pass_by(self, events: Sequence[Event]) -> None:
        """Takes in that the calls that begin here leave as they came."""
        self.told.update(event.block for event in events if type(event) is Start and event.kind == "tool_call")

    def absorb(self, events: Sequence[Event]) -> bool:
        """Return True if events go on with a call that waits to be complete."""
        return any(isinstance(event, (Delta, CallUpdate, Close)) and event.block in self.pending for event in events)


class Parts:
    """The parts of one candidate in one document."""

    def __init__(self, calls: Calls, source: Sequence[Json], before: Sequence[Event], model: str) -> None:
        self._calls, self._source, self._model = calls, source, model
        self._before: dict[int, list[Event]] = {}
        self._item_of: dict[int, int] = {}
        for event in before:
            if isinstance(event, (Start, Delta, CallUpdate)) and event.item >= 0:
                self._before.setdefault(event.item, []).append(event)
                self._item_of.setdefault(event.block, event.item)
        self._made: list[Json] = []
        self._used: set[int] = set()
        self._coming: set[int] = set()
        self._text: tuple[int, int] | None = None
        """The block and the item of the text that the last part is."""

    def put(self, after: Sequence[Event], *, last: bool) -> list[Json]:
        now: dict[int, list[Event]] = {}
        for event in after:
            if isinstance(event, (Start, Delta, CallUpdate)):
                now.setdefault(self._item(event), []).append(event)
        self._coming = now.keys() & self._before.keys()
        pending = self._calls.pending
        kept = {
            item
            for item, events in self._before.items()
            if alike(events, now.get(item, [])) and not self._calls.absorb(events)
        }
        for event in after:
            match event:
                case Start() | Delta() | CallUpdate():
                    self._finish_all(event.block)
                    item = self._item(event)
                    if item in kept:
                        self._keep(item, event)
                    else:
                        self._say(event, item)
                case Close(block=block) if block in pending:
                    self._finish(pending.pop(block))
                case _:
                    pass
        self._finish_all(None, last=last)
        self._silent(len(self._source))
        return self._made

    def _item(self, event: Start | Delta | CallUpdate) -> int:
        """The part that an event was read from, or that it takes the place of."""
        return event.item if event.item >= 0 else self._item_of.get(event.block, -1)

    def _keep(self, item: int, event: Event) -> None:
        if type(event) is Start and event.kind == "tool_call":
            self._calls.told.add(event.block)
        if item not in self._used:
            self._silent(item)
            self._used.add(item)
            self._made.append(self._source[item])
            self._text = None

    def _silent(self, until: int) -> None:
        """Parts before `until` that no event stands for, and the signatures of texts that are gone."""
        for item in range(until):
            if item in self._used or item in self._coming:
                continue
            self._used.add(item)
            part = self._source[item]
            if item not in self._before:
                self._made.append(part)
            elif isinstance(part, dict) and kind_of(part)[0] == "text" and value_of(part, "thoughtSignature"):
                self._made.append({**part, "text": ""})
            else:
                continue
            self._text = None

    def _taken(self, item: int) -> Mapping[str, Json]:
        """The part of the source that the next part is made from."""
        if item < 0 or item >= len(self._source) or item in self._used:
            return {}
        self._silent(item)
        self._used.add(item)
        self._coming.discard(item)
        return mapping(self._source[item])

    def _say(self, event: Start | Delta | CallUpdate, item: int) -> None:
        start = event if isinstance(event, Start) else self._calls.starts[event.block]
        if start.kind == "tool_call":
            self._call(event, start, item)
        elif start.kind not in _TEXTS or start.form == "opaque":
            if item >= 0 and isinstance(event, Start) and (part := self._taken(item)):
                self._made.append(dict(part))
                self._text = None
        elif isinstance(event, Delta) and event.text:
            self._write(event, start, item)

    def _write(self, delta: Delta, start: Start, item: int) -> None:
        last = self._made[-1] if self._made else None
        if (
            self._text is not None
            and self._text[0] == delta.block
            and item in (-1, self._text[1])
            and isinstance(last, dict)
        ):
            last["text"] = f"{last['text']}{delta.text}"
            return
        part: dict[str, Json] = {**self._taken(item), "text": delta.text}
        part.pop("thought", None)
        if start.kind == "reasoning":
            part["thought"] = True
        self._made.append(part)
        self._text = (delta.block, item)

    def _call(self, event: Start | Delta | CallUpdate, start: Start, item: int) -> None:
        pending = self._calls.pending
        if isinstance(event, Start):
            source = self._taken(item)
            if event.block >= MADE and not self._is_signed() and _SIGNED.search(self._model):
                source = {"thoughtSignature": _NO_SIGNATURE}
            pending[event.block] = Call(event, source, name=event.name, id=event.id)
            self._text = None
            return
        call = pending.get(event.block)
        if call is None:
            if event.block in self._calls.told:
                raise ValueError("a call that has left in part cannot be changed")
            return
        if isinstance(event, Delta):
            call.texts.append(event.text)
        else:
            call.name, call.id = event.name or call.name, event.id or call.id
        if item >= 0:
            self._used.add(item)

    def _is_signed(self) -> bool:
        """Return True if a call is there already: the first one of a turn has the signature."""
        calls = [part for part in self._made if isinstance(part, dict) and kind_of(part)[0] == "functionCall"]
        return bool(calls) or any(call.start.block >= MADE for call in self._calls.pending.values())

    def _finish_all(self, but: int | None, *, last: bool = False) -> None:
        """Writes the calls that are complete; a call of which more may come is not, until another part begins."""
        pending = self._calls.pending
        ready = [block for block, call in pending.items() if block != but and (last or call.complete)]
        for block in ready:
            self._finish(pending.pop(block))

    def _finish(self, call: Call) -> None:
        self._made.append(call.part())
        self._text = None
