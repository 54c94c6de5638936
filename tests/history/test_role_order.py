"""What refusals say, and what stands in the wrong place."""

from __future__ import annotations

import pytest

from tests.build import Assistant, Call, Result, Talk, User, read
from wirelint.history.role_order import Kind, misplaced, refused

REFUSALS: dict[str, tuple[object, set[str]]] = {
    "alternate": ({"message": "Conversation roles must alternate user/assistant"}, {"same-role", "system-late"}),
    "a template": ("Jinja Exception: conversation roles must alternate", {"same-role"}),
    "the first": ({"message": 'messages: first message must use the "user" role'}, {"assistant-first"}),
    "the last": ({"message": "Expected last role User or Tool but got assistant"}, {"assistant-last"}),
    "prefill": ({"message": "This model does not support assistant message prefill."}, {"assistant-last"}),
    "the system": ({"message": "System message must be at the beginning."}, {"system-late"}),
    "unexpected": ({"error": {"message": "Unexpected role 'user' after role 'tool'"}}, {"user-after-tool"}),
    "after a call": ([{"message": "'tool' must be a response to a preceding message"}], {"result-apart"}),
    "an item": ({"message": "Item 'rs_1' was provided without its required following item."}, {"item-apart"}),
    "a limit": ({"message": "Rate limit reached", "code": 429}, set()),
    "a context": ({"message": "maximum context length exceeded"}, set()),
    "a number": (404, set()),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    error, kinds = REFUSALS[name]
    found = refused(error)  # type: ignore[arg-type]
    assert kinds <= found
    assert bool(kinds) == bool(found)


ASK, CALLED = User("Light it."), Assistant("", (Call("lamp", {}, "call_1"),))
LIT = Result("call_1", "lit")
ALL: frozenset[Kind] = frozenset({
    "assistant-first", "assistant-last", "same-role", "system-late", "user-after-tool", "result-before-call",
    "result-apart",
})  # fmt: skip
ORDERS = {
    "in order": ((ASK, CALLED, LIT, Assistant("Done."), ASK), []),
    "the assistant first": ((Assistant("Hi."), ASK), ["assistant-first /messages/0"]),
    "the assistant last": ((ASK, Assistant("Hi.")), ["assistant-last /messages/1"]),
    "two of one role": ((ASK, ASK, ASK), ["same-role /messages/1"]),
    "the user after a result": ((ASK, CALLED, LIT, ASK), ["user-after-tool /messages/3"]),
    "before": ((ASK, LIT, CALLED, ASK), ["result-before-call /messages/1"]),
    "apart": ((ASK, CALLED, ASK, LIT), ["result-apart /messages/3"]),
    "an orphan": ((ASK, Result("call_2", "dark")), []),
}


@pytest.mark.parametrize("name", ORDERS)
def test_places(name: str) -> None:
    history, expected = ORDERS[name]
    request = read(Talk(history, "Well.").record("openai.chat", False)).request
    assert request is not None
    assert [f"{one.kind} {one.pointer}" for one in misplaced(request, ALL)] == expected
    for kind in ALL:
        assert [one.kind for one in misplaced(request, frozenset({kind}))] == [
            kind for place in expected if place.startswith(f"{kind} ")
        ]
