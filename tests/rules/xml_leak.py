from __future__ import annotations

from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent

OPENAI = (("openai.chat", False), ("openai.chat", True))
TOOLS = {"find_ship": schema(name="string"), "berths": schema(["port"], port="string", limit="integer")}
ASK = (User("Where is the Aurora?"),)

HERMES = '<tool_call>\n{"name": "find_ship", "arguments": {"name": "Aurora"}}\n</tool_call>'
QWEN = "<tool_call>\n<function=find_ship>\n<parameter=name>\nAurora\n</parameter>\n</function>\n</tool_call>"
INVOKE_ARG = '<invoke name="find_ship"><arg name="name">Aurora</arg></invoke>'
INVOKE = '<invoke name="find_ship">\n<parameter name="name">Aurora</parameter>\n</invoke>'
WRAPPED = f"<function_calls>\n{INVOKE}\n</function_calls>"
KIMI_CALL = '<|tool_call_begin|>functions.find_ship:0<|tool_call_argument_begin|>{"name": "Aurora"}<|tool_call_end|>'
KIMI = f"<|tool_calls_section_begin|>{KIMI_CALL}<|tool_calls_section_end|>"
V31 = (
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find_ship<｜tool▁sep｜>{"name":"Aurora"}<｜tool▁call▁end｜>'
    "<｜tool▁calls▁end｜>"
)
V3 = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find_ship\n```json\n"
    '{"name": "Aurora"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
)
UNKNOWN = HERMES.replace("find_ship", "sink_ship")


def talk(text: str = "", **more: object) -> Talk:
    return Talk(**{"history": ASK, "text": text, "tools": TOOLS, **more})  # type: ignore[arg-type]


def leak(text: str, **expected: object) -> Fires:
    return Fires(talk(text), **{"says": "find_ship", "severity": "error", "fix": "unsafe", **expected})  # type: ignore[arg-type]


def choices(*texts: str) -> dict[str, object]:
    body = {
        "model": "acme-1",
        "n": len(texts),
        "messages": [{"role": "user", "content": "Where is the Aurora?"}],
        "tools": [{"type": "function", "function": {"name": "find_ship", "parameters": schema(name="string")}}],
    }
    said = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for n, text in enumerate(texts)
    ]
    return exchange("/v1/chat/completions", body, {"id": "c1", "object": "chat.completion", "choices": said})


def refused(refusal: str) -> dict[str, object]:
    record = choices("")
    message = {"role": "assistant", "content": None, "refusal": refusal}
    reply = {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return {**record, "response": exchange("/v1/chat/completions", {}, reply)["response"]}


FIRES = {
    "functionary, to all and then to a tool": leak('all\nI look it up.\n>>>find_ship\n{"name": "Aurora"}'),
    "hermes alone": leak(HERMES),
    "hermes after words": leak(f"I look it up.\n\n{HERMES}"),
    "qwen3 coder": leak(QWEN),
    "invoke with arg": leak(f"Let me see.\n{INVOKE_ARG}"),
    "invoke with parameter": leak(INVOKE),
    "function_calls wrapper": leak(WRAPPED),
    "stray word before": leak(f"court\n{INVOKE}"),
    "kimi section": leak(KIMI),
    "kimi without section tokens": leak(KIMI_CALL),
    "deepseek v3": leak(V3),
    "deepseek v3.1": leak(V31),
    "escaped as HTML": leak(HERMES.replace("<", "&lt;").replace(">", "&gt;")),
    "two siblings are one finding": Fires(
        talk(f"{INVOKE_ARG}\n{INVOKE_ARG.replace('Aurora', 'Beagle')}"), says="2 calls of find_ship", fix="unsafe"
    ),
    "two tools": Fires(
        talk(f'{HERMES}\n<tool_call>\n{{"name": "berths", "arguments": {{"port": "Oslo"}}}}\n</tool_call>'),
        says="find_ship, berths",
        fix="unsafe",
    ),
    "apart, with words between": Fires(talk(f"{HERMES}\nand then, to be sure,\n{HERMES}"), count=2),
    "in the reasoning, nothing else": Fires(
        talk(reasoning=f"I look it up. {KIMI}"), says="in the reasoning", severity="error", fix="unsafe"
    ),
    "in the reasoning, the answer goes on": Fires(
        talk("She lies in Bergen.", reasoning=f"Maybe {HERMES}"), says="goes on without it", severity="warning", fix="none"
    ),
    "in the reasoning, another call is made": Fires(
        talk(reasoning=HERMES, calls=(Call("berths", {"port": "Oslo"}),)), severity="info", fix="none"
    ),
    "in a refusal": Fires(refused(f"I cannot.\n{HERMES}"), says="in the refusal", pointer="/choices/0/message/refusal"),
    "second choice": Fires(choices("In Bergen.", HERMES), pointer="/choices/1/message/content"),
    "every choice": Fires(choices(HERMES, QWEN), count=2),
    "cut off": Fires(talk(HERMES[:-30], finish="length"), says="length limit", fix="none"),
    "parameter cut off": Fires(talk(QWEN[:-40]), severity="error", fix="none"),
    "tool_choice none": Fires(talk(HERMES, tool_choice="none"), says="forbids", severity="error", fix="none", forms=OPENAI),
    "tool_choice none, anthropic": Fires(
        talk(INVOKE, tool_choice={"type": "none"}), says="forbids", fix="none", forms=(("anthropic.messages", True),)
    ),
    "duplicate of a structured call": Fires(
        talk(HERMES, calls=(Call("find_ship", {"name": "Aurora"}),)), says="duplicate", severity="warning", fix="unsafe"
    ),
    "beside a structured call": Fires(
        talk(HERMES, calls=(Call("berths", {"port": "Oslo"}),)), says="beside it", severity="error", fix="none"
    ),
    "the finish reason promises a call": Fires(
        talk(INVOKE_ARG, finish="tool"), says="promises a call", severity="error", fix="unsafe"
    ),
    "undeclared, special tokens": Fires(
        Talk(ASK, KIMI), says="no such tool is declared", severity="warning", fix="none"
    ),
    "undeclared among declared": Fires(talk(UNKNOWN), says="sink_ship", severity="warning", fix="none"),
    "declared no longer, called before": Fires(
        Talk(
            (*ASK, Assistant(calls=(Call("find_ship", {"name": "Aurora"}),)), Result(Call("x").id, "none"), User("Again?")),
            HERMES,
        ),
        severity="warning",
        fix="none",
    ),
    "a fence and nothing else": Fires(talk(f"```xml\n{HERMES}\n```"), says="fence", severity="warning", fix="none"),
    "the assistant leaked before": Fires(
        talk(HERMES, history=(*ASK, Assistant(HERMES), User("What? Please search."))), count=2
    ),
    "in the request's history only": Fires(
        talk("Sorry.", history=(*ASK, Assistant(HERMES), User("You printed markup."))),
        says="stands in the history",
        severity="warning",
        fix="none",
    ),
    "in the history, and a result behind it answers no call": Fires(
        talk("It is in Oslo.", history=(*ASK, Assistant(HERMES), Result("call_1", "Oslo"))),
        says="stands in the history",
        fix="unsafe",
    ),
    "an imitator": Fires(talk(V31, model="gpt-4o"), layer="model"),
    "its own notation": Fires(talk(V31, model="deepseek-ai/DeepSeek-V3.1"), layer="gateway"),
    "damaged by the model": Fires(talk(f"count\n{INVOKE}", model="claude-opus-4-8"), layer="model"),
    "the user pasted a leak, and there it is again": Fires(
        talk(HERMES, history=(User("You printed <tool_call> again. Where is the Aurora?"),)), says="find_ship", fix="none"
    ),
    "one character a chunk": exchange(
        "/v1/chat/completions",
        {
            "model": "acme-1",
            "stream": True,
            "messages": [{"role": "user", "content": "Where is the Aurora?"}],
            "tools": [{"type": "function", "function": {"name": "find_ship", "parameters": schema(name="string")}}],
        },
        sse(*(chunk({"content": letter}) for letter in INVOKE_ARG), chunk({}, "stop")),
        content_type="text/event-stream",
    ),
}  # fmt: skip

PROTOCOL = (
    "Call a tool like this, in your answer:\n<tool_call>\n"
    '{"name": "sink_ship", "arguments": {"name": "…"}}\n</tool_call>\nThe answer comes as <tool_response>.'
)

SILENT = {
    "plain words": talk("The Aurora lies in Bergen."),
    "structured call": talk(calls=(Call("find_ship", {"name": "Aurora"}),)),
    "fenced example with words": talk(f"A call is written so:\n\n```xml\n{HERMES}\n```\n\nThat is all."),
    "inline code": talk(f"Kimi writes `{KIMI}` for that."),
    "indented code": talk(f"It looks like this:\n\n    {INVOKE_ARG}\n\nand is not run."),
    "block quote": talk("You wrote:\n\n> " + HERMES.replace("\n", "\n> ") + "\n\nThat was text."),
    "in quotation marks": talk(f'The log says "{INVOKE_ARG}" twice.'),
    "in an argument": talk(calls=(Call("find_ship", {"name": f"test {HERMES}"}),)),
    "in a tool result": talk(
        "The template wraps calls in tags.",
        history=(*ASK, Assistant(calls=(Call("find_ship", {"name": "A"}),)), Result(Call("x").id, HERMES)),
    ),
    "quoted in the history": talk("Sorry.", history=(*ASK, Assistant(f"So:\n```\n{HERMES}\n```"), User("I see."))),
    "a user's markup in the history": talk("Sorry.", history=(User(f"What is {HERMES}?"), Assistant("A call."), User("Ok."))),
    "the user asked how it is written": Talk(
        (User("How does Hermes write a tool call? Show the raw syntax."),), UNKNOWN, tools=TOOLS
    ),
    "the user's text holds it": Talk((User(f"Explain: {UNKNOWN}"),), f"This calls a tool:\n{UNKNOWN}", tools=TOOLS),
    "a prompt protocol": Talk(ASK, UNKNOWN, system=PROTOCOL),
    "a prompt protocol beside other tools": Talk(ASK, UNKNOWN, system=PROTOCOL, tools=TOOLS),
    "tool tags of a prompt": Talk(
        ASK, "<find_ship>\n<name>Aurora</name>\n</find_ship>", system="Use <find_ship><name>…</name></find_ship>."
    ),
    "plain tags, no tools in play": Talk((User("Write anything in XML."),), UNKNOWN),
    "placeholder names": talk('<tool_call>\n{"name": "function_name", "arguments": {}}\n</tool_call>'),
    "other XML": talk('<launch><node name="a"><arg name="x" value="1"/></node></launch>'),
    "HTML": talk("<p>Call <b>us</b> <i>now</i></p>"),
    "words about it": talk("A tool_call tag holds JSON with name and arguments."),
    "a draft, and then the call": talk(
        reasoning=f"I could write {HERMES}", calls=(Call("find_ship", {"name": "Aurora"}),)
    ),
    "a draft, and then the call with other arguments": talk(
        reasoning=f"I could write {HERMES}", calls=(Call("find_ship", {"name": "Aurora II"}),)
    ),
    "fence alone, as asked for": Talk(
        (User("Show me the raw tool call markup you would write for the Aurora."),), f"```xml\n{HERMES}\n```", tools=TOOLS
    ),
    "fence alone, around a document with an example": talk(
        f"````markdown\n# Ships\n\nA call:\n\n```\n{HERMES}\n```\n\nEnd.\n````"
    ),
    "fence alone, around code": talk(f"```python\nRAW = \"\"\"{HERMES}\"\"\"\n```"),
    "a list of indented markers": talk(
        "1. It begins:\n\n       <|tool_calls_section_begin|>\n\n2. A call:\n\n       <|tool_call_begin|>"
        'functions.find_ship:0<|tool_call_argument_begin|>{"name": "Aurora"}<|tool_call_end|>\n\nNo more.'
    ),
    "fence alone, undeclared": talk(f"```\n{UNKNOWN}\n```"),
    "repeated from a tool result": talk(
        f"The file says:\n{UNKNOWN}",
        history=(*ASK, Assistant(calls=(Call("find_ship", {"name": "A"}),)), Result(Call("x").id, f"log: {UNKNOWN}")),
    ),
    "http error": Silent(talk(HERMES, status=500), OPENAI),
    "the client left in the middle": {
        **exchange(
            "/v1/chat/completions",
            {
                "model": "acme-1",
                "stream": True,
                "messages": [{"role": "user", "content": "Where is the Aurora?"}],
                "tools": [{"type": "function", "function": {"name": "find_ship"}}],
            },
            sse(chunk({"content": HERMES[:-30]}), done=False),
            content_type="text/event-stream",
        ),
        "end": "client-left",
    },
}  # fmt: skip
