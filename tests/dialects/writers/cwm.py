"""CWM: a block whose first word is the tool."""

from __future__ import annotations

import json


def write_cwm(name: str, arguments: dict[str, str]) -> str:
    return f"<tool: function>\n{name} {json.dumps(arguments)}\n</tool>"


TEXT_WRITERS = [("cwm_tool_block", write_cwm)]
SOUP = {
    "openers": "<tool: function>",
    "with-name": "<tool: function>\nx ",
    "with-brace": '<tool: function>\nx {"y": ',
    "closed": '<tool: function>\nx {"y": "z"}\n</tool>',
}
