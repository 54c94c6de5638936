from __future__ import annotations

import pytest

from wirelint.claims.evidence import tools_used
from wirelint.model import Arguments, HostedCall, Message, Request, Text, Tool, ToolCall, ToolResult

GO = Message("user", (Text("go", ""),), "")
CALL = Message("assistant", (ToolCall("1", "read", Arguments("{}"), ""),), "")
OTHER = Message("assistant", (ToolCall("2", "gone", Arguments("{}"), ""),), "")
RESULT = Message("tool", (ToolResult("1", "ok", ""),), "")
HOSTED = Message("assistant", (HostedCall("1", "web_search", ""),), "")

USED = {
    "called in this turn": ((GO, CALL, RESULT), ["read"]),
    "called before": ((GO, CALL, RESULT, GO), []),
    "one that is not declared": ((GO, OTHER, CALL, RESULT), []),
    "one that the provider ran": ((GO, HOSTED, CALL, RESULT), []),
    "nothing": ((GO,), []),
}


@pytest.mark.parametrize(("messages", "names"), USED.values(), ids=USED)
def test_tools_used(messages: tuple[Message, ...], names: list[str]) -> None:
    request = Request("openai.chat", "m", messages, (Tool("read", "", "Reads a file."), Tool("send", "")), {})
    assert [one.tool.name for one in tools_used(request)] == names
