"""What became of the blocks of a reply of OpenAI's Responses, for the writers of its streams and of its bodies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wirelint.apis.openai_responses_items import Change, Cut, compared
from wirelint.apis.writing import text_of
from wirelint.events import CallUpdate, Delta, Event, Start
from wirelint.model import Kind

TEXTS: tuple[Kind, ...] = ("text", "reasoning", "refusal")


@dataclass(slots=True)
class Made:
    """A block that a rewriter made, as far as it has come."""

    start: Start
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def empty(self) -> bool:
        return self.start.kind != "tool_call" and not any(self.texts)


class Changes:
    """What became of the blocks of a reply."""

    def __init__(self) -> None:
        self.by_place: dict[str, Change] = {}
        self.by_block: dict[int, Change] = {}
        self.made: dict[int, Made] = {}

    def take(self, own: Sequence[Event], out: Sequence[Event]) -> list[tuple[Change, str]]:
        """Takes in what events of a frame became; gives the text of known blocks that came out beside another frame."""
        begun = {event.block: event for event in out if type(event) is Start}
        for event in own:
            if type(event) is Start:
                self._begin(event, begun.pop(event.block, None))
        for block, start in begun.items():
            self.made[block] = Made(start)
        self._label(own, out)
        before, after = texts_of(own), texts_of(out)
        late: list[tuple[Change, str]] = []
        for block in dict.fromkeys((*before, *after)):
            new = text_of(after.get(block, ()))
            if block in self.made:
                self.made[block].texts.append(new)
            elif block in self.by_block:
                change = self.by_block[block]
                if block in before:
                    change.came = before[block][-1].item + len(before[block][-1].text)
                    _say(change, before[block], new)
                elif new:
                    late.append((change, new))
        return late

    def _begin(self, start: Start, now: Start | None) -> None:
        change = self.by_block[start.block] = self.by_place[start.pointer] = Change(start)
        if now is None:
            change.gone = start.kind not in TEXTS
        elif now is not start:
            change.id = now.id if now.id != start.id else None
            change.name = now.name if now.name != start.name else None
            change.input = now.input if now.input != start.input else None
            change.emptied = bool(start.given) and not now.given
            change.item_id = now.item_id

    def _label(self, own: Sequence[Event], out: Sequence[Event]) -> None:
        now = {event.block: event for event in out if type(event) is CallUpdate}
        for event in own:
            if type(event) is CallUpdate and (change := self.by_block.get(event.block)) is not None:
                label = now.get(event.block)
                if label is None:
                    change.id = change.id or change.start.id
                    change.name = change.name or change.start.name
                elif label is not event:
                    change.id, change.name = label.id or change.id, label.name or change.name


def texts_of(events: Iterable[Event]) -> dict[int, list[Delta]]:
    found: dict[int, list[Delta]] = {}
    for event in events:
        if type(event) is Delta:
            found.setdefault(event.block, []).append(event)
    return found


def _say(change: Change, before: Sequence[Delta], new: str) -> None:
    old = text_of(before)
    if change.late or old != new:
        start = before[0].item
        if change.late:
            change.cuts.append(Cut(start, start, change.late))
        change.cuts += [Cut(start + cut.start, start + cut.end, cut.text) for cut in compared(old, new)]
        change.late = ""
