"""Which declared tool an undeclared name means: other case, a prefix that leaked, markup around it, a name said twice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wirelint.dialects.names import resolve

# The namespaces that models were trained with and that a server's parser should have taken off: OpenAI's harmony and
# Kimi write `functions.NAME`, Gemini `default_api.NAME`; all of them are one run at the beginning.
_PREFIX = re.compile(r"(?:(?:functions?|default_api|tools?|multi_tool_use|tool_call|assistant)(?:[.:/ ]+|__)|to=)+")
# The same where an API took the characters out that its names may not have: `functionsNAME0`.
_FUSED = re.compile(r"(?:functions|default_api)(?P<name>[A-Za-z]\w*?)\d{0,3}\Z")
# What follows the name in harmony's header: `NAME<|channel|>commentary <|constrain|>json`, its tokens taken out.
_HEADER = re.compile(r"\s+(?:(?:in )?(?:commentary|analysis)(?: channel)?\s*(?:json|code)?|json|code)\Z")
_COUNTER = re.compile(r":\d+\Z")
_MCP = re.compile(r"mcp__(?:[^_]|_(?!_))+__")
_TAG = re.compile(r"<[^<>]{0,80}>")
_MARKUP = re.compile(r"[<>|(){}\[\]\n\"'`]")
_PIECE = re.compile(r"[\w.:/-]+")
_TWICE = re.compile(r"(.+?)[ ._:/-]*\1\Z", re.DOTALL)
_LONGEST = 512


@dataclass(frozen=True, slots=True)
class Match:
    """The declared name that was meant. `certain`: nothing else can have been meant. `why` completes "the name has …"."""

    name: str
    why: str
    certain: bool = True


def match(written: str, declared: Iterable[str]) -> Match | None:
    """The declared tool that `written`, which is not declared, stands for; None when there is none or several."""
    offered = tuple(dict.fromkeys(name for name in declared if name))
    if not offered or not written.strip() or len(written) > _LONGEST:
        return None
    readings = list(dict.fromkeys(_readings(written)))
    for reading, why in readings:
        if reading in offered:
            return Match(reading, why)
    folded: dict[str, list[str]] = {}
    for name in offered:
        folded.setdefault(_fold(name), []).append(name)
    for reading, why in (*_whole(written), *readings):
        names = folded.get(_fold(reading), ())
        if len(names) == 1:
            return Match(names[0], why)
    return _by_tail(written, offered)


def _whole(written: str) -> Iterator[tuple[str, str]]:
    yield written, "another case or spelling"


def _readings(written: str) -> Iterator[tuple[str, str]]:
    """What a name may have been before something was added to it, most likely first."""
    plain = written.strip(" \t\r\n*`'\"")
    yield plain, "blanks or quotes around it"
    if _MARKUP.search(plain):
        pieces = [piece for part in _PIECE.findall(_TAG.sub(" ", plain)) for piece in (part, part.partition("=")[2])]
        for piece in (*pieces, *_PIECE.findall(plain)):
            yield piece, "markup in it"
            yield _bare(piece), "markup in it"
    bare = _bare(plain)
    yield bare, "a prefix"
    yield _MCP.sub("", bare, count=1), "the prefix of an MCP server"
    if header := _HEADER.search(plain):
        yield _bare(plain[: header.start()]), "markup in it"
    if fused := _FUSED.fullmatch(plain):
        yield fused["name"], "a prefix"
    if twice := _TWICE.fullmatch(bare):
        yield twice[1], "itself twice in it"


def _bare(name: str) -> str:
    """Without the framing of a native call: `functions.NAME:0`."""
    name = _COUNTER.sub("", name)
    prefix = _PREFIX.match(name)
    return name[prefix.end() :] if prefix and prefix.end() < len(name) else name


def _by_tail(written: str, offered: tuple[str, ...]) -> Match | None:
    """The only declared name with the same last segment, when one of the two has a namespace that the other lacks."""
    name = resolve(written, offered)
    if name not in offered:
        return None
    certain = _MCP.match(written) is not None or _MCP.match(name) is not None
    return Match(name, "another namespace", certain)


def tails(name: str) -> tuple[str, ...]:
    """A tool's name, and what is left of it without a namespace or the prefix of its server: `mcp__files__read`, `read`."""
    found = [name, _bare(name)]
    found += [_MCP.sub("", one, count=1) for one in found]
    found += [tail for one in found for mark in ("__", ".", "/", ":") if (tail := one.rpartition(mark)[2])]
    return tuple(dict.fromkeys(one for one in found if one))


def _fold(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
