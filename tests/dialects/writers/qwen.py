"""Qwen3-Coder's tags, MiMo's without line ends, and Seed-OSS' in a wrapper of its own."""

from __future__ import annotations


def write_qwen(name: str, arguments: dict[str, str], tag: str = "tool_call") -> str:
    inside = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in arguments.items())
    return f"<{tag}>\n<function={name}>\n{inside}</function>\n</{tag}>"


def write_seed(name: str, arguments: dict[str, str]) -> str:
    return write_qwen(name, arguments, "seed:tool_call")


def write_mimo(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f"<parameter={key}>{text}</parameter>" for key, text in arguments.items())
    return f"<tool_call><function={name}>{inside}</function></tool_call>"


TEXT_WRITERS = [("qwen3_coder_xml", write_qwen), ("seed_oss_xml", write_seed), ("mimo_xml", write_mimo)]
SOUP = {
    "seed": "<seed:tool_call><function=x><parameter=y>z",
    "functions": "<function=x>",
    "with-parameter": "<tool_call><function=x><parameter=y>",
    "closers": "</parameter></function>",
}
