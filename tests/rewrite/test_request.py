"""Requests repaired before they are sent: what changes, what stays, and that it is done once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Assistant, Call, Result, Talk, User, as_record, read, some
from tests.rewrite.mending import SAFE, UNSAFE, head, mend
from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.engine import INTERNAL, Engine
from wirelint.fix import NO_FIXES, Edit, FixPolicy, RequestFix
from wirelint.model import Exchange
from wirelint.rewrite.request import Mended, mend_request
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

# --- one body, one repair -------------------------------------------------------------------------------------------
# Bodies are written by hand, with white space and spellings that no encoder would make again.

GREEN = '{"model":"%s" ,"messages":[\n {"role":"user","content":"caf\\u00e9?"},\n %s ], "temperature": 1.50}'


def called(id_: str, name: str = "dig", arguments: str = "{}") -> str:
    function = f'"function" : {{"name":"{name}", "arguments":{json.dumps(arguments)}}}'
    return f'{{"type":"function", {function}, "id" : "{id_}" }}'


def turn(*calls: str) -> str:
    return f'{{ "role" : "assistant","content":null, "tool_calls":[{" , ".join(calls)}]}}'


def told(id_: str, text: str = "a root") -> str:
    return f'{{"content":"{text}","tool_call_id":"{id_}" ,"role":"tool"}}'


def green(*messages: str, model: str = "acme-1") -> str:
    return GREEN % (model, ",\n ".join(messages))


KIMI = "kimi-k2.5"
LONG = "call_" + "b4" * 40


# what came, what goes out, the codes of the repairs
@rows(tables(__file__)["cases"])
def test_a_request_is_repaired_and_keeps_its_spelling(came: str, wanted: str, codes: str) -> None:
    api = "anthropic.messages" if "max_tokens" in came else "openai.chat"
    made = mend(came.encode(), api)
    assert made.body.decode() == wanted
    assert [repair.code for repair in made.repairs] == codes.split()
    assert some(made.request).body == json.loads(wanted)
    assert made.faults == ()
    assert mend(made.body, api).body is made.body


def test_a_safe_permit_makes_no_unsafe_repair() -> None:
    came = green(told("gone"), turn(called("functionsdig0"), called("x1"), called("x1"))).encode()
    made = mend(came, "openai.chat", SAFE)
    assert [repair.code for repair in made.repairs] == ["ID301"]
    assert made.body == came.replace(b"functionsdig0", b"functions.dig:0")


def test_no_permit_asks_no_rule() -> None:
    body = green(told("gone")).encode()
    made = mend_request(head(body, "openai.chat"), body, [Broken()], Ledger(), NO_FIXES)
    assert made.body is body
    assert made.faults == ()


def test_pointers_are_those_of_the_body_as_it_came() -> None:
    came = green(
        told("gone"), told("lost"), turn(called("dig"), called("dig")), told("far"), turn(called("n1"), called("n1"))
    )
    made = mend(came.encode(), "openai.chat")
    assert [(repair.code, repair.pointer) for repair in made.repairs] == [
        ("ID303", "/messages/1"),
        ("ID303", "/messages/2"),
        ("ID303", "/messages/4"),
        ("ID305", "/messages/3/tool_calls/1"),
        ("ID305", "/messages/5/tool_calls/1"),
    ]


def test_what_passed_on_the_wire_is_restored_in_every_turn() -> None:
    """The client sends its own ids again and again; the ledger takes in what the client sent."""
    call = Call("dig", {"deep": 2}, "functions.dig:0")
    ask = User("Dig.")
    engine = Engine(REGISTRY.rules)
    engine.check(read(Talk((ask,), calls=(call,), model=KIMI).record("openai.chat", True)))
    own = Call("dig", {"deep": 2}, "tool-1")
    histories: list[list[Any]] = [[ask, Assistant(calls=(own,)), Result("tool-1", "a root")]]
    histories.append([*histories[0], Assistant("A root."), User("And now?")])
    for history in histories:
        record = Talk(history, text="Nothing.", model=KIMI).record("openai.chat", True)
        body = as_record(record).request_body or b""
        exchange = read(record)
        made = mend_request(exchange, body, REGISTRY.rules, engine.ledger, SAFE)
        assert made.body == body.replace(b"tool-1", b"functions.dig:0")
        engine.check(exchange)


def test_a_refused_id_is_renamed_as_the_error_demands() -> None:
    body = green(turn(called(LONG[:50])), told(LONG[:50])).encode()
    error = {"error": {"message": "Invalid 'messages[1].tool_calls[0].id': expected a string with maximum length 40"}}
    record = Record("r1", "POST", "https://llm.test/v1/chat/completions", (), body, 400, (), json.dumps(error).encode())
    exchange = some(replay(record))
    made = mend_request(exchange, body, REGISTRY.rules, Ledger(), SAFE)
    assert made.body == body.replace(LONG[:50].encode(), LONG[:40].encode())
    # A target that has refused such ids is sent none any more.
    ledger = Ledger()
    assert mend(body, "openai.chat", ledger=ledger).body == body
    ledger.record(exchange)
    assert mend(body, "openai.chat", ledger=ledger).body == made.body
    assert mend(body, "openai.chat", url="https://other.test", ledger=ledger).body == body


GROWING = {
    "kimi's short form": ("kimi-k2.5", "https://llm.test", lambda n: f"dig:{n}"),
    "counted from zero in every turn": ("kimi-k2.5", "https://llm.test", lambda n: "functions.dig:0"),
    "kimi, the number missing": ("kimi-k2.5", "https://llm.test", lambda n: "functions.dig"),
    "mangled": ("acme-1", "https://llm.test", lambda n: f"functionsdig{n}"),
    "the name as id": ("acme-1", "https://llm.test", lambda n: "dig"),
    "mistral": ("mistral-large", "https://api.mistral.ai", lambda n: f"call_{n}_of_many"),
    "claude": ("claude-opus-5", "https://llm.test", lambda n: f"dig/{n}"),
    "too long": ("gpt-5", "https://api.openai.com", lambda n: f"call_{'b4' * 40}{n}"),
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("model", "url", "make"), GROWING.values(), ids=GROWING.keys())
def test_what_was_sent_before_is_sent_again(model: str, url: str, make: Callable[[int], str], api: str) -> None:
    """A longer history begins with what the shorter one was: a prompt cache stays warm."""
    history: list[Any] = [User("Dig.")]
    before: list[Any] = []
    for n in range(6):
        history += [Assistant(calls=(Call("dig", {"n": n}, make(n)),)), Result(make(n), f"root {n}")]
        body = as_record(Talk(history, model=model).record(api, False)).request_body or b""
        messages = json.loads(mend(body, api, UNSAFE, url).body)["messages"]
        assert messages[: len(before)] == before
        before = messages


# --- failures -------------------------------------------------------------------------------------------------------


class Broken(Rule):
    code, name = "ID300", "broken"

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        yield (Edit("remove", "/messages"),), self.repair("request", "safe", "took all away")
        raise LookupError("out of luck")


class Reckless(Rule):
    code, name = "ID302", "reckless"
    edits: tuple[Edit, ...] = (Edit("replace", "", 3),)

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Sequence[RequestFix]:
        return [(self.edits, self.repair("request", "safe", "made it a number"))]


class Lost(Reckless):
    code, name = "ID303", "lost"
    edits = (Edit("replace", "messages", []),)


def test_a_rule_that_fails_leaves_the_others_to_their_work() -> None:
    body = green(turn(called("functionsdig0")), told("functionsdig0")).encode()
    rules = [Lost(), Reckless(), *REGISTRY.select(["ID301"]), Broken()]
    made = mend_request(head(body, "openai.chat"), body, rules, Ledger(), UNSAFE)
    assert made.body == body.replace(b"functionsdig0", b"functions.dig:0")
    assert [repair.code for repair in made.repairs] == ["ID301"]
    assert [(fault.code, fault.side) for fault in made.faults] == [(INTERNAL, "request")] * 3
    assert "LookupError: out of luck" in made.faults[0].message


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{", b"\xff", b'{"messages": 3}', b'{"messages":[{"role":"tool"}]}']
)
@in_batches("api", APIS)
def test_odd_bodies_stay(body: bytes, api: str) -> None:
    """Also where the request was read from another body than the one that is to be repaired."""
    exchange = head(green(told("gone"), turn(called("functionsdig0"))).encode(), "openai.chat")
    assert mend_request(exchange, body, REGISTRY.rules, Ledger(), UNSAFE).body is body
    unread = dataclasses.replace(exchange, request=None)
    assert mend_request(unread, body, REGISTRY.rules, Ledger(), UNSAFE) == Mended(body, None)
