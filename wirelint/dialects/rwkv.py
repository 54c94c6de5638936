"""RWKV's calls: a bold heading and JSON in a fence.

    **Tool Call:**
    ```json
    {"name": "lookup", "arguments": {"city": "Graz"}}
    ```

Types come from the JSON; no ids. In the wild: a Python dict, no fence, no end of it, several calls under one heading.
Without a declared tool the fence must be there and end.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import read_calls
from wirelint.dialects.openers import SPACES, either
from wirelint.dialects.reader import Reader

_DIALECT = "rwkv_markdown"
_HEADING = re.compile(r"\*\*Tool Calls?(?P<end>:\*\*|\*\*:?)\s{0,8}(?P<fence>`{3,8}[a-zA-Z]{0,16})?\s{0,8}")
_FENCE_END = re.compile(r"\s{0,64}`{3,}")
_TICKS = re.compile(r"`{3,}")


def _read(reader: Reader, position: int) -> Reading:
    heading = reader.match(_HEADING, position)
    if heading is None:
        return None
    read = read_calls(reader, heading.end(), _TICKS)
    if read is None:
        return None
    closer = reader.match(_FENCE_END, read.end) if heading["fence"] else None
    known = any(call.name in reader.tools for call in read.calls)
    if not (known or closer):
        return None
    end = closer.end() if closer is not None else read.end
    if reader.stand_ins(read.calls):
        return Skip(end)
    canonical = read.canonical and closer is not None and heading[0].startswith("**Tool Call:**") and not read.array
    return Found(_DIALECT, position, end, tuple(read.calls), "generic", not canonical)


FAMILY = Family(
    "rwkv",
    openers=(("**Tool Call", either(":**", "**", "s:**", "s**"), either(":", ()), SPACES, either("`", "{", "[")),),
    read=_read,
    speakers={_DIALECT: frozenset({"rwkv"})},
)
