"""The tokens that the chat templates of model families put around turns, as data.

`control_tokens` looks for them. To add a family, add its `Template`; a token that people write as well goes into one of the
`EDGE_…` sets instead. Sources: the tokenizer configurations and chat templates that the families publish.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """The tokens of one chat template. `families`: who uses it. `ends` close a turn, `opens` begin one or its header."""

    families: tuple[str, ...]
    opens: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TEMPLATES: tuple[Template, ...] = (
    Template(
        ("qwen", "internlm", "yi", "kimi", "mimo", "step", "smollm", "hermes", "phi", "nemotron", "ling", "minimax"),
        words("<|im_start|>"),
        words("<|im_end|> <|endoftext|>"),
        words(
            "<|im_sep|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|vision_start|> <|vision_end|>"
            " <|repo_name|> <|file_sep|> <|action_start|> <|action_end|> <|plugin|> <|interpreter|>"
        ),
    ),
    Template(
        ("kimi",),
        words("<|im_user|> <|im_assistant|> <|im_system|> <|im_tool|>"),
        words("<|end_of_msg|>"),
        words(
            "<|im_middle|> <|open|> <|close|> <|sep|> <|tool_calls_section_begin|> <|tool_calls_section_end|>"
            " <|tool_call_begin|> <|tool_call_argument_begin|> <|tool_call_end|>"
        ),
    ),
    Template(
        ("llama", "hermes", "nemotron"),
        words("<|begin_of_text|> <|start_header_id|> <|header_start|>"),
        words("<|eot_id|> <|eom_id|> <|eot|> <|eom|> <|end_of_text|>"),
        words(
            "<|end_header_id|> <|header_end|> <|python_tag|> <|python_start|> <|python_end|> <|finetune_right_pad_id|>"
        ),
    ),
    Template(
        ("mistral", "magistral"),
        (),
        (),
        words(
            "[TOOL_CALLS] [/TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CONTENT] [/AVAILABLE_TOOLS] [/SYSTEM_PROMPT]"
        ),
    ),
    Template(("gemma", "gemini"), words("<start_of_turn> <|turn>"), words("<end_of_turn> <turn|>")),
    Template(("gemini",), (), (), words("<ctrl42> <ctrl43> <ctrl46> <ctrl99> <ctrl100>")),
    Template(
        ("gemma",),
        (),
        (),
        words(
            '<|channel> <channel|> <|tool> <tool|> <|tool_response> <tool_response|> <|tool_call> <tool_call|> <|"|>'
            " <start_function_call> <end_function_call>"
        ),
    ),
    Template(
        ("deepseek",),
        words("<|begin_of_sentence|> <|User|> <|Assistant|>"),
        words("<|end_of_sentence|>"),
        words(
            "<|tool_calls_begin|> <|tool_call_begin|> <|tool_sep|> <|tool_call_end|> <|tool_calls_end|>"
            " <|tool_outputs_begin|> <|tool_output_begin|> <|tool_output_end|> <|tool_outputs_end|> <|fim_hole|>"
            " <|fim_begin|> <|fim_end|>"
        ),
    ),
    Template(
        ("glm", "phi"),
        words("<|system|> <|user|> <|assistant|> <|tool|>"),
        words("<|observation|> <|end|>"),
    ),
    Template(
        ("gpt-oss", "gpt"),
        words("<|start|>"),
        words("<|end|> <|return|> <|call|>"),
        words("<|channel|> <|message|> <|constrain|>"),
    ),
    Template(("muse",), words("<|start|>"), words("<|eom|> <|eot|>"), words("<|message|>")),
    Template(
        ("minimax",),
        words("]~!b[ ]~b]"),
        words("[e~["),
        ("]<]minimax[>[", "]<]start of image[>[", "]<]end of image[>[", "]<]image[>[", "]<]video[>[", "]<]speech[>["),
    ),
    Template(
        ("cohere",),
        words("<|START_OF_TURN_TOKEN|> <|CHATBOT_TOKEN|> <|USER_TOKEN|> <|SYSTEM_TOKEN|>"),
        words("<|END_OF_TURN_TOKEN|> <|END_RESPONSE|>"),
        words(
            "<|START_RESPONSE|> <|START_TEXT|> <|END_TEXT|> <|START_ACTION|> <|END_ACTION|> <|START_TOOL_RESULT|>"
            " <|END_TOOL_RESULT|> <BOS_TOKEN> <EOS_TOKEN> <PAD_TOKEN>"
        ),
    ),
    Template(("granite",), words("<|start_of_role|>"), words("<|end_of_text|>"), words("<|end_of_role|>")),
    Template(
        ("apertus",),
        words("<|assistant_start|> <|user_start|> <|system_start|> <|developer_start|>"),
        words("<|assistant_end|> <|user_end|> <|system_end|> <|developer_end|>"),
        words("<|tools_prefix|> <|tools_suffix|>"),
    ),
    Template(
        ("hunyuan",),
        words("<|startoftext|> <|hy_begin_of_sentence|> <|hy_User|> <|hy_Assistant|>"),
        words("<|eos|> <|hy_end_of_sentence|>"),
        words("<|extra_0|> <|extra_4|> <|extra_5|>"),
    ),
    Template(("ernie",), words("<|begin_of_sentence|>"), words("<|end_of_sentence|>"), words("<mask:0> <mask:1>")),
    Template(("seed",), words("<seed:bos>"), words("<seed:eos>"), words("<seed:pad>")),
    Template(("exaone",), words("[|assistant|] [|user|] [|system|] [|tool|]"), words("[|endofturn|]")),
    Template(("step", "deepseek"), words("<|BOT|>"), words("<|EOT|>")),
    Template(("gigachat",), (), (), words("<|role_sep|> <|message_sep|> <|function_call|>")),
    Template(("functionary",), words("<|from|> <|recipient|> <|content|>"), words("<|stop|>")),
    Template(
        ("inkling",),
        words("<|message_model|> <|message_user|> <|content_text|>"),
        words("<|end_message|> <|content_model_end_sampling|>"),
    ),
    Template(("solar",), words("<|begin|>"), words("<|end|> <|flush|>")),
    Template(("starcoder", "granite"), (), (), words("<fim_prefix> <fim_middle> <fim_suffix> <fim_pad>")),
)

# What people write too: only at the edges, or in a row.
EDGE_OPENS = frozenset(words("<s> <bos> [BOS] [gMASK] <sop> [INST] <<SYS>>"))
EDGE_ENDS = frozenset(words("</s> <eos> [EOS] [EOT] <eop> <end> <pad> <unk> <0x0A>"))
EDGE_OTHERS = frozenset(
    words("[/INST] <</SYS>> [ARGS] [CALL_ID] [AVAILABLE_TOOLS] [SYSTEM_PROMPT] [IMG] [PREFIX] [SUFFIX] [MIDDLE]")
)
EDGES = EDGE_OPENS | EDGE_ENDS | EDGE_OTHERS

OPENS = frozenset(token for template in TEMPLATES for token in template.opens)
ENDS = frozenset(token for template in TEMPLATES for token in template.ends)
SURE = OPENS | ENDS | frozenset(token for template in TEMPLATES for token in template.others)
