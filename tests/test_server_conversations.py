"""Conversations that the server keeps: what the next request says fits what the server holds, whatever was repaired."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.build import REGISTRY, Call, Talk, User, as_record, checked, exchange, schema, some, sse
from tests.selection import in_batches
from tests.tables import tables
from wirelint.capture.offline import Checked, Fixed, fix
from wirelint.capture.record import Record
from wirelint.fix import FixPolicy
from wirelint.model import Reply, ToolCall

UNSAFE, SAFE = FixPolicy("unsafe"), FixPolicy("safe")
RULES = REGISTRY.select(())
TOOLS = {"dig": schema(["at"], at={"type": "string"}), "water": schema([], bed={"type": "integer"})}
ASK = (User("Dig at the oak."),)
OAK, ELM = {"at": "oak"}, {"at": "elm"}
THREADS, STATEFUL = "anthropic.messages", "openai.responses"
FORMS = [(api, stream) for api in (STATEFUL, THREADS) for stream in (False, True)]
MARKUP = '<tool_call>\n{"name": "dig", "arguments": {"at": "%s"}}\n</tool_call>'


def first(api: str, stream: bool, text: str, *calls: Call, **more: Any) -> Record:
    extra: dict[str, Any] = {"thread": {"type": "create"}} if api == THREADS else {}
    talk = Talk(ASK, text, calls, tools=TOOLS, request={**extra, **more})
    return as_record({**talk.record(api, stream), "id": "one"})


def goes_on(api: str, answers: list[tuple[str, str]], *, words: str = "", **more: Any) -> Record:
    """The request that names the reply before and brings nothing but results, or words."""
    if api == THREADS:
        content: Any = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in answers] or words
        thread = {"type": "continue", "previous_message_id": "msg_01"}
        body = {
            "model": "acme-1",
            "max_tokens": 99,
            "thread": thread,
            "messages": [{"role": "user", "content": content}],
        }
        path, headers = "/v1/messages", {"anthropic-version": "2023-06-01"}
    else:
        items = [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in answers]
        declared = json.loads(Talk(tools=TOOLS).record(api, False)["request"]["body"])["tools"]
        body = {"model": "acme-1", "previous_response_id": "resp_01", "input": items or words, "tools": declared}
        path, headers = "/v1/responses", {}
    made = exchange(path, {**body, **more}, {}, request_headers=headers)
    return as_record({**made, "response": Talk(ASK, "Done.").record(api, False)["response"], "id": "two"})


def run(*records: Record, permit: FixPolicy = UNSAFE) -> list[Fixed]:
    return [item for item in fix(records, RULES, permit) if isinstance(item, Fixed)]


def got(fixed: Fixed) -> tuple[ToolCall, ...]:
    """The calls that the client got."""
    assert fixed.exchange is not None
    reply = fixed.exchange.delivered or fixed.exchange.reply
    assert isinstance(reply, Reply)
    return reply.choices[0].calls


def results(one: Record, *texts: str) -> list[tuple[str, str]]:
    """Results of the calls that the client got with the first reply: ids and texts."""
    (before,) = run(one)
    return [(call.id or "", text) for call, text in zip(got(before), texts or ("a root",) * 9, strict=False)]


def faults(fixed: Fixed | Checked) -> list[str]:
    return [finding.name for finding in fixed.findings if finding.severity != "info"]


def sent(fixed: Fixed) -> dict[str, Any]:
    body = some(fixed.record.forwarded.body if fixed.record.forwarded is not None else fixed.record.request_body)
    made: dict[str, Any] = json.loads(body)
    return made


def said(body: dict[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The calls and the results of a request: (id, name), (id, text)."""
    items = body.get("input", [])
    if "messages" in body:
        items = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    calls = [(i.get("call_id") or i["id"], i["name"]) for i in items if i.get("type") in ("function_call", "tool_use")]
    results = [
        (i.get("call_id") or i.get("tool_use_id"), i.get("output") or i.get("content"))
        for i in items
        if i.get("type") in ("function_call_output", "tool_result")
    ]
    return calls, results


