from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent

ASK = (User("Water the ferns."),)
OPENAI = (("openai.chat", False), ("openai.chat", True))
TOOLS = {
    "water": schema(plant="string"),
    "Prune": schema(),
    "list_plants": schema(),
    "mcp__garden__move_pot": schema(),
}


def named(name: str, **more: Any) -> Talk:
    return Talk(ASK, calls=(Call(name, {}),), tools=TOOLS, **more)


def wrapped(*uses: tuple[str, dict[str, Any]], id_: str = "call_1") -> Talk:
    inside = [{"recipient_name": name, "parameters": given} for name, given in uses]
    return Talk(ASK, calls=(Call("multi_tool_use.parallel", {"tool_uses": inside}, id_),), tools=TOOLS)


def chat(tools: Any, *calls: dict[str, Any], field: str = "tools", **more: Any) -> dict[str, Any]:
    body = {"model": "acme-1", "messages": [{"role": "user", "content": "Water."}], field: tools, **more}
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    return exchange("/v1/chat/completions", body, reply)


def call(name: str, id_: str = "call_1") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": "{}"}}


def claude(tools: list[dict[str, Any]], *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {
        "model": "acme-1",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": tools,
        **more,
    }
    return exchange("/v1/messages", body, {"type": "message", "content": list(blocks), "stop_reason": "tool_use"})


def use(name: str, kind: str = "tool_use") -> dict[str, Any]:
    return {"type": kind, "id": "toolu_1", "name": name, "input": {}}


FERTILISE = {"type": "function", "function": {"name": "fertilise"}}

FIRES = {
    "unknown": Fires(named("fertilise"), says="fertilise is not declared; the 4", fix="unsafe", layer="model"),
    "unknown with a namespace": Fires(named("garden.fertilise.now"), fix="unsafe"),
    "no tools at all": Fires(Talk(ASK, calls=(Call("water", {}),)), says="declares no tools", fix="unsafe"),
    "only in the history": Fires(
        Talk(
            (*ASK, Assistant(calls=(Call("fertilise", {}, "call_0"),)), Result("call_0", "done"), User("Again.")),
            calls=(Call("fertilise", {}),),
            tools=TOOLS,
        ),
        says="the history calls it",
    ),
    "lower case": Fires(named("prune"), says="Prune is", fix="safe", layer="model"),
    "camel case": Fires(named("listPlants"), says="list_plants is", fix="safe"),
    "hyphen": Fires(named("list-plants"), fix="safe"),
    "harmony's namespace": Fires(named("functions.water"), says="a prefix", fix="safe", layer="gateway"),
    "Gemini's namespace": Fires(named("default_api.list_plants"), fix="safe", layer="gateway"),
    "native id as a name": Fires(named("functions.water:0"), fix="safe", layer="gateway"),
    "prefix with a blank": Fires(named("functions water"), fix="safe"),
    "prefix and case": Fires(named("functions.Water"), says="water is", fix="safe"),
    "a server's prefix that is not declared": Fires(named("mcp__greenhouse__water"), says="MCP", fix="safe"),
    "the server's prefix left out": Fires(named("move_pot"), says="mcp__garden__move_pot", fix="safe"),
    "a namespace of its own": Fires(named("garden.water"), says="another namespace", fix="unsafe"),
    "twice": Fires(named("waterwater"), says="twice", fix="safe", layer="gateway"),
    "twice with a dot": Fires(named("water.water"), fix="safe"),
    "channel markup": Fires(named("water<|channel|>commentary"), says="markup", fix="safe", layer="gateway"),
    "closing tag": Fires(named("water</tool_call>"), fix="safe"),
    "whole native call": Fires(named('water{"plant": "fern"}'), fix="safe"),
    "blanks": Fires(named(" water\n"), fix="safe"),
    "the other server": Fires(named("mcp__kitchen__move_pot"), fix="unsafe", says="is not declared"),
    "one of two": Fires(
        Talk(ASK, calls=(Call("water", {"plant": "fern"}), Call("fertilise", {}, "call_2")), tools=TOOLS), count=1
    ),
    "both": Fires(Talk(ASK, calls=(Call("prune", {}), Call("fertilise", {}, "call_2")), tools=TOOLS), count=2),
    "parallel wrapper": Fires(named("multi_tool_use.parallel"), fix="unsafe"),
    "two calls in a parallel wrapper": Fires(
        wrapped(("functions.water", {"plant": "fern"}), ("functions.list_plants", {})),
        says="wraps 2 calls",
        fix="unsafe",
    ),
    "one call in a parallel wrapper": Fires(
        wrapped(("water", {"plant": "fern"})), says="wraps a call of water", fix="unsafe"
    ),
    "a wrapper beside a call": Fires(
        replace(
            wrapped(("functions.water", {"plant": "moss"})),
            calls=(Call("water", {"plant": "fern"}), *wrapped(("water", {"plant": "moss"}), id_="call_2").calls),
        ),
        says="wraps a call of water",
        count=1,
    ),
    "a wrapper around a call that nobody has": Fires(
        wrapped(("functions.water", {"plant": "fern"}), ("functions.weed", {})), says="the 4 declared", fix="unsafe"
    ),
    "a wrapper without arguments inside": Fires(
        Talk(
            ASK,
            calls=(Call("multi_tool_use.parallel", {"tool_uses": [{"recipient_name": "functions.water"}]}),),
            tools=TOOLS,
        ),
        says="the 4 declared",
    ),
    "second choice": Fires(
        exchange(
            "/v1/chat/completions",
            {"model": "acme-1", "n": 2, "messages": [{"role": "user", "content": "Water."}], "tools": [FERTILISE]},
            {
                "choices": [
                    {"index": n, "message": {"tool_calls": [call(name)]}, "finish_reason": "tool_calls"}
                    for n, name in enumerate(("fertilise", "weed"))
                ]
            },
        ),
        pointer="/choices/1/message/tool_calls/0",
    ),
    "legacy function": Fires(
        exchange(
            "/v1/chat/completions",
            {"model": "acme-1", "messages": [{"role": "user", "content": "Go."}], "functions": [{"name": "water"}]},
            {"choices": [{"index": 0, "message": {"function_call": {"name": "weed", "arguments": "{}"}}}]},
        )
    ),
    "beside a hosted tool": Fires(
        claude(
            [{"type": "web_search_20250305", "name": "web_search"}, {"name": "water", "input_schema": {}}], use("weed")
        )
    ),
    "cut off after the name": Fires(
        exchange(
            "/v1/chat/completions",
            {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Go."}], "tools": [FERTILISE]},
            sse(chunk({"tool_calls": [{"index": 0, **call("weed")}]}), done=False),
            content_type="text/event-stream",
        )
    ),
}

SILENT = {
    "declared": named("water"),
    "declared with a prefix": Talk(ASK, calls=(Call("functions.water", {}),), tools={"functions.water": schema()}),
    "declared in two cases": Talk(ASK, calls=(Call("Water", {}),), tools={"water": schema(), "Water": schema()}),
    "full MCP name": named("mcp__garden__move_pot"),
    "no calls": Talk(ASK, text="Use fertilise.", tools=TOOLS),
    "legacy function": exchange(
        "/v1/chat/completions",
        {"model": "acme-1", "messages": [{"role": "user", "content": "Go."}], "functions": [{"name": "water"}]},
        {"choices": [{"index": 0, "message": {"function_call": {"name": "water", "arguments": "{}"}}}]},
    ),
    "custom tool": chat(
        [{"type": "custom", "custom": {"name": "py"}}],
        {"id": "c", "type": "custom", "custom": {"name": "py", "input": "1"}},
    ),
    "flat tool": chat([{"type": "function", "name": "water", "parameters": {}}], call("water")),
    "client tool of the vendor": claude([{"type": "bash_20250124", "name": "bash"}], use("bash")),
    "editor of the vendor": claude(
        [{"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}], use("str_replace_based_edit_tool")
    ),
    "run by the provider": claude(
        [{"type": "web_search_20250305", "name": "web_search"}], use("web_search", "server_tool_use")
    ),
    "part of a hosted tool": claude(
        [{"type": "code_execution_20250825", "name": "code_execution"}, {"name": "water", "input_schema": {}}],
        use("bash_code_execution"),
    ),
    "remote MCP server": claude([], use("move_pot", "mcp_tool_use"), mcp_servers=[{"name": "garden"}]),
    "hosted browser": chat([{"type": "browser_search"}, FERTILISE], call("browser.open")),
    "tool search": claude(
        [
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            {"name": "a", "input_schema": {}},
        ],
        use("water"),
    ),
    "namespaces": chat([{"type": "namespace", "name": "garden", "tools": []}], call("water")),
    "tools in a shape unknown": chat([{"tool_spec": {"name": "water"}}], call("water")),
    "name in pieces": exchange(
        "/v1/chat/completions",
        {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Go."}], "tools": [FERTILISE]},
        sse(
            chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "ferti", "arguments": ""}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"name": "lise", "arguments": "{}"}}]}),
            chunk({}, "tool_calls"),
        ),
        content_type="text/event-stream",
    ),
    "no name": chat([FERTILISE], {"id": "c", "function": {"arguments": "{}"}}),
    "empty name": chat([FERTILISE], {"id": "c", "function": {"name": "", "arguments": "{}"}}),
    "http error": {**chat([FERTILISE], call("weed")), "response": {"status": 400, "headers": {}, "body": "{}"}},
    "in the history only": Silent(
        Talk(
            (*ASK, Assistant(calls=(Call("fertilise", {}, "call_0"),)), Result("call_0", "done"), User("Thanks.")),
            text="You are welcome.",
            tools=TOOLS,
        )
    ),
}
