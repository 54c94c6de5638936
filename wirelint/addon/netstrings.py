"""Values as bytes of mitmproxy's own format (tnetstrings), as its writer makes them: the same bytes, by a shorter way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from mitmproxy.coretypes.serializable import State
from mitmproxy.io import tnetstring

_SHORT = 128
"""Characters of a value above which it is not remembered."""


class Dumped(bytes):
    """A value that is in the format already."""

    __slots__ = ()


_LITERALS = {None: b"0:~", True: b"4:true!", False: b"5:false!"}


def dumps(value: State) -> bytes:
    """What `tnetstring.dumps` gives, and raises. The entries of a dictionary stand in reverse order."""
    kind = type(value)
    if kind is str:
        data = value.encode()
        return b"%d:%b;" % (len(data), data)
    if kind is bytes:
        return b"%d:%b," % (len(value), value)
    if kind is float:
        data = repr(value).encode()
        return b"%d:%b^" % (len(data), data)
    if kind is int:
        data = b"%d" % value
        return b"%d:%b#" % (len(data), data)
    if kind is dict:
        data = entries(value)
        return b"%d:%b}" % (len(data), data)
    if kind is list or kind is tuple:
        data = b"".join([dumps(item) for item in value])
        return b"%d:%b]" % (len(data), data)
    if value is None or kind is bool:
        return _LITERALS[value]
    if isinstance(value, Dumped):
        return value
    made: bytes = tnetstring.dumps(value)
    return made


@lru_cache(maxsize=512, typed=True)
def _name(name: State) -> bytes:
    return dumps(name)


def entries(values: dict[str, State]) -> bytes:
    """A dictionary's entries without what stands around them, `<length>:` and `}`: those of several make one."""
    pieces: list[bytes] = []
    for name, value in reversed(values.items()):
        pieces += _name(name), dumps(value)
    return b"".join(pieces)


def dump_fields(fields: Iterable[tuple[str, str]]) -> Dumped:
    """The same of the fields of a head, of which most stand in every head."""
    data = b"".join([_field(*field) if len(field[1]) <= _SHORT else _field.__wrapped__(*field) for field in fields])
    return Dumped(b"%d:%b]" % (len(data), data))


@lru_cache(maxsize=512)
def _field(name: str, value: str) -> bytes:
    return dumps((name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")))


def dump_chunks(chunks: Iterable[Sequence[float]]) -> bytes:
    """The same of a list of times and sizes, of which a long stream has thousands."""
    pieces: list[bytes] = []
    for chunk in chunks:
        time, size = chunk
        if type(time) is not float or type(size) is not int:
            pieces.append(dumps(chunk))
            continue
        at, length = repr(time), str(size)
        pair = f"{len(at)}:{at}^{len(length)}:{length}#"
        pieces.append(f"{len(pair)}:{pair}]".encode())
    data = b"".join(pieces)
    return b"%d:%b]" % (len(data), data)
