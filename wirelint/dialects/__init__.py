"""Native tool-call markup in text: found, read, and held back while it arrives.

Models write tool calls in notations of their own; a server that fails to parse a call passes it on as text. A dialect is
a table in one of the TOML files of this package. The module beside the file reads it: a grammar that many dialects share
(`marked_arrays`, `json_tags`, `pairs`, `tagged`, `invoke`, `python_lists`, `call_tokens`), or one that only a vendor has.
To add a dialect, add a table to the file of its grammar, or a TOML file and a module with `read_<family>`; see `tables`.
"""

from wirelint.dialects.scan import (
    FAMILIES,
    OPENERS,
    SPEAKERS,
    Look,
    find,
    has_opener,
    held_suffix,
    look,
    may_begin,
    may_hold_markup,
    next_opener,
)
from wirelint.dialects.values import Block, NativeCall, Tier

__all__ = [
    "FAMILIES",
    "OPENERS",
    "SPEAKERS",
    "Block",
    "Look",
    "NativeCall",
    "Tier",
    "find",
    "has_opener",
    "held_suffix",
    "look",
    "may_begin",
    "may_hold_markup",
    "next_opener",
]
