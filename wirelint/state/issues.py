"""Issues: which findings of later exchanges are about a fault that was found before.

Theory of operation. A client sends its whole history with every request, so a fault in it is found again on every later
turn. An issue is a fault of one conversation, however often it is found. It is named by the rule, the severity, the message
and the content at the finding's place; the number of the message is left out, because histories get cut. When a fault is
there several times in one exchange, its occurrences are numbered in the order of the document.

Findings in a request are compared with the issues of the conversation, those of replies included. Of a reply that comes
back in the history a rule may say other words, and grade it lower; it is the same issue when the rule and the content are
the same: a tool call that leaked into a reply is told there and not again. A finding in a reply is always a new issue,
since every reply is new.

The fingerprint of a finding is coarser than its issue: it is the same in every run, and so leaves out ids, numbers and the
words of models. Baselines and the reports for pipelines compare it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, get_args

import orjson

from wirelint.history.turns import content_of
from wirelint.model import (
    Exchange,
    Json,
    Message,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Request,
    Severity,
    Text,
    ToolCall,
    ToolResult,
)
from wirelint.text.pointers import at
from wirelint.text.remembered import short

if TYPE_CHECKING:
    from wirelint.rule import Finding

Reach: TypeAlias = Sequence[tuple[str | None, float]]
"""A conversation and those that it branched off from, the nearest first, each with the last exchange that they share."""

_PASSAGE = re.compile(r"'[^']*\s[^']*'|\"[^\"]*\s[^\"]*\"")
"""Quoted text of several words: what a model or a person said."""
_STRUCTURE = re.compile(r"[{\[].*", re.DOTALL)
"""What is quoted of JSON and of Python, up to the end: it may be shortened anywhere."""
_MINTED = re.compile(r"(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9]+[A-Za-z0-9_-]{7,}")
"""Words with a digit in them, long enough to be an id."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_STEP = re.compile(r"/\d+(?=/|$)")
_LENGTH = 16
_SEVERITIES = get_args(Severity)


