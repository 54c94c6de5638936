"""Links between exchanges: which one continues which, found by their content.

Theory of operation. Every exchange is a `Node`: the turns that it adds to the node it continues, and its answers. A
request is looked up by its last assistant turn: candidates are the nodes that gave this answer, or issued the ids of its
calls. A candidate is compared with the history turn by turn, backwards. The request continues the candidate that agrees
down to the beginning. If none does (a client has cleared old results, cut the beginning, written a summary), it continues
the one with the longest agreement, provided that this is distinctive (`is_telling`).

Equal text links only exchanges of one client with one model at one host (`Scope`). Random ids, and the id of a reply that
is continued, link all exchanges. If several exchanges gave the same calls, and the history has none of their ids, it is
linked to none of them: this happens when one prompt is sent many times in parallel.

An exchange that continues the end of a conversation belongs to it. One that continues an earlier place, or repeats a
request and gets another answer, is a branch: a separate conversation, whose trunk is the other one up to that place. A
request without a history begins a conversation, unless its text holds the summary that an earlier exchange produced.

Conversations are forgotten as a whole, the least recently used first, and a trunk after its branches.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from wirelint.history.ids import is_drawn, key
from wirelint.history.turns import Turn, session_of, turns_of
from wirelint.model import Exchange, Link, Request, ToolCall
from wirelint.state import prune
from wirelint.text.prose import quoted_lines, summary_lines
from wirelint.text.remembered import sha256

# Remembered exchanges and their indexes.

COMPARED = 64
"""Most exchanges with equal content that are compared: the latest ones."""


class KnownTurn(NamedTuple):
    """A remembered turn."""

    mark: bytes
    ids: tuple[str, ...]
    ends: tuple[str, str]

    @classmethod
    def of(cls, turn: Turn) -> KnownTurn:
        return cls(turn.mark, turn.ids, turn.ends if turn.assistant else ("", ""))

    def resembles(self, turn: Turn) -> bool:
        """Return True if a turn begins or ends like it."""
        return any(one and one == other for one, other in zip(self.ends, turn.ends, strict=True))


class Scope(NamedTuple):
    """Client, model and host of an exchange. Equal text in two scopes does not link them.

    `client` is the identity of the client in the headers of its requests.
    """

    client: str
    host: str
    model: str

    @classmethod
    def of(cls, exchange: Exchange) -> Scope:
        headers = exchange.request_headers
        client = "\0".join([headers.get(name, "") for name in _CLIENT])
        return cls(client, urlsplit(exchange.url).netloc, exchange.model)


_CLIENT = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "user-agent")


@dataclass(slots=True, eq=False)
class Node:
    """An exchange: the turns that its request adds to those of `parent`, and its answers. `number` counts exchanges.

    `replies` are the API's ids of the answers, `lines` the marks of a summary among them.
    `broken`: the answer is missing or incomplete. `cut`: the node that it continues has been forgotten.
    `repeated`: several exchanges are equal in text and ids; `exchange` is the last of them.
    """

    exchange: str
    number: int
    scope: Scope
    conversation: str | None
    parent: Node | None
    asked: tuple[KnownTurn, ...]
    answers: tuple[KnownTurn, ...]
    children: list[Node] = field(default_factory=list)
    lines: tuple[bytes, ...] = ()
    replies: list[str] = field(default_factory=list)
    broken: bool = False
    cut: bool = False
    repeated: bool = False

    @property
    def is_continued(self) -> bool:
        """Return True if its conversation continues after it."""
        return any(
            child.conversation == self.conversation and (child.children or not child.broken) for child in self.children
        )

    @property
    def weight(self) -> int:
        return 1 + len(self.asked) + sum([1 + len(answer.ids) for answer in self.answers])


class Index:
    """Index of nodes by a mark of their content, the latest last."""

    def __init__(self) -> None:
        self._nodes: dict[bytes | str, dict[int, Node]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, marks: Iterable[bytes | str], node: Node) -> None:
        for mark in marks:
            self._nodes.setdefault(mark, {})[node.number] = node

    def drop(self, marks: Iterable[bytes | str], node: Node) -> None:
        for mark in marks:
            prune(self._nodes, mark, node.number)

    def latest(self, mark: bytes | str) -> list[Node]:
        """Return the last nodes with a mark, the latest last."""
        return [*islice(reversed(self._nodes.get(mark, {}).values()), COMPARED)][::-1]


def has_same_request(node: Node, added: Sequence[Turn]) -> bool:
    """Return True if a node's request adds these turns. Equal calls with other ids belong to another conversation."""
    if len(node.asked) != len(added):
        return False
    both = zip(reversed(node.asked), reversed(added), strict=True)
    return all(known.mark == turn.mark and known.ids == turn.ids for known, turn in both)


