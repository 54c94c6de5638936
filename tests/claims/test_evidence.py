from __future__ import annotations

import pytest

from wirelint.claims.evidence import anything_ran, last_words, outcome, ran, tools_used
from wirelint.model import Arguments, HostedCall, Message, Request, Text, Tool, ToolCall, ToolResult

SAYS = {
    "flag": (ToolResult("1", "x", "", is_error=True), (True, set())),
    "error text": (ToolResult("1", "Error: no such file", ""), (True, set())),
    "error object": (ToolResult("1", '{"error": {"code": 5}}', ""), (True, set())),
    "null error": (ToolResult("1", '{"error": null, "total": 2}', ""), (False, {2})),
    "mcp error": (ToolResult("1", '{"isError": true, "content": []}', ""), (True, set())),
    "refusal with its reason": (ToolResult("1", '{"status": "conflict", "reason": "taken"}', ""), (True, set())),
    "record in such a state": (ToolResult("1", '{"id": 1, "status": "rejected"}', ""), (False, set())),
    "error inside": (ToolResult("1", '{"result": {"error": "full"}}', ""), (True, set())),
    "state inside": (ToolResult("1", '{"payment": {"status": "failed"}}', ""), (False, set())),
    "graphql": (ToolResult("1", '{"data": null, "errors": [{"message": "x"}]}', ""), (True, set())),
    "lint errors": (ToolResult("1", '{"errors": [{"line": 1}]}', ""), (False, set())),
    "status": (ToolResult("1", '{"status": 404}', ""), (True, set())),
    "exit 1 alone": (ToolResult("1", "exit code: 1", ""), (False, set())),
    "exit 1 with reason": (ToolResult("1", "build failed\nexit code: 1", ""), (True, set())),
    "total and list": (ToolResult("1", '{"total": 30, "hits": [1, 2]}', ""), (False, {30, 2})),
    "list": (ToolResult("1", "[1, 2, 3]", ""), (False, {3})),
    "nothing": (ToolResult("1", "No matches found", ""), (False, {0})),
    "empty": (ToolResult("1", "", ""), (False, {0})),
    "text count": (ToolResult("1", "Found 12 files", ""), (False, {12})),
    "prose about errors": (ToolResult("1", "Errors are handled in main.", ""), (False, set())),
    "log": (ToolResult("1", "10:00 start\n10:01 Error: disk", ""), (False, set())),
}


@pytest.mark.parametrize(("result", "expected"), SAYS.values(), ids=SAYS)
def test_outcome(result: ToolResult, expected: tuple[bool, set[int]]) -> None:
    found = outcome(result)
    assert (found.error, set(found.counts)) == expected


def user(*parts: object) -> Message:
    return Message("user", tuple(Text(part, "") if isinstance(part, str) else part for part in parts), "")  # type: ignore[misc]


def request(*messages: Message) -> Request:
    return Request("openai.chat", "m", messages, (Tool("t", ""),), {})


CALL = Message("assistant", (ToolCall("1", "t", Arguments("{}"), ""),), "")
RESULT = Message("tool", (ToolResult("1", "ok", ""),), "")


def test_last_words_leave_reminders_out() -> None:
    reminded = user("<system-reminder>x</system-reminder>", "go", "<system-reminder>y</system-reminder>")
    assert last_words(request(reminded, CALL, RESULT)) == "go"
    assert last_words(request(CALL)) == ""


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((user("go"),), False),
        ((user("go"), CALL, RESULT), True),
        ((user("go"), CALL, RESULT, user("and now?")), False),
        ((user("Observation: 4"),), True),
        ((user("<tool_response>4</tool_response>"),), True),
    ],
)
def test_anything_ran(messages: tuple[Message, ...], expected: bool) -> None:
    assert anything_ran(request(*messages)) is expected


def test_calls_and_results_are_paired() -> None:
    (one,) = ran((CALL, RESULT))
    assert one.call is not None
    assert one.result is not None
    assert one.call.id == one.result.call_id


GO = Message("user", (Text("go", ""),), "")
RECORDS_CALL = Message("assistant", (ToolCall("1", "read", Arguments("{}"), ""),), "")
OTHER = Message("assistant", (ToolCall("2", "gone", Arguments("{}"), ""),), "")
RECORDS_RESULT = Message("tool", (ToolResult("1", "ok", ""),), "")
HOSTED = Message("assistant", (HostedCall("1", "web_search", ""),), "")

USED = {
    "called in this turn": ((GO, RECORDS_CALL, RECORDS_RESULT), ["read"]),
    "called before": ((GO, RECORDS_CALL, RECORDS_RESULT, GO), []),
    "one that is not declared": ((GO, OTHER, RECORDS_CALL, RECORDS_RESULT), []),
    "one that the provider ran": ((GO, HOSTED, RECORDS_CALL, RECORDS_RESULT), []),
    "nothing": ((GO,), []),
}


@pytest.mark.parametrize(("messages", "names"), USED.values(), ids=USED)
def test_tools_used(messages: tuple[Message, ...], names: list[str]) -> None:
    request = Request("openai.chat", "m", messages, (Tool("read", "", "Reads a file."), Tool("send", "")), {})
    assert [one.tool.name for one in tools_used(request)] == names