def fingerprint(finding: Finding) -> str:
    """Sixteen hexadecimal digits that are the same when the same traffic is recorded again."""
    said = "\n".join((finding.code, finding.layer, finding.side, place_pattern(finding), evidence(finding)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def place_pattern(finding: Finding) -> str:
    """The place with `*` for the numbers of messages, calls and choices: `/messages/*/tool_calls/*`."""
    return _STEP.sub("/*", finding.pointer or "")


def evidence(finding: Finding) -> str:
    """The message without what is different in every run."""
    text = _STRUCTURE.sub("…", _PASSAGE.sub("…", finding.message))
    return " ".join(_NUMBER.sub("#", _MINTED.sub("#", text)).split())


@dataclass(frozen=True, slots=True)
class Issue:
    """The fault that a finding is about, as far as it had been seen when the finding was made.

    `id` names it within its conversation. `first` and `last` are the ids of the exchanges where it was found first and
    last, `count` is the number of exchanges. `known`: an earlier exchange had it.
    """

    id: str
    first: str
    last: str
    count: int = 1
    known: bool = False


@dataclass(slots=True)
class _Entry:
    """An issue in the book of a conversation. `number` counts the exchanges that passed until it was found first.

    `reply` is its key among the issues of replies, empty for one that a request had first.
    """

    id: str
    first: str
    number: int
    rank: int
    count: int
    reply: str


@dataclass(slots=True)
class _Book:
    """The issues of a conversation by what is found, numbered in the order in which they appeared.

    `replies` are those that a reply had, by rule and content.
    """

    entries: dict[str, dict[int, _Entry]] = field(default_factory=dict)
    replies: dict[str, list[_Entry]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.entries.values()))


_NONE = _Book()


class Issues:
    """The issues of the conversations that passed. `most` bounds them; the conversation used least recently goes first."""

    def __init__(self, most: int = 20_000) -> None:
        self._most, self._size = most, 0
        self._books: OrderedDict[str, _Book] = OrderedDict()

    def __len__(self) -> int:
        return self._size

    def recognise(self, exchange: Exchange, findings: Sequence[Finding], reach: Reach) -> tuple[Finding, ...]:
        """The findings of an exchange, each with its issue. Nothing is remembered by this."""
        if not findings:
            return ()
        contents, taken = _Contents(exchange), dict[str, int]()
        made: list[Finding] = []
        for finding in findings:
            content = contents.at(finding)
            key = _key(finding, content)
            entries = self._entries(key, reach)
            number = taken.get(key, 0)
            if finding.side == "response":  # what earlier exchanges had is none of this reply
                number = max(number, _first_of(exchange, entries))
            taken[key] = number + 1
            before = entries.get(number)
            if finding.side == "request" and content:
                before = self._of_a_reply(finding, content, taken, reach, before)
            issue = Issue(f"{key}.{number + 1}" if number else key, exchange.id, exchange.id)
            if before is not None and before.first != exchange.id:
                issue = Issue(before.id, before.first, exchange.id, before.count + 1, known=True)
            made.append(dataclasses.replace(finding, issue=issue))
        return tuple(made)

    def _of_a_reply(
        self, finding: Finding, content: bytes, taken: dict[str, int], reach: Reach, same: _Entry | None
    ) -> _Entry | None:
        """The issue that says the same, else the one that a reply had with this rule and content, graded as high at least.

        Each issue of a reply is met once in an exchange.
        """
        key = _reply_key(finding, content)
        if same is not None:
            taken[key] = taken.get(key, 0) + bool(same.reply)
            return same
        found = [
            one
            for name, last in reversed(reach)
            for one in (self._books.get(name, _NONE) if name is not None else _NONE).replies.get(key, ())
            if one.number <= last
        ]
        number = taken.get(key, 0)
        taken[key] = number + 1
        before = found[number] if number < len(found) else None
        return before if before is not None and before.rank <= _rank(finding) else None

    def record(self, exchange: Exchange, findings: Sequence[Finding], number: int) -> None:
        """Remembers the recognised findings of an exchange, which is the `number`th that passed."""
        name = exchange.conversation
        if name is None or not findings:
            return
        book = self._books.setdefault(name, _Book())
        self._books.move_to_end(name)
        contents = _Contents(exchange)
        for finding in findings:
            if (issue := finding.issue) is None:
                continue
            key, _, ordinal = issue.id.partition(".")
            entries, place = book.entries.setdefault(key, {}), int(ordinal or 1) - 1
            if place in entries:
                entries[place].count = issue.count
                continue
            content = contents.at(finding) if finding.side == "response" else b""
            reply = _reply_key(finding, content) if content else ""
            entry = entries[place] = _Entry(issue.id, issue.first, number, _rank(finding), issue.count, reply)
            self._size += 1
            if reply:
                book.replies.setdefault(reply, []).append(entry)
        while self._size > self._most:
            self._shrink()

    def _entries(self, key: str, reach: Reach) -> Mapping[int, _Entry]:
        """The issues of a conversation, and of those that it branched off from as far as it shares them."""
        found: dict[int, _Entry] = {}
        for name, last in reversed(reach):
            entries = self._books.get(name, _NONE).entries.get(key) if name is not None else None
            if entries:
                found.update((number, one) for number, one in entries.items() if one.number <= last)
        return found

    def _shrink(self) -> None:
        name, book = next(iter(self._books.items()))
        if len(self._books) > 1:
            self._size -= self._books.pop(name).size
            return
        gone = book.entries.pop(next(iter(book.entries)))
        self._size -= len(gone)
        for entry in gone.values():
            if entry.reply:
                book.replies[entry.reply].remove(entry)
                if not book.replies[entry.reply]:
                    del book.replies[entry.reply]


def _first_of(exchange: Exchange, entries: Mapping[int, _Entry]) -> int:
    """The number of an exchange's own issue, if it was recorded before, else the next free one."""
    own = (number for number, one in entries.items() if one.first == exchange.id)
    return next(own, max(entries, default=-1) + 1)


def _rank(finding: Finding) -> int:
    """0 for the highest severity."""
    return _SEVERITIES.index(finding.severity)


def _reply_key(finding: Finding, content: bytes) -> str:
    return hashlib.blake2b(f"{finding.code}\0reply\0".encode() + content, digest_size=8).hexdigest()


def _key(finding: Finding, content: bytes) -> str:
    said = "\n".join((finding.code, finding.severity, finding.message))
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass") + b"\0" + content, digest_size=8).hexdigest()


class _Contents:
    """What stands at the places of an exchange, as digests. Each place is read once."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._known: dict[tuple[str, str], bytes] = {}
        self._parts: dict[str, dict[str, Part | Message]] = {}

    def at(self, finding: Finding) -> bytes:
        """The digest of the part or message that a finding points into, else of the value at its place."""
        if not finding.pointer or finding.pointer[0] != "/":
            return b""
        place = finding.side, finding.pointer
        if place not in self._known:
            said = "\n".join(self._read(*place))
            self._known[place] = short(said) if said else b""
        return self._known[place]

    def _read(self, side: str, pointer: str) -> Iterator[str]:
        side_of = self._exchange.request if side == "request" else self._exchange.reply
        if side_of is None:
            return
        if side not in self._parts:
            self._parts[side] = _by_place(side_of)
        parts, place = self._parts[side], pointer
        while place:
            if (found := parts.get(place)) is not None:
                yield from _said(found)
                return
            place = place.rpartition("/")[0]
        if isinstance(side_of, Request):
            yield from _value(side_of, pointer)


def _by_place(side: Request | Reply) -> dict[str, Part | Message]:
    """The messages and parts of one side by their pointers; of two at one place the part."""
    found: dict[str, Part | Message] = {}
    groups: Sequence[Sequence[Part]]
    if isinstance(side, Request):
        found.update((message.pointer, message) for message in side.messages)
        groups = [message.parts for message in side.messages]
    else:
        groups = [choice.parts for choice in side.choices]
    for parts in groups:
        found.update((part.pointer, part) for part in parts)
    return found


def _said(part: Part | Message) -> Iterator[str]:
    """The content, without the ids of calls, which clients change."""
    match part:
        case Message(role, parts, _):
            yield role
            for inner in parts:
                yield from _said(inner)
        case Text(text) | Reasoning(text) | Refusal(text) | ToolResult(_, text):
            yield text.strip()
        case ToolCall(_, name, arguments):
            yield content_of(name or "", arguments.text)
        case _:
            yield type(part).__name__


def _value(request: Request, pointer: str) -> Iterator[str]:
    """The value at a place outside the messages; nothing for a value that holds messages, which grows with every turn."""
    inside = f"{pointer}/"
    if any(message.pointer.startswith(inside) for message in request.messages[:1]):
        return
    yield _dump(at(request.body, pointer))


def _dump(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # lone surrogates, integers beyond 64 bits
        return repr(value)
