from __future__ import annotations

from tests.build import Assistant, Call, Result, Talk, User, exchange, schema
from tests.rules.case import Fires, Silent

WHOLE = (("openai.chat", False), ("anthropic.messages", False))
STREAMED = (("openai.chat", True), ("anthropic.messages", True))
OPENAI = (("openai.chat", False), ("openai.chat", True))
TOOLS = {"find_ship": schema(name="string")}
ASK = (User("Where is the Aurora?"),)
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.find_ship:0<|tool_call_argument_begin|>"
    '{"name": "Aurora"}<|tool_call_end|><|tool_calls_section_end|>'
)


def end(token: str) -> Fires:
    return Fires(Talk(ASK, f"In Bergen.{token}"), says="at the edge", severity="warning", fix="safe")


def named(name: str, **expected: object) -> Fires:
    return Fires(Talk(ASK, calls=(Call(name, {"name": "Aurora"}),), tools=TOOLS), says=name[:20], **expected)  # type: ignore[arg-type]


FIRES = {
    "chatml end": end("<|im_end|>"),
    "llama 3 end": end("<|eot_id|>"),
    "deepseek end": end("<｜end▁of▁sentence｜>"),
    "gemma end": end("<end_of_turn>"),
    "gemma 4 end": end("<turn|>"),
    "minimax end": end("[e~["),
    "cohere end": end("<|END_OF_TURN_TOKEN|>"),
    "llama 2 end": end("</s>"),
    "plain eos": end("<eos>"),
    "both sides of a dialogue": Talk(ASK, "In Bergen. [/INST] And where is that? [INST] In Norway."),
    "twice, with line ends": end("<|im_end|>\n<|im_end|>\n"),
    "with blanks inside": end("<| im_end |>"),
    "doubled bars": end("<||im_end||>"),
    "cut by the limit": end("<|im_en"),
    "a token of no table": end("<|end_of_reply|>"),
    "at the beginning": Fires(Talk(ASK, "<|im_start|>assistant\nIn Bergen."), says="at the edge", fix="safe"),
    "GLM's beginning": Fires(Talk(ASK, "[gMASK]<sop>In Bergen."), fix="safe"),
    "header of llama": Fires(Talk(ASK, "<|start_header_id|>assistant<|end_header_id|>\n\nIn Bergen."), fix="safe"),
    "harmony's final channel": Fires(Talk(ASK, "<|channel|>final<|message|>In Bergen.<|return|>"), fix="safe"),
    "goes on as the user": Fires(
        Talk(ASK, "In Bergen.<|im_end|>\n<|im_start|>user\nThanks!"), says="past <|im_end|>", fix="unsafe"
    ),
    "begins as the user": Fires(Talk(ASK, "<|im_start|>user\nWhere is it?"), says="as the user", fix="none"),
    "instructions run on": Fires(
        Talk(ASK, "In Bergen.</s><s>[INST] And now? [/INST] Oslo."), says="[INST]", fix="unsafe", forms=WHOLE
    ),
    "instructions run on in a stream": Fires(
        Talk(ASK, "In Bergen.</s><s>[INST] And now? [/INST] Oslo."), says="[INST]", fix="none", forms=STREAMED
    ),
    "in the middle": Fires(Talk(ASK, "In Ber<|fim_middle|>gen, I am sure."), says="in the text", fix="none"),
    "nothing but tokens": Fires(Talk(ASK, "<|im_end|>"), fix="none"),
    "in the reasoning": Fires(Talk(ASK, "In Bergen.", reasoning="Look it up.<|im_end|>"), says="reasoning"),
    "after a leaked call": Fires(Talk(ASK, f"{KIMI}\nfound it<|im_end|>", tools=TOOLS), says="<|im_end|>"),
    "markup of a dialect not read": Fires(
        Talk(ASK, '[TOOL_CALLS]find_ship[ARGS]{"name": "Aurora"}', tools=TOOLS), fix="none"
    ),
    "in a name": named("find_ship<|channel|>commentary", fix="safe"),
    "tag in a name": named("find_ship</arg_value>", fix="safe"),
    "in the name of no tool": named("sink<|message|>", fix="none"),
    "hangs on an argument": Fires(
        Talk(ASK, calls=(Call("find_ship", {"name": "Aurora<|im_end|>"}),), tools=TOOLS), says="the value of name"
    ),
    "after the arguments": Fires(
        Talk(ASK, calls=(Call("find_ship", '{"name": "Aurora"}<|im_end|>'),), tools=TOOLS), says="arguments", forms=OPENAI
    ),
    "what is left of a header": Fires(Talk(ASK, "assistant\n\nThe Aurora lies in Bergen."), fix="safe"),
    "what is left of a channel": Fires(Talk(ASK, "assistantfinalThe Aurora lies in Bergen."), fix="safe"),
    "every candidate": Fires(
        exchange(
            "/v1/chat/completions",
            {"model": "acme-1", "n": 2, "messages": [{"role": "user", "content": "Where is the Aurora?"}]},
            {
                "choices": [
                    {"index": n, "message": {"content": "In Bergen.<|eot_id|>"}, "finish_reason": "stop"} for n in (0, 1)
                ]
            },
        ),
        count=2,
    ),
    "not this model's": Fires(Talk(ASK, "In Bergen.<|eot_id|>", model="claude-sonnet-4-5"), layer="model"),
    "this model's own": Fires(Talk(ASK, "In Bergen.<|eot_id|>", model="meta-llama/Llama-3.1-8B"), layer="gateway"),
}  # fmt: skip

