"""Scenario files: TOML that maps requests to replies.

```toml
seed = 7                       # like --seed
faults = ["xml-leak=0.2"]      # like --fault, for requests without a [[reply]]

[[reply]]
when = { model = "kimi-*", text = "weather", stream = true }
fault = "xml-leak+dialect=kimi_k2"
times = 1                      # for the first such request only

[[reply]]
when = { result = true }       # the request ends with a tool result
text = "It is 18 degrees."

[[reply]]
calls = [{ name = "get_weather", arguments = { city = "Paris" } }]
```

The first reply whose `when` matches, and that is not used up, answers; without one, `faults` decide.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from wirelint.mock.plan import Ask, Call, Mint, Reply, dump_json
from wirelint.mock.scenario import Options, Scenario, ScenarioError, near, parse_scenario
from wirelint.model import Json

_KINDS: dict[str, tuple[type, ...]] = {
    "a text": (str,),
    "true or false": (bool,),
    "a whole number": (int,),
    "a table": (dict,),
    "a list": (list,),
}
_FILE_KEYS = {"seed": "a whole number", "faults": "a list", "reply": "a list"}
_WHEN_KEYS = {
    "api": "a text",
    "model": "a text",
    "text": "a text",
    "stream": "true or false",
    "tools": "true or false",
    "result": "true or false",
}
_REPLY_KEYS = {
    "when": "a table",
    "fault": "a text",
    "times": "a whole number",
    "text": "a text",
    "reasoning": "a text",
    "calls": "a list",
}
_EXAMPLES = {
    "faults": ', such as ["xml-leak=0.2"]',
    "reply": "; write [[reply]], with two brackets",
    "when": ', such as { model = "gpt-*" }',
    "fault": ", such as 'xml-leak+dialect=kimi_k2'",
    "calls": ', such as [{ name = "get_weather", arguments = { city = "Paris" } }]',
}


@dataclass(frozen=True, slots=True)
class When:
    """A condition on a request. `api` and `model` are globs, `text` is part of the last user message."""

    api: str = "*"
    model: str = "*"
    text: str = ""
    stream: bool | None = None
    tools: bool | None = None
    result: bool | None = None

    def fits(self, api: str, ask: Ask) -> bool:
        """Return True if a request meets the condition."""
        return (
            fnmatchcase(api, self.api)
            and fnmatchcase(ask.model, self.model)
            and self.text.lower() in ask.user_text.lower()
            and self.stream in (None, ask.stream)
            and self.tools in (None, bool(ask.tools))
            and self.result in (None, ask.result is not None)
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One `[[reply]]`. `says` is (reasoning, text, calls as name and arguments); None: the healthy model's words."""

    when: When
    scenario: Scenario
    times: int | None = None
    says: tuple[str, str, tuple[tuple[str, dict[str, Json]], ...]] | None = None

    def reply(self, ask: Ask, mint: Mint) -> Reply | None:
        """Return the reply with call ids of the API's form."""
        if self.says is None:
            return None
        reasoning, text, calls = self.says
        made = tuple(
            Call(mint(name, ask.calls_before + at), name, dump_json(arguments))
            for at, (name, arguments) in enumerate(calls)
        )
        return Reply(reasoning, text, calls=made, finish="tool_calls" if made else "stop")


@dataclass(frozen=True, slots=True)
class Script:
    """A scenario file. `seed` is None if the file has none."""

    lines: tuple[Line, ...] = ()
    faults: tuple[str, ...] = ()
    seed: int | None = None


def load_script(path: Path, base: Options | None = None) -> Script:
    """Read a scenario file. Raises ScenarioError in one line: file, place, cure."""
    try:
        return read_script(tomllib.loads(path.read_text("utf-8")), base)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: not TOML: {error}") from error
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from error


def read_script(document: Mapping[str, Any], base: Options | None = None) -> Script:
    """Read the contents of a scenario file. Raises ScenarioError."""
    _check(document, _FILE_KEYS, "")
    faults = document.get("faults", [])
    if not all(isinstance(fault, str) for fault in faults):
        raise ScenarioError(f"faults: a list of scenarios is expected{_EXAMPLES['faults']}")
    lines = tuple(_read_line(one, f"reply {number}: ", base) for number, one in enumerate(document.get("reply", []), 1))
    return Script(lines, tuple(faults), document.get("seed"))


def _read_line(value: Any, place: str, base: Options | None) -> Line:
    if not isinstance(value, dict):
        raise ScenarioError(f"{place}a table is expected{_EXAMPLES['reply']}")
    _check(value, _REPLY_KEYS, place)
    when, times = value.get("when", {}), value.get("times")
    _check(when, _WHEN_KEYS, f"{place}when: ")
    if times is not None and times < 1:
        raise ScenarioError(f"{place}times: a whole number of 1 or more is expected")
    try:
        scenario = parse_scenario(value.get("fault", ""), base=base)
    except ScenarioError as error:
        raise ScenarioError(f"{place}fault: {error}") from error
    says = None
    if {"text", "reasoning", "calls"} & value.keys():
        calls = tuple(_read_call(call, place) for call in value.get("calls", []))
        says = value.get("reasoning", ""), value.get("text", ""), calls
    return Line(When(**when), scenario, times, says)


def _read_call(call: Any, place: str) -> tuple[str, dict[str, Json]]:
    name, arguments = (call.get("name"), call.get("arguments", {})) if isinstance(call, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ScenarioError(f"{place}calls: a name and arguments are expected{_EXAMPLES['calls']}")
    return name, arguments


def _check(value: Mapping[str, Any], known: Mapping[str, str], place: str) -> None:
    """Raise ScenarioError for an unknown key or a value of another type."""
    for key, one in value.items():
        if key not in known:
            raise ScenarioError(f"{place}{key!a}: no such key{near(key, known)} ({', '.join(known)})")
        if type(one) not in _KINDS[known[key]]:
            raise ScenarioError(f"{place}{key}: {known[key]} is expected{_EXAMPLES.get(key, '')}")
