"""Scenarios: a fault and options for one answer, written as one line of words; and files that map requests to replies.

`fault=xml-leak;dialect=kimi_k2;chunk=7` in the request header `x-wirelint-mock`, `mock/xml-leak+dialect=kimi_k2+chunk=7`
as a model name, `--fault xml-leak+dialect=kimi_k2` on the command line. The first bare word is the fault (`healthy` is
none); `xml-leak=0.2` plays it in one answer out of five; flags may omit `=1`. `faults.resolve` knows which fault takes
which option. A scenario file is TOML; `scenario.toml` has its keys:

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

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from wirelint.mock.plan import DEFAULTS, Ask, Call, Finish, Mint, Options, Reply, dump_json, load_table
from wirelint.tables import ConfigError, hint, read_toml

HEADER = "x-wirelint-mock"
"""Request header that selects the scenario; in responses it names the scenario that was applied."""

MODEL_PREFIX = "mock/"
HEALTHY = "healthy"


class ScenarioError(ValueError):
    """A scenario that cannot be played; the message is one ASCII line that names the word concerned."""


FAULT_OPTIONS = frozenset({"mode", "dialect", "place", "seconds", "status"})
"""Options that only the faults which list them accept."""

OPTION_NAMES = tuple(Options.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault (None: healthy) with its options; `given` names the options that were written out, `text` is all of it."""

    fault: str | None = None
    options: Options = DEFAULTS
    given: frozenset[str] = frozenset()
    text: str = HEALTHY
    share: float | None = None
    """The share of answers that have the fault; None: all."""