SILENT = {
    "plain": Talk(ASK, "In Bergen."),
    "struck out": Talk(ASK, "In <s>Oslo</s> Bergen."),
    "struck out at the end": Talk(ASK, "In Bergen, <s>Oslo</s>"),
    "struck out twice": Talk(ASK, "<s>Oslo</s><s>Riga</s>"),
    "a template explained": Talk(ASK, "Llama 2 reads `<s>[INST]` first: [INST] the question [/INST] the answer."),
    "operators": Talk(ASK, "xs <|> ys, f <| g |> h, a <| b"),
    "usage line": Talk(ASK, "Usage: ship [ARGS] [PREFIX] [IMG]"),
    "an end marker of a letter": Talk(ASK, "Dear <|first_name|>, we sail at <|hour|> sharp."),
    "INST in a manual": Talk(ASK, "[INST] is where the instruction goes."),
    "inline code": Talk(ASK, "Its turns end with `<|im_end|>`."),
    "fence": Talk(ASK, "So:\n\n```\n<|im_start|>user\nHi<|im_end|>\n```\n"),
    "block quote": Talk(ASK, "It said:\n\n> Done.<|im_end|>\n\nand stopped."),
    "quotation marks": Talk(ASK, 'The reply was cut at "<|im_end|>" by the server.'),
    "spoken of": Talk(ASK, "The token <|im_end|> ends a turn."),
    "the user names it": Talk((User("Why do I see <|im_end|>?"),), "A wrong stop token: <|im_end|>"),
    "the user asks about tokens": Talk((User("Which stop tokens does Llama 3 have?"),), "These: <|eot_id|> and <|eom_id|>"),
    "a tool result holds it": Talk(
        (*ASK, Assistant(calls=(Call("find_ship", {"name": "A"}),)), Result(Call("x").id, "log: Done.<|im_end|>")),
        "The log ends with Done.<|im_end|>",
        tools=TOOLS,
    ),
    "inside a leaked call": Talk(ASK, KIMI, tools=TOOLS),
    "an argument writes a template": Talk(
        ASK, calls=(Call("find_ship", {"name": "<|im_start|>user\n{{ m }}<|im_end|>\n"}),), tools=TOOLS
    ),
    "an argument searches for it": Talk(ASK, calls=(Call("find_ship", {"name": "<|im_end|>"}),), tools=TOOLS),
    "an argument ends in HTML": Talk(ASK, calls=(Call("find_ship", {"name": "<s>old</s>"}),), tools=TOOLS),
    "a name with dots and colons": Talk(ASK, calls=(Call("functions.find_ship:0", {"name": "A"}),), tools=TOOLS),
    "a word list": Talk(ASK, "assistant\nmanager\nclerk"),
    "assistant in a sentence": Talk(ASK, "assistant final checks are done."),
    "only in the history": Talk((*ASK, Assistant("Hi<|im_end|>"), User("What was that?")), "A mistake of the server."),
    "http error": Silent(Talk(ASK, "x<|im_end|>", status=502), OPENAI),
}  # fmt: skip
