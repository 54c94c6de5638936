"""Scenarios: a fault and options for one answer, written as one line of words.

`fault=xml-leak;dialect=kimi_k2;chunk=7` in the request header `x-wirelint-mock`, `mock/xml-leak+dialect=kimi_k2+chunk=7`
as a model name, `--fault xml-leak+dialect=kimi_k2` on the command line. The first bare word is the fault (`healthy` is
none); `xml-leak=0.2` plays it in one answer out of five; flags may omit `=1`. This module knows the grammar and the
types; `faults.resolve` knows which fault takes which option.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

HEADER = "x-wirelint-mock"
"""Request header that selects the scenario; in responses it names the scenario that was applied."""

MODEL_PREFIX = "mock/"
HEALTHY = "healthy"


class ScenarioError(ValueError):
    """A scenario that cannot be played; the message is one ASCII line that names the word concerned."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a scenario. Those of the transport and of the reply go with every fault, the last group with some."""

    chunk: int = 0
    """Cut the body into network chunks of this many bytes, across events; 0: one chunk per event."""
    pace: float = 0.0
    """Milliseconds between events (between network chunks with `chunk`)."""
    delay: float = 0.0
    """Milliseconds before the answer begins."""
    encoding: str = ""
    crlf: bool = False
    bom: bool = False
    comments: bool = False
    azure: bool = False
    cut: int | None = None
    """End the connection after this many bytes of the body."""
    content_length: bool = False

    calls: int | None = None
    reasoning: bool = False
    refusal: bool = False
    model: str = ""

    mode: str = ""
    dialect: str = "kimi_invoke_arg"
    place: str = "content"
    seconds: float = 35.0
    status: int = 0


FAULT_OPTIONS = frozenset({"mode", "dialect", "place", "seconds", "status"})
"""Options that only the faults which list them accept."""

OPTION_NAMES = tuple(Options.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault (None: healthy) with its options; `given` names the options that were written out, `text` is all of it."""

    fault: str | None = None
    options: Options = Options()
    given: frozenset[str] = frozenset()
    text: str = HEALTHY
    share: float | None = None
    """The share of answers that have the fault; None: all."""


def near(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean A or B?`, or nothing if no known word resembles this one."""
    matches = difflib.get_close_matches(word, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(matches)}?" if matches else ""


def parse_scenario(text: str, *, separator: str = "+", base: Options | None = None) -> Scenario:
    """Parse `WORD[+WORD...]` over the options of `base`. Raises ScenarioError; fault names and modes are not checked."""
    fault: str | None = None
    share: float | None = None
    options = base or Options()
    given: set[str] = set()
    for word in filter(None, (part.strip() for part in text.split(separator))):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals and _READERS.get(name) is not _read_flag:
            name, value = "fault", word
        elif fault is None and name not in OPTION_NAMES and name != "fault" and _SHARE.fullmatch(value):
            share, name, value = _read_share(value, word), "fault", name
        if name == "fault":
            if fault is not None:
                raise ScenarioError(f"{_quote(word)}: one fault at a time; {_quote(fault)} is the first")
            fault = value
            continue
        if name not in _READERS:
            raise ScenarioError(f"{_quote(word)}: no such option{near(name, OPTION_NAMES)}")
        options = replace(options, **{name: _READERS[name](value if equals else "1", word)})
        given.add(name)
    label = "+".join([fault or HEALTHY, *sorted(f"{name}={_plain(getattr(options, name))}" for name in given)])
    return Scenario(None if fault in (None, HEALTHY) else fault, options, frozenset(given), label, share)


_SHARE = re.compile(r"[01](?:\.\d*)?|\.\d+|\d{1,3}(?:\.\d*)?%", re.ASCII)
_Reader = Callable[[str, str], Any]
"""(value, word) -> value of an option. Raises ScenarioError."""


def _read_share(value: str, word: str) -> float:
    share = float(value[:-1]) / 100 if value.endswith("%") else float(value)
    if not 0 <= share <= 1:
        raise ScenarioError(f"{_quote(word)}: a share from 0 to 1 is expected, such as 0.2 or 20%")
    return share


def _read_text(value: str, word: str) -> str:
    del word
    return value


def _one_of(*known: str) -> _Reader:
    def read(value: str, word: str) -> str:
        if value not in known:
            raise ScenarioError(f"{_quote(word)}: one of {', '.join(known)} is expected{near(value, known)}")
        return value

    return read


def _read_flag(value: str, word: str) -> bool:
    return bool(_one_of("0", "1")(value, word) == "1")


def _integer(least: int, most: int = 1 << 31) -> _Reader:
    def read(value: str, word: str) -> int:
        if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
            bounds = f"from {least} to {most}" if most < 1 << 31 else f"of {least} or more"
            raise ScenarioError(f"{_quote(word)}: a whole number {bounds} is expected")
        return int(value)

    return read


def _read_number(value: str, word: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 86_400_000:
        raise ScenarioError(f"{_quote(word)}: a number of 0 or more is expected")
    return number


_READERS: dict[str, _Reader] = {
    "chunk": _integer(1),
    "encoding": _one_of("gzip", "deflate", "br", "zstd", "auto"),
    "cut": _integer(0),
    "calls": _integer(0, 64),
    "place": _one_of("content", "reasoning"),
    "status": _integer(400, 599),
    **dict.fromkeys(("pace", "delay", "seconds"), _read_number),
    **dict.fromkeys(("model", "mode", "dialect"), _read_text),
    **dict.fromkeys(("crlf", "bom", "comments", "azure", "content_length", "reasoning", "refusal"), _read_flag),
}


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
