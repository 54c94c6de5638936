"""The same bytes as mitmproxy's own writer makes."""

from __future__ import annotations

import enum

import pytest
from mitmproxy.io import tnetstring

from wirelint.addon.netstrings import dump_chunks, dump_fields, dumps, entries


class _Text(str):
    __slots__ = ()


class _Number(enum.IntEnum):
    SEVEN = 7


VALUES: list[object] = [
    None,
    True,
    False,
    0,
    -17,
    1 << 70,
    _Number.SEVEN,
    0.0,
    -2.5e-300,
    1767225600.123456,
    float("inf"),
    "",
    "Grüße, 世界",
    _Text("text"),
    b"",
    b"\x00\xff:,;",
    [],
    (),
    [1, [2.5, ("a", b"b")], {"c": None}],
    {},
    {"a": 1, "b": [True, False], "c": {"d": "e", "f": b"g"}},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value(value: object) -> None:
    assert dumps(value) == tnetstring.dumps(value)  # type: ignore[arg-type]


def test_entries_of_a_dictionary() -> None:
    inner = entries({"a": 1, "b": ["c"]})
    assert tnetstring.dumps({"a": 1, "b": ["c"]}) == b"%d:%b}" % (len(inner), inner)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [("content-type", "text/plain"), ("content-type", "text/plain")],
        [("x-odd", "gr\udcfc\udcdfe"), ("Größe", "")],
        [("x-long", "y" * 4000), ("x-short", "y")],
    ],
)
def test_fields_of_a_head(fields: list[tuple[str, str]]) -> None:
    """As often as they come: what is remembered is the same."""
    encoded = [tuple(part.encode("utf-8", "surrogateescape") for part in field) for field in fields]
    for _ in range(2):
        assert dump_fields(fields) == tnetstring.dumps(encoded)
    assert dumps({"headers": dump_fields(fields)}) == tnetstring.dumps({"headers": encoded})


@pytest.mark.parametrize("chunks", [[], [(0.0, 1)], [(1.5, 200), (1767.125, 30000)], [(1, 2), (2.5, True), (0.5, 7)]])
def test_chunks(chunks: list[tuple[float, int]]) -> None:
    assert dump_chunks(chunks) == tnetstring.dumps([[*chunk] for chunk in chunks])


@pytest.mark.parametrize(("value", "error"), [("\ud800", UnicodeEncodeError), ({1, 2}, ValueError)])
def test_what_cannot_be_written(value: object, error: type[Exception]) -> None:
    for write in (dumps, tnetstring.dumps):
        with pytest.raises(error):
            write({"a": [value]})
