"""Connections as bytes of a flow file: the entries `client_conn` and `server_conn` of a flow.

Theory of operation. mitmproxy checks each of a connection's twenty fields against its type on the way into a file, and
certificates are encoded anew each time: that takes longer than to read a short exchange. But nearly every connection of a
proxy is the one before it with another id, other addresses and other times. So a *mould* is made of the first of a kind:
its bytes with gaps for these. One whose other fields are all the same is poured into it; any other is written by mitmproxy
itself, and is the mould for the next.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from mitmproxy import connection
from mitmproxy.io import tnetstring

from wirelint.addon.netstrings import dumps

_GAPS = ("id", "peername", "sockname", "timestamp_start", "timestamp_end", "timestamp_tls_setup", "timestamp_tcp_setup")
_LEFT_OUT = "state"
"""The field that mitmproxy does not save."""

_MOST_MOULDS = _MOST_MADE = 64

_Kind = tuple[str, tuple[type, ...]]


class _Mould(NamedTuple):
    """`fixed` is what stands around the gaps, in the order of the bytes; `others` are the fields that have no gap."""

    fixed: tuple[bytes, ...]
    gaps: tuple[str, ...]
    others: dict[str, object]


_moulds: dict[_Kind, _Mould] = {}
"""The last mould of a kind, which is the entry's name and the types of the connection's fields."""


_made: dict[tuple[str, str], tuple[dict[str, object], bytes]] = {}
"""The entries that were made last, with the fields that they are of: many exchanges pass over one connection."""


def snapshot(live: connection.Connection) -> connection.Connection:
    """The connection as it is now."""
    copy: connection.Connection = object.__new__(type(live))
    vars(copy).update(vars(live))
    return copy


def entry_of(name: str, conn: connection.Connection) -> bytes:
    """The entry of a connection, in any thread. Raises what `get_state` raises."""
    fields = vars(conn)
    made = _made.get((name, conn.id))
    if made is None or not _are_the_same(made[0], fields):
        made = fields, _entry_of(name, conn)
        if len(_made) >= _MOST_MADE:
            _made.clear()
        _made[name, conn.id] = made
    return made[1]


def _are_the_same(fields: dict[str, object], others: dict[str, object]) -> bool:
    """Whether all fields are the very same objects. Some that are equal are written in another way."""
    return list(fields) == list(others) and all(map(operator.is_, fields.values(), others.values()))


def _entry_of(name: str, conn: connection.Connection) -> bytes:
    others = vars(conn).copy()
    kind = name, tuple(map(type, others.values()))
    values = {gap: others.pop(gap, None) for gap in _GAPS}
    others.pop(_LEFT_OUT, None)
    mould = _moulds.get(kind)
    if mould is None or mould.others != others or not all(map(_is_plain, values.values())):
        state = conn.get_state()
        if len(_moulds) >= _MOST_MOULDS:
            _moulds.clear()
        _moulds[kind] = _mould(state, values, others)
        inner = tnetstring.dumps(state)
    else:
        pieces = [mould.fixed[0]]
        for gap, fixed in zip(mould.gaps, mould.fixed[1:], strict=True):
            pieces += dumps(values[gap]), fixed
        data = b"".join(pieces)
        inner = b"%d:%b}" % (len(data), data)
    return dumps(name) + inner


def _mould(state: dict[str, object], values: dict[str, object], others: dict[str, object]) -> _Mould:
    fixed: list[bytes] = []
    gaps: list[str] = []
    piece = b""
    for name, value in reversed(state.items()):
        piece += dumps(name)
        if name in values:
            fixed.append(piece)
            gaps.append(name)
            piece = b""
        else:
            piece += dumps(value)
    return _Mould((*fixed, piece), tuple(gaps), others)


def _is_plain(value: object) -> bool:
    """Whether a value of a gap is written as it is. An address is a host and a port; one of IPv6 has more."""
    kind = type(value)
    return kind is float or kind is str or value is None or (kind is tuple and tuple(map(type, value)) == (str, int))  # type: ignore[call-overload]
