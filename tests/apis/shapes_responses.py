"""Replies of OpenAI's Responses in every shape, and what a client makes of each."""

from __future__ import annotations

from typing import Any

from tests.apis.harness import ITEMS, Shape
from tests.apis.talk_openai_responses import USAGE, counted, events, function_call, message, reasoning, streamed, whole
from tests.build import Call, sse


def both(parts: Any, *items: dict[str, Any], finish: str | None = "completed", **more: Any) -> Shape:
    """A body and the stream of it."""
    status = more.pop("status", "completed")
    body = whole(items, status, more.pop("details", None), **more)
    made: list[Any] = [parts] if parts or finish else []
    failed = body["error"] is not None
    return Shape(made, [finish], body, streamed(body), usage=body["usage"], id="resp_01", error=failed)


def stream(parts: Any, *documents: dict[str, Any], finish: str | None = "completed", **more: Any) -> Shape:
    """Events as they are given, numbered."""
    expected = {"usage": USAGE, "id": "resp_01", **more}
    return Shape([parts], [finish], stream=counted(documents), **expected)


def without(kind: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in events(whole(items)) if not event["type"].startswith(f"response.{kind}")]


def bare(text: str) -> str:
    """A stream of a server that names and numbers nothing, and ends it as Chat Completions does."""
    return ": waiting\n\n" + sse(*events(whole([message(text)])), done=True)


LOOK = function_call(Call("look", {"at": "sky"}, "call_1"), "fc_1")
LOOK_TOO = function_call(Call("look", {"at": "sea"}, "call_2"), "fc_2")
LOOKED = ("call", 'look {"at": "sky"}')
SEALED, OPEN, PATCH, SHELL, SEARCH, REMOTE, LOADED, CITED, REFUSED, ERROR = ITEMS["responses"].values()

_ALL: dict[str, Shape] = {
    "text": both([("text", "Hello, you.")], message("Hello, you.")),
    "two parts": both([("text", "One."), ("text", "Two.")], message("One.", "Two.")),
    "nothing": both([], finish="completed"),
    "empty text": both([], message("")),
    "call": both([LOOKED], LOOK),
    "text and two calls": both(
        [("text", "Let me."), LOOKED, ("call", 'look {"at": "sea"}')], message("Let me."), LOOK, LOOK_TOO
    ),
    "summaries": both(
        [("reasoning", "First."), ("reasoning", "Then."), ("text", "Done.")], reasoning("First.", "Then."), message("Done.")
    ),
    "open thoughts": both([("reasoning", "Up, then."), LOOKED], OPEN, LOOK),
    "sealed thoughts": both([("sealed", ""), ("text", "Done.")], SEALED, message("Done.")),
    "free text": both([("call", "patch *** Begin\n+one\n")], PATCH),
    "local shell": both([("call", 'local_shell {"type":"exec","command":["ls"]}')], SHELL),
    "hosted search": both([("hosted", "web_search"), ("text", "High at nine.")], SEARCH, CITED),
    "remote tool": both([("hosted", "tide"), ("hosted", "mcp_call"), ("text", "High.")], REMOTE, message("High.")),
    "tools loaded": both([("hosted", "tool_search_output"), LOOKED], LOADED, LOOK),
    "refusal": both([("refusal", "No.")], REFUSED),
    "of a kind to come": both([("opaque", "dream")], {"id": "dr_1", "type": "dream", "of": ["sheep"]}),
    "cut by length": both(
        [("text", "Once upon")], message("Once upon"), status="incomplete", details="max_output_tokens",
        finish="max_output_tokens",
    ),
    "filtered": both([("text", "Once")], message("Once"), status="incomplete", details="content_filter",
        finish="content_filter"),
    "incomplete, who knows why": both([("text", "Once")], message("Once"), status="incomplete", finish="incomplete"),
    "failed": both([], status="failed", finish="failed", error=ERROR, usage=None),
    "cancelled": Shape([[]], ["cancelled"], whole([], "cancelled"), usage=USAGE, id="resp_01"),
    "queued": Shape(whole=whole([], "queued", usage=None), id="resp_01"),
    "refused request": Shape(whole={"error": {"message": "no such model", "type": "invalid_request_error"}}, error=True),
    "not output but words": Shape(
        [[]], ["completed"], {**whole([]), "output": ["words", 3, None]}, usage=USAGE, id="resp_01"
    ),
    "content that is a string": Shape(
        [[("text", "Hi")]], ["completed"], whole([{"type": "message", "content": "Hi"}]), usage=USAGE, id="resp_01"
    ),
    "arguments that are an object": Shape(
        [[("call", 'look {"at":"sky"}')]], ["completed"], whole([{**LOOK, "arguments": {"at": "sky"}}]), usage=USAGE,
        id="resp_01",
    ),
    "no names, no numbers, comments, [DONE]": Shape(
        [[("text", "Ahoy there")]], ["completed"], stream=bare("Ahoy there"), usage=USAGE, id="resp_01"
    ),
    "never in deltas": stream(
        [("text", "Whole."), LOOKED],
        *[event for event in events(whole([message("Whole."), LOOK])) if not event["type"].endswith("delta")],
    ),
    "items at their end alone": stream(
        [("text", "Whole."), LOOKED],
        *[e for e in events(whole([message("Whole."), LOOK])) if e["type"].endswith(("item.done", "created", "completed"))],
    ),
    "all in the last event": stream(
        [("text", "Whole."), LOOKED], *[e for e in events(whole([message("Whole."), LOOK])) if "item" not in e["type"]][-1:]
    ),
    "no output in the last event": stream(
        [("text", "Said."), LOOKED], *[*events(whole([message("Said."), LOOK]))][:-1],
        {"type": "response.completed", "response": whole([])},
    ),
    "delta of an item that was never added": stream(
        [("text", "Lost.")], *without("output_item.added", message("Lost.")), faults=["undeclared-part"]
    ),
    "an item that is never done": stream(
        [("text", "Open.")], *without("output_item.done", message("Open.")), faults=["unfinished-part"]
    ),
    "an item that is added twice": stream(
        [LOOKED], *[e for e in events(whole([LOOK])) for _ in range(2 if e["type"].endswith("item.added") else 1)],
        faults=["restarted-part"],
    ),
    "after the end": stream(
        [("text", "Hi")], *events(whole([message("Hi")])),
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "!"},
        faults=["after-end"],
    ),
    "cut": stream(
        [("text", "Once upon")], *[e for e in events(whole([message("Once upon")])) if "done" not in e["type"]][:-1],
        finish=None, usage=None, terminated=False,
    ),
    "error in the stream": stream(
        [("text", "Once")], *[*events(whole([message("Once")]))][:5],
        {"type": "error", "code": "server_error", "message": "gone", "param": None},
        finish=None, usage=None, terminated=False, error=True,
    ),
    "another name than type": Shape(
        [[("text", "Hi")]], ["completed"], usage=USAGE, id="resp_01", faults=["event-mismatch"],
        stream=streamed(whole([message("Hi")])).replace(
            "event: response.output_text.done", "event: response.output_text.delta"
        ),
    ),
}  # fmt: skip

SHAPES_RESPONSES = {"openai.responses": _ALL}
