"""Documents of a stream that differ from the one before in a string or two, told without a JSON parser.

Theory of operation. Nearly every event of a stream is the one before it with another piece of text. A *mould* is made of
two documents in a row whose strings stand at the same places: what stands between the strings that changed is its fixed
text. A document that is this fixed text with other strings in the gaps has the same values everywhere else, so that
nothing but the gaps has to be looked at.

A mould never guesses. What does not fit to the character, or would not be a JSON string, is for the parser.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from wirelint.capture.channels import Channel, Channels
from wirelint.capture.literals import LITERAL

_MOST_GAPS = 3
_MOST_MOULDS = 4
"""Moulds that are made for one stream: what needs more of them is not of their kind."""


class Joiner:
    """Puts the strings of a stream's documents on their channels, and parses as few of the documents as it can.

    `channels.places` tells only of those that were parsed, and `parsed` has these. All others differ from one of them in
    strings that stand on channels that move: whoever looks at both has seen all that the documents say.
    """

    def __init__(self) -> None:
        self.channels = Channels()
        self.parsed: list[str] = []
        self._last = _Parsed("", [], [])
        self._mould: Mould | None = None
        self._left = _MOST_MOULDS
        self._gaps: list[Channel] = []
        self._constant: list[tuple[Channel, list[str]]] = []
        self._repeats = 0

    def add_all(self, documents: Sequence[str]) -> None:
        """Takes documents. Raises what `orjson.loads` raises."""
        position = 0
        while position < len(documents):
            if self._mould is not None:
                places = [gap.texts for gap in self._gaps]
                poured = self._mould.pour(documents[position:] if position else documents, places)
                self._repeats += poured
                position += poured
                if position == len(documents):
                    return
            self._parse(documents[position])
            position += 1

    def close(self) -> None:
        """Brings the strings that did not change onto their channels, as often as they came."""
        if self._repeats:
            for place, texts in self._constant:
                place.texts += texts * self._repeats
            self._repeats = 0

    def _parse(self, document: str) -> None:
        self.close()
        known = len(self.channels.places)
        self.channels.add(orjson.loads(document))
        self.parsed.append(document)
        if not self._left:
            return
        places = self.channels.places[known:]
        before, self._last = self._last, _Parsed(document, places, _last_texts(places))
        if len(places) == len(before.places) and all(map(operator.is_, places, before.places)):
            self._shape(before, self._last)

    def _shape(self, before: _Parsed, parsed: _Parsed) -> None:
        """Makes the mould of two documents, where they have one."""
        pairs = zip(parsed.texts, before.texts, strict=True)
        gaps = tuple([number for number, (text, old) in enumerate(pairs) if text != old])
        if not gaps:
            return
        self._left -= 1
        constant: dict[int, tuple[Channel, list[str]]] = {}
        for number, (place, text) in enumerate(zip(parsed.places, parsed.texts, strict=True)):
            if number not in gaps:
                constant.setdefault(id(place), (place, []))[1].append(text)
        moving = [parsed.places[gap] for gap in gaps]
        if len(constant.keys() | set(map(id, moving))) < len(constant) + len(gaps):
            return  # a string that changes, on a channel with others: their order would be lost
        mould = Mould.of(before.document, parsed.document, gaps, len(parsed.places))
        if mould is not None:
            self._mould, self._gaps, self._constant = mould, moving, [*constant.values()]


class _Parsed(NamedTuple):
    """A document with its strings and their channels, in the order in which they stand in it."""

    document: str
    places: list[Channel]
    texts: list[str]


def _last_texts(places: list[Channel]) -> list[str]:
    """The strings that the last document has brought to `places`."""
    if len(set(map(id, places))) == len(places):
        return [place.texts[-1] for place in places]
    seen: Counter[int] = Counter()
    texts: list[str] = []
    for place in reversed(places):
        seen[id(place)] += 1
        texts.append(place.texts[-seen[id(place)]])
    return texts[::-1]


class Mould:
    """The fixed text of a kind of documents: what stands before, between and behind the strings that change."""

    __slots__ = ("_first", "_inner", "_last")

    def __init__(self, fixed: Sequence[str]) -> None:
        self._first, *self._inner, self._last = fixed

    @classmethod
    def of(cls, before: str, document: str, gaps: tuple[int, ...], count: int) -> Mould | None:
        """The mould of two documents with `count` string values each, of which the `gaps`-th differ and nothing else."""
        if not 0 < len(gaps) <= _MOST_GAPS:
            return None
        values = [match.span(1) for match in LITERAL.finditer(document) if not is_key(document, match.end())]
        if len(values) != count:
            return None
        fixed: list[str] = []
        position = 0
        for gap in gaps:
            start, end = values[gap]
            fixed.append(document[position:start])
            position = end
        mould = cls([*fixed, document[position:]])
        return mould if mould.strings(before) is not None and mould.strings(document) is not None else None

    def pour(self, documents: Sequence[str], places: Sequence[list[str]]) -> int:
        """Puts the strings of documents into `places`, up to the first that is not of this form; tells how many were."""
        first, last = self._first, self._last
        before, behind = len(first), len(last)
        middles: list[str] = []
        for document in documents:
            if not document.startswith(first) or not document.endswith(last) or len(document) < before + behind:
                break
            middles.append(document[before:-behind])
        columns = self._columns(middles)
        if columns is None:
            return self._pour_each(documents, places)
        for place, column in zip(places, columns, strict=True):
            place.extend(column)
        return len(middles)

    def _columns(self, middles: list[str]) -> tuple[Sequence[str], ...] | None:
        """The strings of each gap, for what stands between the first and the last fixed text of documents. None where there
        are more gaps, or where a string does not stand for itself: those are looked at one by one."""
        columns: tuple[Sequence[str], ...] = (middles,)
        if self._inner:
            inner = self._inner[0]
            parts = [middle.partition(inner) for middle in middles]
            if len(self._inner) > 1 or [middle for middle, found, _ in parts if not found]:
                return None
            columns = [one for one, _, _ in parts], [other for _, _, other in parts]
        said = "".join(itertools.chain.from_iterable(columns))
        return columns if _is_plain(said) else None

    def _pour_each(self, documents: Sequence[str], places: Sequence[list[str]]) -> int:
        poured = 0
        for document in documents:
            strings = self.strings(document)
            if strings is None:
                break
            for place, string in zip(places, strings, strict=True):
                place.append(string)
            poured += 1
        return poured

    def strings(self, document: str) -> list[str] | None:
        """The strings in the gaps; None when the document is not of this form."""
        if not document.startswith(self._first) or not document.endswith(self._last):
            return None
        position, last = len(self._first), len(document) - len(self._last)
        found: list[str] = []
        for fixed in (*self._inner, None):
            end = document.find(fixed, position, last) if fixed is not None else last
            if end < position:
                return None
            plain = _plain(document[position:end])
            if plain is None:
                return None
            found.append(plain)
            position = end + len(fixed or "")
        return found


def _is_plain(string: str) -> bool:
    """Return True if what stands between quotation marks is what it says."""
    # Control characters, which JSON does not allow as they are, and lone surrogates are not printable.
    return '"' not in string and "\\" not in string and string.isprintable()


def _plain(string: str) -> str | None:
    """What a JSON string says, by what stands between its quotation marks; None when it is none."""
    if _is_plain(string):
        return string
    try:
        plain: str = orjson.loads(f'"{string}"')
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return plain


def is_key(text: str, position: int) -> bool:
    """Return True if the literal that ends at `position` is the name of a member."""
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return text[position : position + 1] == ":"
