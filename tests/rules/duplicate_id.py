from __future__ import annotations

from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, forms, sse
from tests.rules.case import ELSEWHERE, Fires, Silent, without

ASK, MORE = User("Ring the bells."), User("Again.")
A, B = "call_Rw4kTz8QnXv2LbYc6MsPdHfG", "toolu_01Hk3TnBv5QxWz8LrMc2PdYf"
CHAT = (("openai.chat", False), ("openai.chat", True))
CLAUDE = (("anthropic.messages", False), ("anthropic.messages", True))
TEXT: dict[str, Any] = {"text": "Ding, dong."}


def bell(id_: str | None, n: int = 1, name: str = "ring") -> Call:
    return Call(name, {"bell": n}, id_)


def calls(*made: Call) -> Assistant:
    return Assistant(calls=made)


def candidates(first: str, second: str) -> dict[str, Any]:
    def choice(index: int, id_: str) -> dict[str, Any]:
        call = {"id": id_, "type": "function", "function": {"name": "ring", "arguments": "{}"}}
        return {"index": index, "message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}

    body = {"model": "acme-1", "n": 2, "messages": [{"role": "user", "content": "Ring."}]}
    return exchange("/v1/chat/completions", body, {"choices": [choice(0, first), choice(1, second)]})


FIRES = {
    "one message": Fires(
        Talk((ASK, calls(bell(A, 1), bell(A, 2)), Result(A, "ding"), Result(A, "dong")), **TEXT),
        says="in one message",
        severity="error",
        layer="client",
        fix="unsafe",
    ),
    "one message, one answer": Fires(Talk((ASK, calls(bell(A, 1), bell(A, 2)), Result(A, "ding")), **TEXT)),
    "one message, the very same call": Fires(Talk((ASK, calls(bell(A), bell(A)), Result(A, "ding")), **TEXT)),
    "three in one message": Fires(
        Talk((ASK, calls(bell("b", 1), bell("b", 2), bell("b", 3)), Result("b", "ding")), **TEXT), says="3 calls in all"
    ),
    "two turns": Fires(
        Talk((ASK, calls(bell(A, 1)), Result(A, "ding"), MORE, calls(bell(A, 2)), Result(A, "dong")), **TEXT),
        says="in two turns",
        severity="warning",
    ),
    "two turns, other function": Fires(
        Talk((ASK, calls(bell("0")), Result("0", "ding"), calls(bell("0", name="mute")), Result("0", "quiet")), **TEXT)
    ),
    "two turns, same call, other result": Fires(
        Talk(
            (ASK, calls(bell("ring")), Result("ring", "ding"), MORE, calls(bell("ring")), Result("ring", "dong")),
            **TEXT,
        )
    ),
    "kimi k2 counts anew": Fires(
        Talk(
            (
                ASK,
                calls(bell("functions.ring:0", 1)),
                Result("functions.ring:0", "ding"),
                MORE,
                calls(bell("functions.ring:0", 2)),
                Result("functions.ring:0", "dong"),
            ),
            model="kimi-k2.5",
            **TEXT,
        )
    ),
    "kimi k3 within a turn": Fires(
        Talk(
            (
                ASK,
                calls(bell("ring:0", 1)),
                Result("ring:0", "ding"),
                calls(bell("ring:0", 2)),
                Result("ring:0", "dong"),
            ),
            model="kimi-k3",
            **TEXT,
        )
    ),
    "kimi k3, one message": Fires(
        Talk((ASK, calls(bell("ring:0", 1), bell("ring:0", 2)), Result("ring:0", "ding")), model="kimi-k3", **TEXT)
    ),
    "empty, one message": Fires(
        Talk((ASK, calls(bell("", 1), bell("", 2)), Result("", "ding"), Result("", "dong")), **TEXT), says="an empty id"
    ),
    "two results": Fires(
        Talk((ASK, calls(bell(A)), Result(A, "ding"), Result(A, "dong")), **TEXT),
        says="another result",
        severity="error",
    ),
    "two results in one message, the same": Fires(
        Talk((ASK, calls(bell(A)), Result(A, "ding"), Result(A, "ding")), **TEXT),
        says="the same result",
        severity="warning",
        forms=CLAUDE,
    ),
    "a late second result": Fires(Talk((ASK, calls(bell(A)), Result(A, "pending"), MORE, Result(A, "ding")), **TEXT)),
    "reply: parallel": Fires(
        Talk((ASK,), calls=(bell(A, 1), bell(A, 2))), says="parallel calls", layer="gateway", severity="error"
    ),
    "reply: parallel, other functions": Fires(Talk((ASK,), calls=(bell("0"), bell("0", name="mute"))), says="`mute`"),
    "reply: parallel, empty": Fires(Talk((ASK,), calls=(bell("", 1), bell("", 2))), says="have no id"),
    "reply: parallel, none": Fires(Talk((ASK,), calls=(bell(None, 1), bell(None, 2))), says="have no id", forms=CHAT),
    "reply: one empty id": Fires(
        Talk((ASK,), calls=(bell(""),)), says="has no id", severity="warning", layer="gateway", fix="unsafe"
    ),
    "reply: one without an id": Fires(Talk((ASK,), calls=(bell(None),)), says="has no id", fix="unsafe", forms=CHAT),
    "reply: one of two without an id": Fires(Talk((ASK,), calls=(bell("", 1), bell(A, 2))), says="has no id"),
    "reply: an id of the history": Fires(
        Talk((ASK, calls(bell("0", 1)), Result("0", "ding"), MORE), calls=(bell("0", 2),)),
        says="an earlier one",
        severity="warning",
        layer="gateway",
    ),
    "reply: an id that the request answers, and the server has its call": Fires(
        Talk((Result("0", "ding"),), calls=(bell("0", 2),), request={"previous_response_id": "resp_1"}),
        says="that this request answers",
        severity="warning",
        layer="gateway",
        fix="unsafe",
        forms=forms("openai.responses"),
    ),
    "reply: kimi k3, same turn": Fires(
        Talk((ASK, calls(bell("ring:0", 1)), Result("ring:0", "ding")), calls=(bell("ring:0", 2),), model="kimi-k3")
    ),
}

SILENT = {
    "parallel calls where no call has an id": Silent(
        Talk((ASK,), calls=(bell(None, 1), bell(None, 2))),
        forms("ollama.chat", "google.generate_content"),
    ),
    "different ids": Talk((ASK, calls(bell(A, 1), bell(B, 2)), Result(A, "ding"), Result(B, "dong")), **TEXT),
    "resent": Talk((ASK, calls(bell(A)), Result(A, "ding"), calls(bell(A)), Result(A, "ding"), MORE), **TEXT),
    "call resent, answered once": Talk((ASK, calls(bell(A)), calls(bell(A)), Result(A, "ding")), **TEXT),
    "result resent": Silent(Talk((ASK, calls(bell(A)), Result(A, "ding"), Result(A, "ding")), **TEXT), CHAT),
    "kimi k3, two turns": Talk(
        (
            ASK,
            calls(bell("ring:0", 1)),
            Result("ring:0", "ding"),
            MORE,
            calls(bell("ring:0", 2)),
            Result("ring:0", "dong"),
        ),
        model="kimi-k3",
        **TEXT,
    ),
    "reply: kimi k3, next turn": Talk(
        (ASK, calls(bell("ring:0", 1)), Result("ring:0", "ding"), MORE), calls=(bell("ring:0", 2),), model="kimi-k3"
    ),
    "kimi k2 counts on": Talk(
        (ASK, calls(bell("functions.ring:0")), Result("functions.ring:0", "ding"), MORE),
        calls=(bell("functions.ring:1"),),
    ),
    "ids that differ by case": Talk((ASK, calls(bell("Ab"), bell("aB")), Result("Ab", "1"), Result("aB", "2")), **TEXT),
    "empty ids in two turns": Talk(
        (ASK, calls(bell("", 1)), Result("", "ding"), MORE, calls(bell("", 2)), Result("", "dong")), **TEXT
    ),
    "reply: one call without an id, and none needed": Silent(
        Talk((ASK,), calls=(bell(None),)), forms("ollama.chat", "google.generate_content")
    ),
    "reply: a call of old, which has none": exchange(
        "/v1/chat/completions",
        {"model": "acme-1", "messages": [{"role": "user", "content": "Ring."}]},
        {
            "choices": [
                {
                    "index": 0,
                    "message": {"function_call": {"name": "ring", "arguments": "{}"}},
                    "finish_reason": "function_call",
                }
            ]
        },
    ),
    "reply: one empty id, and the server keeps the conversation": Silent(
        Talk((ASK,), calls=(bell(""),), request={"previous_response_id": "resp_1"}), forms("openai.responses")
    ),
    "reply: another id than the request answers": Silent(
        Talk((Result("0", "ding"),), calls=(bell("1", 2),), request={"previous_response_id": "resp_1"}),
        forms("openai.responses"),
    ),
    "reply: kimi k3 counts anew, and the server keeps the conversation": Silent(
        Talk(
            (Result("ring:0", "ding"), MORE),
            calls=(bell("ring:0", 2),),
            model="kimi-k3",
            request={"previous_response_id": "resp_1"},
        ),
        forms("openai.responses"),
    ),
    "reply: parallel": Talk((ASK,), calls=(bell(A, 1), bell(B, 2))),
    "reply: candidates share an id": candidates(A, A),
    "reply: candidates": candidates(A, B),
    "orphan of the same id twice": Talk((ASK, Result(A, "ding"), MORE), **TEXT),
    "id repeated in every chunk": exchange(
        "/v1/chat/completions",
        {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Ring."}]},
        sse(
            chunk({"tool_calls": [{"index": 0, "id": A, "function": {"name": "ring", "arguments": ""}}]}),
            chunk(
                {"tool_calls": [{"index": 0, "id": A, "function": {"name": "ring", "arguments": "{}"}}]}, "tool_calls"
            ),
        ),
        content_type="text/event-stream",
    ),
    "no ids, no calls": Talk((ASK,), **TEXT),
}


# --- other APIs --------------------------------------------------------------------------------------------------------

_NAMED = without("ollama.chat")
FREE = (("google.generate_content", False), ("ollama.chat", False))
FIRES |= {
    f"{id_}, elsewhere": Fires(FIRES[id_].case, FIRES[id_].count, fix=FIRES[id_].fix, forms=_NAMED)
    for id_ in (
        "one message", "one message, one answer", "three in one message", "two turns", "two turns, other function",
        "two turns, same call, other result", "kimi k2 counts anew", "kimi k3, one message", "two results",
        "reply: parallel", "reply: an id of the history",
    )
} | {
    "empty, one message, elsewhere": Fires(
        FIRES["empty, one message"].case, says="empty id", forms=without("google.generate_content", "ollama.chat")
    ),
    "reply: parallel, empty, elsewhere": Fires(
        FIRES["reply: parallel, empty"].case, forms=without("google.generate_content", "ollama.chat")
    ),
}  # fmt: skip
SILENT |= {
    f"{id_}, elsewhere": Silent(case.case if isinstance(case, Silent) else case, ELSEWHERE)
    for id_, case in SILENT.items()
    if isinstance(case, Talk) and id_ != "result resent"
} | {
    "no ids, elsewhere": Silent(Talk((ASK, calls(bell(None), bell(None, 2))), **TEXT), FREE),
    "no ids, the same call twice": Silent(Talk((ASK, calls(bell(None), bell(None))), **TEXT), FREE),
    "no ids, in every turn": Silent(
        Talk((ASK, calls(bell(None)), Result(None, "ding"), MORE, calls(bell(None)), Result(None, "dong")), **TEXT),
        FREE,
    ),
    "empty ids, where none are needed": Silent(Talk((ASK, calls(bell(""), bell("", 2))), **TEXT), FREE),
    "reply: parallel, none needed": Silent(Talk((ASK,), calls=(bell(None), bell(None, 2))), FREE),
    "an item of a call, sent again": Silent(
        Talk((ASK, calls(bell(A)), calls(bell(A)), Result(A, "ding")), **TEXT), (("openai.responses", False),)
    ),
}
