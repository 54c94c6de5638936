"""A call that a repair makes, as the events that the API of the reply has for it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import orjson

from wirelint.apis.traits import traits
from wirelint.events import Close, Delta, Event, Frame, Start
from wirelint.fix import RewriteContext
from wirelint.model import Json


def make_call(
    context: RewriteContext,
    choice: int,
    name: str | None,
    id_: str | None,
    arguments: dict[str, Json],
    frame: Frame | None,
    pointer: str | None = None,
) -> Iterator[Event]:
    """The events of a whole call. `pointer`: its place, where it is not simply behind the others of its candidate."""
    own = traits(context.exchange.api)
    block = context.new_block()
    place = (own.calls_at or "").format(choice) if pointer is None else pointer
    held = own.start_holds_arguments(streamed=context.streamed)
    given: Json = arguments if held else {} if own.arguments == "block" else None
    yield Start(block, "tool_call", place, choice, frame, None, id_, name, given)
    if not held:
        yield Delta(block, write_arguments(arguments), frame)
    yield Close(block, frame)


def write_arguments(arguments: dict[str, Json]) -> str:
    try:
        return orjson.dumps(arguments).decode()
    except (orjson.JSONEncodeError, UnicodeDecodeError):  # integers of more than 64 bits, lone surrogates
        return json.dumps(arguments)
