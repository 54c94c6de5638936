"""Writers of all dialects, made from `writers.toml`: markup for random arguments, and units of text for tests of speed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Writer: TypeAlias = Callable[[str, Mapping[str, Any]], str]

_DATA: dict[str, Any] = tomllib.loads((Path(__file__).parent / "writers.toml").read_text("utf-8"))


def _filled(template: str, texts: Mapping[str, str]) -> str:
    return re.sub("%[a-z]+%", lambda place: texts[place[0]], template)


def _writer(row: dict[str, str]) -> Writer:
    def write(name: str, arguments: Mapping[str, Any]) -> str:
        argument = row.get("argument", "")
        written = (_filled(argument, {"%key%": key, "%value%": str(value)}) for key, value in arguments.items())
        texts = {
            "%name%": name,
            "%json%": json.dumps(arguments, ensure_ascii=False),
            "%compact%": json.dumps(arguments, ensure_ascii=False, separators=(",", ":")),
            "%python%": ", ".join(f"{key}={value!r}" for key, value in arguments.items()),
            "%arguments%": row.get("joint", "").join(written),
        }
        return _filled(row["text"], texts)

    return write


JSON_WRITERS: list[tuple[str, Writer]] = [(row["dialect"], _writer(row)) for row in _DATA["json"]]
TEXT_WRITERS: list[tuple[str, Writer]] = [(row["dialect"], _writer(row)) for row in _DATA["text"]]
SOUP: dict[str, str] = {
    f"{family}-{case}": unit if isinstance(unit, str) else unit[0] + unit[1] * unit[2]
    for family, units in _DATA["soup"].items()
    for case, unit in units.items()
}
"""Units that are repeated without end, by family and case."""
