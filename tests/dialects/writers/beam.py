"""Beam: a message addressed to the tool, the arguments as tags."""

from __future__ import annotations


def write_beam(name: str, arguments: dict[str, str]) -> str:
    inside = "\n".join(f'<rfl:parameter name="{key}">\n{text}\n</rfl:parameter>' for key, text in arguments.items())
    return f"to={name}<|channel|>analysis <|constrain|>xml<|message|>{inside}<|call|>"


TEXT_WRITERS = [("beam_rfl", write_beam)]
SOUP = {
    "headers": " to=x<|channel|>analysis <|constrain|>xml<|message|>",
    "headers-with-end": " to=x<|channel|>analysis <|constrain|>xml<|message|><|end|><|start|>assistant",
    "parameters": '<rfl:parameter name="y">\n',
    "values": ' to=x xml<rfl:parameter name="y">\nz\n</rfl:parameter>',
    "orphans": '<rfl:parameter name="y">z</rfl:parameter> x ',
}
