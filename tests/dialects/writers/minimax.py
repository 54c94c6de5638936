"""MiniMax's invokes in a namespace, and its marked tags."""

from __future__ import annotations

_MARK = "]<]minimax[>["


def write_m2(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<parameter name="{key}">{text}</parameter>\n' for key, text in arguments.items())
    return f'<minimax:tool_call>\n<invoke name="{name}">\n{inside}</invoke>\n</minimax:tool_call>'


def write_m3(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f"{_MARK}<{key}>{text}{_MARK}</{key}>" for key, text in arguments.items())
    return f'{_MARK}<tool_call>\n{_MARK}<invoke name="{name}">{inside}{_MARK}</invoke>\n{_MARK}</tool_call>'


TEXT_WRITERS = [("minimax_m2", write_m2), ("minimax_m3", write_m3)]
SOUP = {
    "wrappers": "<minimax:tool_call>",
    "invokes": '<minimax:tool_call><invoke name="x">',
    "bare-words": "minimax:tool_call\n<",
    "objects": '<minimax:tool_call>{"name": "x", "arguments": {',
    "marks": "]<]minimax[>[",
    "marked-calls": ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="x">',
    "marked-tags": ']<]minimax[>[<invoke name="x">]<]minimax[>[<y>',
    "nested": "]<]minimax[>[<y>",
    "marked-values": ']<]minimax[>[<invoke name="x">]<]minimax[>[<y>z]<]minimax[>[</y>',
    "marked-closers": "]<]minimax[>[</y> z ",
}
