from __future__ import annotations

from typing import Any

from tests.apis.talk_openai_responses import function_call, message, whole
from tests.build import STRING, Call, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent


def both(*apis: str) -> tuple[tuple[str, bool], ...]:
    return tuple((api, stream) for api in apis for stream in (False, True))


TOOLS = {"get_weather": schema(city=STRING), "get_tides": schema(port=STRING)}
ASK = User("Weather in Oslo, tides in Bergen?")
WEATHER = Call("get_weather", {"city": "Oslo"}, "call_Rw4kTz8QnXv2LbYc6MsPdHfG")
TIDES = Call("get_tides", {"port": "Bergen"}, "call_Hk3TnBv5QxWz8LrMc2PdYfAb")
CHAT, CLAUDE = both("openai.chat"), both("anthropic.messages")
GEMINI, CONVERSE = both("google.generate_content"), both("bedrock.converse")
RESPONSES, COHERE = both("openai.responses"), both("cohere.chat")
REQUIRED = both(
    "openai.chat", "openai.responses", "anthropic.messages", "mistral.chat", "cohere.chat", "bedrock.converse",
    "google.generate_content",
)  # fmt: skip
FORBIDDEN = both(
    "openai.chat", "openai.responses", "anthropic.messages", "mistral.chat", "cohere.chat", "google.generate_content"
)
NAMED = {"type": "function", "function": {"name": "get_weather"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}
PATH = "/v1/chat/completions"
DECLARED = [{"type": "function", "function": {"name": name, "parameters": one}} for name, one in TOOLS.items()]
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "tools": DECLARED}


def talk(*calls: Call, choice: Any = None, text: str = "", **more: Any) -> Talk:
    said = text or ("" if calls else "It is sunny.")
    return Talk((ASK,), said, calls, tools=TOOLS, tool_choice=choice, **more)


def one_at_a_time(*calls: Call, **more: Any) -> Talk:
    return talk(*calls, request={"parallel_tool_calls": False}, **more)


def claude_one_at_a_time(*calls: Call) -> Talk:
    return talk(*calls, choice={"type": "auto", "disable_parallel_tool_use": True})


def responses(tools: Any, choice: Any, *output: Any) -> dict[str, Any]:
    return exchange(
        "/v1/responses", {"model": "m", "input": "Weather?", "tools": tools, "tool_choice": choice}, whole(output)
    )


def raw(choice: Any, *choices: Any, **more: Any) -> dict[str, Any]:
    return exchange(PATH, {**BODY, "tool_choice": choice, **more}, {"choices": list(choices)})


def candidate(index: int, finish: str, **said: Any) -> dict[str, Any]:
    return {"index": index, "message": {"role": "assistant", **said}, "finish_reason": finish}


SEARCH = {"type": "web_search"}
SEARCHED = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}}
OWN = [{"type": "function", "name": name, "parameters": one} for name, one in TOOLS.items()]

FIRES = {
    "required": Fires(talk(choice="required"), says="only text: 'It is sunny.'", severity="warning", forms=REQUIRED),
    "required, and nothing said": Fires(
        raw("required", candidate(0, "stop", content=None)), says="no text either", pointer="/choices/0/finish_reason"
    ),
    "required by its other name": Fires(talk(choice="any"), forms=both("mistral.chat", "openai.chat")),
    "required, one of two candidates": Fires(
        raw(
            "required",
            candidate(
                0, "tool_calls", tool_calls=[{"id": "a", "function": {"name": "get_weather", "arguments": "{}"}}]
            ),
            candidate(1, "stop", content="Sunny."),
            n=2,
        ),
        pointer="/choices/1/finish_reason",
    ),
    "named, and text": Fires(
        talk(choice=NAMED), says="`get_weather` was required", forms=both("openai.chat", "mistral.chat")
    ),
    "named, Claude": Fires(talk(choice={"type": "tool", "name": "get_weather"}), says="`get_weather`", forms=CLAUDE),
    "named, Converse": Fires(talk(choice={"tool": {"name": "get_weather"}}), says="`get_weather`", forms=CONVERSE),
    "named, Responses": Fires(talk(choice={"type": "function", "name": "get_weather"}), forms=RESPONSES),
    "named, Gemini": Fires(talk(choice={"mode": "ANY", "allowedFunctionNames": ["get_weather"]}), forms=GEMINI),
    "named by the old name": Fires(
        exchange(
            PATH,
            {
                "model": "m",
                "messages": BODY["messages"],
                "functions": [{"name": "get_weather"}],
                "function_call": {"name": "get_weather"},
            },
            {"choices": [candidate(0, "stop", content="Sunny.")]},
        )
    ),
    "another than the named": Fires(talk(TIDES, choice=NAMED), says="calls `get_tides`", forms=CHAT),
    "another than the named, Claude": Fires(
        talk(TIDES, choice={"type": "tool", "name": "get_weather"}), says="only `get_weather`", forms=CLAUDE
    ),
    "another than the allowed": Fires(talk(WEATHER, TIDES, choice=ALLOWED), says="calls `get_tides`", forms=CHAT),
    "another than the allowed, Responses": Fires(
        talk(
            TIDES,
            choice={
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "get_weather"}],
            },
        ),
        forms=RESPONSES,
    ),
    "another than the allowed, Gemini": Fires(
        talk(TIDES, choice={"mode": "ANY", "allowedFunctionNames": ["get_weather", "get_waves"]}), forms=GEMINI
    ),
    "forbidden": Fires(talk(WEATHER, choice="none"), severity="error", says="forbidden", forms=FORBIDDEN),
    "forbidden, with words beside it": Fires(talk(WEATHER, choice="none", text="One moment."), forms=FORBIDDEN),
    "two at a time": Fires(
        one_at_a_time(WEATHER, TIDES), says="holds 2", forms=both("openai.chat", "openai.responses")
    ),
    "two at a time, Mistral": Fires(one_at_a_time(WEATHER, TIDES), forms=both("mistral.chat")),
    "two at a time, Claude": Fires(claude_one_at_a_time(WEATHER, TIDES), says="one call at a time", forms=CLAUDE),
    "two at a time, one named": Fires(one_at_a_time(WEATHER, TIDES, choice=NAMED), count=2, forms=CHAT),
    "a search that was not made": Fires(
        responses([*OWN, SEARCH], "required", message("Sunny.")), says="a call was required"
    ),
}

