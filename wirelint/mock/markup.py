"""Tool calls in the native notation of a model family, as they look when a serving engine fails to convert them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import orjson

from wirelint.mock.plan import Call, dump_json
from wirelint.model import Json


def _members(call: Call) -> Iterator[tuple[str, str]]:
    """Parameters of a call in an untyped notation: strings stand as they are, everything else as JSON."""
    arguments: Json = orjson.loads(call.arguments)
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        yield name, value if isinstance(value, str) else dump_json(value)


def _kimi_k2(calls: Sequence[Call]) -> str:
    body = ""
    for number, call in enumerate(calls):
        # The header is the model's own id, which a Kimi reply has already.
        header = call.id if call.id.startswith("functions.") else f"functions.{call.name}:{number}"
        body += f"<|tool_call_begin|>{header}<|tool_call_argument_begin|>{call.arguments}<|tool_call_end|>"
    return f"<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>"


def _invoke(calls: Sequence[Call], tag: str, parameter: str) -> str:
    blocks = []
    for call in calls:
        lines = [f'<{parameter} name="{name}">{value}</{parameter}>' for name, value in _members(call)]
        blocks.append("\n".join([f'<{tag} name="{call.name}">', *lines, f"</{tag}>"]))
    return "\n".join(blocks)


def _kimi_invoke_arg(calls: Sequence[Call]) -> str:
    return _invoke(calls, "invoke", "arg")


def _anthropic_xml(calls: Sequence[Call]) -> str:
    return f"<function_calls>\n{_invoke(calls, 'invoke', 'parameter')}\n</function_calls>"


def _anthropic_antml(calls: Sequence[Call]) -> str:
    prefix = "antml:"
    body = _invoke(calls, f"{prefix}invoke", f"{prefix}parameter")
    return f"<{prefix}function_calls>\n{body}\n</{prefix}function_calls>"


def _hermes_json(calls: Sequence[Call]) -> str:
    return "\n".join(
        f'<tool_call>\n{{"name": {dump_json(call.name)}, "arguments": {call.arguments}}}\n</tool_call>'
        for call in calls
    )


def _qwen3_coder_xml(calls: Sequence[Call]) -> str:
    blocks = []
    for call in calls:
        lines = [f"<parameter={name}>\n{value}\n</parameter>" for name, value in _members(call)]
        blocks.append("\n".join(["<tool_call>", f"<function={call.name}>", *lines, "</function>", "</tool_call>"]))
    return "\n".join(blocks)


def _deepseek(body: str) -> str:
    return f"<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>"


def _deepseek_v3(calls: Sequence[Call]) -> str:
    return _deepseek(
        "\n".join(
            f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{call.name}\n```json\n{call.arguments}\n```<｜tool▁call▁end｜>"
            for call in calls
        )
    )


def _deepseek_v3_1(calls: Sequence[Call]) -> str:
    return _deepseek(
        "".join(f"<｜tool▁call▁begin｜>{call.name}<｜tool▁sep｜>{call.arguments}<｜tool▁call▁end｜>" for call in calls)
    )


MARKUP: dict[str, Callable[[Sequence[Call]], str]] = {
    "kimi_invoke_arg": _kimi_invoke_arg,
    "kimi_k2": _kimi_k2,
    "anthropic_xml": _anthropic_xml,
    "anthropic_antml": _anthropic_antml,
    "hermes_json": _hermes_json,
    "qwen3_coder_xml": _qwen3_coder_xml,
    "deepseek_v3": _deepseek_v3,
    "deepseek_v3_1": _deepseek_v3_1,
}
"""Dialect name -> the markup of some healthy calls."""
