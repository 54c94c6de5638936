"""Tags with the names of a tool and its parameters."""

from __future__ import annotations


def write_named(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f"<{key}>\n{text}\n</{key}>\n" for key, text in arguments.items())
    return f"<{name}>\n{inside}</{name}>"


TEXT_WRITERS = [("tool_named_xml", write_named)]
SOUP = {
    "tags": "<x>",
    "parameters": "<x><y>",
    "values": "<x><y>z</y>",
    "values-not-closed": "<x><y>z",
    "with-brace": '<x>{"y": ',
    "parameters-alone": "<y>z</y>",
    "function": "<function><name>x</name><y>",
    "named": '<tool_call><tool_name>x</tool_name><parameters>{"y": ',
    "named-whole": "<tool_call><tool_name>x</tool_name><parameters>{}</parameters></tool_call>",
    "empty": "<x/>",
    "empty-pair": "<x></x>",
}