def mark_of(turns: Iterable[Turn | KnownTurn]) -> bytes:
    return b"".join([turn.mark for turn in turns])


# Agreement of a recorded exchange with a history that may continue it.

_TELLING_WORDS = 60
"""Characters of an answer that no two conversations share by accident."""


class Agreement(NamedTuple):
    """Degree of agreement between a node and a history, the most significant field first.

    `whole`: to the beginning, in every turn. `like`: to the beginning, except for some user turns. `ids`: number of
    turns with equal ids. `turns`: number of equal turns, from the last one back. `fresh`: nothing continues the node.
    `same_ids`: the last turns have equal ids.
    """

    whole: bool
    like: bool
    ids: int
    turns: int
    fresh: bool
    number: int
    same_ids: bool


def agree(node: Node, turns: Sequence[Turn], at: int) -> Agreement:
    """Return the agreement of the path to a node with a history whose turn `at` is the node's answer."""
    same_ids = _has_same_ids(node.answers, turns[at])
    agreed, equal, missed, ids, here, ended = 0, 0, 0, int(same_ids), at, False
    for known in _path(node):
        if here < 0:
            break
        turn = turns[here]
        if any(one.mark == turn.mark for one in known):
            agreed, equal = agreed + 1, equal + (not turn.assistant)
        elif turn.assistant:
            break
        else:
            missed += 1
        ids += here < at and _has_same_ids(known, turn)
        here -= 1
    else:
        root = node
        while root.parent is not None:
            root = root.parent
        ended = here < 0 or root.cut
    whole, like = ended and not missed, ended and equal >= missed
    return Agreement(whole, like, ids, agreed, not node.is_continued, node.number, same_ids)


def _path(node: Node) -> Iterator[tuple[KnownTurn, ...]]:
    """Yield the turns that lead to a node, from its answers back, with all of its several answers."""
    current: Node | None = node
    while current is not None:
        yield current.answers
        for known in reversed(current.asked):
            yield (known,)
        current = current.parent


def _has_same_ids(known: Iterable[KnownTurn], turn: Turn) -> bool:
    ids = [key(id_) for id_ in turn.ids]
    return any(ids) and any(ids == [key(id_) for id_ in one.ids] for one in known)


def is_telling(turn: Turn, agreement: Agreement) -> bool:
    """Return True if an agreement is no accident: of nearly all turns, of several, of random ids or a long answer."""
    if (agreement.like and agreement.turns > 1) or (agreement.same_ids and any(drawn_ids(turn.calls))):
        return True
    characters = len(turn.text) + sum(len(call.arguments.text) for call in turn.calls)
    return agreement.turns > 0 and (characters >= _TELLING_WORDS or agreement.turns >= 4)


def drawn_ids(calls: Iterable[ToolCall]) -> Iterator[str]:
    """Yield the letters and digits of random ids, which no two calls share."""
    return (key(call.id) for call in calls if call.id and is_drawn(call.id, call.name))


_SESSION = "session "
"""The beginning of the text that names a conversation with a session of its client."""
_LOOKED_BACK = 8
"""Number of last assistant turns by which a request is looked up."""
_FOLLOWED = 16
"""Most candidates with another request that are compared."""
Trunk: TypeAlias = tuple[tuple[str | None, int], ...]
"""Conversations that another one branched off from, the nearest first, each with their last common exchange."""


@dataclass(slots=True, eq=False)
class _Conversation:
    """`base` is the text from which its name is derived."""

    base: str
    trunk: Trunk
    nodes: list[Node] = field(default_factory=list)


