"""Step 3: DeepSeek's tokens around prefixed invokes."""

from __future__ import annotations


def write_step3(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<steptml:parameter name="{key}">{text}</steptml:parameter>\n' for key, text in arguments.items())
    return (
        f'<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">\n{inside}'
        "</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"
    )


TEXT_WRITERS = [("step3", write_step3)]
SOUP = {
    "begins": "<｜tool_call_begin｜>function<｜tool_sep｜>",
    "invokes": '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="x">',
    "values": '<steptml:invoke name="x"><steptml:parameter name="y">z</steptml:parameter>',
    "ends": "</steptml:invoke><｜tool_call_end｜>",
}
