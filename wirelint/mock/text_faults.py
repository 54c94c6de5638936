"""Faults of what a model says: markup, tokens and thinking in the text, actions and results that never were.

The wording is that of models at large; nothing in it is meant for a linter's eye.
"""

from __future__ import annotations

from dataclasses import replace

from wirelint.mock.fault import Fault, NotApplicableError, Turn
from wirelint.mock.markup import MARKUP
from wirelint.mock.plan import Reply, dump_json
from wirelint.mock.schema_values import Topic


def _leak_markup(reply: Reply, turn: Turn) -> Reply:
    markup = MARKUP[turn.options.dialect](reply.calls)
    if turn.options.place == "reasoning":
        reasoning = reply.reasoning or f"This needs {reply.calls[0].name}."
        return Reply(f"{reasoning}\n{markup}")
    return Reply(reply.reasoning, f"{reply.text or 'Let me look that up.'}\n\n{markup}")


_CONTROL_TOKENS = {
    "end": "<|im_end|>",
    "eot": "<|eot_id|>",
    "deepseek": "<｜end▁of▁sentence｜>",
    "turn": "<end_of_turn>",
}


def _leak_control_token(reply: Reply, turn: Turn) -> Reply:
    if turn.options.mode == "name":
        if not reply.calls:
            raise NotApplicableError("mode=name needs a tool call")
        return replace(reply, calls=tuple(replace(call, name=f"{call.name}<|channel|>json") for call in reply.calls))
    return replace(reply, text=f"{reply.text or 'One moment.'}{_CONTROL_TOKENS[turn.options.mode or 'end']}")


def _leak_thinking(reply: Reply, turn: Turn) -> Reply:
    thinking = f"The user wants to know about {Topic.of(turn.ask.user_text).phrase}. Keep it short."
    opener = "" if turn.options.mode == "orphan" else "<think>\n"
    return replace(reply, reasoning="", text=f"{opener}{thinking}\n</think>\n\n{reply.text}")


_PAST = {
    "search": "searched", "find": "searched", "query": "queried", "lookup": "looked up", "get": "checked",
    "fetch": "fetched", "read": "read", "list": "listed", "write": "wrote", "edit": "edited", "update": "updated",
    "create": "created", "add": "added", "delete": "deleted", "remove": "removed", "send": "sent", "run": "ran",
    "execute": "executed", "book": "booked", "open": "opened", "check": "checked",
}  # fmt: skip


def _fabricate_call(reply: Reply, turn: Turn) -> Reply:
    words = reply.calls[0].name.replace("-", "_").lower().split("_")
    topic = Topic.of(turn.ask.user_text).phrase
    if words[0] in _PAST:
        what = " ".join(words[1:]) or "everything available"
        claim = f'I {_PAST[words[0]]} the {what} for "{topic}"'
    else:
        claim = f'I called {reply.calls[0].name} for "{topic}"'
    return Reply(reply.reasoning, f"{claim} and found 0 results. There may be nothing on this subject.")


def _fabricate_result(reply: Reply, turn: Turn) -> Reply:
    ask, mode = turn.ask, turn.options.mode or ("written" if turn.ask.result is None else "contradiction")
    topic = Topic.of(ask.user_text).phrase
    if mode == "contradiction":
        if ask.result is None:
            raise NotApplicableError("mode=contradiction needs a tool result at the end of the request")
        failed = "error" in ask.result.lower() or "not found" in ask.result.lower()
        end = "completed successfully." if failed else "returned 0 results, so there is nothing to report."
        return Reply(reply.reasoning, f"The call to {ask.result_tool} {end}")
    name = reply.calls[0].name if reply.calls else "search"
    if mode == "observation":
        arguments = reply.calls[0].arguments if reply.calls else dump_json({"query": topic})
        steps = f"Thought: {name} will know.\nAction: {name}\nAction Input: {arguments}"
        return Reply(reply.reasoning, f"{steps}\nObservation: 3 matches for {topic}\nAnswer: There are 3 matches.")
    result = dump_json({"matches": 3, "best": topic})
    text = f"<tool_response>\n{result}\n</tool_response>\nThere are 3 matches; the best one is {topic}."
    return Reply(reply.reasoning, text)


def _announce_only(reply: Reply, turn: Turn) -> Reply:
    topic = Topic.of(turn.ask.user_text).phrase
    return Reply(reply.reasoning, f"I'll call {reply.calls[0].name} now to look up {topic}.")


def _deny_tools(reply: Reply, turn: Turn) -> Reply:
    topic = Topic.of(turn.ask.user_text).phrase
    return Reply(reply.reasoning, f"I don't have access to any tools here, so I cannot look up {topic} for you.")


def _say_nothing(reply: Reply, turn: Turn) -> Reply:
    del reply, turn
    return Reply()


TEXT_FAULTS: dict[str, Fault] = {
    "xml-leak": Fault(
        doc="the calls stand in the text (or the reasoning) in a model's native markup",
        reply=_leak_markup,
        takes=frozenset({"dialect", "place"}),
        calls=1,
    ),
    "control-token-leak": Fault(
        doc="a chat-template token ends the text, or stands in the name of the tool",
        reply=_leak_control_token,
        modes=(*_CONTROL_TOKENS, "name"),
        needs=frozenset({"chat"}),
    ),
    "think-leak": Fault(
        doc="reasoning stands in the text between think tags, or before the closing tag alone",
        reply=_leak_thinking,
        modes=("pair", "orphan"),
        needs=frozenset({"chat"}),
    ),
    "fabricated-call": Fault(
        doc="the text claims an action, and nothing was called",
        reply=_fabricate_call,
        calls=1,
        needs=frozenset({"calls"}),
    ),
    "fabricated-result": Fault(
        doc="the model writes the tool's result itself, or contradicts the one it got (the default after a result)",
        reply=_fabricate_result,
        modes=("written", "observation", "contradiction"),
        needs=frozenset({"calls"}),
    ),
    "intent-without-call": Fault(
        doc="the text announces a call, and the turn ends",
        reply=_announce_only,
        calls=1,
        needs=frozenset({"calls"}),
    ),
    "tools-on-raw-endpoint": Fault(
        doc="the model denies having the tools that the request declares",
        reply=_deny_tools,
        calls=1,
        needs=frozenset({"calls"}),
    ),
    "empty-response": Fault(doc="no text, no reasoning, no call", reply=_say_nothing, needs=frozenset({"ends"})),
}
