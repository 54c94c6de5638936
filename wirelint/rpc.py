"""Messages of JSON-RPC 2.0, in which servers of tools speak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wirelint.jsonvalues import Json


@dataclass(frozen=True, slots=True)
class Rpc:
    """A JSON-RPC message that is neither the call of a tool nor what that gave.

    `id` is the JSON text of its id (`7` and `"7"` are two ids), None where it has none. `method` is empty in answers.
    `value` is what it carries: params, result or error. `event` is its stream event.
    """

    form: Literal["request", "notification", "result", "error"]
    id: str | None
    method: str
    value: Json
    pointer: str
    event: int | None = None