SILENT = {
    "free": talk(choice="auto"),
    "nothing said of it": talk(),
    "required and called": Silent(talk(WEATHER, choice="required"), REQUIRED),
    "required and called, with words": Silent(talk(WEATHER, choice="required", text="One moment."), REQUIRED),
    "required, two calls": Silent(talk(WEATHER, TIDES, choice="required"), REQUIRED),
    "named and called": Silent(talk(WEATHER, choice=NAMED), CHAT),
    "named and called, and ends with stop": Silent(talk(WEATHER, choice=NAMED, finish="stop"), CHAT),
    "named and called, Claude": Silent(talk(WEATHER, choice={"type": "tool", "name": "get_weather"}), CLAUDE),
    "named and called by the old name": exchange(
        PATH,
        {"model": "m", "messages": BODY["messages"], "functions": [{"name": "f"}], "function_call": {"name": "f"}},
        {"choices": [candidate(0, "stop", content=None, function_call={"name": "f", "arguments": "{}"})]},
    ),
    "forbidden and not called": Silent(talk(choice="none"), FORBIDDEN),
    "one of the allowed": Silent(talk(WEATHER, choice=ALLOWED), CHAT),
    "allowed, and none called": Silent(talk(choice=ALLOWED), CHAT),
    "validated, and none called": Silent(
        talk(choice={"mode": "VALIDATED", "allowedFunctionNames": ["get_weather"]}), GEMINI
    ),
    "one at a time": Silent(one_at_a_time(WEATHER), both("openai.chat", "openai.responses", "mistral.chat")),
    "one at a time, Claude": Silent(claude_one_at_a_time(WEATHER), CLAUDE),
    "two at a time, as may be": Silent(
        talk(WEATHER, TIDES, request={"parallel_tool_calls": True}), both("openai.chat", "openai.responses")
    ),
    "one for each candidate": raw(
        "auto",
        *(
            candidate(n, "tool_calls", tool_calls=[{"id": "a", "function": {"name": "get_weather", "arguments": "{}"}}])
            for n in (0, 1)
        ),
        n=2,
        parallel_tool_calls=False,
    ),
    "required, cut by a limit": Silent(talk(choice="required", finish="length"), REQUIRED),
    "required, filtered": Silent(talk(choice="required", finish="filter"), CHAT + CLAUDE + GEMINI),
    "required, refused": raw("required", candidate(0, "stop", content=None, refusal="I cannot help with that.")),
    "required, a stop word": Silent(talk(choice="required", request={"stop": ["sunny"]}), CHAT),
    "required, a stop sequence": Silent(talk(choice="required", finish="stop_sequence"), CLAUDE),
    "required, a turn that pauses": Silent(talk(choice="required", finish="pause_turn"), CLAUDE),
    "required, cut off": exchange(
        PATH,
        {**BODY, "tool_choice": "required", "stream": True},
        sse(chunk({"content": "It is"}), done=False),
        content_type="text/event-stream",
    ),
    "required, an error": exchange(
        PATH,
        {**BODY, "tool_choice": "required", "stream": True},
        sse(chunk({"content": "It is"}), {"error": {"message": "Tool choice is required"}}),
        content_type="text/event-stream",
    ),
    "required, without tools": Silent(Talk((ASK,), "Sunny.", tool_choice="required"), CHAT),
    "required, called in the model's notation": Silent(
        talk(
            choice="required",
            text='<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        ),
        CHAT,
    ),
    "required, and the provider searched": responses([*OWN, SEARCH], "required", SEARCHED, message("Sunny.")),
    "a provider's tool is named": responses([*OWN, SEARCH], SEARCH, SEARCHED, message("Sunny.")),
    "called beside a search, one at a time": exchange(
        "/v1/responses",
        {"model": "m", "input": "Weather?", "tools": [*OWN, SEARCH], "parallel_tool_calls": False},
        whole([SEARCHED, function_call(WEATHER)]),
    ),
}
