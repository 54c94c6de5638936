from __future__ import annotations

import hashlib
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, exchange
from tests.rules.case import ELSEWHERE, Fires, Silent, without

ASK = User("What grows in the greenhouse?")
OPENAI = "call_9QfXb2LmZt7RkVw3Nc8HsYpD"
JOINED = "fc_41d0b7c9e2f3486aa5b1c2d3e4f50617"
CLAUDE = "toolu_01Hk3TnBv5QxWz8LrMc2PdYf"


def turn(
    given: str | None, answered: str | None, *, name: str = "inspect_bed", model: str = "acme-1", **more: Any
) -> Talk:
    """A request whose history holds one call and its result."""
    call = Assistant(calls=(Call(name, {"bed": 4}, given),))
    return Talk((ASK, call, Result(answered, "Tomatoes.")), text="Tomatoes.", model=model, **more)


def same(id_: str, **more: Any) -> Talk:
    return turn(id_, id_, **more)


def issued(id_: str, name: str = "inspect_bed", **more: Any) -> Talk:
    """The exchange before: the reply that gives the call its id."""
    return Talk((ASK,), calls=(Call(name, {"bed": 4}, id_),), **more)


def chat(id_: str, reply: dict[str, Any], *, model: str = "acme-1", status: int = 200) -> dict[str, Any]:
    call = {"id": id_, "type": "function", "function": {"name": "prune", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Prune it."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id_, "content": "Pruned."},
    ]
    return exchange("/v1/chat/completions", {"model": model, "messages": messages}, reply, status=status)


def parallel(*ids: tuple[str, str]) -> Talk:
    calls = Assistant(calls=tuple(Call("inspect_bed", {"bed": n}, given) for n, (given, _) in enumerate(ids)))
    results = (Result(answered, f"bed {n}") for n, (_, answered) in enumerate(ids))
    return Talk((ASK, calls, *results), text="All of them.")


FIRES = {
    "stripped": Fires(
        same("functionsinspectbed0"), says="`functions.inspect_bed:0`", fix="safe", layer="client", severity="warning"
    ),
    "underscores": Fires(same("functions_inspect_bed_12"), says="`functions.inspect_bed:12`"),
    "dashes": Fires(same("functions-inspect_bed-3"), says="`functions.inspect_bed:3`"),
    "space for dot": Fires(same("functions inspect_bed:3"), says="`functions.inspect_bed:3`"),
    "colon lost": Fires(same("functions.inspect_bed7"), says="`functions.inspect_bed:7`"),
    "lower-cased": Fires(same("functions.inspectbed:7", name="inspectBed"), says="`functions.inspectBed:7`"),
    "padded": Fires(same("    functions.inspect_bed:37"), says="white space"),
    "percent escapes": Fires(same("functions.inspect_bed%3A2"), says="`functions.inspect_bed:2`"),
    "name ends in a digit": Fires(same("functionsread10", name="read1"), says="`functions.read1:0`"),
    "the original is another call's": Fires(
        Talk(
            (
                ASK,
                Assistant(calls=(Call("inspect_bed", {"bed": 1}, "functions.inspect_bed:0"),)),
                Result("functions.inspect_bed:0", "Tomatoes."),
                Assistant(calls=(Call("inspect_bed", {"bed": 2}, "functionsinspectbed0"),)),
                Result("functionsinspectbed0", "Beans."),
            )
        ),
        fix="none",
    ),
    "the original is the same call, sent before": Fires(
        Talk(
            (
                ASK,
                Assistant(calls=(Call("inspect_bed", {"bed": 1}, "functions.inspect_bed:0"),)),
                Result("functions.inspect_bed:0", "Tomatoes."),
                Assistant(calls=(Call("inspect_bed", {"bed": 1}, "functionsinspectbed0"),)),
                Result("functionsinspectbed0", "Tomatoes."),
            )
        ),
        fix="safe",
    ),
    "occurrence suffix": Fires(same("functionsinspectbed0x2"), says="`functions.inspect_bed:0`"),
    "digest suffix": Fires(
        same("functions_inspect_bed_0_" + hashlib.sha256(b"functions.inspect_bed:0").hexdigest()[:8]),
        says="`functions.inspect_bed:0`",
    ),
    "joined by a bar": Fires(same(f"{OPENAI}|{JOINED}"), says=f"`{OPENAI}` with a second id", fix="safe"),
    "joined by a line feed": Fires(same(f"{OPENAI}\n{JOINED}"), says=f"`{OPENAI}`"),
    "joined and folded": Fires(same(f"{OPENAI}_{JOINED}"), says=f"`{OPENAI}`"),
    "joined to nothing": Fires(same(f"{OPENAI}|undefined"), says=f"`{OPENAI}`"),
    "claude's underscore lost": Fires(same(CLAUDE.replace("_", "")), says=f"`{CLAUDE}`"),
    "openai's underscore lost": Fires(same(OPENAI.replace("_", "")), says=f"`{OPENAI}`"),
    "quotes": Fires(same(f'"{OPENAI}"'), says=f"`{OPENAI}`"),
    "editor's suffix": Fires(same(f"{CLAUDE}__vscode-1767225600123"), says=f"`{CLAUDE}`"),
    "the rest behind another prefix": Fires(
        same("call_functionsinspectbed0"), says="`functions.inspect_bed:0`", fix="safe"
    ),
    "all of it behind another prefix": Fires(
        same("toolu_functions_inspect_bed_12"), says="`functions.inspect_bed:12`", fix="safe"
    ),
    "the rest behind another prefix, at Kimi K2": Fires(
        same("call_inspectbed0", model="kimi-k2-instruct"), says="`functions.inspect_bed:0`", fix="safe"
    ),
    "the rest behind another prefix, and it passed": Fires(
        [issued("functions.inspect_bed:0"), same("call_inspectbed0")], says="`functions.inspect_bed:0`", fix="safe"
    ),
    "emptied, and it passed": Fires([issued(OPENAI), same("")], says=f"`{OPENAI}`", fix="safe"),
    "emptied on the call alone": Fires(turn("", OPENAI), says=f"call is `{OPENAI}`", fix="safe"),
    "emptied on the result alone": Fires(turn(OPENAI, ""), says="`(empty)`", severity="error", fix="safe"),
    "undefined": Fires(same("undefined"), says="is no id", fix="none"),
    "placeholder": Fires(same("defaulttoolid"), says="is no id"),
    "kimi k2, prefix lost too": Fires(same("inspect_bed_0", model="kimi-k2.5"), says="`functions.inspect_bed:0`"),
    "kimi k3": Fires(same("inspectbed4", model="moonshotai/kimi-k3"), says="`inspect_bed:4`"),
    "one of three": Fires(
        parallel((OPENAI, OPENAI), ("functionsinspectbed1", "functionsinspectbed1"), ("ok", "ok")), count=1
    ),
    "two of two": Fires(
        parallel(*((f"functionsinspectbed{n}", f"functionsinspectbed{n}") for n in (0, 1))), count=2, fix="safe"
    ),
    # Call and result differ.
    "result in capitals": Fires(turn("k3f9a0zq", "K3F9A0ZQ"), says="result is `k3f9a0zq`", fix="safe"),
    "call in small letters": Fires(turn("k3f9a0zq", "k3F9a0Zq"), says="`k3F9a0Zq`", fix="safe"),
    "result stripped": Fires(
        turn("functions.inspect_bed:0", "functionsinspectbed0"),
        says="`inspect_bed` result is `functions.inspect_bed:0`",
        severity="error",
        fix="safe",
    ),
    "result cut at the colon": Fires(turn("functions.inspect_bed:0", "functions.inspect_bed"), says="its end cut off"),
    "result cut to forty": Fires(turn(f"call_{'4f' * 21}", f"call_{'4f' * 21}"[:40]), says="result is", fix="safe"),
    "call cut to forty": Fires(turn(f"call_{'4f' * 21}"[:40], f"call_{'4f' * 21}"), says="something added"),
    "call lower-cased": Fires(turn(CLAUDE.lower(), CLAUDE), says=f"call is `{CLAUDE}`"),
    "call is undefined": Fires(turn("undefined", OPENAI), says=f"call is `{OPENAI}`"),
    "call has a stranger's prefix, the ledger knows": Fires(
        [issued(OPENAI), turn(OPENAI.replace("call_", "fc_"), OPENAI)], says=f"call is `{OPENAI}`"
    ),
    "result cut to nine": Fires(turn(OPENAI, "call9QfXb"), says="its end cut off"),
    "last nine": Fires(turn(OPENAI, OPENAI[-9:]), says="its beginning cut off"),
    "result lower-cased": Fires(turn(CLAUDE, CLAUDE.lower()), says="its letters lower-cased"),
    "result's prefix swapped": Fires(
        turn(OPENAI, OPENAI.replace("call_", "fc_")), says="its prefix `call_` replaced by `fc_`"
    ),
    "result is undefined": Fires(turn(OPENAI, "undefined"), says="`undefined`", severity="error"),
    "result is empty": Fires(turn(OPENAI, ""), says="(empty)"),
    "result under the name": Fires(turn(OPENAI, "inspect_bed"), says="function's name"),
    "result under a bare number": Fires(turn("functions.inspect_bed:0", "0"), says="`0`"),
    "result joined": Fires(turn(OPENAI, f"{OPENAI}|{JOINED}"), says="a second id"),
    "result hashed": Fires(turn(OPENAI, hashlib.sha256(OPENAI.encode()).hexdigest()[:9]), says="digest"),
    "call stripped, result kept": Fires(
        turn("functionsinspectbed0", "functions.inspect_bed:0"), says="call is `functions.inspect_bed:0`"
    ),
    "both mangled, each its own way": Fires(
        turn("functionsinspectbed0", "functions_inspect_bed_0"), says="and its result"
    ),
    # The ledger knows.
    "ledger: stripped": Fires([issued("chatcmpl-tool-3fa94c21bb07d6e8"), same("chatcmpltool3fa94c21bb07d6e8")]),
    "ledger: lower-cased on both sides": Fires([issued(CLAUDE), same(CLAUDE.lower())], says=f"`{CLAUDE}`"),
    "ledger: cut on both sides": Fires(
        [issued(f"call_{'4f' * 21}"), same(f"call_{'4f' * 21}"[:40])], says="end cut off"
    ),
    "ledger: replaced by something made up, and the model minds": Fires(
        [issued("functions.inspect_bed:0", model="kimi-k2-0905"), same("tool0inspectbed", model="kimi-k2-0905")],
        says="`functions.inspect_bed:0`",
        severity="warning",
        fix="safe",
    ),
    "ledger: replaced on one side": Fires(
        [issued("bed-7/a"), turn("tool0inspectbed", "bed-7/a")], says="call is `bed-7/a`", fix="safe"
    ),
    "ledger: id lost": Fires([issued(OPENAI), same("")], says=f"`{OPENAI}`"),
    "ledger: another conversation, long id": Fires(
        [issued(CLAUDE), Talk((User("Later."), *turn(CLAUDE.lower(), CLAUDE.lower()).history[1:]), text="Yes.")]
    ),
    "ledger: the tool was renamed as well": Fires([issued(CLAUDE), same(CLAUDE.lower(), name="mcp__beds__inspect")]),
    "refused by the api": Fires(
        chat("null", {"error": {"message": "tool_call_id null is not found"}}, status=400), severity="error"
    ),
}

FOREIGN = (
    OPENAI,
    CLAUDE,
    "toolu_vrtx_01Hk3TnBv5QxWz8LrMc2PdYf",
    "toolu_bdrk_01Hk3TnBv5QxWz8LrMc2PdYf",
    "tooluse_x-4mKq_T7bLw0ZrNd2VsYA",
    "functions.inspect_bed:0",
    "inspect_bed:0",
    "call_00_kT4vNz8RqLw2XbYc6MsPdHfG",
    "call_-8231168139794583938",
    "call_function_k3x9m2v7q1zt_2",
    "call_a1b2c3d4",
    "fc_0f0e50a1476a6c35006912c58dc9f8819192c25864eb16f07f",
    "5f3c1a2b-7d4e-4f60-9a8b-1c2d3e4f5a6b",
    "call_5f3c1a2b-7d4e-4f60-9a8b-1c2d3e4f5a6b",
    "chatcmpl-tool-3fa94c21bb07d6e8",
    "Zk93LmQ7t",
    "365174485",
    "1697377797897",
    "0",
    "function-call-8123",
    "tool_0_inspect_bed",
    "pyd_ai_6e0f3b7a91c24d58a6b7c8d9e0f1a2b3",
    "inspectbed1774112539381",
    "my-own-id/7",
    "call_k3x9__thought__CiQBVKhc7q+Zk/93Lm==",
    "call_k3x9:7",
    "call_1",
)

SILENT: dict[str, Any] = {
    **{f"foreign: {id_}": same(id_) for id_ in FOREIGN},
    "a name that begins with functions": same("functions.functions_list:0", name="functions_list"),
    "somebody else's function": same("functionsweather0"),
    "no number": same("functionsinspectbed"),
    "unchanged": [issued("functionsinspectbed0"), same("functionsinspectbed0")],
    "a counter of the client's own": same("call_inspect_bed_0"),
    "another function behind the prefix": same("call_functionswater0"),
    "the server gives no id": [issued(""), same("")],
    "the server says undefined itself": [issued("undefined"), same("undefined")],
    "the same asked of another service": [
        issued(OPENAI).record("anthropic.messages", False),
        same("t1").record("openai.chat", False),
    ],
    "gemini's empty ids": same(""),
    "another vendor's, in a linked conversation": [issued(OPENAI), same(CLAUDE)],
    "the client's own id on both sides": [issued("functions.inspect_bed:0"), same("tool0inspectbed")],
    "another run of the same prompt": [issued(OPENAI), same(OPENAI), same("made-up-7")],
    "other arguments": [
        issued("functions.inspect_bed:0"),
        Talk(
            (ASK, Assistant(calls=(Call("inspect_bed", {"bed": 5}, "step-1"),)), Result("step-1", "Leeks.")),
            text="Leeks.",
        ),
    ],
    "other conversation": [
        issued("functions.inspect_bed:0"),
        Talk((User("Another day."), *same("step-1").history[1:]), text="Tomatoes."),
    ],
    "claude cannot take dots": Silent(
        [issued("functions.inspect_bed:0"), same("functions_inspect_bed_0", model="claude-sonnet-4-5")],
        (("anthropic.messages", False), ("anthropic.messages", True)),
    ),
    "parallel, side by side": parallel(
        ("functions.read:1", "functions.read:1"), ("functions.read:10", "functions.read:10")
    ),
    "orphan of another call": turn("functions.inspect_bed:1", "functions.inspect_bed:10"),
    "two well-formed ids that have nothing in common": turn(OPENAI, "call_Kp2ZtNv9QmXc4RbWs7LdHfYg"),
    "result without an id": turn(OPENAI, None),
    "nine letters and digits, as mistral wants them": chat("x7Kq2MvZt", {"choices": []}, model="mistral-large-latest"),
}


# --- other APIs: Ollama's talk has no ids ------------------------------------------------------------------------------

_NAMED = without("ollama.chat")
FIRES |= {
    f"{id_}, elsewhere": Fires(FIRES[id_].case, FIRES[id_].count, fix=FIRES[id_].fix, forms=_NAMED)
    for id_ in (
        "stripped", "underscores", "padded", "joined by a bar", "placeholder", "two of two", "result stripped",
        "result cut to forty", "result lower-cased", "result is undefined", "result hashed", "call stripped, result kept",
        "ledger: lower-cased on both sides",
    )
}  # fmt: skip
SILENT |= {
    f"{id_}, elsewhere": Silent(case.case if isinstance(case, Silent) else case, ELSEWHERE)
    for id_, case in SILENT.items()
    if not isinstance(case, dict)
    and id_
    not in (
        "claude cannot take dots",
        "the client's own id on both sides",
        "orphan of another call",
        "two well-formed ids that have nothing in common",
    )
    and (not isinstance(case, Silent) or isinstance(case.case, Talk))
}


def responses(*items: dict[str, Any], host: str = "api.openai.com", error: str = "", **more: Any) -> dict[str, Any]:
    """A request of OpenAI's Responses; with an error, it was refused."""
    body = {"model": "gpt-5", "input": [{"role": "user", "content": "What grows?"}, *items], **more}
    reply = (
        {"error": {"message": error, "type": "invalid_request_error"}}
        if error
        else {"output": [], "status": "completed"}
    )
    made = exchange("", body, reply, status=400 if error else 200)
    made["request"]["url"] = f"https://{host}/v1/responses"
    return made


def item(id_: str | None, call_id: str = OPENAI, **more: Any) -> dict[str, Any]:
    made = {"type": "function_call", "call_id": call_id, "name": "inspect_bed", "arguments": "{}", **more}
    return made if id_ is None else {"id": id_, **made}


def output(call_id: str = OPENAI, **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "Tomatoes.", **more}


def ollama(given: str | None, answered: str | None) -> dict[str, Any]:
    call = {
        "function": {"name": "inspect_bed", "arguments": {"bed": 4}},
        **({"id": given} if given is not None else {}),
    }
    result = {"role": "tool", "tool_name": "inspect_bed", "content": "Tomatoes."}
    result |= {"tool_call_id": answered} if answered is not None else {}
    messages = [
        {"role": "user", "content": "What?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        result,
    ]
    reply = {
        "model": "acme-1",
        "message": {"role": "assistant", "content": "Tomatoes."},
        "done": True,
        "done_reason": "stop",
    }
    return exchange("/api/chat", {"model": "acme-1", "stream": False, "messages": messages}, reply)


def gemini(given: str | None, answered: str | None, name: str = "inspect_bed") -> dict[str, Any]:
    call, response = {"name": "inspect_bed", "args": {}}, {"name": name, "response": {"output": "Tomatoes."}}
    contents = [
        {"role": "user", "parts": [{"text": "What?"}]},
        {"role": "model", "parts": [{"functionCall": call | ({"id": given} if given else {})}]},
        {"role": "user", "parts": [{"functionResponse": response | ({"id": answered} if answered else {})}]},
    ]
    reply = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Tomatoes."}]}, "finishReason": "STOP"}]}
    return exchange("/v1beta/models/gemini-2.5-pro:generateContent", {"contents": contents}, reply)


def gave(call_id: str) -> dict[str, Any]:
    return issued(call_id, request={"prompt_cache_key": "k1"}).record("openai.responses", False)


def answers(call_id: str, **more: Any) -> dict[str, Any]:
    """A request that shows nothing but a result: the server keeps the rest."""
    body = {
        "model": "gpt-5",
        "input": [output(call_id)],
        "previous_response_id": "resp_01",
        "prompt_cache_key": "k1",
        **more,
    }
    return exchange("/v1/responses", body, {"output": [], "status": "completed"})


_BEGINS = "Invalid 'input[1].id': 'x-1'. Expected an ID that begins with 'fc'."
FIRES |= {
    "item: the call's id": Fires(responses(item(OPENAI), output()), says="id of its call", pointer="/input/1/id", fix="safe"),
    "item: another call's": Fires(responses(item("toolu_01Hk3TnBv5QxWz8L"), output()), says="the id of a call", fix="safe"),
    "item: a message's": Fires(responses(item("msg_68cdc39029a48190"), output()), says="another kind of item", fix="safe"),
    "item: joined": Fires(responses(item(f"fc_1|{OPENAI}"), output()), says="joined", fix="safe"),
    "item: undefined": Fires(responses(item("fc_undefined"), output()), says="no value", fix="safe"),
    "item: of a message, a call's": Fires(
        responses({"type": "message", "role": "assistant", "id": CLAUDE, "content": [{"type": "output_text", "text": "Hm."}]}),
        says="message item", fix="safe",
    ),
    "item: of thoughts, a message's": Fires(
        responses({"type": "reasoning", "id": "msg_1", "summary": [], "encrypted_content": "Z0"}), says="reasoning", fix="none"
    ),
    "item: of an output": Fires(responses(item("fc_1"), output(id=OPENAI)), says="function_call_output", fix="safe"),
    "item: at azure": Fires(responses(item(OPENAI), output(), host="garden.openai.azure.com"), fix="safe"),
    "kept by the server: stripped": Fires([gave(OPENAI), answers(OPENAI.replace("_", ""))], says=OPENAI, fix="safe"),
    "kept by the server: cut": Fires([gave(OPENAI), answers(OPENAI[:20])], says="cut off", fix="safe"),
    "kept by the server: another prefix": Fires([gave(OPENAI), answers(OPENAI.replace("call", "fc"))], fix="safe"),
    "item: refused elsewhere": Fires(
        responses(item(OPENAI), output(), host="llm.test", error=_BEGINS), severity="error", fix="safe"
    ),
    "responses: composite": Fires(responses(item(None, f"{OPENAI}|{JOINED}"), output(f"{OPENAI}|{JOINED}")), fix="safe"),
    "responses: the output has the item's id": Fires(responses(item(JOINED), output(JOINED)), says=OPENAI, fix="safe"),
    "responses: the output has its own": Fires(responses(item(JOINED), output("fco_41d0b7c9e2f3486a")), says=OPENAI, fix="safe"),
    "ollama: recent, stripped": Fires(ollama("functions.inspect_bed:0", "functionsinspectbed0"), fix="safe"),
    "gemini: another id": Fires(gemini("0qx7hb2m", "function-call-1"), says="another id in its place", fix="safe"),
    "gemini: cut": Fires(gemini(OPENAI, OPENAI[:20]), says="cut off", fix="safe"),
}  # fmt: skip
SILENT |= {
    "ledger: a counter of each reply, qualified": [issued("call_0"), same("resp_41d0b7c9e2f3486aa5b1c2d3e4f50617:call_0")],
    "kept by the server: as it came": [gave(OPENAI), answers(OPENAI)],
    "kept by the server: another call's": [gave(OPENAI), answers("call_Kp2ZtNv9QmXc4RbWs7LdHfYg")],
    "kept by the server: nothing is known": answers(OPENAI.replace("_", "")),
    "kept by the server: too short to tell": [gave("call_1"), answers("call1")],
    "item: its own id": responses(item(JOINED), output()),
    "item: none": responses(item(None), output()),
    "item: short, but its own": responses(item("fc_1"), output(id="fco_1")),
    "item: at another server": responses(item(OPENAI), output(), host="vllm.test"),
    "item: a uuid at another server": responses(item("0a1b2c3d-1f2e-4d3c-8b7a-665544332211"), output(), host="or.test"),
    "item: a search": responses({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    "item: refused for another reason": responses(item("fc_1"), output(), error="Item 'fc_1' was provided without its 'rs_1'."),
    "responses: an item's id on both": responses(item(None, JOINED), output(JOINED)),
    "responses: text alone": responses(),
    "ollama: recent": ollama("call_lyywui55", "call_lyywui55"),
    "ollama: the client has ids of its own for results": ollama(None, "call_1"),
    "ollama: none on the result": ollama("call_lyywui55", None),
    "gemini: recent": gemini("0qx7hb2m", "0qx7hb2m"),
    "gemini: left out on one side": gemini("0qx7hb2m", None),
    "gemini: the client's own on one side": gemini(None, "adk-0a1b2c3d-1f2e-4d3c-8b7a-665544332211"),
    "gemini: another function": gemini("0qx7hb2m", "9zk2mm1p", "water"),
    "gemini: given, and left out": [issued("0qx7hb2m").record("google.generate_content", False), gemini(None, None)],
}  # fmt: skip