def fits(held: list[str], body: dict[str, Any]) -> None:
    """A strict server: every call that it holds, or that the request adds, has one result, and no result is left."""
    calls, results = said(body)
    goes_on_from = body.get("previous_response_id") or body.get("thread")
    assert Counter([*(held if goes_on_from else ()), *(id_ for id_, _ in calls)]) == Counter(id_ for id_, _ in results)


LEAKED = "Let me see.\n\n" + MARKUP % "oak"
FAULTS: dict[str, Any] = tables(__file__)["faults"]
"""Text, calls, the ids that the server holds, and the functions that the client runs."""
A, B = ("call_7Qd2mWq8ZsLp0RbYxN4cJdAA", "call_8Qd2mWq8ZsLp0RbYxN4cJdBB")

BROKEN = ("one id for two calls", "two calls glued together", "arguments encoded twice", "another name")
"""Faults after which the server holds a call that it cannot go on from."""


@pytest.mark.parametrize(("api", "stream"), FORMS)
@in_batches("fault", FAULTS)
def test_the_next_request_fits_what_the_server_holds(fault: str, api: str, stream: bool) -> None:
    text, called, held, runs = FAULTS[fault]
    if api == THREADS and not stream and fault in ("two calls glued together", "arguments encoded twice"):
        pytest.skip("an input that is whole is an object")
    one = first(api, stream, text, *(Call(*call) for call in called))
    (before,) = run(one)
    assert [call.name for call in got(before)] == runs
    two = goes_on(api, [(call.id or "", call.arguments.text) for call in got(before)])
    _, after = run(one, two)
    fits(held, sent(after))
    assert not faults(after)
    if fault in ("healthy", "another type") or (
        api == THREADS and fault in ("another name", "arguments encoded twice")
    ):
        assert after.record.forwarded is None
        assert after.record.fixes == ()
    else:
        assert {(repair.code, repair.side) for repair in after.record.fixes} == {("IN002", "request")}
    assert (sent(after).get("previous_response_id") is None) == (
        (api == STATEFUL and fault in BROKEN) or api == THREADS
    )
    _, repeated = run(before.record, after.record)  # as a capture of the live run holds them
    assert sent(repeated) == sent(after)


GLUED = Call("dig", '{"at": "oak"}{"at": "elm"}', A)


def under(id_: str, record: Record, **request: Any) -> Record:
    """The exchange with another id of its reply, and other members of its request."""
    body = {**json.loads(record.request_body or b""), **request}
    made = {**_request(record), "body": body}
    reply = {**json.loads(record.response_body or b""), "id": id_}
    return as_record({"id": id_, "request": made, "response": {"body": reply}})


@pytest.mark.parametrize("earlier", [None, "resp_00"])
def test_a_broken_call_is_left_behind_with_its_reply(earlier: str | None) -> None:
    more = {"previous_response_id": earlier} if earlier else {}
    one = first(STATEFUL, False, "I dig.", GLUED, **more)
    two = goes_on(STATEFUL, results(one, "a root", "a stone"), instructions="Be brief.")
    _, after = run(one, two)
    body = sent(after)
    assert body.get("previous_response_id") == earlier
    assert body["instructions"] == "Be brief."
    assert [item.get("role") or item["type"] for item in body["input"]] == [
        "user",
        "assistant",
        *["function_call"] * 2,
        *["function_call_output"] * 2,
    ]
    assert [json.loads(item["arguments"]) for item in body["input"][2:4]] == [OAK, ELM]
    assert not faults(after)


