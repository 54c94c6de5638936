"""Limits of what is read of one reply. A reply that meets one gets a note, so that no silence is taken for a clean bill.

Each limit bounds how long one reply can keep everybody else behind the proxy waiting. The limits of repairs make notes
where they are met.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirelint.jsonvalues import MOST_VALUES
from wirelint.model import Reasoning, Refusal, Reply, Text, ToolCall
from wirelint.text import control_tokens, prose
from wirelint.text.loops import note_on, plain_from


def notes_on(reply: Reply, names: frozenset[str]) -> tuple[str, ...]:
    """Return a note for each limit that a reply meets. `names` are those of the declared tools."""
    return tuple(
        dict.fromkeys(note for choice in reply.choices for part in choice.parts for note in _notes(part, names))
    )


def _notes(part: object, names: frozenset[str]) -> Iterator[str]:
    match part:
        case Text(text) | Reasoning(text) | Refusal(text):
            end = plain_from(text, names)
            if end is not None:
                yield note_on(end)
            if control_tokens.are_too_many(text[:end]):
                most = control_tokens.MOST_TOKENS
                yield f"more than {most:,} control tokens in a text of the reply; they were not judged"
            unread = prose.unread(text[:end]) if isinstance(part, Text) else ()
            yield from (f"the {some} in a text of the reply were not read for claims" for some in unread)
        case ToolCall(name=name, arguments=arguments):
            if len(arguments.text) > MOST_VALUES and len(arguments.values) == MOST_VALUES and arguments.rest:
                yield f"the arguments of {name} are more than {MOST_VALUES} JSON values; the others were not judged"
