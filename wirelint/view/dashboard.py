"""The contents of the live page (`addon.dashboard`): conversations and issues of the exchanges that have ended.

Theory of operation. `Board.add` takes each checked exchange and updates counts; nothing is rendered or encoded before a
page asks. The board is bounded: the conversations and issues with the oldest activity are dropped, and of the exchanges
only the latest stay, in count and bytes, since a parsed exchange takes about ten times its bytes. Totals stay complete.

Objects for the page are JSON with raw texts of the wire. The page's script makes text nodes of them, never markup.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from wirelint.capture.offline import Checked
from wirelint.model import Exchange, Json, Reasoning, Text
from wirelint.prices import price_table
from wirelint.rule import Finding
from wirelint.state.issues import fingerprint
from wirelint.text.escaping import excerpt, printable, shorten
from wirelint.view.html.exchange import Object, make_detail, make_row
from wirelint.view.paths import Paths, path_document
from wirelint.view.scores import name_provider, usage_of
from wirelint.view.totals import Sums, Totals

_MOST_ROWS = 300
_MOST_EXCHANGES = 200
_MOST_BYTES = 8 << 20
_MOST_PATHS = 40
_SHOWN_EXCHANGES = 60
"""Exchanges of one conversation that are sent to a page, the latest ones."""
_TAIL = 1200
"""Characters of a reply in progress that are shown, the last ones."""
_READ = 8 * _TAIL
"""Characters that are redacted to show the tail: a credential that begins before the tail is still recognised."""
_NAME = 48


@dataclass(slots=True)
class _Conversation:
    """A conversation, or for exchanges without one, all of one API at one host. `number`: in order of their beginning."""

    id: str
    number: int
    client: str
    api: str
    model: str
    provider: str
    title: str
    started: float | None
    last: float | None = None
    sums: Sums = field(default_factory=Sums)
    issues: dict[str, None] = field(default_factory=dict)

    @property
    def document(self) -> Object:
        names = ("id", "number", "client", "api", "model", "provider", "title", "started", "last")
        return {name: getattr(self, name) for name in names} | self.sums.document | {"prints": [*self.issues]}


@dataclass(slots=True)
class _Issue:
    """Findings with one fingerprint. `first` and `last` are Unix times; `exchange` and `conversation` those of the last."""

    finding: Finding
    first: float | None
    last: float | None
    exchange: str
    conversation: str
    count: int = 0

    def document(self, fingerprint_: str) -> Object:
        said: Object = {name: getattr(self.finding, name) for name in ("code", "name", "severity", "layer")}
        seen: Object = {name: getattr(self, name) for name in ("first", "last", "exchange", "conversation", "count")}
        return {"id": fingerprint_, "message": shorten(self.finding.message, 400)} | said | seen


class Change(NamedTuple):
    """Ids of the conversations and of the issues that an exchange has changed or removed."""

    conversations: Collection[str]
    issues: Collection[str]


class Board:
    """What the page shows. `totals` is shared with the log."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()
        self._issues: OrderedDict[str, _Issue] = OrderedDict()
        self._exchanges: OrderedDict[str, tuple[str, Checked]] = OrderedDict()
        self._size = self._begun = 0

    def add(self, checked: Checked) -> Change:
        """Take an exchange that has ended, after `Totals`."""
        checked = checked.folded
        conversation, name = self._conversation_of(checked), checked.record.id
        conversation.sums.add(checked)
        spent = usage_of(checked)
        conversation.sums.spending.add(*spent)
        self._totals.all.spending.add(*spent)
        conversation.last = _end_of(checked)
        issues = self._note_issues(checked, conversation)
        self._drop(name)
        self._exchanges[name] = conversation.id, checked
        self._size += _size(checked)
        while (kept := len(self._exchanges)) > _MOST_EXCHANGES or (kept > 1 and self._size > _MOST_BYTES):
            self._drop(next(iter(self._exchanges)))
        gone = [self._conversations.popitem(last=False)[0] for _ in range(len(self._conversations) - _MOST_ROWS)]
        past = [self._issues.popitem(last=False)[0] for _ in range(len(self._issues) - _MOST_ROWS)]
        return Change((conversation.id, *gone), (*issues, *past))

    def _conversation_of(self, checked: Checked) -> _Conversation:
        record = checked.record
        name = checked.conversation or f"{checked.api or 'unknown'} {name_provider(checked)}"
        found = self._conversations.get(name)
        if found is None:
            self._begun += 1
            row = make_row(checked)
            agents = [value for field_, value in record.request_headers if field_.lower() == "user-agent"]
            found = self._conversations[name] = _Conversation(
                name, self._begun, client_of("".join(agents[:1])), checked.api, printable(checked.model[:200]),
                str(row["provider"]), str(row["title"] or row["path"]), record.timing.started,
            )  # fmt: skip
        self._conversations.move_to_end(name)
        return found

    def _note_issues(self, checked: Checked, conversation: _Conversation) -> list[str]:
        """Count new findings by fingerprint; for those of earlier exchanges only the time changes."""
        changed = []
        at, place = _end_of(checked), (checked.record.id, conversation.id)
        new = ((finding, False) for finding in checked.findings)
        for finding, is_known in (*new, *((finding, True) for finding in checked.known)):
            name = fingerprint(finding)
            if is_known and name not in self._issues:
                continue
            issue = self._issues.setdefault(name, _Issue(finding, at, at, *place))
            issue.last, issue.exchange, issue.conversation = at, *place
            issue.count += not is_known
            self._issues.move_to_end(name)
            if len(conversation.issues) < _MOST_ROWS:
                conversation.issues[name] = None
            changed.append(name)
        return changed

    def _drop(self, name: str) -> None:
        found = self._exchanges.pop(name, None)
        if found is not None:
            self._size -= _size(found[1])

    # --- objects for a page -------------------------------------------------------------------------------------------

    @property
    def totals(self) -> Object:
        """The counts of all exchanges and conversations, the cost and its price table (None without prices)."""
        made = self._totals.all.document
        return made | {"conversations": self._begun, "prices": price_table() if made["cost"] else None}

    def everything(self) -> Object:
        """Return all rows and issues. `all`: rows that are not listed do not exist any more."""
        return {"all": True, **self.changes(self._conversations.keys(), self._issues.keys())}

    def changes(self, conversations: Collection[str], issues: Collection[str]) -> Object:
        """Return the totals and the named rows and issues; `gone` lists the ids of those that were dropped."""
        return {
            "totals": self.totals,
            "rows": [self._conversations[name].document for name in conversations if name in self._conversations],
            "issues": [self._issues[name].document(name) for name in issues if name in self._issues],
            "gone": [
                *(name for name in conversations if name not in self._conversations),
                *(name for name in issues if name not in self._issues),
            ],
        }

    def conversation(self, name: str) -> Callable[[], Object]:
        """Return a function that makes the latest exchanges of a conversation and the paths of its calls; it may run in a
        thread. Both are empty if nothing of it is kept any more. `waiting`: the client may still continue the path."""
        kept = [one for conversation, one in self._exchanges.values() if conversation == name][-_SHOWN_EXCHANGES:]
        shown = {id(checked) for checked in kept}
        items = [one for _, one in self._exchanges.values() if one.api == "mcp" or id(one) in shown]

        def make() -> Object:
            traced = [path_document(path, items) for path in Paths(items).all()]
            paths = [path for path in traced if path["conversation"] == name][-_MOST_PATHS:]
            last = kept[-1].record.id if kept else None
            for path in traced:
                path["waiting"] = path["exchange"] == last and not path["complete"]
            rows: list[Json] = [make_row(checked) | {"anchor": checked.record.id} for checked in kept]
            return {"id": name, "exchanges": rows, "paths": [*paths]}

        return make

    def exchange(self, name: str) -> Callable[[], Object] | None:
        """Return a function, for any thread, that makes the details of an exchange; None if it is not kept any more."""
        if (found := self._exchanges.get(name)) is None:
            return None
        checked = found[1]

        def make() -> Object:
            messages: list[Json] = []

            def store(value: Object) -> int:
                messages.append(value)
                return len(messages) - 1

            return {"row": make_row(checked), "detail": make_detail(checked, store), "messages": messages}

        return make


