"""The commands of mitmproxy's prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import command, exceptions, http
from mitmproxy.addons.view import View
from mitmproxy.test import tflow

from tests.addon.build import CUT, ended, inspecting
from tests.addon.test_addon import RECORD
from tests.addon.test_contentview import reopened, shown
from tests.build import Assistant, Talk, User, complaint, schema
from tests.tables import pairs, tables
from wirelint.addon.addon import Inspector
from wirelint.addon.ui import RuleName, flows_before
from wirelint.capture.readers import read
from wirelint.capture.record import Record

TOOLS = {"search": ("Searches.", schema(["q"], q="string"))}
LEAK = Talk(tools=TOOLS, text='I look.\n<invoke name="search"><arg name="q">launch</arg></invoke>').record(
    "openai.chat", True
)


class Prompt:
    """A master with a view, and flows that have passed."""

    def __init__(self, inspector: Inspector, view: View, manager: command.CommandManager) -> None:
        self.inspector, self.view, self._manager = inspector, view, manager

    def passes(self, record: dict[str, Any]) -> http.HTTPFlow:
        flow = ended(self.inspector, record)
        flow.live = False
        self.view.add([flow])
        return flow

    def __call__(self, line: str) -> Any:
        return self._manager.execute(line)  # type: ignore[no-untyped-call, unused-ignore]


@pytest.fixture
def prompt(tmp_path: Path) -> Iterator[Prompt]:
    view = View()
    with inspecting(view) as (inspector, context):
        yield Prompt(inspector, view, context.master.commands)


def test_findings(prompt: Prompt) -> None:
    cut, _, leak = prompt.passes(CUT), prompt.passes(RECORD), prompt.passes(LEAK)
    prompt.view.add([tflow.tflow(resp=True)])
    everything = prompt("wirelint.findings")
    heads = [line.split(":")[0] for line in everything]
    assert heads[:3] == [
        "openai.chat acme-1",
        "  error truncated-stream [gateway] response /choices/0/message/content, event 0",
        "openai.chat acme-1",
    ]
    assert heads[-1] == "1 exchange without findings"
    assert everything[0].endswith(f"1 error [{cut.id[:8]}]")
    assert any("error xml-leak [gateway]" in line for line in everything)
    assert prompt("wirelint.findings @all") == everything
    (head, *_) = prompt("wirelint.findings '~comment xml-leak'")
    assert head.endswith(f"[{leak.id[:8]}]")


def test_explain(prompt: Prompt) -> None:
    assert prompt("wirelint.explain xml-leak") == prompt("wirelint.explain lk101")
    assert prompt("wirelint.explain xml-leak")[0] == "LK101 xml-leak · error · gateway · fix: unsafe"
    assert "## Why is this bad?" in prompt("wirelint.explain xml-leak")


def test_names_of_rules_are_completed(prompt: Prompt) -> None:
    from mitmproxy import types

    kind: Any = types.CommandTypes.get(RuleName)
    assert "xml-leak" in kind.completion(None, RuleName, "xm")
    assert "LK101" in kind.completion(None, RuleName, "LK")


@pairs(tables(__file__)["wrong"])
def test_wrong_arguments(line: str, says: str, prompt: Prompt) -> None:
    prompt.passes(RECORD)
    assert complaint(exceptions.CommandError, lambda: prompt(line)).startswith(says)


def test_a_fix_is_tried_on_a_copy(prompt: Prompt) -> None:
    clean, leak = prompt.passes(RECORD), prompt.passes(LEAK)
    before = leak.get_state()
    lines = prompt("wirelint.fix @all")
    assert lines[0] == f"{clean.id[:8]}: nothing to repair"
    assert lines[1].startswith(f"{leak.id[:8]}: ")
    assert "  ✎ xml-leak (unsafe) promoted a call of search" in lines
    assert leak.get_state() == before
    (copy,) = [flow for flow in prompt.view if flow.id not in (clean.id, leak.id)]
    assert isinstance(copy, http.HTTPFlow)
    assert copy.response is not None
    assert copy.response.raw_content is not None
    assert prompt.view.focus.flow is copy
    assert copy.comment.startswith("fix tried · xml-leak")
    assert b"<invoke" not in copy.response.raw_content
    assert b'"tool_calls"' in copy.response.raw_content
    page = shown(copy, "response")[1]
    assert "+ → search" in page
    assert "- <invoke" in page
    # A copy that was kept in a file shows the same, and can be repaired again without a change.
    again = reopened(copy)
    assert "+ → search" in shown(again, "response")[1]


def test_a_report(prompt: Prompt, tmp_path: Path) -> None:
    prompt.passes(RECORD), prompt.passes(LEAK)
    path = tmp_path / "report.html"
    assert prompt(f"wirelint.view @all {path}") == f"2 exchanges written to {path}"
    assert "xml-leak" in path.read_text()


def test_a_case(prompt: Prompt, tmp_path: Path) -> None:
    prompt.passes(LEAK)
    path = tmp_path / "case.jsonl"
    assert prompt(f"wirelint.case @focus {path}").startswith(f"the case is written to {path}")
    (record,) = [item for item in read([str(path)]) if isinstance(item, Record)]
    assert "xml-leak" in [item["rule"] for item in record.annotations["expect"]]  # type: ignore[union-attr, index, call-overload]


def test_earlier_flows_of_a_conversation_are_found(prompt: Prompt) -> None:
    """A case and a trial of fixes need the turns before them."""
    first = prompt.passes(Talk((User("Hello"),), text="Hello to you.").record("openai.chat", False))
    prompt.passes(LEAK)
    later = Talk((User("Hello"), Assistant("Hello to you."), User("And?")), text="Yes.").record("openai.chat", False)
    assert flows_before(prompt.passes(later)) == [first]
