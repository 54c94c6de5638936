"""What the demonstration does, step by step: which client, which fault the server is to play, what should be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Sdk = Literal["openai", "anthropic"]
Json = dict[str, Any]

SEARCH = {
    "name": "search_notes",
    "description": "Searches the user's notes and returns the matching ones.",
    "schema": {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
        "additionalProperties": False,
    },
}
QUESTION = "Search my notes for the launch date."


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a few requests of one client. `scenario` is for the server, `finds` the rules that must fire."""

    title: str
    sdk: Sdk
    stream: bool
    scenario: str = ""
    finds: frozenset[str] = frozenset()
    mangle: Callable[[str], str] | None = None
    """Makes a second turn out of the first, with the ids of its calls changed so, as a careless client would."""
    model: str = ""
    patience: float = 20.0
    """Seconds after which the client gives up."""
    repaired: str = ""
    """What the client must see once the reply is repaired; empty where there is no repair, or none is shown."""

    @property
    def headers(self) -> Mapping[str, str]:
        return {"x-wirelint-mock": self.scenario} if self.scenario else {}


CALLED = "a call of search_notes"


def _step(title: str, sdk: Sdk, stream: bool, scenario: str, *finds: str, **more: Any) -> Step:
    return Step(title, sdk, stream, scenario, frozenset(finds), **more)


def strip(id_: str) -> str:
    """What clients with a strict idea of ids do: only letters and digits survive."""
    return "".join(character for character in id_ if character.isalnum())


STEPS: tuple[Step, ...] = (
    _step("a healthy call", "openai", False, ""),
    _step("a healthy stream", "openai", True, "comments=1;chunk=11"),
    _step("a healthy call", "anthropic", False, ""),
    _step("a healthy stream, thinking", "anthropic", True, "reasoning=1"),
    _step("two parallel calls, compressed", "openai", True, "calls=2;encoding=gzip"),
    _step("a tool call leaks as text", "openai", True, "fault=xml-leak;dialect=kimi_k2", "xml-leak", repaired=CALLED),
    _step("the same in XML", "anthropic", True, "fault=xml-leak;dialect=anthropic_xml", "xml-leak", repaired=CALLED),
    _step("a control token leaks", "openai", False, "fault=control-token-leak", "control-token-leak"),
    _step("thinking leaks into the text", "openai", True, "fault=think-leak", "think-leak"),
    _step("a call that never was", "openai", False, "fault=fabricated-call", "fabricated-call"),
    _step("a result nobody gave", "openai", True, "fault=fabricated-result", "fabricated-result"),
    _step("announced, not called", "anthropic", True, "fault=intent-without-call", "intent-without-call"),
    _step("the client mangles an id", "openai", True, "", "mangled-id", mangle=strip, model="kimi-k2.5"),
    _step("an id changes under way", "openai", True, "fault=id-unstable", "id-unstable"),
    _step("arguments twice", "anthropic", True, "fault=concatenated-json", "concatenated-json"),
    _step("arguments cut off", "openai", False, "fault=invalid-json-arguments", "invalid-json-arguments"),
    _step("arguments break the schema", "anthropic", False, "fault=schema-violation", "schema-violation"),
    _step(
        "a tool nobody declared",
        "openai",
        False,
        "fault=undeclared-tool",
        "undeclared-tool",
        repaired="took out a call of",
    ),
    _step("a finish reason that lies", "anthropic", False, "fault=finish-reason-mismatch", "finish-reason-mismatch"),
    _step(
        "two calls, one index",
        "openai",
        True,
        "fault=tool-index-collision",
        "tool-index-collision",
        repaired=f"{CALLED} and {CALLED}",
    ),
    _step("events run together", "openai", True, "fault=sse-framing", "sse-framing", repaired=CALLED),
    _step("the stream breaks off", "anthropic", True, "fault=truncated-stream", "truncated-stream"),
    _step("the stream stands still", "openai", True, "fault=stream-stall;mode=pings;seconds=2.5", "stream-stall"),
    _step("all of it at once", "anthropic", True, "fault=stream-burst;seconds=2.5", "stream-burst"),
    _step("nobody answers", "openai", False, "fault=silent-hang;seconds=60", "silent-hang", patience=4.0),
)