def test_a_conversation_with_several_broken_replies_is_sent_from_before_the_first() -> None:
    one = first(STATEFUL, False, "", GLUED)
    answered = results(one)
    two = goes_on(STATEFUL, answered)
    double = Talk(ASK, "", (Call("dig", '"{\\"at\\": \\"ash\\"}"', B),), tools=TOOLS).record(STATEFUL, False)
    two = under("resp_02", as_record({"id": "two", "request": _request(two), "response": double["response"]}))
    three = under("resp_03", goes_on(STATEFUL, [(B, "a nest")]), previous_response_id="resp_02")
    four = under("resp_04", goes_on(STATEFUL, [], words="Thanks."), previous_response_id="resp_03")
    _, _, third, fourth = run(one, two, three, four)
    body = sent(third)
    assert "previous_response_id" not in body
    calls, outputs = said(body)
    assert [id_ for id_, _ in calls] == [id_ for id_, _ in outputs] == [*(id_ for id_, _ in answered), B]
    assert fourth.record.forwarded is None  # the server has it all under the last reply


def test_an_id_that_the_server_uses_again_is_another_one_for_the_client() -> None:
    one = first(STATEFUL, False, "", Call("dig", OAK, "call_0"))
    again = Talk(ASK, "", (Call("dig", ELM, "call_0"),), tools=TOOLS).record(STATEFUL, False)["response"]
    two = goes_on(STATEFUL, [("call_0", "a root")])
    two = under("resp_02", as_record({"id": "two", "request": _request(two), "response": again}))
    _, second = run(one, two)
    (call,) = got(second)
    assert call.id != "call_0"
    three = under("resp_03", goes_on(STATEFUL, [(call.id or "", "a stone")]), previous_response_id="resp_02")
    _, _, third = run(one, two, three)
    body = sent(third)
    assert body["previous_response_id"] == "resp_02"
    assert said(body)[1] == [("call_0", "a stone")]


KEPT: dict[str, dict[str, Any]] = {
    "a stored conversation": {"conversation": "conv_1"},
    "references to items of the server": {"input": [{"type": "item_reference", "id": "rs_1"}]},
    "a redacted text": {"input": "The key is [redacted:api-key:1]."},
    "a socket that keeps the last reply alone": {"previous_response_id": "resp_00", "store": False},
}


@pytest.mark.parametrize("name", KEPT)
def test_what_cannot_be_sent_again_is_translated(name: str) -> None:
    one = first(STATEFUL, False, "", GLUED, **KEPT[name])
    stored = {"conversation": "conv_1", "previous_response_id": None}
    more: dict[str, Any] = stored if "conversation" in KEPT[name] else {}
    _, after = run(one, goes_on(STATEFUL, results(one), **more))
    body = sent(after)
    assert body.get("previous_response_id") == (None if more else "resp_01")
    calls, outputs = said(body)
    assert Counter([A, *(id_ for id_, _ in calls)]) == Counter(id_ for id_, _ in outputs)


@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_with_a_question_instead_of_results(api: str, stream: bool) -> None:
    one = first(api, stream, "", Call("burn", OAK, A))
    two = goes_on(api, [], words="Then water it.")
    _, after = run(one, two)
    fits([A], sent(after))
    assert "Then water it." in json.dumps(sent(after))


@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_repairs_that_are_off_change_nothing_and_blame_nobody(api: str, stream: bool) -> None:
    one = first(api, stream, "", Call("dig", OAK, A))
    two = goes_on(api, [(A, "a root")])
    assert not [fault for item in checked((one, two), RULES) for fault in faults(item)]
    # Where the exchange before was not seen, what the request lacks is unknown.
    (alone,) = checked([goes_on(api, [("call_x", "a root")])], RULES)
    assert not faults(alone)
    (fixed,) = run(two)
    assert fixed.record.forwarded is None


