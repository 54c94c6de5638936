"""Requests repaired before they are sent: what changes, what stays, and that it is done once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Assistant, Call, Result, Talk, User, as_record, read, schema
from tests.rewrite.mending import SAFE, UNSAFE, head, mend
from wirelint.apis import by_name
from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.engine import INTERNAL, Engine
from wirelint.fix import NO_FIXES, Edit, FixPolicy, RequestFix
from wirelint.model import Exchange, Json, Request
from wirelint.policy.file import parse
from wirelint.rewrite.request import Mended, mend_request
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

# --- one body, one repair -------------------------------------------------------------------------------------------
# Bodies are written by hand, with white space and spellings that no encoder would make again.

GREEN = '{"model":"%s" ,"messages":[\n {"role":"user","content":"caf\\u00e9?"},\n %s ], "temperature": 1.50}'
CLAUDE = '{"model":"%s", "max_tokens":9e2 ,"messages":[ {"role":"user","content":"Go."} , %s ] }'


def called(id_: str, name: str = "dig", arguments: str = "{}") -> str:
    function = f'"function" : {{"name":"{name}", "arguments":{json.dumps(arguments)}}}'
    return f'{{"type":"function", {function}, "id" : "{id_}" }}'


def turn(*calls: str) -> str:
    return f'{{ "role" : "assistant","content":null, "tool_calls":[{" , ".join(calls)}]}}'


def told(id_: str, text: str = "a root") -> str:
    return f'{{"content":"{text}","tool_call_id":"{id_}" ,"role":"tool"}}'


def use(id_: str, name: str = "dig") -> str:
    return f'{{"role":"assistant", "content":[{{"type":"tool_use","id":"{id_}","name":"{name}","input":{{ }} }}]}}'


def used(*ids: str, more: str = "") -> str:
    results = [f'{{"tool_use_id":"{id_}", "type":"tool_result","content":"a root"}}' for id_ in ids]
    return f'{{"role":"user", "content":[{", ".join([*results, *([more] if more else [])])}]}}'


def green(*messages: str, model: str = "acme-1") -> str:
    return GREEN % (model, ",\n ".join(messages))


def claude(*messages: str, model: str = "claude-opus-5") -> str:
    return CLAUDE % (model, ", ".join(messages))


KIMI = "kimi-k2.5"
SAY = '{"role":"user", "content" : "And now?"}'
TEXT = '{"type":"text","text":"So?"}'
OK = '{"role":"assistant","content":"Well."}'
LONG = "call_" + "b4" * 40

CASES: dict[str, tuple[str, str, str]] = {
    # name: (what came, what goes out, the codes of the repairs)
    "restored": (
        green(turn(called("functionsdig0")), told("functionsdig0"), SAY),
        green(turn(called("functions.dig:0")), told("functions.dig:0"), SAY),
        "ID301",
    ),
    "restored on the result alone": (
        green(turn(called("functions.dig:3")), told("functions_dig_3")),
        green(turn(called("functions.dig:3")), told("functions.dig:3")),
        "ID301",
    ),
    "restored in parallel, out of order": (
        green(turn(called("functionsdig0"), called("functionsdig1")), told("functionsdig1"), told("functionsdig0")),
        green(turn(called("functions.dig:0"), called("functions.dig:1")), told("functions.dig:1"), told("functions.dig:0")),
        "ID301 ID301",
    ),
    "restored, with a second result of the same call": (
        green(turn(called("functionsdig0")), told("functionsdig0"), told("functionsdig0", "a stone")),
        green(turn(called("functions.dig:0")), told("functions.dig:0"), told("functions.dig:0", "a stone")),
        "ID301",
    ),
    "not restored to the id of another call": (
        green(turn(called("functions.dig:0")), told("functions.dig:0"), turn(called("functionsdig0", arguments='{"n":1}'))),
        green(turn(called("functions.dig:0")), told("functions.dig:0"), turn(called("functionsdig0", arguments='{"n":1}'))),
        "",
    ),
    "an id that was none": (
        green(turn(called("functions.dig:0")), told("undefined")),
        green(turn(called("functions.dig:0")), told("functions.dig:0")),
        "ID301",
    ),
    "renamed for kimi": (
        green(turn(called("dig:7")), told("dig:7"), SAY, model=KIMI),
        green(turn(called("functions.dig:7")), told("functions.dig:7"), SAY, model=KIMI),
        "ID302",
    ),
    "renamed in every turn alike": (
        green(turn(called("dig:7")), told("dig:7"), turn(called("dig:7")), told("dig:7"), model=KIMI),
        green(*(turn(called("functions.dig:7")), told("functions.dig:7")) * 2, model=KIMI),
        "ID302",
    ),
    "restored, then renamed for claude": (
        claude(use("functions.dig:0"), used("functionsdig0")),
        claude(use("functions_dig_0"), used("functions_dig_0")),
        "ID301 ID302",
    ),
    "empty ids for claude": (
        claude(use(""), used("")),
        claude(use("toolu_cc2ae7d25d22a15ddc2e7b5e"), used("toolu_cc2ae7d25d22a15ddc2e7b5e")),
        "ID302",
    ),
    "dropped": (green(told("gone"), turn(called("a1")), told("a1")), green(turn(called("a1")), told("a1")), "ID303"),
    "the last one dropped": (
        green(turn(called("a1")), told("a1"), told("gone")), green(turn(called("a1")), told("a1")), "ID303"
    ),
    "nothing else is left": (f'{{"messages":[{told("gone")}]}}', f'{{"messages":[{told("gone")}]}}', ""),
    "before its call": (green(told("a1"), turn(called("a1"))), green(told("a1"), turn(called("a1"))), ""),
    "a block dropped": (
        claude(use("toolu_1"), used("toolu_1", "toolu_9", more=TEXT)),
        claude(use("toolu_1"), used("toolu_1", more=TEXT)),
        "ID303",
    ),
    "a message dropped with it, between two users": (
        claude(used("toolu_9"), '{"role":"user","content":"Well?"}'), claude('{"role":"user","content":"Well?"}'), "ID303"
    ),
    "a message dropped with both its blocks": (
        claude(used("toolu_8", "toolu_9"), SAY), claude(SAY), "ID303 ID303"
    ),
    "kept as text, between two answers": (
        claude(OK, used("toolu_9"), OK, SAY),
        claude(OK, '{"role":"user", "content":[{"type":"text","text":"a root"}]}', OK, SAY),
        "ID303",
    ),
    "kept as text, at the end": (
        claude(OK, used("toolu_9")),
        claude(OK, '{"role":"user", "content":[{"type":"text","text":"a root"}]}'),
        "ID303",
    ),
    "two calls share an id": (
        green(turn(called("dig"), called("dig")), told("dig"), told("dig", "a stone")),
        green(turn(called("dig"), called("dig_2")), told("dig"), told("dig_2", "a stone")),
        "ID305",
    ),
    "three calls share a counted id": (
        green(turn(called("dig:0"), called("dig:0"), called("dig:0")), model="kimi-k3"),
        green(turn(called("dig:0"), called("dig:1"), called("dig:2")), model="kimi-k3"),
        "ID305",
    ),
    "an id of another turn, the next number taken": (
        green(turn(called("dig_1")), told("dig_1"), turn(called("dig_2")), told("dig_2"), turn(called("dig_1", "cut")),
              told("dig_1")),
        green(turn(called("dig_1")), told("dig_1"), turn(called("dig_2")), told("dig_2"), turn(called("dig_3", "cut")),
              told("dig_3")),
        "ID305",
    ),
    "an id shared in two messages of claude": (
        claude(use("toolu_1"), used("toolu_1"), use("toolu_1", "cut"), used("toolu_1")),
        claude(use("toolu_1"), used("toolu_1"), use("toolu_2", "cut"), used("toolu_2")),
        "ID305",
    ),
    "renamed, then renumbered": (
        green(turn(called("dig:0"), called("dig:0")), told("dig:0"), told("dig:0", "a stone"), model=KIMI),
        green(
            turn(called("functions.dig:0"), called("functions.dig:1")),
            told("functions.dig:0"),
            told("functions.dig:1", "a stone"),
            model=KIMI,
        ),
        "ID302 ID305",
    ),
    "the text of printed parts": (
        green('{"role":"user","content":"[{\'type\': \'text\', \'text\': \'Where?\'}]"}'),
        green('{"role":"user","content":"Where?"}'),
        "LK104",
    ),
    "an empty text beside a call of claude": (
        claude('{"role":"assistant","content":[{"type":"text","text":"[{\'type\': \'text\', \'text\': \'\'}]"}, '
               '{"type":"tool_use","id":"t1","name":"dig","input":{}}]}', used("t1")),
        claude('{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"dig","input":{}}]}', used("t1")),
        "LK104",
    ),
    "nothing to do": (green(turn(called("a1")), told("a1")), green(turn(called("a1")), told("a1")), ""),
}  # fmt: skip


@pytest.mark.parametrize(("came", "wanted", "codes"), CASES.values(), ids=CASES.keys())
def test_repairs(came: str, wanted: str, codes: str) -> None:
    api = "anthropic.messages" if "max_tokens" in came else "openai.chat"
    made = mend(came.encode(), api)
    assert made.body.decode() == wanted
    assert [repair.code for repair in made.repairs] == codes.split()
    assert made.request is not None
    assert made.request.body == json.loads(wanted)
    assert made.faults == ()
    assert mend(made.body, api).body is made.body


def test_a_safe_permit_makes_no_unsafe_repair() -> None:
    came = green(told("gone"), turn(called("functionsdig0"), called("x1"), called("x1"))).encode()
    made = mend(came, "openai.chat", SAFE)
    assert [repair.code for repair in made.repairs] == ["ID301"]
    assert made.body == came.replace(b"functionsdig0", b"functions.dig:0")


def test_only_rules_that_may_be_fixed_are() -> None:
    came = green(told("gone"), turn(called("functionsdig0"))).encode()
    made = mend(came, "openai.chat", FixPolicy("unsafe", lambda code: code == "ID303"))
    assert [repair.code for repair in made.repairs] == ["ID303"]


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
    exchange = replay(record)
    assert exchange is not None
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


class Asked(Rule):
    """Counts how often it is asked."""

    code, name = "ID304", "asked"

    def __init__(self) -> None:
        self.seen: list[Json] = []

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        assert exchange.request is not None
        self.seen.append(dict(exchange.request.body))
        yield from ()


class Overlooking(Asked):
    code, name = "ID306", "overlooking"
    ignored_fields = frozenset({"stream_options"})


def test_rules_are_asked_again_where_what_they_look_at_has_changed() -> None:
    """What the rules see is what the body says, whichever way it was changed."""
    body = GREEN.replace("caf\\u00e9", "tea").replace('"model":"%s"', '"model":"m","stream":true') % turn()
    every, some = Asked(), Overlooking()
    rules = [*REGISTRY.select(["ST605"]), every, some]
    made = mend_request(head(body.encode(), "openai.chat"), body.encode(), rules, Ledger(), UNSAFE)
    read_anew = head(made.body, "openai.chat").request
    assert read_anew is not None
    assert made.request is not None
    for field in dataclasses.fields(Request):
        assert getattr(made.request, field.name) == getattr(read_anew, field.name)
    assert every.seen == [json.loads(body), json.loads(made.body)]
    assert some.seen == [json.loads(body)]
    renamed = green(turn(called("functionsdig0")), told("functionsdig0")).encode()
    other = Overlooking()
    mend_request(head(renamed, "openai.chat"), renamed, [*REGISTRY.select(["ID301"]), other], Ledger(), UNSAFE)
    assert len(other.seen) == 2


class Counting(Rule):
    """Adds a member to the body each time it is asked."""

    code, name = "ID307", "counting"

    def __init__(self) -> None:
        self.asked = 0

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        self.asked += 1
        yield [Edit("replace", f"/x{self.asked}", self.asked)], self.repair("request", "unsafe", "counted")


def test_what_a_rule_changed_itself_is_not_shown_to_it_again() -> None:
    body = green(turn(called("functionsdig0")), told("functionsdig0")).encode()
    alone, beside = Counting(), Counting()
    made = mend_request(head(body, "openai.chat"), body, [alone], Ledger(), UNSAFE)
    assert (alone.asked, json.loads(made.body).get("x1")) == (1, 1)
    # What another one changes is: then it changes something of its own again, which is nothing new to it.
    mend_request(head(body, "openai.chat"), body, [*REGISTRY.select(["ID301"]), beside], Ledger(), UNSAFE)
    assert beside.asked == 2


@pytest.mark.parametrize("code", [rule.code for rule in REGISTRY.rules if rule.ignored_fields])
def test_what_is_overlooked_changes_no_repair(code: str) -> None:
    (rule,) = REGISTRY.select([code])
    permit = FixPolicy("unsafe", clean_history=True)
    for one in rule.example:
        exchange = dataclasses.replace(read(one), status=None, reply=None, end="unknown")
        assert exchange.request is not None
        made = list(rule.fix_request(exchange, Ledger(), permit))
        values: list[Json] = [{"include_usage": True}, None, [], "x"]
        for value in values:
            body = {**exchange.request.body, **dict.fromkeys(rule.ignored_fields, value)}
            other = dataclasses.replace(exchange.request, body=body, wants_usage=True)
            assert list(rule.fix_request(dataclasses.replace(exchange, request=other), Ledger(), permit)) == made


HELD = parse('[[policy]]\ntools = ["dig"]\narguments = ["where"]\nabsolute-path = true\naction = "block"\n', "p.toml")


def test_calls_to_servers_of_tools_are_held_to_policies() -> None:
    """What is not of its APIs is another matter than what it does not act on anyway."""
    rule = REGISTRY.get("AR404").under(HELD)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "dig", "arguments": {"where": "x"}}}
    record = {"request": {"url": "http://tools.test/mcp", "body": json.dumps(call)}, "response": {"body": ""}}
    exchange = dataclasses.replace(read(record), status=None, reply=None, end="unknown")
    assert rule.answer(exchange, Ledger(), UNSAFE) is not None


@pytest.mark.parametrize(
    "rule", [rule.under(HELD) for rule in REGISTRY.rules if rule.request_apis is not None], ids=lambda rule: rule.code
)
def test_a_rule_says_of_all_apis_whose_requests_it_mends(rule: Rule) -> None:
    """Asked all the same, with the requests of its own examples or with others, it repairs none of another API."""
    assert rule.request_apis is not None
    permit = FixPolicy("unsafe", clean_history=True)
    named = {exchange.api for one in rule.example if (exchange := read(one)).request is not None}
    dug = (Assistant(calls=(Call("dig", {"where": "x"}, "call_1"),)), Result("call_1", "a root"))
    talks = [Talk(text="Yes.", history=(User("Dig."), *made), tools={"dig": schema()}) for made in ((), dug)]
    for api in set(APIS) - rule.request_apis:
        for record in [talk.record(api, streamed) for talk in talks for streamed in (False, True)]:
            exchange = dataclasses.replace(read(record), status=None, reply=None, end="unknown")
            assert not list(rule.fix_request(exchange, Ledger(), permit))
            assert rule.answer(exchange, Ledger(), permit) is None
    for one in rule.example:
        exchange = dataclasses.replace(read(one), status=None, reply=None, end="unknown")
        for api in {*APIS, *named} - rule.request_apis:
            assert not list(rule.fix_request(dataclasses.replace(exchange, api=api), Ledger(), permit))


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{", b"\xff", b'{"messages": 3}', b'{"messages":[{"role":"tool"}]}']
)
@pytest.mark.parametrize("api", APIS)
def test_odd_bodies_stay(body: bytes, api: str) -> None:
    """Also where the request was read from another body than the one that is to be repaired."""
    exchange = head(green(told("gone"), turn(called("functionsdig0"))).encode(), "openai.chat")
    assert mend_request(exchange, body, REGISTRY.rules, Ledger(), UNSAFE).body is body
    unread = dataclasses.replace(exchange, request=None)
    assert mend_request(unread, body, REGISTRY.rules, Ledger(), UNSAFE) == Mended(body, None)


@pytest.mark.parametrize("content", [None, 3, [], [None], [[]], {"text": "x"}, "", [{"type": "tool_result"}], True])
@pytest.mark.parametrize("role", ["tool", "user", "assistant", "system", None, 3])
@pytest.mark.parametrize("api", APIS)
def test_odd_messages_stay(content: Any, role: Any, api: str) -> None:
    odd = {"role": role, "content": content, "tool_calls": content, "tool_call_id": content}
    document: dict[str, Any] = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Go."}, odd, odd],
    }
    understood = by_name(api)
    assert understood is not None
    exchange = dataclasses.replace(head(green(SAY).encode(), api), request=understood.read_request(document))
    body = json.dumps(document).encode()
    made = mend_request(exchange, body, REGISTRY.rules, Ledger(), FixPolicy("unsafe", clean_history=True))
    assert made.faults == ()
    again = dataclasses.replace(exchange, request=made.request)
    assert (
        mend_request(again, made.body, REGISTRY.rules, Ledger(), FixPolicy("unsafe", clean_history=True)).body
        is made.body
    )
