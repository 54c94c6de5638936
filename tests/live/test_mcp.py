"""Both channels through one proxy: an agent, a model that is played, and a real server of tools with its real client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the second channel takes the package of the protocol")

from tests.build import Assistant, Call, Result, Talk, User, as_record, checked
from tests.live.harness import SCRIPT, Proxy, Upstream, post, replying, running
from tests.live.mcp_peers import TRANSPORTS, Tools, Transport, serving, with_tools
from tests.rules.mcp import QUERY
from tests.selection import rotated
from wirelint.capture.readers import read

TOOLS = {"mcp__wiki__search_wiki": ("Search the wiki for pages.", QUERY)}


class Agent:
    """Asks the model and hands it results; the model says what it is told to."""

    def __init__(self, proxy: Proxy, model: Upstream, name: str, *, stream: bool) -> None:
        self._proxy, self._model, self._name, self._stream = proxy, model, name, stream

    def ask(self, step: str, talk: Talk) -> None:
        made = as_record(talk.record("openai.chat", self._stream))
        id_ = f"{self._name} {step}"
        fields: dict[str, Any] = {name.replace("-", "_"): value for name, value in made.response_headers}
        self._model.scripts[id_] = replying([made.response_body or b""], **fields)
        headers = {**dict(made.request_headers), SCRIPT: id_, "x-test-id": id_}
        answer = post(self._proxy.port, f"{self._model.url}/v1/chat/completions", made.request_body or b"", headers)
        assert answer.body == made.response_body

    def found(self, step: str) -> list[str]:
        record = self._proxy.wait_for_record(f"{self._name} {step}")
        return [finding["name"] for finding in record["findings"] if finding["severity"] != "info"]


@dataclass(frozen=True)
class Turn:
    """`hand_back` makes of a result what the model gets; None: the tool is not called, and the result is made up."""

    query: str
    hand_back: Callable[[str], str] | None
    said: str
    expected: Sequence[str] = ()

    async def play(self, agent: Agent, tools: Tools) -> None:
        ask, call = (
            User(f"Look {self.query} up."),
            Call("mcp__wiki__search_wiki", {"query": self.query}, f"call_{self.query}"),
        )
        agent.ask("calls", Talk((ask,), "", (call,), tools=TOOLS))
        given = await tools("search_wiki", {"query": self.query}) if self.hand_back is not None else ""
        told = self.hand_back(given) if self.hand_back is not None else "1 page"
        agent.ask("answers", Talk((ask, Assistant("", (call,)), Result(call.id, told)), self.said, tools=TOOLS))


TURNS = {
    "clean": Turn("leave", str, "There are two pages: Leave and Absence."),
    "an error that is told": Turn("tax", str, "The search failed: the tool gave an error."),
    "never run": Turn("pay", None, "There is one page on it.", ["unexecuted-call"]),
    "altered": Turn("sick", lambda given: given.replace("3", "7"), "There are seven pages.", ["altered-result"]),
    "swallowed": Turn("visa", lambda _: "[]", "It is not there.", ["mcp-error-swallowed"]),
}


@pytest.mark.parametrize(
    ("transport", "stream"),
    [
        pytest.param(transport, stream, marks=[] if transport != "older" else pytest.mark.complete)
        for transport in TRANSPORTS
        for stream in rotated([True, False], str(transport))
    ],
    ids=str,
)
def test_an_agent_is_judged_on_both_channels(
    transport: Transport, stream: bool, upstream: Upstream, tmp_path: Path
) -> None:
    """The older transport answers on a stream that is open all the while; what it has answered is known at once.

    Where repairs are asked for, what servers of tools say passes all the same.
    """
    options = ["wirelint_fix=unsafe"] if stream else []
    with serving(transport) as url, running(tmp_path, "", *options) as proxy:
        agents = {name: Agent(proxy, upstream, f"{transport} {stream} {name}", stream=stream) for name in TURNS}

        async def play(tools: Tools) -> None:
            for name, turn in TURNS.items():
                await turn.play(agents[name], tools)

        with_tools(url, proxy.url, play)
        for name, turn in TURNS.items():
            assert agents[name].found("calls") == [], name
            assert agents[name].found("answers") == list(turn.expected), name
        proxy.stop()
        live = proxy.records()
        offline = checked(read([str(proxy.capture())]))
    assert [[finding.name for finding in item.findings] for item in offline] == [
        [finding["name"] for finding in record["findings"]] for record in live
    ]
    others = [record for record in live if record["api"] == "mcp"]
    assert len(others) >= len(TURNS) + 2
    assert [record for record in others if record["findings"] or "delivered" in record or "forwarded" in record] == []
