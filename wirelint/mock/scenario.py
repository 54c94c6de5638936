"""What a client or the command line asks the mock server to do, as one line of words.

A scenario is a fault and options: `fault=xml-leak;dialect=kimi_k2;chunk=7` in the header `x-wirelint-mock`,
`mock/xml-leak+dialect=kimi_k2+chunk=7` as a model name, `--fault xml-leak+dialect=kimi_k2` on the command line.
The first bare word is the fault (`healthy` is none), `xml-leak=0.2` has it in one answer out of five; flags may stand
without `=1`. This module knows the grammar and
the types; which fault takes which option is the business of `faults.resolve`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

HEADER = "x-wirelint-mock"
"""Request header that selects the scenario; in responses it says what was applied."""

MODEL_PREFIX = "mock/"
HEALTHY = "healthy"
ENCODINGS = ("gzip", "deflate", "br", "zstd", "auto")
FLAGS = frozenset({"crlf", "bom", "comments", "azure", "content_length", "reasoning", "refusal"})


class ScenarioError(ValueError):
    """A scenario that cannot be played; the message is one ASCII line that names the word concerned."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a scenario. Those of the transport and of the reply go with every fault, the last group with some."""

    chunk: int = 0
    """Cut the body into network chunks of this many bytes, whatever the event boundaries; 0 = one chunk an event."""
    pace: float = 0.0
    """Milliseconds between events (between network chunks when they are re-cut)."""
    delay: float = 0.0
    """Milliseconds before the answer begins."""
    encoding: str = ""
    crlf: bool = False
    bom: bool = False
    comments: bool = False
    azure: bool = False
    cut: int | None = None
    """Let the connection die after this many bytes of the body."""
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

_SHARE = re.compile(r"[01](?:\.\d*)?|\.\d+|\d{1,3}(?:\.\d*)?%", re.ASCII)

OPTION_NAMES = tuple(Options.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault (None: healthy) with its options; `given` holds the options that were written out, `text` all of it."""

    fault: str | None = None
    options: Options = Options()
    given: frozenset[str] = frozenset()
    text: str = HEALTHY
    share: float | None = None
    """In which part of the answers the fault is played; None: in all of them."""


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean A or B?`, or nothing when no known word resembles this one."""
    matches = difflib.get_close_matches(word, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(matches)}?" if matches else ""


def parse_scenario(text: str, *, separator: str = "+", base: Options | None = None) -> Scenario:
    """Reads `WORD[+WORD...]`. Raises ScenarioError; fault names and modes are not judged here.

    `base` holds the options that stand where the words say nothing else.
    """
    fault: str | None = None
    share: float | None = None
    options = base or Options()
    given: set[str] = set()
    for word in filter(None, (part.strip() for part in text.split(separator))):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals and name not in FLAGS:
            name, value = "fault", word
        elif fault is None and name not in OPTION_NAMES and name != "fault" and _SHARE.fullmatch(value):
            share, name, value = _share(value, word), "fault", name
        if name == "fault":
            if fault is not None:
                raise ScenarioError(f"{_shown(word)}: one fault at a time, {_shown(fault)} stands before it")
            fault = value
            continue
        options = _with_option(options, name, value if equals else "1", word)
        given.add(name)
    label = "+".join([fault or HEALTHY, *sorted(f"{name}={_plain(getattr(options, name))}" for name in given)])
    return Scenario(None if fault in (None, HEALTHY) else fault, options, frozenset(given), label, share)


def _with_option(options: Options, name: str, value: str, word: str) -> Options:
    match name:
        case "chunk":
            return replace(options, chunk=_integer(value, word, least=1))
        case "pace":
            return replace(options, pace=_number(value, word))
        case "delay":
            return replace(options, delay=_number(value, word))
        case "encoding":
            return replace(options, encoding=_one_of(value, word, ENCODINGS))
        case "crlf":
            return replace(options, crlf=_flag(value, word))
        case "bom":
            return replace(options, bom=_flag(value, word))
        case "comments":
            return replace(options, comments=_flag(value, word))
        case "azure":
            return replace(options, azure=_flag(value, word))
        case "cut":
            return replace(options, cut=_integer(value, word, least=0))
        case "content_length":
            return replace(options, content_length=_flag(value, word))
        case "calls":
            return replace(options, calls=_integer(value, word, least=0, most=64))
        case "reasoning":
            return replace(options, reasoning=_flag(value, word))
        case "refusal":
            return replace(options, refusal=_flag(value, word))
        case "model":
            return replace(options, model=value)
        case "mode":
            return replace(options, mode=value)
        case "dialect":
            return replace(options, dialect=value)
        case "place":
            return replace(options, place=_one_of(value, word, ("content", "reasoning")))
        case "seconds":
            return replace(options, seconds=_number(value, word))
        case "status":
            return replace(options, status=_integer(value, word, least=400, most=599))
    raise ScenarioError(f"{_shown(word)}: no such option{near(name, OPTION_NAMES)}")


def _flag(value: str, word: str) -> bool:
    return _one_of(value, word, ("0", "1")) == "1"


def _one_of(value: str, word: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ScenarioError(f"{_shown(word)}: one of {', '.join(known)} is expected{near(value, known)}")
    return value


def _integer(value: str, word: str, *, least: int, most: int = 1 << 31) -> int:
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        bounds = f"from {least} to {most}" if most < 1 << 31 else f"of {least} or more"
        raise ScenarioError(f"{_shown(word)}: a whole number {bounds} is expected")
    return int(value)


def _share(value: str, word: str) -> float:
    share = float(value[:-1]) / 100 if value.endswith("%") else float(value)
    if not 0 <= share <= 1:
        raise ScenarioError(f"{_shown(word)}: a share from 0 to 1 is expected, such as 0.2 or 20%")
    return share


def _number(value: str, word: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 86_400_000:
        raise ScenarioError(f"{_shown(word)}: a number of 0 or more is expected")
    return number


def _plain(value: object) -> str:
    """The value as it may stand in a response header."""
    match value:
        case bool():
            return str(int(value))
        case float():
            return f"{value:g}"
        case _:
            return ascii(str(value))[1:-1]


def _shown(word: str) -> str:
    """The word as it may stand in a header or on a terminal: quoted, ASCII, not endless."""
    return ascii(word if len(word) <= 60 else word[:57] + "...")