class Place(NamedTuple):
    """The place of an exchange among conversations. `parent` is the node that it continues, `added` the turns after it.

    `twin`: an earlier exchange with equal request and answer. `edited`: answers that the client has changed since.
    """

    conversation: str | None
    parent: Node | None
    how: Literal["turn", "fork", "compaction"]
    added: tuple[Turn, ...]
    answers: tuple[Turn, ...]
    base: str = ""
    trunk: Trunk = ()
    twin: Node | None = None
    edited: tuple[tuple[Node, Turn], ...] = ()

    def within(self, conversation: str | None, thread: _Conversation) -> Place:
        return self._replace(conversation=conversation, base=thread.base, trunk=thread.trunk)

    @property
    def link(self) -> Link | None:
        """The exchange that this one continues; None if several are equal."""
        parent = self.parent
        return Link(parent.exchange, self.how) if parent is not None and not parent.repeated else None

    @property
    def root(self) -> str | None:
        """The first conversation of the lineage, not numbered; None if the request has no session and no user message."""
        return _short(self.base) if self.base else None


_Found: TypeAlias = tuple[Node | None, int, tuple[tuple[Node, Turn], ...]]
"""The node that a history continues, the number of turns that it covers, and changed answers."""


class Lineage:
    """The recorded exchanges and the links between them. `most` limits the number of turns and ids that are kept."""

    def __init__(self, most: int = 40_000) -> None:
        self._most = most
        self._weight = self.number = 0
        """`number`: the number of recorded exchanges."""
        self._conversations: OrderedDict[str | None, _Conversation] = OrderedDict()
        self._answers, self._calls, self._openings, self._lines = Index(), Index(), Index(), Index()
        self._replies: dict[tuple[str, str], Node] = {}
        self._counts: dict[str, tuple[int, int]] = {}
        """Conversations that have begun with a text, and those of them that are kept."""

    def trunk(self, conversation: str | None) -> Trunk:
        return self._conversations[conversation].trunk if conversation in self._conversations else ()

    def place(self, exchange: Exchange) -> Place | None:
        """Return the place of an exchange among those recorded; None if its request is lost. Changes nothing."""
        request = exchange.request
        if request is None:
            return None
        turns, scope = turns_of(request), Scope.of(exchange)
        made = tuple(_answers(exchange, turns))
        named = self._replies.get((scope.host, request.previous or ""))
        parent, at, edited = (named, 0, ()) if named is not None else self._find(turns, scope)
        summarised = self._summarised(turns, scope) if parent is None else None
        # The answer repeats the assistant turn that it continues.
        added = tuple(turns[at:-1] if turns and turns[-1].assistant else turns[at:])
        how: Literal["turn", "compaction"] = "turn" if summarised is None else "compaction"
        place = Place(None, parent or summarised, how, added, made, edited=edited)
        base = _base(request, exchange.request_headers)
        if base is not None and base.startswith(_SESSION):
            return place._replace(conversation=_short(base), base=base)
        return self._beside(place, scope) or self._branch(place, base)

    def record(self, exchange: Exchange, place: Place | None) -> None:
        self.number += 1
        if place is None:
            return
        conversation, reply = exchange.conversation, exchange.reply
        for node, turn in place.edited:  # the client's form of an answer
            if len(node.answers) < COMPARED:
                self._weight += 1 + len(turn.ids)
                node.answers = (*node.answers, KnownTurn.of(turn))
                self._answers.add([turn.mark], node)
                self._calls.add([key(id_) for id_ in turn.ids], node)
        if place.twin is not None and place.twin.conversation == conversation:
            twin = place.twin  # equal exchanges share a node
            twin.exchange, twin.repeated = exchange.id, True
            if reply is not None and reply.id and len(twin.replies) < COMPARED:
                twin.replies.append(reply.id)
                self._replies[twin.scope.host, reply.id] = twin
            self._touch(conversation)
            return
        asked, made = (tuple(map(KnownTurn.of, turns)) for turns in (place.added, place.answers))
        node = Node(
            exchange.id,
            self.number,
            Scope.of(exchange),
            conversation,
            place.parent,
            asked,
            made,
            lines=tuple([line for turn in place.answers for line in summary_lines(turn.text)]),
            replies=[reply.id] if reply is not None and reply.id else [],
            broken=not [turn for turn in place.answers if not turn.empty]
            or reply is None
            or not reply.finished
            or exchange.end in ("client-left", "upstream-died"),
        )
        if conversation not in self._conversations:
            self._conversations[conversation] = _Conversation(place.base, place.trunk)
            begun, alive = self._counts.get(place.base, (0, 0))
            self._counts[place.base] = begun + 1, alive + 1
        self._conversations[conversation].nodes.append(node)
        self._enter(node)
        self._touch(conversation)
        self._shrink()

    # --- finding ---------------------------------------------------------------------------------------------------

    def _find(self, turns: Sequence[Turn], scope: Scope) -> _Found:
        spoken = [number for number, turn in enumerate(turns) if turn.assistant and number + 1 < len(turns)]
        for at in reversed(spoken[-_LOOKED_BACK:]):
            found = self._best(turns, at, scope)
            if found is not None:
                return self._beyond(found, turns, at + 1, scope)
        return self._beyond(None, turns, 0, scope)

    def _beyond(self, node: Node | None, turns: Sequence[Turn], at: int, scope: Scope) -> _Found:
        """Return a later node that differs in its answer only: cut, extended, or without one."""
        edited: list[tuple[Node, Turn]] = []
        if node is not None and turns[at - 1].mark not in [answer.mark for answer in node.answers]:
            edited.append((node, turns[at - 1]))
        while at + 2 < len(turns) and turns[at + 1].assistant:
            asked, answer = turns[at : at + 1], turns[at + 1]
            nodes = node.children if node is not None else self._openings.latest(mark_of(asked))
            alike = [
                one
                for one in reversed(nodes[-COMPARED:])
                if one.scope == scope
                and not one.children
                and has_same_request(one, asked)
                and (not one.answers or any(known.resembles(answer) for known in one.answers))
            ]
            if not alike or (len(alike) > 1 and answer.calls):
                break
            node, at = alike[0], at + 2
            edited.append((node, answer))
        return node, at, tuple(edited)

    def _best(self, turns: Sequence[Turn], at: int, scope: Scope) -> Node | None:
        # The latest nodes that issued the ids of the turn's calls, or gave this answer.
        called = [node for plain in drawn_ids(turns[at].calls) for node in self._calls.latest(plain)]
        answered = [node for node in self._answers.latest(turns[at].mark) if node.scope == scope]
        candidates = list(dict.fromkeys([*called, *answered]))
        if len(candidates) > 1 and at:
            near = [node for node in candidates if node.asked and node.asked[-1].mark == turns[at - 1].mark]
            candidates = near or candidates[-_FOLLOWED:]
        judged = [(agree(node, turns, at), node) for node in candidates]
        agreement, best = max(judged, key=lambda each: each[0], default=(None, None))
        if agreement is None or best is None:
            return None
        if any(turns[at].ids) and not agreement.same_ids:
            equal = agreement.whole, agreement.like, agreement.turns
            if sum((one.whole, one.like, one.turns) == equal for one, _ in judged) > 1:
                return None
        return best if agreement.whole or is_telling(turns[at], agreement) else None

    def _summarised(self, turns: Sequence[Turn], scope: Scope) -> Node | None:
        """Return the node whose summary begins a history."""
        if not turns or turns[0].assistant or not self._lines:
            return None
        nodes = (node for line in quoted_lines(turns[0].text) for node in self._lines.latest(line))
        hits = Counter(node for node in nodes if node.scope.client == scope.client)
        found = max(hits, key=lambda node: (hits[node], node.number), default=None)
        return found if found is not None and 2 * hits[found] > len(found.lines) else None

    # --- naming ----------------------------------------------------------------------------------------------------

    def _beside(self, place: Place, scope: Scope) -> Place | None:
        """Return the place of an exchange that is sent again: after a failure, or with the same answer."""
        parent, made = place.parent, place.answers
        alike = parent.children[-COMPARED:] if parent is not None else self._openings.latest(mark_of(place.added))
        for one in reversed(alike):
            given = [(answer.mark, answer.ids) for answer in one.answers]
            same = bool(made) and all((turn.mark, turn.ids) in given for turn in made)
            again = same or (one.broken and not one.children)
            if one.scope != scope or not again or not has_same_request(one, place.added):
                continue
            thread = self._conversations.get(one.conversation)
            if thread is not None:
                branch = place.how == "turn" and parent is not None and one.conversation != parent.conversation
                place = place._replace(how="fork") if branch else place
                return place.within(one.conversation, thread)._replace(twin=one if same else None)
        return None

    def _branch(self, place: Place, base: str | None) -> Place:
        """Return the place of an exchange that continues its conversation, or begins another one."""
        parent = place.parent
        if parent is None:
            return place._replace(conversation=self._name(base), base=base) if base is not None else place
        thread = self._conversations.get(parent.conversation)
        if parent.conversation is None or thread is None:
            return place._replace(conversation=parent.conversation, base=thread.base if thread is not None else "")
        asked_before = not place.answers and any(has_same_request(child, place.added) for child in parent.children)
        if place.how == "turn" and not parent.is_continued and not asked_before:
            return place.within(parent.conversation, thread)
        number = parent.number
        trunk = ((parent.conversation, number), *((name, min(last, number)) for name, last in thread.trunk))
        how = place.how if place.how == "compaction" else "fork"
        return place._replace(conversation=self._name(thread.base), how=how, base=thread.base, trunk=trunk)

    def _name(self, base: str) -> str:
        """Return a name for a new conversation: that of its opening for the first one, numbered for others."""
        begun, _ = self._counts.get(base, (0, 0))
        return _short(f"{base}\0{begun}" if begun else base)

    # --- remembering -----------------------------------------------------------------------------------------------

    def _enter(self, node: Node) -> None:
        self._weight += node.weight
        if node.parent is not None:
            node.parent.children.append(node)
        for index, marks in self._indexes(node):
            index.add(marks, node)
        for reply in node.replies:
            self._replies[node.scope.host, reply] = node

    def _leave(self, node: Node) -> None:
        self._weight -= node.weight
        if node.parent is not None:
            node.parent.children.remove(node)
        for child in node.children:
            child.parent, child.cut = None, True
        for index, marks in self._indexes(node):
            index.drop(marks, node)
        for reply in node.replies:
            if self._replies.get((node.scope.host, reply)) is node:
                del self._replies[node.scope.host, reply]

    def _indexes(self, node: Node) -> Iterator[tuple[Index, set[bytes | str]]]:
        yield self._answers, {answer.mark for answer in node.answers}
        yield self._calls, {key(id_) for answer in node.answers for id_ in answer.ids}
        yield self._lines, set(node.lines)
        if node.parent is None and not node.cut:
            yield self._openings, {mark_of(node.asked)}

    def _touch(self, conversation: str | None) -> None:
        """Mark a conversation as used, and after it the conversations that it branched off from."""
        for name in (conversation, *[name for name, _ in self.trunk(conversation)]):
            if name in self._conversations:
                self._conversations.move_to_end(name)

    def _shrink(self) -> None:
        while self._weight > self._most:
            oldest, thread = next(iter(self._conversations.items()))
            if len(self._conversations) == 1:
                if len(thread.nodes) < 2:
                    return
                self._leave(thread.nodes.pop(0))
                continue
            del self._conversations[oldest]
            for node in thread.nodes:
                self._leave(node)
            begun, alive = self._counts.pop(thread.base)
            if alive > 1:
                self._counts[thread.base] = begun, alive - 1


def _answers(exchange: Exchange, turns: Sequence[Turn]) -> Iterator[Turn]:
    """Yield the answers that a client may continue from: those of the upstream, and delivered ones that differ."""
    if exchange.status is not None and exchange.status >= 400:
        return
    begun = turns[-1].parts if turns and turns[-1].assistant else []
    seen: set[tuple[bytes, tuple[str, ...]]] = set()
    for reply in (exchange.reply, exchange.delivered):
        for choice in reply.choices if reply is not None and reply.error is None else ():
            turn = Turn(True, [*begun, *choice.parts])
            if (content := (turn.mark, turn.ids)) not in seen:
                seen.add(content)
                yield turn


def name_of(request: Request, headers: Mapping[str, str]) -> str | None:
    """Return a short name for the conversation that a request begins: the client's session, else the first words."""
    base = _base(request, headers)
    return _short(base) if base is not None else None


def _base(request: Request, headers: Mapping[str, str]) -> str | None:
    if (session := session_of(request, headers)) is not None:
        return f"{_SESSION}{session}"
    if request.previous is not None:
        return f"response {request.previous}"
    return next((f"opening {message.text}" for message in request.messages if message.role == "user"), None)


def _short(text: str) -> str:
    return sha256(text).hex()[:12]
