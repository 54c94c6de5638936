"""Limits of the reading of one reply. A reply that exceeds one gets a note: without findings it may still have faults.

Each limit bounds how long one reply can delay the other clients of the proxy. The repairs add the notes about their own
limits themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.arguments import placeholders
from wirelint.jsonvalues import MOST_VALUES
from wirelint.model import Reasoning, Refusal, Reply, Text, Tool, ToolCall
from wirelint.text import control_tokens, markup, prose
from wirelint.text.loops import note_on, plain_from
from wirelint.text.quoting import MOST_LINES, is_unread


def notes_on(reply: Reply, tools: Sequence[Tool]) -> tuple[str, ...]:
    """Return a note for each limit that a reply exceeds. `tools`: the declared ones."""
    parts = [part for choice in reply.choices for part in choice.parts]
    return tuple(dict.fromkeys(note for part in parts for note in _notes(part, tools)))


def _notes(part: object, tools: Sequence[Tool]) -> Iterator[str]:
    match part:
        case Text(text) | Reasoning(text) | Refusal(text):
            end = plain_from(text, frozenset([tool.name for tool in tools]))
            if end is not None:
                yield note_on(end)
            if markup.are_too_many(text[:end], tools):
                most = markup.MOST_MASKED
                yield f"more than {most} calls with code fences in a text of the reply; the others may not be judged"
            if control_tokens.are_too_many(text[:end]):
                most = control_tokens.MOST_TOKENS
                yield f"more than {most:,} control tokens in a text of the reply; they were not judged"
            if is_unread(text, len(text[:end])):
                yield f"the lines after the first {MOST_LINES:,} in a text of the reply count as quoted"
            unread = prose.unread(text[:end]) if isinstance(part, Text) else ()
            yield from (f"the {some} in a text of the reply were not read for claims" for some in unread)
        case ToolCall(name=name, arguments=arguments):
            if len(arguments.text) > MOST_VALUES and len(arguments.values) == MOST_VALUES and arguments.rest:
                yield f"the arguments of {name} are more than {MOST_VALUES} JSON values; the others were not judged"
            mapping = arguments.mapping
            if mapping and len(arguments.text) > placeholders.MOST_VALUES and placeholders.are_too_many(mapping):
                most = placeholders.MOST_VALUES
                yield f"the arguments of {name} hold more than {most} values; the others were not checked for invented ones"
