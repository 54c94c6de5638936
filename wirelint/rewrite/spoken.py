"""What is known of a reply that followed a form to its end, before any of it is read.

Its events fit the moulds of the form, one after the other; so what they say is what others said, but for what stands in
the gaps. Of all events that say a piece of the text and nothing else the gaps are found in one search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from wirelint.rewrite.moulds import Mould, said


class Form(Protocol):
    """The moulds of the events of an opening, which ends with the first piece of the text, and of an end; and of what is
    between the two: more of the text of `block`."""

    @property
    def opening(self) -> int: ...

    @property
    def moulds(self) -> Sequence[Mould]: ...

    @property
    def text(self) -> Mould: ...

    @property
    def block(self) -> int: ...


class New(NamedTuple):
    """What of a reply is not known from others of its form.

    `documents` are its events, but of those that say a piece of text and nothing else only the first, in lines of their
    own; `strings` what stands in the gaps of one name in all events, joined, where that changes; `size` is in bytes.
    """

    form: Form
    documents: str
    strings: tuple[str, ...]
    size: int


class Spoken:
    """`pieces` are the events of a whole reply, with their times. Nothing is done before it is asked for.

    `first` to `last`: those that say a piece of text of `block` and nothing else.
    """

    def __init__(self, form: Form, pieces: Sequence[tuple[bytes, float | None]]) -> None:
        self._form, self._pieces = form, pieces
        self.first, self.last = form.opening, len(pieces) - len(form.moulds) + form.opening
        self.block = form.block

    @cached_property
    def _columns(self) -> Mapping[str, Sequence[bytes]] | None:
        told = [data for data, _ in self._pieces[self.first : self.last]]
        return self._form.text.columns(told) if told else None

    @cached_property
    def texts(self) -> list[str] | None:
        """What those say; None where that is not known."""
        return _texts(self._columns["text"]) if self._columns is not None else None

    def new(self) -> New | None:
        """What of it is not known from others of the form."""
        columns, texts = self._columns, self.texts
        if columns is None or texts is None:
            return None
        events, first, last = [data for data, _ in self._pieces], self.first, self.last
        opening, end = events[:first], events[last:]
        before, behind = _gaps(self._form.moulds[:first], opening), _gaps(self._form.moulds[first:], end)
        if before is None or behind is None:
            return None
        strings = ["".join([*[said(one) or "" for one in before.get("text", ())], *texts])]
        for name in dict.fromkeys([*before, *columns, *behind]):
            found = [*before.get(name, ()), *columns.get(name, ()), *behind.get(name, ())]
            if name != "text" and found.count(found[0]) < len(found):
                strings.append(b"".join(found).decode())
        documents = b"\n".join([*opening, events[first], *end]).decode("utf-8", "surrogateescape")
        return New(self._form, documents, tuple(strings), sum(map(len, events)))


def _texts(literals: Sequence[bytes]) -> list[str] | None:
    whole = b"".join(literals)
    if whole.isascii() and b"\\" not in whole:
        return [one.decode() for one in literals] if all(literals) else None
    texts = [said(one) for one in literals]
    known = [text for text in texts if text]
    return known if len(known) == len(texts) else None


def _gaps(moulds: Iterable[Mould], events: Iterable[bytes]) -> Mapping[str, list[bytes]] | None:
    """What stands in the gaps of events, by name; None where one does not fit."""
    found: dict[str, list[bytes]] = {}
    for mould, event in zip(moulds, events, strict=True):
        match = mould.match(event)
        if match is None:
            return None
        for name in mould.strings:
            found.setdefault(name, []).append(match[name])
    return found
