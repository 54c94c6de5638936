from __future__ import annotations

from tests.build import Assistant, Call, Result, Talk, User, exchange, forms, schema
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
    "past the turn's end at a raw endpoint": Fires(
        Talk(ASK, "In Bergen.<|im_end|>\n<|im_start|>user\nAnd the harbour?"),
        says="runs on past", fix="unsafe", forms=forms("openai.completions", "deepinfra.inference"),
    ),
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
    "gemini's runs": Fires(Talk(ASK, "In Bergen.<ctrl46><ctrl46><ctrl46>", model="gemini-2.5-pro"), fix="safe"),
    "behind a thought": Fires(
        Talk(ASK, "<|channel>thought\nWhere is it?\n<channel|>In Bergen.<turn|>"), says="<turn|>", fix="safe"
    ),
    "a thought in Gemma's channel": Fires(
        Talk(ASK, "<|channel>thought\nWhere is it?\n<channel|>In Bergen."), says="channel", fix="none"
    ),
    "a thought in harmony's channel": Fires(
        Talk(ASK, "<|channel|>analysis<|message|>Where?<|end|><|start|>assistant<|channel|>final<|message|>In Bergen."),
        says="<|channel|>",
        fix="none",
    ),
    "Kimi's beginning": Fires(Talk(ASK, "[BOS]In Bergen."), says="[BOS]"),
    "a value that swallowed the next one": Fires(
        Talk(
            ASK,
            calls=(Call("find_ship", {"name": 'Aurora</parameter>\n<parameter name="port">Bergen'}),),
            tools={"find_ship": schema(name="string", port="string")},
        ),
        says="stuck to the value of name",
        fix="none",
    ),
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
    "the beginning of a call that never comes": Fires(
        Talk(ASK, "[TOOL_CALLS] find the ship, then answer.", tools=TOOLS), fix="none"
    ),
    "in a name": named("find_ship<|channel|>commentary", fix="safe"),
    "tag in a name": named("find_ship</arg_value>", fix="safe"),
    "in the name of no tool": named("sink<|message|>", fix="none"),
    "hangs on an argument": Fires(
        Talk(ASK, calls=(Call("find_ship", {"name": "Aurora<|im_end|>"}),), tools=TOOLS), says="the value of name"
    ),
    "a tag in a key": Fires(
        Talk(ASK, calls=(Call("find_ship", {"name</arg_key>": "Aurora"}),), tools=TOOLS), says="the key", fix="unsafe"
    ),
    "a tag around a key": Fires(
        Talk(ASK, calls=(Call("find_ship", {"<parameter=name>": "Aurora"}),), tools=TOOLS), says="the key", fix="none"
    ),
    "tags hang on an argument": Fires(
        Talk(ASK, calls=(Call("find_ship", {"name": "Aurora</parameter>\n</function>"}),), tools=TOOLS),
        says="the value of name", fix="unsafe",
    ),
    "one tag hangs on an argument, escaped": Fires(
        Talk(ASK, calls=(Call("find_ship", '{"name": "Aurora\\u003c/arg_value\\u003e"}'),), tools=TOOLS),
        says="the value of name", fix="unsafe", forms=OPENAI,
    ),
    "tags hang on a text that is stored": Fires(
        Talk(ASK, calls=(Call("log", {"path": "a.md", "content": "Moored.</parameter></invoke>"}),),
             tools={"log": schema(path="string", content="string")}),
        says="the value of content", fix="unsafe",
    ),
    "a tag on a line of its own": Fires(
        Talk(ASK, calls=(Call("find_ship", {"name": "Aurora\n</parameter>"}),), tools=TOOLS), fix="none"
    ),
    "tags in two of three": Fires(
        Talk(ASK, calls=(Call("sail", {"from": "Bodø</arg_value>", "knots": 7, "to": "Bergen</arg_value>"}),),
             tools={"sail": schema(**{"from": "string", "knots": "integer", "to": "string"})}),
        says="the value of from and the value of to", fix="unsafe",
    ),
    "after the arguments": Fires(
        Talk(ASK, calls=(Call("find_ship", '{"name": "Aurora"}<|im_end|>'),), tools=TOOLS), says="arguments", forms=OPENAI
    ),
    "what is left of a header": Fires(Talk(ASK, "assistant\n\nThe Aurora lies in Bergen."), fix="safe"),
    "what is left of a channel": Fires(Talk(ASK, "assistantfinalThe Aurora lies in Bergen."), fix="safe"),
    "what is left of a recipient": Fires(Talk(ASK, "to=user<|message|>The Aurora lies in Bergen."), fix="safe"),
    "the label of a speaker": Fires(Talk(ASK, "ASSISTANT: The Aurora lies in Bergen."), fix="safe"),
    "a switch of the prompt": Fires(Talk(ASK, "/nothink<|assistant|>\nThe Aurora lies in Bergen."), count=2, fix="safe"),
    "an answer of kimi, cut": Fires(Talk(ASK, "In Bergen.<|close|>response"), says="at the edge", fix="safe"),
    "an answer of kimi": Fires(Talk(ASK, "<|open|>response<|sep|>In Bergen.<|close|>response<|sep|>"), fix="safe"),
    "tools of kimi": Fires(Talk(ASK, 'Hm.<|open|>tools<|sep|>In Bergen'), fix="none"),
    "exaone end": end("[|endofturn|]"),
    "hunyuan end": end("<｜hy_end▁of▁sentence｜>"),
    "step end": end("<|EOT|>"),
    "inkling end": end("<|end_message|>"),
    "solar end": end("<|flush|>"),
    "muse end": end("<|eom|>"),
    "a raw byte": end("<0x0A>"),
    "starcoder": Fires(Talk(ASK, "<fim_middle>In Bergen."), fix="safe"),
    "an image of minimax": Fires(Talk(ASK, "]<]start of image[>[In Bergen."), fix="safe"),
    "sources of cohere": Fires(Talk(ASK, "In <co: 0,1>Bergen</co: 0:[1,2]>."), fix="none"),
    "goes on as the human": Fires(
        Talk(ASK, "In Bergen.\n\nHuman: And where is that?\n\nAssistant: In Norway."), says="as the user", fix="none"
    ),
    "a speaker's label at the end": Fires(Talk(ASK, "In Bergen.\n\nHuman:"), says="as the user", fix="none"),
    "the human asks on": Fires(Talk(ASK, "In Bergen.\n\nHuman: Is that far from Oslo?"), says="as the user", fix="none"),
    "goes on as the user, the tokens lost": Fires(
        Talk(ASK, "In Bergen.\nuser\nAnd where is that town?\nassistant\nIn Norway."), says="as the user", fix="none"
    ),
    "vicuna's labels": Fires(
        Talk(ASK, "In Bergen.\n\nUSER: And where is that?\nASSISTANT: In Norway."), says="as the user", fix="none"
    ),
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
    "a raw prompt in which the model plays the user": {
        **Talk(ASK, "In Bergen?<|im_end|>\n<|im_start|>user\nOr Oslo?", model="m").record("openai.completions", False),
        "request": {
            "url": "http://llm.test/v1/completions",
            "body": {"model": "m", "prompt": "<|im_start|>assistant\nWhere?<|im_end|>\n<|im_start|>user\n"},
        },
    },
    "the end of a turn at a raw endpoint": Silent(
        Talk(ASK, "In Bergen.<|im_end|>"), forms("openai.completions", "deepinfra.inference")
    ),
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
    "an argument is markup": Talk(
        ASK, calls=(Call("find_ship", {"name": "<parameter=name>Aurora</parameter>"}),), tools=TOOLS
    ),
    "a fragment of a document is edited": Talk(
        ASK, calls=(Call("edit", {"path": "build.xml", "old_string": "  depends\n</parameter>"}),),
        tools={"edit": schema(path="string", old_string="string")},
    ),
    "tags that the request holds": Talk(
        (User("Which ship stands before </parameter> there?"),),
        calls=(Call("find_ship", {"name": "Aurora</parameter>"}),), tools=TOOLS,
    ),
    "tags of HTML": Talk(ASK, calls=(Call("find_ship", {"name": "<b>Aurora</b></p></div>"}),), tools=TOOLS),
    "nothing but a tag": Talk(ASK, calls=(Call("find_ship", {"name": "</parameter>"}),), tools=TOOLS),
    "a key that is declared so": Talk(
        ASK, calls=(Call("odd", {"a</arg>": "x"}),), tools={"odd": schema(**{"a</arg>": "string"})}
    ),
    "comparisons": Talk(ASK, calls=(Call("find_ship", {"name": "length <5 or x</y> >3"}),), tools=TOOLS),
    "a name with dots and colons": Talk(ASK, calls=(Call("functions.find_ship:0", {"name": "A"}),), tools=TOOLS),
    "a word list": Talk(ASK, "assistant\nmanager\nclerk"),
    "assistant in a sentence": Talk(ASK, "assistant final checks are done."),
    "a play": Talk((User("Write a scene on a ship."),), "Fog.\n\nHuman: Where are we?\n\nAssistant: In Bergen."),
    "an interview": Talk(ASK, "Robot: Hello.\n\nHuman: Where are we?\n\nRobot: In Bergen."),
    "a play that begins with a label": Talk((User("A dialogue in a shop, please."),), "ASSISTANT: Welcome!\nGUEST: Hi."),
    "two headings": Talk(ASK, "Two kinds of helmsmen.\n\nHuman: slow and careful\n\nAssistant: fast and blind"),
    "a question of a paragraph": Talk(ASK, "Human: all too human. Is the Aurora in Bergen?"),
    "roles in a list": Talk(ASK, "These may sail:\n\nadmin\nuser\nguest"),
    "roles after a sentence": Talk(ASK, "There are three roles.\nuser\nadmin\nguest"),
    "labels that are quoted": Talk(ASK, "It looks so.\n\n```\n\n\nHuman: Where?\n\nAssistant: Here.\n```"),
    "labels of the request": Talk(
        (User("Human: where?\nAssistant: here.\nGo on."),), "As before.\n\nHuman: And the Aurora?\n\nAssistant: In Bergen."
    ),
    "a switch in a path": Talk(ASK, "See /opt/nothink/readme or run with /nothink."),
    "a switch explained": Talk(ASK, "/nothink turns it off; /think turns it on again."),
    "a byte in prose": Talk(ASK, "The byte <0x0A> ends a line, <0x0D> returns."),
    "arrays of F#": Talk(ASK, "let xs = [|1; 2|] in [|for x in xs -> x|]"),
    "a placeholder between bars": Talk(ASK, "Write [|name|] there."),
    "an eot in an explanation": Talk(ASK, "GPT-2 was trained with the `<|endoftext|>` marker; the <|endoftext|> token splits documents."),
    "the code of a tokenizer": Talk(
        ASK, "```python\nspecials = ['<|im_start|>', '<|im_end|>', '[INST]', '</s>']\n```\nThat is all of it."
    ),
    "an indented template": Talk(ASK, "So:\n\n    <|user|>\n    {q}<|end|>\n    <|assistant|>\n\nand no more."),
    "masks": Talk(ASK, "BERT fills [MASK] between [CLS] and [SEP]."),
    "in another language": Talk(ASK, "Das Token <|im_end|> beendet einen Zug; `[/INST]` auch."),
    "struck through at the end": Talk(ASK, "Write <s>Oslo</s>"),
    "keys of a keyboard": Talk(ASK, "Press <ctrl>4 or <ctrl-46>, then <ctrl + 94>."),
    "an airport first": Talk(ASK, "[BOS] → [SFO], Friday\n\n- 07:10\n- 09:45"),
    "a camera first": Talk(ASK, "[EOS] R6 and [BOS] are all there is."),
    "HTML of strikes and lists": Talk(ASK, "<ul><li><s>Oslo</s></li><li>Bergen</li></ul>"),
    "to whom": Talk(ASK, "to=user is a field of the log, <message> another."),
    "only in the history": Talk((*ASK, Assistant("Hi<|im_end|>"), User("What was that?")), "A mistake of the server."),
    "http error": Silent(Talk(ASK, "x<|im_end|>", status=502), OPENAI),
}  # fmt: skip
