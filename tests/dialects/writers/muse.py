"""ATEM: prefixed invokes in a message addressed to the tool."""

from __future__ import annotations


def write_muse(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<atem:parameter name="{key}">{text}</atem:parameter>\n' for key, text in arguments.items())
    return (
        f'to={name}<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n{inside}</atem:invoke>\n'
        "</atem:function_calls><|eom|>"
    )


TEXT_WRITERS = [("muse_atem", write_muse)]
SOUP = {
    "headers": " to=x<|message|>",
    "headers-with-tag": " to=x<|message|><atem:invoke",
    "wrappers": "<atem:function_calls>",
    "invokes": ' to=x<|message|><atem:function_calls><atem:invoke name="x">',
    "values": '<atem:invoke name="x"><atem:parameter name="y">z</atem:parameter>',
    "parameters": '<atem:invoke name="x"><atem:parameter name="y">',
}
