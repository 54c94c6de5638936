"""Output that a reply shows in a code block, and that no tool gave: the object of a call, or what a command printed.

    Its events:
    ```json
    {"parcel": "PX77120", "state": "at_depot", "depot": "Lindau"}
    ```
    It waits at the depot in Lindau.

The object holds a value of the conversation below the name of an argument or a key of a result, and others that the
conversation lacks; the text behind it takes one of these for a fact. A command was run if a call of the turn has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint import lexicon
from wirelint.claims.evidence import Contradiction, last_words
from wirelint.claims.grounding import LONGEST_REPLY
from wirelint.claims.values import clocks, dates, values
from wirelint.dialects.declared import properties_of
from wirelint.jsonvalues import decode_json
from wirelint.model import Json, Request
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("pretended")
_FENCE = re.compile(r"(?ms)^[ \t]*(?P<mark>```|~~~)[\w+-]*[ \t]*\n(?P<body>.*?)^[ \t]*(?P=mark)[ \t]*$")
_COMMAND = re.compile(r"^\s*[$>#] ?(?P<command>\S.*)$", re.MULTILINE)
_SHORTEST = 4
"""Characters of a value that hardly occurs by chance."""
_SHORTEST_COMMAND = 8
_MOST = 200
"""Scalars of an object that are looked at."""


def pretended_output(request: Request, prose: Prose) -> Contradiction | None:
    """Return a code block with an output that no tool gave."""
    if not ("{" in prose.text or prose.fenced) or not request.tools or len(prose.text) > LONGEST_REPLY:
        return None
    if _PHRASES["wanted"].search(last_words(request)):
        return None
    texts = [*(message.text for message in request.messages), *(result.text for result in request.results)]
    texts += [call.arguments.text for call in request.calls]
    given = "\n".join(texts).casefold()
    for fence in _FENCE.finditer(prose.text):
        body, behind = fence["body"], prose.text[fence.end() :]
        if _is_output_of_command(request, body, given) or _is_object_of_call(request, body, behind, given):
            return Contradiction(*fence.span(), "no tool gave this output", severity="error", confidence="high")
    return _written_call(request, prose.text, given)


def _written_call(request: Request, text: str, given: str) -> Contradiction | None:
    """Return a call of a declared tool that the text writes down, with an object behind it that no result has:
    `run_query({"sql": "…"})`, "Result:", `{"rows": [[417]]}`.
    """
    for tool in request.tools:
        called = re.search(rf"(?m)^\W*{re.escape(tool.name)}\(\{{.*\}}\)\W*$", text)
        start = text.find("\n{", called.end()) if called is not None else -1
        end = text.find("\n", start + 1) if start >= 0 else -1
        line = text[start:end].strip() if end >= 0 else ""
        if called is not None and line and decode_json(line) is not None and line.casefold() not in given:
            return Contradiction(called.start(), end, "no tool gave this output", severity="error", confidence="high")
    return None


def _is_output_of_command(request: Request, body: str, given: str) -> bool:
    """Return True if a block shows a command that ran, and one with an output whose first line is in no result: that of
    the command that ran, or of another one.
    """
    sent = "\n".join(call.arguments.text for message in request.turn for call in message.calls)
    commands = list(_COMMAND.finditer(body))
    ends = [*(command.start() for command in commands[1:]), len(body)]
    ran = made = False
    for command, end in zip(commands, ends, strict=False):
        plain = command["command"].strip()
        ran |= len(plain) >= _SHORTEST_COMMAND and (plain in sent or plain.replace('"', '\\"') in sent)
        lines = [line.strip() for line in body[command.end() : end].splitlines() if len(line.strip()) >= _SHORTEST]
        made |= bool(lines) and lines[0].casefold() not in given
    return ran and made


def _is_object_of_call(request: Request, body: str, behind: str, given: str) -> bool:
    """Return True if a block holds an object about a thing of the conversation with values that are not of it, one of
    which the text behind it repeats.
    """
    start = body.find("{")
    document = decode_json(body[start:].strip()) if start >= 0 else None
    cells = list(_scalars(document, 0)) if isinstance(document, dict) else []
    keys = {key for key, _ in cells}
    parameters = [frozenset(properties_of(tool.schema)) for tool in request.tools]
    names = frozenset().union(*parameters) | {
        key for result in request.results for key, _ in _scalars(decode_json(result.text), 0)
    }
    known = [key for key, cell in cells if _is_given(cell, given)]
    new = [cell for key, cell in cells if not _is_given(cell, given) and not isinstance(cell, bool)]
    if any(keys <= own for own in parameters) or not any(key in names for key in known):
        return False
    return any(_is_repeated(cell, behind) for cell in new)


def _scalars(document: Json, depth: int) -> Iterator[tuple[str, Json]]:
    """Yield the keys and scalars of an object."""
    if isinstance(document, list):
        for one in document[:_MOST]:
            yield from _scalars(one, depth + 1)
    for key, cell in document.items() if isinstance(document, dict) and depth < _SHORTEST else ():
        if isinstance(cell, (dict, list)):
            yield from _scalars(cell, depth + 1)
        elif cell is not None:
            yield key, cell


def _is_given(cell: Json, given: str) -> bool:
    """Return True if a conversation has a value that it can hardly have by chance."""
    return len(str(cell)) >= _SHORTEST and not isinstance(cell, bool) and str(cell).casefold() in given


def _is_repeated(cell: Json, text: str) -> bool:
    """Return True if a text has a new value: its words, its number, its date or its time of day."""
    said = str(cell)
    if len(said) >= _SHORTEST and said.replace("_", " ").casefold() in text.casefold():
        return True
    if isinstance(cell, str):
        days = any(day.agrees(other) for day in dates(said) for other in dates(text))
        return days or any(
            not time.possible.isdisjoint(other.possible) for time in clocks(said) for other in clocks(text)
        )
    return isinstance(cell, float) and any(cell in other.readings for other in values(text))