def _size(checked: Checked) -> int:
    return len(checked.record.request_body or b"") + len(checked.record.response_body or b"") + 4096


def _end_of(checked: Checked) -> float | None:
    timing = checked.record.timing
    return timing.started + (timing.duration or 0.0) / 1000 if timing.started is not None else None


def client_of(agent: str) -> str:
    """Return the first words of a client's user agent: `claude-cli/2.0.14` of `claude-cli/2.0.14 (external, cli)`."""
    return excerpt(agent.partition(" (")[0], _NAME)


def describe_open(id_: str, exchange: Exchange, redact: Callable[[str], str]) -> Object:
    """Return an exchange in progress: its model, its beginning (Unix time), and the end of its reply so far."""
    reply, timing = exchange.reply, exchange.timing
    parts = reply.parts if reply is not None else []
    texts = [part for part in parts if isinstance(part, Text | Reasoning) and part.text]
    text = texts[-1].text if texts else ""
    return {
        "id": id_,
        "api": exchange.api,
        "model": printable(exchange.model[:200]),
        "client": client_of(exchange.request_headers.get("user-agent", "")),
        "began": timing.started,
        "first": timing.first_token,
        "status": exchange.status,
        "events": reply.events if reply is not None else 0,
        "length": sum(len(part.text) for part in texts),
        "thinking": bool(texts) and isinstance(texts[-1], Reasoning),
        "text": redact(text[-_READ:])[-_TAIL:],
        "calls": [printable(call.name or "(no name)") for call in (reply.calls if reply is not None else [])[-8:]],
    }


def describe_waiting(id_: str, url: str, began: float) -> Object:
    return {
        "id": id_, "api": "", "model": "", "client": "", "began": began, "first": None, "status": None, "events": 0,
        "length": 0, "thinking": False, "text": "", "calls": [], "title": excerpt(url, 200),
    }  # fmt: skip
