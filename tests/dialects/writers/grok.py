"""Grok: xAI's tag with Claude's parameters."""

from __future__ import annotations


def write_grok(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<parameter name="{key}">{text}</parameter>\n' for key, text in arguments.items())
    return f'<xai:function_call name="{name}">\n{inside}</xai:function_call>'


TEXT_WRITERS = [("xai_function_call", write_grok)]
SOUP = {
    "calls": '<xai:function_call name="x">',
    "parameters": '<xai:function_call name="x"><parameter name="y">',
    "values": '<xai:function_call name="x"><parameter name="y">z</parameter>',
    "cards": "<xai:tool_usage_card>",
}
