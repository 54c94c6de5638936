"""Calls on their way to servers of tools, repaired by rules of that channel alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import pytest

from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.fix import Edit, FixPolicy, RequestFix
from wirelint.model import Exchange, ToolCall
from wirelint.rewrite.request import Mended, mend_request
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger


class Rooted(Rule):
    """A workspace becomes an absolute path, and a guessed member goes."""

    code, name, severity, layer = "XX902", "rooted", "warning", "model"
    channels: ClassVar[frozenset[str]] = frozenset({"mcp"})

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterable[RequestFix]:
        for message in exchange.request.messages if exchange.request is not None else ():
            yield from (mending for part in message.parts if isinstance(part, ToolCall) for mending in self._mend(part))

    def _mend(self, call: ToolCall) -> Iterator[RequestFix]:
        given = call.arguments.mapping or {}
        place = f"{call.pointer}/arguments"
        if given.get("workspace") == "default":
            edit = Edit("replace", f"{place}/workspace", "/srv/notes")
            yield [edit], self.repair("request", "unsafe", "replaced the workspace", edit.pointer)
        if "guess" in given:
            yield (
                [Edit("remove", f"{place}/guess")],
                self.repair("request", "unsafe", "dropped a guess", f"{place}/guess"),
            )


class Loud(Rooted):
    """The same for models, which must never be asked about a call to a server."""

    code, name = "XX903", "loud"
    channels: ClassVar[frozenset[str]] = frozenset({"model"})

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterable[RequestFix]:
        raise AssertionError("asked about another channel")


def mend(body: bytes) -> Mended:
    exchange = replay(Record("r1", "POST", "http://t.test/mcp", (("mcp-session-id", "s"),), body))
    assert exchange is not None
    return mend_request(exchange, body, [Rooted(), Loud()], Ledger(), FixPolicy("unsafe"))


CALL = b'{"jsonrpc":"2.0" ,"id": 4,"method":"tools/call","params":{"name":"add","arguments":{ %s },"_meta":{"x":1}}}'
BODIES = {
    "a value": (CALL % b'"workspace":"default", "n" : 1.50', CALL % b'"workspace":"/srv/notes", "n" : 1.50'),
    "a member that goes": (CALL % b'"guess":"Quadim","q":"caf\\u00e9"', CALL % b'"q":"caf\\u00e9"'),
    "both": (CALL % b'"guess":1,"workspace":"default"', CALL % b'"workspace":"/srv/notes"'),
    "nothing to do": (CALL % b'"workspace":"/tmp"', CALL % b'"workspace":"/tmp"'),
    "one of a batch": (
        b'[{"jsonrpc":"2.0","method":"notifications/initialized"},\n ' + CALL % b'"workspace":"default"' + b" ]",
        b'[{"jsonrpc":"2.0","method":"notifications/initialized"},\n ' + CALL % b'"workspace":"/srv/notes"' + b" ]",
    ),
    "no call": (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
}


@pytest.mark.parametrize(("body", "expected"), BODIES.values(), ids=BODIES)
def test_a_call_is_repaired_in_its_place(body: bytes, expected: bytes) -> None:
    mended = mend(body)
    assert mended.body == expected
    assert mended.faults == ()
    assert (mended.body is body) == (body == expected)
    assert bool(mended.repairs) == (body != expected)
    assert mended.request is not None
    assert mended.request.api == "mcp"


def test_what_is_told_has_the_place_in_the_body() -> None:
    mended = mend(BODIES["one of a batch"][0])
    assert [repair.pointer for repair in mended.repairs] == ["/1/params/arguments/workspace"]
    assert mended.request is not None
    (call,) = mended.request.messages[1].parts
    assert isinstance(call, ToolCall)
    assert call.arguments.mapping == {"workspace": "/srv/notes"}
