"""DSML and GCML: invokes whose tags carry a marker."""

from __future__ import annotations

from collections.abc import Callable


def writer(marker: str, block: str) -> Callable[[str, dict[str, str]], str]:
    def write(name: str, arguments: dict[str, str]) -> str:
        inside = "".join(
            f'<{marker}parameter name="{key}" string="true">{text}</{marker}parameter>\n'
            for key, text in arguments.items()
        )
        return f'<{marker}{block}>\n<{marker}invoke name="{name}">\n{inside}</{marker}invoke>\n</{marker}{block}>'

    return write


TEXT_WRITERS = [
    ("deepseek_v3_2_dsml", writer("｜DSML｜", "function_calls")),
    ("deepseek_v4_dsml", writer("｜DSML｜", "tool_calls")),
    ("deepseek_v4_1_dsml", writer("｜DSML｜ ", "calls")),
    ("gigachat35_gcml", writer("｜GCML｜", "tool_calls")),
]
SOUP = {
    "blocks": "<｜DSML｜tool_calls>",
    "invokes": '<｜DSML｜invoke name="x">',
    "invokes-with-brace": '<｜DSML｜invoke name="x">{',
    "parameters": '<｜DSML｜invoke name="x"><｜DSML｜parameter name="y">',
    "values": '<｜DSML｜invoke name="x"><｜DSML｜parameter name="y" string="true">z</｜DSML｜parameter>',
    "closers": "</｜DSML｜invoke> x ",
    "cut-tags": "<|DSML|invoke ",
    "markers": "<|DSML|",
}
