from __future__ import annotations

from tests.build import Assistant, Call, Talk, User, forms, schema
from tests.rules.case import Fires, Silent

WHOLE = (("openai.chat", False), ("anthropic.messages", False))
STREAMED = (("openai.chat", True), ("anthropic.messages", True))
OPENAI = (("openai.chat", False), ("openai.chat", True))
ASK = (User("How many moons has Mars?"),)
THOUGHT = "They ask for moons. Phobos and Deimos, so two."
ANSWER = "Mars has two moons."
PAIR = f"<think>{THOUGHT}</think>{ANSWER}"
TOOLS = {"look_up": schema(topic="string")}
CALL = '<tool_call>\n{"name": "look_up", "arguments": {"topic": "Mars"}}\n</tool_call>'


def both(opener: str, closer: str) -> Fires:
    return Fires(Talk(ASK, f"{opener}{THOUGHT}{closer}{ANSWER}"), says="Phobos", severity="warning", fix="unsafe")


def prompted(tag: str, **more: object) -> Talk:
    return Talk(**{"history": ASK, "text": f"<{tag}>{THOUGHT}</{tag}>\n{ANSWER}", **more})  # type: ignore[arg-type]


FIRES = {
    "think": both("<think>\n", "\n</think>\n\n"),
    "think, all in one line": both("<think>", "</think>"),
    "after blank lines": both("\n\n<think>", "</think>"),
    "after a header": Fires(Talk(ASK, f"<|im_start|>assistant\n<think>\n{THOUGHT}\n</think>\n{ANSWER}"), says="Phobos"),
    "gemini": both("<ctrl94>thought\n", "<ctrl95>"),
    "kimi": both("◁think▷", "◁/think▷"),
    "magistral": both("[THINK]", "[/THINK]"),
    "seed": both("<seed:think>", "</seed:think>"),
    "cohere": both("<|START_THINKING|>", "<|END_THINKING|>"),
    "apertus": both("<|inner_prefix|>", "<|inner_suffix|>"),
    "gemma 4": both("<|channel>thought\n", "<channel|>"),
    "harmony": both("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "kimi k3": both("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    "minimax m3": both("<mm:think>", "</mm:think>"),
    "exaone": both("<thought>", "</thought>"),
    "open web ui": both('<details type="reasoning" done="true">\n', "\n</details>\n"),
    "pangu": both("[unused16]", "[unused17]"),
    "k2 horizon": both("<ifm|think_faster>", "</ifm|think_faster>"),
    "hunyuan, with a suffix": both("<think:6124c78e>", "</think:6124c78e>"),
    "longcat": both("<longcat_think>", "</longcat_think>"),
    "plamo": both("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    "inkling": both("<|message_model|><|content_thinking|>", "<|end_message|>"),
    "muse": both(" to=self<|message|>", "<|eom|>"),
    "solar": both("<|think|>", "<|end|><|begin|>assistant<|content|>"),
    "full-width bars": both("<｜START_THINKING｜>", "<｜END_THINKING｜>"),
    "blanks after the tokens": both("<|channel|> analysis<|message|> ", "<|end|> <|start|> assistant<|channel|> final<|message|> "),
    "escaped": both("&lt;think&gt;", "&lt;/think&gt;"),
    "opened twice": both("<think>\n<think>\n", "</think>"),
    "an answer between tags": both("<think>", "</think>\n<answer>\n"),
    "closer of a prompted tag": Fires(Talk(ASK, f"</thinking>{ANSWER}"), fix="unsafe"),
    "a capital letter": Fires(prompted("Thinking", model="claude-opus-4-5"), layer="model"),
    "closing tag alone": Fires(Talk(ASK, f"{THOUGHT}\n</think>\n\n{ANSWER}"), says="beginning is missing", fix="unsafe", forms=WHOLE),
    "closing tag alone, when the thought is out": Fires(Talk(ASK, f"{THOUGHT}\n</think>\n\n{ANSWER}"), fix="unsafe", forms=STREAMED),
    "closing tag in the line": Fires(Talk(ASK, f"{THOUGHT}</think>{ANSWER}"), says="Phobos", fix="unsafe", forms=WHOLE),
    "closing tag in the line, when the thought is out": Fires(Talk(ASK, f"{THOUGHT}</think>{ANSWER}"), fix="unsafe", forms=STREAMED),
    "closing tag at the front": Fires(Talk(ASK, f"</think>\n\n{ANSWER}"), fix="unsafe"),
    "closing tag, reasoning in its field": Fires(Talk(ASK, f"\n</think>\n{ANSWER}", reasoning=THOUGHT)),
    "empty pair": Fires(Talk(ASK, f"<think>\n\n</think>\n\n{ANSWER}"), says="empty", fix="unsafe"),
    "never closed": Fires(Talk(ASK, f"<think>\n{THOUGHT}", finish="length"), says="never closed", fix="unsafe"),
    "after a tool block": Fires(Talk(ASK, f"{CALL}\n<think>\n{THOUGHT}\n</think>\n{ANSWER}", tools=TOOLS), says="Phobos"),
    "between paragraphs": Fires(Talk(ASK, f"Mars is red.\n\n<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"), says="middle"),
    "channel name, tokens lost": Fires(
        Talk(ASK, f"analysis{THOUGHT}assistantfinal{ANSWER}"), says="analysis", fix="unsafe"
    ),
    "gemma's word": Fires(Talk(ASK, f"thought\n{THOUGHT}", calls=(Call("look_up", {"topic": "Mars"}),), tools=TOOLS)),
    "granite's sentences": Fires(
        Talk(ASK, f"Here is my thought process:\n\n{THOUGHT}\n\nHere is my response:\n\n{ANSWER}", model="granite-3.3-8b"),
        fix="unsafe",
    ),
    "granite's sentences of another model": Fires(
        Talk(ASK, f"Here is my thought process:\n\n{THOUGHT}\n\nHere is my response:\n\n{ANSWER}"),
        fix="none",
        forms=STREAMED,
    ),
    "apriel's marker": Fires(
        Talk(ASK, f"{THOUGHT}\n[BEGIN FINAL RESPONSE]\n{ANSWER}"), fix="unsafe", forms=WHOLE
    ),
    "apriel's marker, when the thought is out": Fires(
        Talk(ASK, f"{THOUGHT}\n[BEGIN FINAL RESPONSE]\n{ANSWER}"), fix="none", forms=STREAMED
    ),
    "thinking of a model that thinks": Fires(prompted("thinking", model="claude-opus-4-5"), layer="model"),
    "thinking beside the reasoning field": Fires(prompted("thinking", reasoning="Hm."), layer="model"),
    "thinking, Gemini's asked for": Fires(
        prompted("thinking", request={"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}),
        layer="model",
        forms=forms("google.generate_content"),
    ),
    "thinking, Ollama's asked for": Fires(
        prompted("thinking", request={"think": True}), layer="model", forms=forms("ollama.chat")
    ),
    "thinking, asked for at Bedrock": Fires(
        prompted("thinking", request={"additionalModelRequestFields": {"thinking": {"type": "enabled"}}}),
        layer="model",
        forms=forms("bedrock.converse"),
    ),
    "thinking although it was asked for": Fires(
        prompted("thinking", request={"reasoning_effort": "high"}), layer="model", forms=OPENAI
    ),
    "forbidden by the prompt": Fires(Talk(ASK, PAIR, system="Never write <think> tags.")),
    "the assistant did it before": Fires(
        Talk((*ASK, Assistant(f"<think>a</think>{ANSWER}"), User("And Venus?")), f"<think>{THOUGHT}</think>None.")
    ),
    **{
        f"in an argument: {value}": Fires(
            Talk(ASK, calls=(Call("look_up", {"topic": value}),), tools=TOOLS), says="stands in the value of topic"
        )
        for value in (
            "Mars <think>is it the planet?</think>",
            "Mars<think>The user wants the planet",
            "<think>The user wants the planet. Mars",
            "<thinking>The user wants the planet.</thinking>Mars",
        )
    },
    "in an argument": Fires(
        Talk(ASK, calls=(Call("look_up", {"topic": f"<think>{THOUGHT}</think>Mars"}),), tools=TOOLS),
        says="topic",
        fix="none",
    ),
    "in front of what a file is to hold": Fires(
        Talk(
            (User("Put a limerick on moss into moss.txt."),),
            calls=(Call("write", {"path": "moss.txt", "content": "<think>Five lines, AABBA.</think>\nThere once was a moss"}),),
            tools={"write": schema(path="string", content="string")},
        ),
        says="content",
        fix="none",
    ),
    "in front of the arguments": Fires(
        Talk(ASK, calls=(Call("look_up", f'<think>{THOUGHT}</think>{{"topic": "Mars"}}'),), tools=TOOLS),
        says="arguments of look_up",
        forms=OPENAI,
    ),
}  # fmt: skip

SILENT = {
    "plain": Talk(ASK, ANSWER),
    "its own field": Talk(ASK, ANSWER, reasoning=THOUGHT),
    "tags inside its own field": Talk(ASK, ANSWER, reasoning=f"<think>{THOUGHT}</think>"),
    "inline code": Talk(ASK, "The `<think>` tag is closed by `</think>`."),
    "fence": Talk(ASK, f"So:\n\n```\n<think>\n{THOUGHT}\n</think>\n```\n"),
    "fence at the front": Talk(ASK, f"```xml\n<thinking>\n{THOUGHT}\n</thinking>\n```\n", model="claude-opus-4-5"),
    "spoken of": Talk(ASK, "Such models put a <think> tag before and a </think> tag after it."),
    "begins with the word": Talk(ASK, "<think> is the tag that R1 writes."),
    "in quotation marks": Talk(ASK, 'Look for "</think>" in the output.'),
    "in a sentence": Talk(ASK, "R1 answers <think>like this</think> and then says more."),
    "an introduced example": Talk(ASK, f"The shape is:\n<think>\n{THOUGHT}\n</think>\n{ANSWER}"),
    "prose of a model without a channel": prompted("thinking"),
    "scratchpad of a model without a channel": prompted("scratchpad", model="gpt-4o"),
    "turned off elsewhere": Silent(
        prompted("thinking", request={"think": False, "reasoning": {"effort": "none"}}),
        forms("ollama.chat", "openai.responses"),
    ),
    "prose elsewhere": Silent(prompted("thinking"), forms("bedrock.converse", "google.generate_content", "cohere.chat")),
    "the raw output that was asked for": Silent(
        Talk(ASK, f"<think>{THOUGHT}</think>{ANSWER}", request={"raw": True}), forms("ollama.generate")
    ),
    "asked for by the system": prompted("thinking", system="Think in <thinking> tags first.", model="claude-opus-4-5"),
    "asked for without naming": prompted("thinking", system="Use thinking tags before you answer.", reasoning="Hm."),
    "asked for by the user": Talk((User("Plan in <scratchpad>, then answer."),), f"<scratchpad>{THOUGHT}</scratchpad>"),
    "think asked for": Talk(ASK, PAIR, system="Begin with <think> and end it with </think>."),
    "prefilled": Silent(
        Talk((*ASK, Assistant("<think>\n")), f"{THOUGHT}\n</think>\n\n{ANSWER}"),
        OPENAI,
    ),
    "raw was asked for": Talk(ASK, PAIR, request={"reasoning_format": "raw"}),
    "not parsed on purpose": Talk(ASK, PAIR, request={"separate_reasoning": False}),
    "only in the history": Talk((*ASK, Assistant(f"<think>a</think>{ANSWER}"), User("Thanks")), "You are welcome."),
    "the user asks about tags": Talk((User("What do thinking tags look like?"),), "Before:\n<think>\nafter:\n</think>\n"),
    "a list of words": Talk(ASK, "thought\nthrough\nthorough"),
    "analysis as a word": Talk(ASK, "analysis of the data shows two moons."),
    "analysis as a title": Talk(ASK, "Analysis: We found two."),
    "an answer between tags alone": Talk(ASK, f"<answer>{ANSWER}</answer>"),
    "elements of a document": Talk(ASK, '<r><reasoning n="1">Two.</reasoning>\n</r>', model="qwen3-32b"),
    "an escaped tag spoken of": Talk(ASK, "&lt;think&gt; is the tag that R1 writes."),
    "an escaped example": Talk(ASK, "<p>So:</p>\n&lt;think&gt;\nHm.\n&lt;/think&gt;\n<p>End.</p>"),
    "a call in the channel of thoughts": Talk(
        ASK, '<|channel|>analysis to=functions.other <|constrain|>json<|message|>{"a": 1}<|call|>'
    ),
    "a variable": Talk(ASK, "analysisResults holds two moons.", model="gpt-oss-20b"),
    "in another language": Talk(ASK, "Das Modell schreibt <think> vor und </think> nach dem Nachdenken."),
    "a regular expression": Talk(ASK, "Use re.sub(r'<think>.*?</think>', '', text) for that."),
    "a table": Talk(ASK, "| model | tag |\n|---|---|\n| R1 | <think> |\n| Kimi | ◁think▷ |"),
    "HTML details": Talk(ASK, "<details><summary>More</summary>Two.</details>"),
    "a file is written": Talk(
        ASK, calls=(Call("write", {"path": "t.txt", "note": "<think>\na\n</think>\nb"}),),
        tools={"write": schema(path="string", note="string")},
    ),
    "code is written": Talk(
        ASK, calls=(Call("look_up", {"code": "<think>\na\n</think>\nb"}),), tools={"look_up": schema(code="string")}
    ),
    "a file about the tags": Talk(
        (User("Write a sample with <think> tags to s.txt."),),
        calls=(Call("write", {"path": "s.txt", "content": "<think>Five lines, AABBA.</think>\nThere once was a moss"}),),
        tools={"write": schema(path="string", content="string")},
    ),
    **{
        f"an argument speaks of the tag: {value}": Talk(ASK, calls=(Call("look_up", {"topic": value}),), tools=TOOLS)
        for value in (
            "<think> tags in Qwen models",
            "how do I turn <think> off in Qwen",
            "what does <think>x</think> mean",
            "models that end in <think>",
        )
    },
    "an argument names the tag": Talk(ASK, calls=(Call("look_up", {"topic": "the <think> tag"}),), tools=TOOLS),
    "http error": Silent(Talk(ASK, "<think>a</think>b", status=500), OPENAI),
}  # fmt: skip
