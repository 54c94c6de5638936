"""Documents that were not parsed bring the same strings to the same channels as if they had been."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.capture.channels import Channels
from wirelint.capture.moulds import Joiner, Mould


def chat(text: str | None, **extra: Any) -> str:
    delta = {"content": text} if text is not None else {}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    return dump({"id": "c1", "created": 7, "model": "m", **extra, "choices": [choice]})


def block(text: str, index: int = 0) -> str:
    return dump({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


WORDS = ["Both ", "are ", "true", ", ", "says ", "the ", "note", "."]
STREAMS: dict[str, tuple[Sequence[str], int]] = {
    # the documents, and how many of them may be parsed at most
    "one string changes": ([chat(word) for word in WORDS], 2),
    "two strings change": ([chat(word, padding="x" * n) for n, word in enumerate(WORDS)], 3),
    "two on one channel": ([block(word) for word in WORDS], 2),
    "escapes": ([chat(word) for word in ("a", "b", 'say "so"', "line\nend\\", "\u2028", "Ⓐ", "é")], 2),
    "spaces between": ([json.dumps(json.loads(chat(word))) for word in WORDS], 2),
    "the text becomes a key": ([chat(word) for word in ("a", "content", "content", "delta", "c1")], 3),
    "a number changes": ([chat(word, created=n) for n, word in enumerate(WORDS)], 8),
    "another part": ([*map(block, WORDS), *(block(word, 1) for word in WORDS)], 4),
    "another model in between": ([chat("a"), chat("b"), chat("c", model="n"), chat("d"), chat("e")], 3),
    "begins and ends": ([chat(""), chat("a"), chat("b"), chat("c"), chat(None)], 3),
    "changes twice on one channel": ([dump({"a": word, "delta": {"a": f"{word}!"}}) for word in WORDS], 8),
    "an injected member": ([chat("a"), chat("b"), chat("c").replace('"c"', '"c","role":"tool"')], 3),
    "a longer gap": ([dump({"a": word, "b": "b", "c": word * 2}) for word in ("x", 'x","b', "y", "z")], 4),
}  # fmt: skip


def channels(documents: Sequence[str]) -> list[list[str]]:
    """The texts of the channels that move, every document parsed."""
    made = Channels()
    for document in documents:
        made.add(orjson.loads(document))
    return sorted(channel.texts for channel in made.moving())


def joined(documents: Sequence[str]) -> tuple[list[list[str]], int]:
    """The same by moulds, and how many documents were parsed for it."""
    joiner = Joiner()
    joiner.add_all(documents)
    joiner.close()
    return sorted(channel.texts for channel in joiner.channels.moving()), len(joiner.parsed)


@pytest.mark.parametrize("name", STREAMS)
def test_same_channels(name: str) -> None:
    documents, most = STREAMS[name]
    texts, parsed = joined(documents)
    assert texts == channels(documents)
    assert parsed <= most


TEXTS = st.text(alphabet='ab"\\n\n:{},é\u2028', max_size=4)


@given(st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 1)), min_size=1, max_size=12), st.booleans())
def test_any_strings(rows: list[tuple[str, str, int]], pretty: bool) -> None:
    documents = [
        json.dumps(
            {"index": index, "delta": {"t": first}, "list": [{"index": index, "u": second}, second], "c": "b"},
            ensure_ascii=pretty,
        )
        for first, second, index in rows
    ]
    assert joined(documents)[0] == channels(documents)


@pytest.mark.parametrize(
    ("document", "strings"),
    [
        ('{"a":"x","b":1}', ["x"]),
        ('{"a":"","b":1}', [""]),
        ('{"a":"\\u00e9","b":1}', ["é"]),
        ('{"a":"x","b":2}', None),
        ('{"a":"x"y","b":1}', None),
        ('{"a":"x\\","b":1}', None),
        ('{"a":"x\ny","b":1}', None),
        ('{"a":"x","a":"y","b":1}', None),
        ('{"a":', None),
    ],
)
def test_what_fits(document: str, strings: list[str] | None) -> None:
    mould = Mould.of('{"a":"one","b":1}', '{"a":"two","b":1}', (0,), 1)
    assert mould is not None
    assert mould.strings(document) == strings
    place: list[str] = []
    assert mould.pour([document, document, "{}", document], [place]) == (2 if strings else 0)
    assert place == (strings or []) * 2
