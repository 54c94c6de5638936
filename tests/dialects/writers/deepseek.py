"""DeepSeek's tokens around JSON."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_deepseek_v3(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{body}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


def write_deepseek_v3_1(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{body}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


JSON_WRITERS = [("deepseek_v3", write_deepseek_v3), ("deepseek_v3_1", write_deepseek_v3_1)]
SOUP = {
    "begin": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>x\n```json\n{",
    "sep": "<｜tool▁sep｜>",
}
