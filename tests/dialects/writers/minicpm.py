"""MiniCPM: names and parameters as attributes of short tags."""

from __future__ import annotations


def write_minicpm(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<param name="{key}">{text}</param>' for key, text in arguments.items())
    return f'<function name="{name}">{inside}</function>'


TEXT_WRITERS = [("minicpm5_xml", write_minicpm)]
SOUP = {
    "functions": '<function name="x">',
    "parameters": '<function name="x"><param name="y">',
    "values": '<function name="x"><param name="y">z</param>',
    "cdata": '<function name="x"><param name="y"><![CDATA[',
    "closed": '<function name="x"><param name="y"><![CDATA[z]]></param></function>',
    "wrappers": '<tool_call><function name="x"></function>',
}
