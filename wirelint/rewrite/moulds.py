"""What a server writes again and again: a regular expression made of one message that fits those which say the same.

Theory of operation. All bytes of an event, or of a whole body, have to be the same but those in its gaps: the reply's id,
idle values (`apis.likeness`), the numbers of a usage, and the text. A reader goes by the bytes alone, and does not look
into these gaps but to hand on what stands there. So what fits says the same, with another text. What two messages of one
kind have made is taken for a way in which its server writes them. It may have several: with a usage or without.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from wirelint.apis.likeness import document_of, idle_values, text_of
from wirelint.events import Event, Frame, Usage

S = TypeVar("S")
F = TypeVar("F")

_MOST_KINDS = 64
_MOST_FORMS, _MOST_SOURCES = 4, 12
"""Forms of a kind, and ways of being told that are remembered, those of the forms with them."""
_PATIENCE, _SELDOM = 32, 32
"""So many replies that follow no form, one after the other: from then on only every so manyth is learnt from."""
_ID = rb'(?P<id>[^"\\\x00-\x1f\x7f-\xff]++)'
TEXT = rb'(?P<text>[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+)'
"""What fits a gap for a text (source)."""
_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_NUMBERS = re.compile(rb"(?<=[:\[,]) ?(%b)(?=[ \t\r\n,}\]])" % _NUMBER)


class Mould(NamedTuple):
    """A message of a form. `id` and `text` are the groups of the two in what it matches, 0: it has none.

    `strings`: the names of all its groups, which are the gaps for strings; `find` gives what `findall` does.
    """

    match: Callable[[bytes], re.Match[bytes] | None]
    find: Callable[[bytes], list[Any]]
    strings: tuple[str, ...]
    id: int
    text: int

    @classmethod
    def of(cls, source: bytes) -> Mould:
        """The same one for the same source, as long as it is remembered."""
        return _mould_of(source)

    def columns(self, messages: Sequence[bytes]) -> dict[str, Sequence[bytes]] | None:
        """What stands in each gap of messages that all fit, in one search; None where they turn out not to."""
        found = self.find(b"".join(messages))
        if len(found) != len(messages):
            return None
        if len(self.strings) == 1:
            return {self.strings[0]: found}
        return dict(zip(self.strings, zip(*found, strict=True), strict=True))


@lru_cache(maxsize=256)
def _mould_of(source: bytes) -> Mould:
    form = re.compile(source, re.DOTALL)
    groups = form.groupindex
    return Mould(form.fullmatch, form.findall, tuple(groups), groups.get("id", 0), groups.get("text", 0))


class Known(Generic[S, F]):
    """What is known of a kind of replies: `forms`, the one that a reply fitted last first, and how others were told."""

    def __init__(self) -> None:
        self.forms: tuple[F, ...] = ()
        self._sources: dict[S, F | None] = {}
        self._misses = 0
        """How many replies that were read have followed no form since one did."""

    def may_teach(self) -> bool:
        """Return True if it is worth the while to learn from the reply that was read just now."""
        self._misses += 1
        return self._misses < _PATIENCE or not self._misses % _SELDOM

    def fitted(self, form: F) -> None:
        """A reply was told as the form has it."""
        self._misses = 0
        if self.forms[0] is not form:
            self.forms = (form, *(one for one in self.forms if one is not form))

    def learn(self, source: S, make: Callable[[S], F]) -> None:
        """Takes in how a reply was told. The second one of late that is told so makes a form."""
        is_known, form = source in self._sources, self._sources.pop(source, None)
        if is_known and form is None:
            form, self._misses = make(source), 0
            self.forms = (form, *self.forms)[:_MOST_FORMS]
        self._sources[source] = form
        kept = set(map(id, self.forms))
        for one, made in [*self._sources.items()]:
            if made is not None and id(made) not in kept:
                del self._sources[one]
        while len(self._sources) > _MOST_SOURCES:
            oldest = next((one for one, made in self._sources.items() if made is None), source)
            del self._sources[oldest]


class Kinds(Generic[S, F]):
    """What is known of replies by what tells their kinds apart; of many kinds, those that were learnt from last."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, ...], Known[S, F]] = OrderedDict()

    def get(self, kind: tuple[str, ...]) -> Known[S, F] | None:
        return self._known.get(kind)

    def of(self, kind: tuple[str, ...]) -> Known[S, F]:
        """The same, to learn for it."""
        known = self._known.setdefault(kind, Known())
        self._known.move_to_end(kind)
        while len(self._known) > _MOST_KINDS:
            self._known.popitem(last=False)
        return known


def said(literal: bytes) -> str | None:
    """What a JSON string says that fits a gap for a text, by what stands between its quotation marks; None: nothing."""
    return literal.decode() if literal.isascii() and b"\\" not in literal else text_of(literal)


def source_of(
    frame: Frame, events: Sequence[Event], id_: str | None, text: tuple[int, int] | None, longest: int
) -> bytes | None:
    """What fits a frame that says the same, with another text (`text`: where it stands): a regular expression (source).

    `events` are what it says, `id_` is the id of the reply. None for a frame of more bytes than `longest`, and where it is
    unclear what stands where.
    """
    raw = frame.raw
    if len(raw) > longest or frame.faults:
        return None
    gaps: list[tuple[int, int, bytes]] = [(*text, TEXT)] if text is not None else []
    for value in idle_values(frame):
        pattern = value.form.pattern
        gaps.append((value.start, value.end, b"(?P<%b>%b)" % (value.name.encode(), pattern) if value.name else pattern))
    told = document_of(frame).get("id")
    if told is not None and told != id_:
        return None
    if isinstance(told, str) and told:
        literal = b'"%s"' % told.encode()
        if re.fullmatch(_ID, literal[1:-1]) is None or raw.count(literal) != 1 or b"\\" in raw:
            return None
        start = raw.index(literal) + 1
        gaps.append((start, start + len(literal) - 2, _ID))
    if any(type(event) is Usage for event in events):
        gaps += _numbers_of_usage(raw)
    gaps.sort()
    made, at = b"", 0
    for start, end, pattern in gaps:
        if start < at:
            return None
        made += re.escape(raw[at:start]) + b"(?>%b)" % pattern
        at = end
    return made + re.escape(raw[at:])


def _numbers_of_usage(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Where the numbers of a frame's usage stand, which is an object and is named once; none where that is unclear."""
    found = re.search(rb'"usage" ?: ?\{', raw)
    if found is None or raw.count(b'"usage"') != 1 or b"\\" in raw:
        return []
    depth, end = 1, found.end()
    while depth and end < len(raw):
        depth += {b"{": 1, b"}": -1}.get(raw[end : end + 1], 0)
        end += 1
    try:
        orjson.loads(raw[found.end() - 1 : end])
    except orjson.JSONDecodeError:  # a brace stands in a string
        return []
    return [(*one.span(1), _NUMBER) for one in _NUMBERS.finditer(raw, found.end() - 1, end)]
