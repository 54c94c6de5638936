"""The path of a call: what each layer did, what was changed, and where it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from rich.console import Console

from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, exchange, schema
from tests.cli.test_check import write
from tests.command import Wirelint
from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem, read
from wirelint.rule import Rule
from wirelint.view.paths import Path, Paths, path_document, render_path, render_trails

Record = dict[str, Any]

START = 1767225600.0
ID = "call_4hTq8ZmWc2Rk9LxYv0Bn"
TOOLS = {"search": ("Searches the documents.", schema(query="string"))}
ASKED = Talk((User("When is the launch?"),), calls=(Call("search", {"query": "launch"}, ID),), tools=TOOLS)
FOUND = Talk(
    (User("When is the launch?"), Assistant("", (Call("search", {"query": "launch"}, ID),)), Result(ID, "On Monday.")),
    text="It is on Monday.",
    tools=TOOLS,
)
DROPPED = Talk(
    (User("When is the launch?"), Assistant("I will see."), User("And?")), text="I do not know.", tools=TOOLS
)
OPEN = replace(FOUND, history=FOUND.history[:2])
MANGLED = Talk(
    (
        User("When is the launch?"),
        Assistant("", (Call("search", {"query": "launch"}, ID.replace("_", "").lower()),)),
        Result(ID.replace("_", "").lower(), "On Monday."),
    ),
    text="It is on Monday.",
    tools=TOOLS,
)


def model(
    id_: str, talk: Talk, at: float = 0.0, api: str = "openai.chat", *, stream: bool = False, **more: Any
) -> Record:
    record = {**talk.record(api, stream), "id": id_, **more}
    timing = {"started": START + at, "first_byte_ms": 200, "first_token_ms": 300, "duration_ms": 1000}
    return {**record, "timing": timing, "end": "complete"}


def served(id_: str, method: str, params: Any, result: Any, at: float) -> Record:
    number = int(id_[1:])
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    answer = {"jsonrpc": "2.0", "id": number, "result": result}
    record = exchange("/mcp", body, answer, request_headers={"mcp-session-id": "s1"})
    return {**record, "id": id_, "timing": {"started": START + at, "duration_ms": 40}, "end": "complete"}


LISTED = served(
    "m1",
    "tools/list",
    {},
    {"tools": [{"name": "search", "description": "Searches the documents.", "inputSchema": schema(query="string")}]},
    -1,
)


def called(result: Any, query: str = "launch") -> Record:
    return served("m2", "tools/call", {"name": "search", "arguments": {"query": query}}, result, 1.1)


def said(text: str, **more: Any) -> Any:
    return {"content": [{"type": "text", "text": text}], **more}


def checked(folder: File, records: Sequence[Record], rules: Sequence[Rule] = REGISTRY.rules) -> list[Checked]:
    file = write(folder / "some.jsonl", *records)
    items = check(read([str(file)]), rules)
    return [item for item in items if not isinstance(item, Problem)]


def shown(one: Path) -> str:
    return " ".join(f"{step.layer}:{step.state}" for step in one.steps)


def delivered(record: Record, talk: Talk) -> Record:
    made = talk.record("openai.chat", False)["response"]
    return {**record, "delivered": made, "fixes": []}


A, B = model("a", ASKED), model("b", FOUND, 2)
FAILED = model("b", replace(FOUND, status=500), 2)
LEAKED = "<tool_call>\n<function=search>\n<parameter=query>\nlaunch\n</parameter>\n</function>\n</tool_call>"
BACK = "model:ok gateway:unseen tool:unseen client:ok model:ok"
CASES: dict[str, tuple[list[Record], str, str]] = {
    # exchanges, the states of the path's steps, where it ends if not at the model
    "back at the model": ([A, B], BACK, ""),
    "the last exchange": ([A], "model:ok gateway:unseen client:missing", "no later request"),
    "dropped by the client": (
        [model("a", replace(ASKED, text="I will see.")), model("b", DROPPED, 2)],
        "model:ok gateway:unseen client:missing", "no later request",
    ),
    "no result": ([A, model("b", OPEN, 2)], "model:ok gateway:unseen client:missing", "no result was ever sent back"),
    "an altered id": ([A, model("b", MANGLED, 2)], "model:ok gateway:unseen tool:unseen client:changed model:ok", ""),
    "not answered": ([A, FAILED], "model:ok gateway:unseen tool:unseen client:ok model:missing", "was not answered"),
    "answered at the second attempt": ([A, FAILED, model("c", FOUND, 4)], BACK, ""),
    "a server on the wire": (
        [LISTED, A, called(said("On Monday.")), B], "model:ok gateway:unseen client:ok tool:ok client:ok model:ok", ""
    ),
    "a server that fails": (
        [LISTED, A, called(said("Locked.", isError=True)), B], "model:ok gateway:unseen client:ok tool:failed client:", ""
    ),
    "a server that never answers": (
        [LISTED, A, {**called(said("")), "response": {"status": None}}],
        "model:ok gateway:unseen client:ok tool:missing client:missing", "no later request",
    ),
    "other arguments": (
        [LISTED, A, called(said("On Monday."), "lunch"), B], "model:ok gateway:unseen client:changed tool:ok client:", ""
    ),
    "repaired on its way": (
        [delivered(model("a", replace(ASKED, calls=(Call("search", '{"query": "launch"}', "x"),))), ASKED), B],
        "model:ok gateway:changed tool:unseen client:ok model:ok", "",
    ),
    "taken out": (
        [delivered(A, Talk((), text="I cannot search.")), model("b", DROPPED, 2)],
        "model:ok gateway:missing", "never reached the client",
    ),
    "in the text": (
        [model("a", replace(ASKED, calls=(), text=LEAKED))], "model:changed gateway:missing", "no call was made"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("records", "steps", "end"), CASES.values(), ids=CASES)
def test_the_path_of_a_call_names_where_it_ends(records: list[Record], steps: str, end: str, tmp_path: File) -> None:
    (one,) = Paths(checked(tmp_path, records)).all()
    assert shown(one).startswith(steps), shown(one)
    assert end in one.end
    assert bool(end) is bool(one.end)


@pytest.mark.parametrize(
    "api", ["anthropic.messages", "openai.responses", "google.generate_content", "ollama.chat", "cohere.chat"]
)
def test_a_path_through_other_apis(api: str, tmp_path: File) -> None:
    records = [model("a", ASKED, api=api, stream=True), model("b", FOUND, 2, api=api, stream=True)]
    (one,) = Paths(checked(tmp_path, records, ())).all()
    assert shown(one) == "model:ok gateway:unseen tool:unseen client:ok model:ok"
    assert one.end == ""


def test_what_was_changed_is_told_with_its_finding(tmp_path: File) -> None:
    items = checked(tmp_path, [model("a", ASKED), model("b", MANGLED, 2)])
    (one,) = Paths(items).all()
    client = one.steps[3]
    assert client.changes == (("id", ID, ID.replace("_", "").lower()),)
    assert [finding.name for finding in client.findings] == ["mangled-id"]
    assert [step.at for step in one.steps] == [1000, 1000, None, 2000, 2300]
    console = Console(file=io.StringIO(), width=80)
    console.print(render_path(one), render_trails([one]))
    out = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(
        words in out for words in ("mangled-id (client)", "✎ client", "+2.000 s", "model ✓ → gateway · → tool ·")
    )
    assert max(map(len, out.splitlines())) <= 80
    told = json.loads(json.dumps(path_document(one, items)))
    assert (told["complete"], told["steps"][3]["findings"][0]["code"]) == (True, "ID301")


def test_parallel_calls_have_a_path_each(tmp_path: File) -> None:
    two = (Call("search", {"query": "launch"}, ID), Call("search", {"query": "venue"}, "call_other0000000000001"))
    back = Talk((ASKED.history[0], Assistant("", two), Result(ID, "On Monday.")), text="On Monday.", tools=TOOLS)
    paths = Paths(checked(tmp_path, [model("a", replace(ASKED, calls=two)), model("b", back, 2)]))
    assert [bool(one.end) for one in paths.all()] == [False, True]
    assert [one.id for one in paths.of_call(ID.replace("_", "-").upper())] == [ID]
    assert len(paths.of_call("search")) == len([one for one in paths.all() if one.exchange == "a"]) == 2
    assert paths.of_call("nothing") == ()


# --- the command ---------------------------------------------------------------------------------------------------


def test_show_follows_a_call(wirelint: Wirelint, tmp_path: File) -> None:
    file = write(tmp_path / "one.jsonl", model("a", ASKED), model("b", FOUND, 2))
    for arguments in (("--call", ID), ("a", "--path"), ("--call", "search")):
        ran = wirelint("show", file, *arguments)
        assert ran.status == 0
        assert "model ✓ → gateway · → tool · → client ✓ → model ✓" in ran.out
    told = json.loads(wirelint("show", file, "--call", ID, "--output-format", "json").out)
    assert [step["layer"] for step in told[0]["steps"]] == ["model", "gateway", "tool", "client", "model"]
    conversation = told[0]["conversation"]
    assert (
        wirelint("show", file, "--conversation", conversation, "--output-format", "json").out
        == json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    )


def test_show_lists_the_calls_of_a_capture(wirelint: Wirelint, tmp_path: File) -> None:
    other = replace(ASKED, history=(User("And the venue?"),), calls=(Call("search", {"query": "venue"}, "call_2"),))
    file = write(tmp_path / "one.jsonl", model("a", ASKED), model("b", other, 1), model("c", FOUND, 2))
    ran = wirelint("show", file, "--path")
    assert "ends here: no later request continues from this reply" in " ".join(ran.out.split())
    assert "2 calls; follow one" in ran.err
    wirelint("show", file, "--call", "call_9").refuses("no such call")
