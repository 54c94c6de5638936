"""Issues: findings of later exchanges that report a known fault.

A client sends its whole history with every request, so a fault in it is found again on every turn. An issue is one
fault of one conversation, however often it is found. Its id is made of rule, severity, message and the content at the
finding's place; the message's number is left out, because histories get truncated. Equal faults in one exchange are
numbered in document order.

Findings in a request are compared with the issues of the conversation, including those of replies. A rule may word or
grade a reply's fault differently once it is history; equal rule and content make it the same issue. A finding in a
reply is always a new issue.

A fingerprint is coarser: it is equal in every run, so it leaves out ids, numbers and the model's words. Baselines and
CI reports compare fingerprints."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, get_args

from wirelint.history.turns import content_of
from wirelint.jsonvalues import write
from wirelint.model import Exchange, Message, Part, Reasoning, Refusal, Request, Severity, Text, ToolCall, ToolResult
from wirelint.text.pointers import at
from wirelint.text.remembered import short

if TYPE_CHECKING:
    from wirelint.rule import Finding

Reach: TypeAlias = Sequence[tuple[str | None, float]]
"""A conversation and those that it branched off from, the nearest first, each with the last exchange that they share."""

_PASSAGE = re.compile(r"'[^']*\s[^']*'|\"[^\"]*\s[^\"]*\"")
"""Quoted text of several words, by a model or a user."""
_STRUCTURE = re.compile(r"[{\[].*", re.DOTALL)
"""Quoted JSON or Python, up to the end: it may be shortened anywhere."""
_MINTED = re.compile(r"(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9]+[A-Za-z0-9_-]{7,}")
"""Words with a digit in them, long enough to be an id."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_STEP = re.compile(r"/\d+(?=/|$)")
_LENGTH = 16
_SEVERITIES = get_args(Severity)


def fingerprint(finding: Finding) -> str:
    """Return sixteen hexadecimal digits that are equal when the same traffic is recorded again."""
    said = "\n".join((finding.code, finding.layer, finding.side, place_pattern(finding), evidence(finding)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def place_pattern(finding: Finding) -> str:
    """Return the place with `*` for numbers: `/messages/*/tool_calls/*`."""
    return _STEP.sub("/*", finding.pointer or "")


def evidence(finding: Finding) -> str:
    """Return the message without parts that differ in every run."""
    text = _STRUCTURE.sub("…", _PASSAGE.sub("…", finding.message))
    return " ".join(_NUMBER.sub("#", _MINTED.sub("#", text)).split())


@dataclass(frozen=True, slots=True)
class Issue:
    """Fault that a finding reports, as known at that time.

    `id` is unique within the conversation. `first` and `last`: ids of the first and last exchange with it; `count`:
    number of exchanges. `known`: an earlier exchange had it."""

    id: str
    first: str
    last: str
    count: int = 1
    known: bool = False


@dataclass(slots=True)
class _Entry:
    """Issue in a book. `number`: exchanges seen before it appeared. `reply`: its key among issues of replies, or empty."""

    id: str
    first: str
    number: int
    rank: int
    count: int
    reply: str


@dataclass(slots=True)
class _Book:
    """Issues of one conversation by key and ordinal. `replies`: those found in a reply, by rule and content."""

    entries: dict[str, dict[int, _Entry]] = field(default_factory=dict)
    replies: dict[str, list[_Entry]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.entries.values()))


_NONE = _Book()


class Issues:
    """Issues of all conversations. `most` limits them; the least recently used conversation is dropped first."""

    def __init__(self, most: int = 20_000) -> None:
        self._most, self._size = most, 0
        self._books: OrderedDict[str | None, _Book] = OrderedDict()

    def __len__(self) -> int:
        return self._size

    def recognise(self, exchange: Exchange, findings: Sequence[Finding], reach: Reach) -> tuple[Finding, ...]:
        """Return the findings of an exchange with their issues. Nothing is recorded."""
        if not findings:
            return ()
        contents, taken = _Contents(exchange), dict[str, int]()
        made: list[Finding] = []
        for finding in findings:
            content = contents.at(finding)
            said = "\n".join((finding.code, finding.severity, finding.message))
            key = hashlib.blake2b(said.encode("utf-8", "surrogatepass") + b"\0" + content, digest_size=8).hexdigest()
            entries: dict[int, _Entry] = {}  # of the conversation, and of its trunks up to the branching points
            for name, last in reversed(reach):
                own_entries = self._books.get(name, _NONE).entries.get(key, {})
                entries.update((number, one) for number, one in own_entries.items() if one.number <= last)
            number = taken.get(key, 0)
            if finding.side == "response":  # earlier exchanges' faults are not those of this reply
                own = (number for number, one in entries.items() if one.first == exchange.id)
                number = max(number, next(own, max(entries, default=-1) + 1))
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
        """Return `same`, else an unused issue of a reply with equal rule and content and at least this severity."""
        key = _reply_key(finding, content)
        if same is not None:
            taken[key] = taken.get(key, 0) + bool(same.reply)
            return same
        books = ((self._books.get(name, _NONE), last) for name, last in reversed(reach))
        found = [one for book, last in books for one in book.replies.get(key, ()) if one.number <= last]
        number = taken.get(key, 0)
        taken[key] = number + 1
        return next(
            (one for one in found[number : number + 1] if one.rank <= _SEVERITIES.index(finding.severity)), None
        )

    def record(self, exchange: Exchange, findings: Sequence[Finding], number: int) -> None:
        """Record the recognised findings of the `number`th exchange."""
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
            entry = entries[place] = _Entry(
                issue.id, issue.first, number, _SEVERITIES.index(finding.severity), issue.count, reply
            )
            self._size += 1
            if reply:
                book.replies.setdefault(reply, []).append(entry)
        while self._size > self._most:
            oldest, book = next(iter(self._books.items()))
            if len(self._books) > 1:
                self._size -= self._books.pop(oldest).size
                continue
            gone = book.entries.pop(next(iter(book.entries)))
            self._size -= len(gone)
            for entry in [one for one in gone.values() if one.reply]:
                book.replies[entry.reply].remove(entry)
                if not book.replies[entry.reply]:
                    del book.replies[entry.reply]


def _reply_key(finding: Finding, content: bytes) -> str:
    return hashlib.blake2b(f"{finding.code}\0reply\0".encode() + content, digest_size=8).hexdigest()


class _Contents:
    """Digests of the content at places of an exchange, cached."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._known: dict[tuple[str, str], bytes] = {}
        self._parts: dict[str, dict[str, Part | Message]] = {}

    def at(self, finding: Finding) -> bytes:
        """Return the digest of the part or message that a finding points into, else of the value there."""
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
        messages = side_of.messages if isinstance(side_of, Request) else ()
        if side not in self._parts:
            self._parts[side] = {one.pointer: one for one in (*messages, *side_of.parts)}
        place = pointer
        while place:
            if (found := self._parts[side].get(place)) is not None:
                yield from _said(found)
                return
            place = place.rpartition("/")[0]
        # A value that contains messages grows with every turn.
        if isinstance(side_of, Request) and not (messages and messages[0].pointer.startswith(f"{pointer}/")):
            yield write(at(side_of.body, pointer))


def _said(part: Part | Message) -> Iterator[str]:
    """Yield the content, without ids of calls, which clients change."""
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