@pytest.mark.parametrize("kept", ["first", "last"])
@pytest.mark.parametrize("repaired", [False, True])
def test_of_two_ids_of_one_call_the_server_keeps_the_last(kept: str, repaired: bool) -> None:
    item = {"id": "fc_1", "type": "function_call", "call_id": A, "name": "dig", "arguments": ""}
    done = {**item, "call_id": B, "arguments": '{"at": "oak"}', "status": "completed"}
    place = {"item_id": "fc_1", "output_index": 0}
    reply = sse(
        {"type": "response.created", "response": {"id": "resp_01", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", **place, "delta": '{"at": "oak"}'},
        {"type": "response.function_call_arguments.done", **place, "arguments": '{"at": "oak"}'},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"id": "resp_01", "status": "completed", "output": [done]}},
        done=False,
        named=True,
    )
    declared = {"type": "function", "name": "dig", "parameters": TOOLS["dig"]}
    body = {"model": "acme-1", "stream": True, "input": "Dig.", "tools": [declared]}
    one = as_record({**exchange("/v1/responses", body, reply, content_type="text/event-stream"), "id": "one"})
    two = goes_on(STATEFUL, [(A if kept == "first" else B, "a root")])
    before, after = run(one, two, permit=SAFE if repaired else UNSAFE)
    assert faults(before) == ["id-unstable"]
    assert said(sent(after))[1] == [(B, "a root")]
    assert not faults(after)


def test_an_id_that_the_client_mangled_is_restored_to_the_one_that_the_server_knows() -> None:
    one = first(STATEFUL, False, LEAKED)
    two = goes_on(STATEFUL, [(id_.replace("_", ""), text) for id_, text in results(one)])
    _, after = run(one, two)
    fits([], sent(after))
    assert faults(after) == ["mangled-id"]


@pytest.mark.parametrize("api", [STATEFUL, THREADS])
@pytest.mark.parametrize("word", ["", "undefined"])
@pytest.mark.parametrize("unanswered", [0, 1])
def test_ids_that_the_client_emptied_are_those_of_the_calls_that_wait(api: str, word: str, unanswered: int) -> None:
    one = first(api, False, "", Call("dig", OAK, A), Call("dig", ELM, B))
    two = goes_on(api, [(word, "a root"), (word, "a stone")][unanswered:])
    _, after = run(one, two, permit=SAFE)
    if unanswered:  # which of the two it is remains unknown
        assert after.record.forwarded is None
        return
    assert said(sent(after))[1] == [(A, "a root"), (B, "a stone")]
    assert faults(after) == ["mangled-id"] * 2


@pytest.mark.parametrize("api", [STATEFUL, THREADS])
def test_a_word_that_the_server_made_an_id_stays(api: str) -> None:
    one = first(api, False, "", Call("dig", OAK, "undefined"))
    _, after = run(one, goes_on(api, [("undefined", "a root")]), permit=SAFE)
    assert after.record.forwarded is None
    assert not faults(after)


def test_what_is_not_answered_at_once_is_owed_on() -> None:
    one = first(STATEFUL, False, f"{LEAKED}\n{MARKUP % 'elm'}")
    two, three = (goes_on(STATEFUL, [answer]) for answer in results(one, "a root", "a stone"))
    _, _, after = run(one, under("resp_02", two), under("resp_03", three, previous_response_id="resp_02"))
    fits([], sent(after))


def _request(record: Record) -> dict[str, Any]:
    return {"url": record.url, "body": record.request_body, "headers": dict(record.request_headers)}


def test_a_client_that_sends_its_history_gets_no_calls_put_in() -> None:
    one = first(STATEFUL, False, LEAKED)
    (before,) = run(one)
    (call,) = got(before)
    made = {"type": "function_call", "call_id": call.id, "name": "dig", "arguments": call.arguments.text}
    body = json.loads(one.request_body or b"")
    body["input"] += [made, {"type": "function_call_output", "call_id": call.id, "output": "a root"}]
    two = as_record({**exchange("/v1/responses", body, {"output": [], "status": "completed"}), "id": "two"})
    _, after = run(one, two)
    assert after.record.forwarded is None


@pytest.mark.parametrize("limit", ["wirelint.state.server_state._LONGEST", "wirelint.state.ledger._MOST_KEPT"])
def test_what_is_kept_to_be_sent_again_is_bounded(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, 40)
    one = first(STATEFUL, False, "", GLUED)
    _, after = run(one, goes_on(STATEFUL, results(one)))
    assert sent(after)["previous_response_id"] == "resp_01"
