"""Anthropic's invokes, with and without the prefix."""

from __future__ import annotations

PREFIX = "antml" + ":"


def write_anthropic(name: str, arguments: dict[str, str], prefix: str = "") -> str:
    tag = "parameter"
    inside = "".join(f'<{prefix}{tag} name="{key}">{text}</{prefix}{tag}>\n' for key, text in arguments.items())
    invoke = f'<{prefix}invoke name="{name}">\n{inside}</{prefix}invoke>'
    return f"<{prefix}function_calls>\n{invoke}\n</{prefix}function_calls>"


def write_anthropic_antml(name: str, arguments: dict[str, str]) -> str:
    return write_anthropic(name, arguments, PREFIX)


TEXT_WRITERS = [("anthropic_xml", write_anthropic), ("anthropic_antml", write_anthropic_antml)]
SOUP = {
    "invokes": '<invoke name="x">',
    "with-brace": '<invoke name="x">{',
    "with-parameter": '<invoke name="x"><parameter name="y">',
    "with-value": '<invoke name="x"><parameter name="y">z</parameter>',
    "placeholders": '<invoke name="function_name"><parameter name="y">z</parameter></invoke>',
    "wrapped": '<function_calls><invoke name="x"><arg name="y">',
    "stray-words": "\ncall\n\n<",
}
