r"""Content parts as other languages print them, and whole messages as SDKs of Python do.

Go prints maps with their keys in order (`[map[text:Hi type:text]]`), Ruby hashes with rockets or without
(`[{:type=>"text", :text=>"Hi"}]`, `[{type: "text", text: "Hi"}]`), JavaScript's inspection with single quotes. LangChain's
messages give `content='Hi' additional_kwargs={} response_metadata={}` as a string and their constructor as a
representation, as OpenAI's do (`ChatCompletionMessage(content='Hi', refusal=None, role='assistant', …)`).

All of a text has to be one such structure.
"""

from __future__ import annotations

import re
from typing import Literal

from wirelint.model import Json
from wirelint.text.literals import LiteralReader

_KIND = r"(?:input_|output_)?text"
_GO_START = re.compile(r"\[map\[(?:cache_control:map\[[^\[\]]{0,60}\] )?text:")
_GO_SEAM = re.compile(rf" type:{_KIND}\] map\[(?:cache_control:map\[[^\[\]]{{0,60}}\] )?text:")
_GO_END = re.compile(rf" type:{_KIND}\]\]\Z")
_GO_OTHER = re.compile(r" type:(?:image_url|input_image|image|file|input_file|input_audio|document)\](?=\]?\Z| map\[)")
_GO_WORDS = re.compile(rf" type:{_KIND}\](?=\]\Z| map\[)")
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_RUBY_PART = re.compile(
    rf"\{{\s{{0,4}}(?::type\s?=>|[\"']type[\"']\s?=>|type:)\s?[\"']{_KIND}[\"'],\s{{1,4}}"
    rf"(?::text\s?=>|[\"']text[\"']\s?=>|text:)\s?({_STRING})\s{{0,4}}\}}\s{{0,4}}",
    re.DOTALL,
)
_RUBY_START = re.compile(r"\[\s{0,4}(?=\{\s{0,4}(?::type|type:|[\"']type[\"']\s?=>))")
_RUBY_SEAM = re.compile(r",\s{0,8}")
_PRINTED = re.compile(r"content=(?=['\"])")
_PRINTED_REST = re.compile(r"\s{1,2}(?:name=\S{1,80}\s)?additional_kwargs=\{")
_CONSTRUCTED = re.compile(r"\[?[A-Z][A-Za-z]{0,40}Message(?:Chunk|Param)?\(content=['\"]")
_FIELDS = frozenset({"role", "additional_kwargs", "response_metadata", "refusal"})

Foreign = Literal["Python", "JavaScript", "Go", "Ruby"]


def may_be_foreign(text: str) -> bool:
    """Whether `read_foreign` can find anything; `text` begins with no blanks."""
    return text.startswith(("[map[", "content=", "[{:", "[{t", "[ {", '[{"type"=', '[{"type" =')) or (
        "Message" in text[:64] and _CONSTRUCTED.match(text) is not None
    )


def read_foreign(text: str) -> tuple[str | None, Foreign] | None:
    """What a text says that is nothing but such a structure, and who prints it so; None when it is none.

    Nothing is said (None) by a message that holds more than words.
    """
    text = text.strip()
    if not may_be_foreign(text):
        return None
    if text.startswith("[map["):
        return _read_go(text)
    if _RUBY_START.match(text):
        return _read_ruby(text)
    return _read_printed(text) if text.startswith("content=") else _read_constructed(text)


def _read_go(text: str) -> tuple[str | None, Foreign] | None:
    if _GO_OTHER.search(text):
        return (None, "Go") if text.endswith("]]") and _GO_WORDS.search(text) else None
    start, end = _GO_START.match(text), _GO_END.search(text, max(len(text) - 32, 0))
    if start is None or end is None or end.start() < start.end():
        return None
    return "".join(_GO_SEAM.split(text[start.end() : end.start()])), "Go"


def _read_ruby(text: str) -> tuple[str | None, Foreign] | None:
    start = _RUBY_START.match(text)
    at = start.end() if start is not None else 0
    words: list[str] = []
    while part := _RUBY_PART.match(text, at):
        said = LiteralReader(part[1]).read()
        words.append(said if isinstance(said, str) else part[1][1:-1])
        seam = _RUBY_SEAM.match(text, part.end())
        at = seam.end() if seam is not None else part.end()
    if not words or text[at:] != "]":
        return None
    return "".join(words), "JavaScript" if "=>" not in text[:40] and "'" in text[:16] else "Ruby"


def _read_printed(text: str) -> tuple[str | None, Foreign] | None:
    reader = LiteralReader(text, len("content="))
    said = reader.read()
    if reader.failed or not isinstance(said, str) or _PRINTED_REST.match(text, reader.position) is None:
        return None
    return said if "tool_calls=[{" not in text[reader.position :] else None, "Python"


def _read_constructed(text: str) -> tuple[str | None, Foreign] | None:
    reader = LiteralReader(text)
    messages = list(reader.read_items())
    if reader.failed or not messages or text[reader.position :].strip():
        return None
    if not all(_is_message(message) for message in messages):
        return None
    first = messages[0]
    said = first.get("content") if isinstance(first, dict) and not first.get("tool_calls") else None
    return said if isinstance(said, str) and len(messages) == 1 else None, "Python"


def _is_message(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), str) and not _FIELDS.isdisjoint(value)
