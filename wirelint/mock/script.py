"""Scenario files: what to answer to which request, in TOML.

```toml
seed = 7                       # like --seed
faults = ["xml-leak=0.2"]      # like --fault, for what no reply below is for

[[reply]]
when = { model = "kimi-*", text = "weather", stream = true }
fault = "xml-leak+dialect=kimi_k2"
times = 1                      # the first such request; then it is used up

[[reply]]
when = { result = true }       # the request ends with a tool's result
text = "It is 18 degrees."

[[reply]]
calls = [{ name = "get_weather", arguments = { city = "Paris" } }]
```

The first reply whose `when` fits, and that is not used up, answers; without one, `faults` decide.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from wirelint.mock.plan import Ask, Call, Mint, Reply, dump_json
from wirelint.mock.scenario import Options, Scenario, ScenarioError, near, parse_scenario
from wirelint.model import Json

_FILE_KEYS = ("seed", "faults", "reply")
_WHEN_KEYS = ("api", "model", "text", "stream", "tools", "result")
_REPLY_KEYS = ("when", "fault", "times", "text", "reasoning", "calls")


@dataclass(frozen=True, slots=True)
class When:
    """What a request must be like. `api` and `model` are globs, `text` stands in what the user says last."""

    api: str = "*"
    model: str = "*"
    text: str = ""
    stream: bool | None = None
    tools: bool | None = None
    result: bool | None = None

    def fits(self, api: str, ask: Ask) -> bool:
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
    """One `[[reply]]`. `says` is (reasoning, text, calls as name and arguments); None leaves the words to the server."""

    when: When
    scenario: Scenario
    times: int | None = None
    says: tuple[str, str, tuple[tuple[str, dict[str, Json]], ...]] | None = None

    def reply(self, ask: Ask, mint: Mint) -> Reply | None:
        """What is said, with ids of the API's form."""
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
    """A scenario file. `seed` None: it names none."""

    lines: tuple[Line, ...] = ()
    faults: tuple[str, ...] = ()
    seed: int | None = None


def load_script(path: Path, base: Options | None = None) -> Script:
    """Reads a scenario file. Raises ScenarioError in one line: file, place, cure."""
    try:
        document: dict[str, Json] = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: not TOML: {error}") from error
    try:
        return read_script(document, base)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from error


def read_script(document: Mapping[str, Json], base: Options | None = None) -> Script:
    """The script of a file's contents. Raises ScenarioError."""
    _refuse_others(document, _FILE_KEYS, "")
    seed, faults, replies = document.get("seed"), document.get("faults", []), document.get("reply", [])
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
        raise ScenarioError("seed: a whole number is expected")
    if not isinstance(faults, list) or not all(isinstance(fault, str) for fault in faults):
        raise ScenarioError('faults: a list of scenarios is expected, such as ["xml-leak=0.2"]')
    if not isinstance(replies, list):
        raise ScenarioError("reply: write [[reply]], with two brackets")
    lines = tuple(_read_line(one, f"reply {number}", base) for number, one in enumerate(replies, 1))
    return Script(lines, tuple(str(fault) for fault in faults), seed)


def _read_line(value: Json, place: str, base: Options | None) -> Line:
    if not isinstance(value, dict):
        raise ScenarioError(f"{place}: write [[reply]], with two brackets")
    _refuse_others(value, _REPLY_KEYS, f"{place}: ")
    fault, times, when = value.get("fault", ""), value.get("times"), value.get("when", {})
    if not isinstance(fault, str):
        raise ScenarioError(f"{place}: fault: a scenario is expected, such as 'xml-leak+dialect=kimi_k2'")
    if times is not None and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
        raise ScenarioError(f"{place}: times: a whole number of 1 or more is expected")
    try:
        scenario = parse_scenario(fault, base=base)
    except ScenarioError as error:
        raise ScenarioError(f"{place}: fault: {error}") from error
    return Line(_read_when(when, place), scenario, times, _read_words(value, place))


def _read_when(value: Json, place: str) -> When:
    if not isinstance(value, dict):
        raise ScenarioError(f'{place}: when: a table is expected, such as {{ model = "gpt-*" }}')
    _refuse_others(value, _WHEN_KEYS, f"{place}: when: ")
    words = {key: value[key] for key in ("api", "model", "text") if key in value}
    flags = {key: value[key] for key in ("stream", "tools", "result") if key in value}
    for key, one in [*words.items(), *flags.items()]:
        if not isinstance(one, str if key in words else bool):
            expected = "text" if key in words else "true or false"
            raise ScenarioError(f"{place}: when: {key}: {expected} is expected")
    return When(**words, **flags)  # type: ignore[arg-type]


def _read_words(
    value: Mapping[str, Json], place: str
) -> tuple[str, str, tuple[tuple[str, dict[str, Json]], ...]] | None:
    if not {"text", "reasoning", "calls"} & value.keys():
        return None
    text, reasoning, calls = value.get("text", ""), value.get("reasoning", ""), value.get("calls", [])
    if not isinstance(text, str) or not isinstance(reasoning, str):
        raise ScenarioError(f"{place}: text and reasoning are texts")
    made = []
    for call in calls if isinstance(calls, list) else [calls]:
        name, arguments = (call.get("name"), call.get("arguments", {})) if isinstance(call, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise ScenarioError(f'{place}: calls: write [{{ name = "get_weather", arguments = {{ city = "Paris" }} }}]')
        made.append((name, arguments))
    return reasoning, text, tuple(made)


def _refuse_others(value: Mapping[str, Json], known: tuple[str, ...], place: str) -> None:
    for key in value:
        if key not in known:
            raise ScenarioError(f"{place}{key!a}: no such key{near(key, known)} ({', '.join(known)})")
