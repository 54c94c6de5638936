from __future__ import annotations

from typing import Any

from tests.build import STRING, Assistant, Call, Result, Talk, User, exchange, schema
from tests.rules.case import Fires, Silent


def both(*apis: str) -> tuple[tuple[str, bool], ...]:
    return tuple((api, stream) for api in apis for stream in (False, True))


TIDES = {"get_tides": ("Tide tables of a harbour.", schema(port=STRING))}
MORE = {name: schema(port=STRING) for name in ("get_tides", "get_waves", "get_wind", "get_moon", "get_sun")}
FILES = {
    "list_files": ("Lists a directory.", schema(path=STRING)),
    "searchDocs": ("Searches the manual.", schema(q=STRING)),
}
CALENDAR = {"list_events": schema(day=STRING)}
ASK = User("When is high tide in Bergen?")
RAW = both("openai.completions", "deepinfra.inference")
SPOKEN = both(
    "openai.chat", "anthropic.messages", "openai.responses", "mistral.chat", "cohere.chat", "bedrock.converse",
    "google.generate_content", "ollama.chat",
)  # fmt: skip
CALL = Call("get_tides", {"port": "Bergen"}, "call_Rw4kTz8QnXv2LbYc6MsPdHfG")
DECLARED = [{"type": "function", "function": {"name": "get_tides", "parameters": {"type": "object"}}}]
WRITTEN = [
    {"role": "user", "content": "When is high tide?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "function": {"name": "get_tides", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "04:12"},
]


def said(text: str, tools: Any = None, asked: str = ASK.text, **more: Any) -> Talk:
    return Talk((User(asked),), text, tools=TIDES if tools is None else tools, **more)


def generate(**body: Any) -> dict[str, Any]:
    line = '{"model":"m","response":"At noon.","done":true,"done_reason":"stop"}'
    return exchange("/api/generate", {"model": "m", "prompt": "High tide?", "stream": False, **body}, line)


def completion(status: int = 200, **body: Any) -> dict[str, Any]:
    reply = {"object": "text_completion", "choices": [{"index": 0, "text": " Noon.", "finish_reason": "stop"}]}
    return exchange("/v1/completions", {"model": "m", "prompt": "High tide?", **body}, reply, status=status)


def told(name: str, value: str, talk: Talk | None = None, *, stream: bool = False) -> dict[str, Any]:
    """A reply with this header."""
    made = (talk or said("At noon, as a rule.")).record("openai.chat", stream)
    made["response"]["headers"][name] = value
    return made


FIRES = {
    "declared": Fires(
        said("At noon."), says="`get_tides`", severity="error", layer="client", pointer="/tools", forms=RAW
    ),
    "many": Fires(said("At noon.", MORE), says="and 2 more", forms=RAW),
    "declared to Ollama's generate": Fires(generate(tools=DECLARED), says="/api/chat", pointer="/tools"),
    "the old functions": Fires(completion(functions=[{"name": "get_tides"}]), pointer="/functions"),
    "messages with calls and results": Fires(
        completion(messages=WRITTEN), says="calls among them", pointer="/messages/1"
    ),
    "results alone": Fires(completion(messages=WRITTEN[2:]), says="tool results"),
    **{
        f"dropped, by {name}": Fires(
            told(name, value, stream=stream), says="a header says", severity="error", layer="gateway"
        )
        for name, value, stream in (
            ("Ngrok-AIG-Removed-Params", "tools, tool_choice", False),
            ("x-gateway-dropped-params", '["temperature","tools"]', True),
            ("Warning", '199 - "tools are not supported by this model and were ignored"', False),
            ("x-unsupported-parameters", "functions", False),
            ("x-tools-dropped", "true", False),
            ("x-gateway-notice", "dropped: tool_calling", True),
        )
    },
    "no tools at all": Fires(
        said("I'm sorry, but I don't have any tools available in this conversation."),
        says="lost on the way",
        severity="warning",
        layer="gateway",
        forms=SPOKEN,
    ),
    "no such tool": Fires(said("I do not have a tide tool, so I cannot tell."), forms=SPOKEN),
    "no tool for it": Fires(said("Unfortunately I don't have a function for looking up tides.")),
    "no tool for that": Fires(said("I don't have a tool for that.")),
    "it would need one": Fires(said("I'd need a tide tool for that, but I don't have one.")),
    "it cannot call": Fires(said("I cannot call functions here. Try a tide table.")),
    "none was given": Fires(said("No tools were provided to me, so here is what I remember.")),
    "no ability": Fires(said("I don't have access to tides or harbour data."), severity="info"),
    "unable": Fires(said("I'm unable to look at the files in that folder.", FILES, "List src."), severity="info"),
    "an ability by its field": Fires(
        said("As an AI, I don't have access to your calendar.", CALENDAR, "Am I free today?")
    ),
    "in camel case": Fires(said("I have no docs search tool.", FILES, "Search the docs.")),
    "in German": Fires(said("Ich habe dafür leider keine Werkzeuge.", asked="Wann ist Flut?")),
    "in French": Fires(said("Je n'ai aucun outil pour cela.", asked="La marée ?")),
    "in Chinese": Fires(said("抱歉，我没有可以查询潮汐的工具。", asked="什么时候涨潮？")),
}

SILENT = {
    **{
        f"header {name}: {value}": told(name, value)
        for name, value in (
            ("Ngrok-AIG-Removed-Params", "temperature"),
            ("Ngrok-AIG-Removed-Params", "tool_choice"),
            ("x-tools-dropped", "false"),
            ("x-dropped-tools", "0"),
            ("x-supported-params", "tools, temperature"),
            ("x-unsupported-params", "none"),
            ("x-tools", "get_tides"),
            ("Access-Control-Expose-Headers", "x-tools, x-request-id"),
        )
    },
    "dropped, and called all the same": told("x-dropped-params", "tools", Talk((ASK,), calls=(CALL,), tools=TIDES)),
    "dropped, and none declared": told("x-dropped-params", "tools", Talk((ASK,), "At noon.")),
    "a chat": Silent(said("Which day do you mean?"), SPOKEN),
    "a raw prompt": Silent(Talk((ASK,), "At noon."), (*RAW, ("ollama.generate", False))),
    "an empty list": completion(tools=[]),
    "messages that only talk": completion(messages=WRITTEN[:1]),
    "refused": completion(422, tools=DECLARED),
    "no tools were given": Talk((ASK,), "I don't have any tools available."),
    "no tool for something else": said("I don't have a tool for booking flights.", asked="Book me a flight."),
    "no tool for that, and true": said("I don't have a tool for that.", asked="Write me a sonnet."),
    "it has them": said("I have a tide tool. Which harbour?"),
    "supposed": said("If I don't have any tools, I will tell you."),
    "quoted": said("The log says:\n\n```\nI don't have any tools available.\n```"),
    "calls are forbidden": Silent(said("I don't have any tools available.", tool_choice="none"), both("openai.chat")),
    "it called": Talk((ASK,), "I don't have any other tools.", (CALL,), tools=TIDES),
    "it knows them": Talk(
        (ASK, Assistant("", (CALL,)), Result(CALL.id, "04:12")), "I don't have a tide tool for Oslo.", tools=TIDES
    ),
    "it lacks what the user is to tell": said("I don't have access to the file. Could you paste it?", FILES, "Fix it."),
    "it lacks knowledge": said("I don't have access to your location. Which harbour do you mean?"),
    "of programs": said("There is no function in this module that sorts.", FILES, "Is there a sort?"),
    "of the trade": said("I don't have the right tools for cutting wood at hand."),
    "cut off": said("I don't have any tools avail", finish="length"),
    "a failure": exchange(
        "/v1/chat/completions", {"model": "m", "messages": WRITTEN[:1], "tools": DECLARED}, "", status=500
    ),
}