def near(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean A or B?`, or nothing if no known word resembles this one."""
    found = hint(word, known, most=3, cutoff=0.5)
    return f"; {found}" if found else ""


def parse_scenario(text: str, *, separator: str = "+", base: Options = DEFAULTS) -> Scenario:
    """Parse `WORD[+WORD...]` over the options of `base`. Raises ScenarioError; fault names and modes are not checked."""
    fault: str | None = None
    share: float | None = None
    options = base
    given: set[str] = set()
    for word in filter(None, (part.strip() for part in text.split(separator))):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals and name not in _FLAGS:
            name, value = "fault", word
        elif fault is None and name not in OPTION_NAMES and name != "fault" and _SHARE.fullmatch(value):
            share, name, value = _read_share(value, word), "fault", name
        if name == "fault":
            if fault is not None:
                raise ScenarioError(f"{_quote(word)}: one fault at a time; {_quote(fault)} is the first")
            fault = value
            continue
        if name not in OPTION_NAMES:
            raise ScenarioError(f"{_quote(word)}: no such option{near(name, OPTION_NAMES)}")
        options = replace(options, **{name: _read_option(name, value if equals else "1", word)})
        given.add(name)
    label = "+".join([fault or HEALTHY, *sorted(f"{name}={_plain(getattr(options, name))}" for name in given)])
    return Scenario(None if fault in (None, HEALTHY) else fault, options, frozenset(given), label, share)


_SHARE = re.compile(r"[01](?:\.\d*)?|\.\d+|\d{1,3}(?:\.\d*)?%", re.ASCII)


def _read_share(value: str, word: str) -> float:
    share = float(value[:-1]) / 100 if value.endswith("%") else float(value)
    if not 0 <= share <= 1:
        raise ScenarioError(f"{_quote(word)}: a share from 0 to 1 is expected, such as 0.2 or 20%")
    return share


_FLAGS = frozenset({"crlf", "bom", "comments", "azure", "content_length", "reasoning", "refusal"})
_WORDS = {
    "encoding": ("gzip", "deflate", "br", "zstd", "auto"),
    "place": ("content", "reasoning"),
    **dict.fromkeys(_FLAGS, ("0", "1")),
}
_WHOLE = {"chunk": (1, None), "cut": (0, None), "calls": (0, 64), "status": (400, 599)}
"""Options that are whole numbers, with their bounds."""
_TIMES = frozenset({"pace", "delay", "seconds"})
_TIME = re.compile(r"\d{1,8}(?:\.\d*)?|\.\d+", re.ASCII)


def _read_option(name: str, value: str, word: str) -> Any:
    """Return the value of an option. Raises ScenarioError."""
    expected = ""
    if value not in (words := _WORDS.get(name, (value,))):
        expected = f"one of {', '.join(words)} is expected{near(value, words)}"
    elif name in _WHOLE:
        least, most = _WHOLE[name]
        if not (value.isascii() and value.isdigit() and least <= int(value) <= (most or 1 << 31)):
            expected = f"a whole number {f'from {least} to {most}' if most else f'of {least} or more'} is expected"
    elif name in _TIMES and not _TIME.fullmatch(value):
        expected = "a number of 0 or more is expected"
    if expected:
        raise ScenarioError(f"{_quote(word)}: {expected}")
    if name in _FLAGS:
        return value == "1"
    return int(value) if name in _WHOLE else float(value) if name in _TIMES else value


def _plain(value: object) -> str:
    """Return the value in a form that a response header can have."""
    match value:
        case bool():
            return str(int(value))
        case float():
            return f"{value:g}"
        case _:
            return ascii(str(value))[1:-1]


def _quote(word: str) -> str:
    """Return the word for a header or a terminal: quoted, ASCII, at most 60 characters."""
    return ascii(word if len(word) <= 60 else word[:57] + "...")


# --- scenario files -----------------------------------------------------------------------------------------------------

_KEYS = load_table("scenario")
_KINDS: dict[str, type] = {"a text": str, "true or false": bool, "a whole number": int, "a table": dict, "a list": list}


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
    """One `[[reply]]`. `scripted` is its reply, whose calls have no ids; None: the healthy model's words."""

    when: When
    scenario: Scenario
    times: int | None = None
    scripted: Reply | None = None

    def reply(self, ask: Ask, mint: Mint) -> Reply | None:
        """Return the reply with call ids of the API's form."""
        if self.scripted is None:
            return None
        calls = (replace(one, id=mint(one.name, ask.calls_before + at)) for at, one in enumerate(self.scripted.calls))
        return replace(self.scripted, calls=tuple(calls))


@dataclass(frozen=True, slots=True)
class Script:
    """A scenario file. `seed` is None if the file has none."""

    lines: tuple[Line, ...] = ()
    faults: tuple[str, ...] = ()
    seed: int | None = None


def load_script(source: Path | str | Mapping[str, Any] | None, base: Options = DEFAULTS) -> Script:
    """Read a scenario file or its contents. Raises ScenarioError in one line: file, place, cure."""
    if not isinstance(source, Path | str):
        return read_script(source or {}, base)
    try:
        return read_script(read_toml(Path(source), str(source), "scenario file"), base)
    except ConfigError as error:
        raise ScenarioError(str(error)) from error
    except ScenarioError as error:
        raise ScenarioError(f"{source}: {error}") from error


def read_script(document: Mapping[str, Any], base: Options = DEFAULTS) -> Script:
    """Read the contents of a scenario file. Raises ScenarioError."""
    _check(document, "file", "")
    faults = document.get("faults", [])
    if not all(isinstance(fault, str) for fault in faults):
        raise ScenarioError(f"faults: a list of scenarios is expected{_KEYS['file']['faults'][1]}")
    lines = tuple(_read_line(one, f"reply {number}: ", base) for number, one in enumerate(document.get("reply", []), 1))
    return Script(lines, tuple(faults), document.get("seed"))


def _read_line(value: Any, place: str, base: Options) -> Line:
    if not isinstance(value, dict):
        raise ScenarioError(f"{place}a table is expected{_KEYS['file']['reply'][1]}")
    _check(value, "reply", place)
    when, times = value.get("when", {}), value.get("times")
    _check(when, "when", f"{place}when: ")
    if times is not None and times < 1:
        raise ScenarioError(f"{place}times: a whole number of 1 or more is expected")
    try:
        scenario = parse_scenario(value.get("fault", ""), base=base)
    except ScenarioError as error:
        raise ScenarioError(f"{place}fault: {error}") from error
    scripted = None
    if {"text", "reasoning", "calls"} & value.keys():
        calls = tuple(_read_call(call, place) for call in value.get("calls", []))
        finish: Finish = "tool_calls" if calls else "stop"
        scripted = Reply(value.get("reasoning", ""), value.get("text", ""), calls=calls, finish=finish)
    return Line(When(**when), scenario, times, scripted)


def _read_call(value: Any, place: str) -> Call:
    match value:
        case {"name": str(name), "arguments": dict(arguments)}:
            return Call("", name, dump_json(arguments))
        case {"name": str(name)} if "arguments" not in value:
            return Call("", name, "{}")
    raise ScenarioError(f"{place}calls: a name and arguments are expected{_KEYS['reply']['calls'][1]}")


def _check(value: Mapping[str, Any], table: str, place: str) -> None:
    known: dict[str, list[str]] = _KEYS[table]
    for key, one in value.items():
        if key not in known:
            raise ScenarioError(f"{place}{key!a}: no such key{near(key, known)} ({', '.join(known)})")
        kind, example = known[key]
        if type(one) is not _KINDS[kind]:
            raise ScenarioError(f"{place}{key}: {kind} is expected{example}")
