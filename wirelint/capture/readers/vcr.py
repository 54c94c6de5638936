"""Reader of cassettes of vcrpy (YAML and JSON, also of pytest-recording) and of Ruby's VCR.

    interactions:
    - request: {method: POST, uri: …, body: '…', headers: {…}}
      response: {status: {code: 200, message: OK}, headers: {…}, body: {string: '…'}}
    version: 1

Bodies are text, or bytes (`!!binary`, `base64_string`), with their content coding unless the recorder removed it; some
projects write JSON bodies as values (`parsed_body`). Responses of httpx in older cassettes are flat (`status_code`,
`content`). Sources: vcrpy, vcr/serialize.py and vcr/stubs; pydantic-ai, tests/json_body_serializer.py.

Theory of operation. The YAML of a cassette is read one interaction at a time: each is an item of a block sequence, and
every line inside an item is indented more than the item. A YAML parser takes seconds for a megabyte and many times the
memory; read in this way, the first interaction is available at once, and a broken one does not affect the others.
"""

from __future__ import annotations

import base64
import itertools
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode, SequenceNode

from wirelint.capture.format import FormatError, dump, read_headers
from wirelint.capture.readers.source import Problem, plain_body, read_parts
from wirelint.capture.record import Headers, Record
from wirelint.jsonvalues import mapping
from wirelint.model import Json, MissingInfo

_LACKS: frozenset[MissingInfo] = frozenset({"times"})
_LIST = re.compile(rb"(?:http_)?interactions:\s*(?:#.*)?$")
_ITEM = re.compile(rb"( *)- ")
_LARGEST = 1 << 19
"""Largest size of a JSON value as a body: its values, and its text in units of 256 bytes."""
_UNKNOWN_TAGS = ("tag:yaml.org,2002:python/", "!")


def read(data: Iterable[bytes], source: str) -> Iterator[Record | Problem]:
    """Yield the records of a cassette in YAML."""
    return _read((_load(text) for text in _items(iter(data))), source)


def read_document(document: Mapping[str, Json], source: str) -> Iterator[Record | Problem]:
    """Yield the records of a cassette in JSON."""
    interactions = document.get("interactions", document.get("http_interactions"))
    return _read(iter(interactions if isinstance(interactions, list) else ()), source)


def _read(interactions: Iterator[Any], source: str) -> Iterator[Record | Problem]:
    first = list(itertools.islice(interactions, 1))
    if not first:
        yield Problem(source, "", "a cassette without interactions", "record it again", fatal=True)
    parts = enumerate(itertools.chain(first, interactions), 1)
    yield from read_parts(parts, source, "interaction", lambda item, _: [_interaction(item)])


def _items(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text of each interaction, a sequence of one item."""
    for line in lines:
        if _LIST.match(line.removeprefix(BOM_UTF8).strip()) and not line.startswith((b" ", b"#")):
            break
    piece: list[bytes] = []
    start: bytes | None = None
    for line in lines:
        if start is None:
            found = _ITEM.match(line)
            if found is None and line.strip():
                return  # `interactions: []`, or an unknown form
            start = found[1] + b"- " if found is not None else None
        elif line[:1].strip() and not line.startswith((start, b"#")):
            break  # the next key of the document
        elif line.startswith(start) and piece:
            yield b"".join(piece)
            piece = []
        piece.append(line)
    if start is not None:
        yield b"".join(piece)


class _Constructor(SafeConstructor):
    """Constructor for the values of cassettes. Of Python objects it builds only their arguments."""

    def construct_float(self, node: Any) -> Any:
        # PyYAML, which wrote it, takes no number without a dot for a float.
        value = self.construct_scalar(node)
        return value if "." not in value else super().construct_yaml_float(node)

    def construct_other(self, _suffix: str, node: Any) -> Any:
        match node:
            case ScalarNode():
                return self.construct_scalar(node)
            case SequenceNode():
                return self.construct_sequence(node, deep=True)
            case _:
                # A file that was a request's body: its state begins with the bytes.
                items = self.construct_mapping(node, deep=True)
                inner = items.get("state") or items.get("args")
                return inner[0] if isinstance(inner, (list, tuple)) and inner else inner


_Constructor.add_constructor("tag:yaml.org,2002:float", _Constructor.construct_float)
for _tag in _UNKNOWN_TAGS:
    _Constructor.add_multi_constructor(_tag, _Constructor.construct_other)


def _load(text: bytes) -> Any:
    yaml = YAML(typ="safe")
    yaml.version = (1, 1)  # type: ignore[assignment, unused-ignore]
    yaml.Constructor = _Constructor
    try:
        items = yaml.load(text)
    except (YAMLError, ValueError, RecursionError, UnicodeError) as error:
        return FormatError(f"broken YAML: {' '.join(str(getattr(error, 'problem', None) or error).split())}")
    return items[0] if isinstance(items, list) and items else None


def _interaction(item: Any) -> Record:
    if isinstance(item, FormatError):
        raise item
    if not isinstance(item, dict) or not isinstance(item.get("request"), dict):
        raise FormatError("no `request` in it")
    request, response = item["request"], mapping(item.get("response"))
    asked, answered = _headers(request), _headers(response)
    status = response.get("status") or response.get("status_code")
    status = status.get("code") if isinstance(status, dict) else status
    notes: list[Json] = []
    return Record(
        id="",
        method=(_text(request.get("method")) or "GET").upper(),
        url=_text(request.get("uri")) or _text(request.get("url")),
        request_headers=asked,
        request_body=_body(request, asked, "request", notes) or None,
        status=status if isinstance(status, int) and status > 0 else None,
        response_headers=answered,
        response_body=_body(response, answered, "response", notes),
        end="unread" if any("content-encoding" in str(note) for note in notes) else "unknown",
        annotations={"notes": notes} if notes else {},
        form="vcr",
        missing=_LACKS,
    )


def _headers(message: Mapping[str, Any]) -> Headers:
    plain: dict[str, Json] = {}
    for name, values in mapping(message.get("headers")).items():
        listed = values if isinstance(values, (list, tuple)) else [values]
        plain[_text(name)] = [_text(value) for value in listed]
    return read_headers(plain)


def _body(message: Mapping[str, Any], headers: Headers, side: str, notes: list[Json]) -> bytes | None:
    if "parsed_body" in message:
        return _document(message["parsed_body"])
    raw = _bytes(message.get("body", message.get("content")))
    if raw is None:
        return None
    coding = next((value for name, value in headers if name.lower() == "content-encoding"), None)
    body = plain_body(coding, raw, side, unread := list[Json]())
    # Some recorders remove the coding and keep its header; a body that is text shows this.
    if unread and raw.lstrip()[:1] in (b"{", b"[", b"d", b"e", b":", b""):
        return raw
    notes += unread
    return body


def _bytes(body: Any) -> bytes | None:
    match body:
        case None:
            return None
        case bytes():
            return body
        case str():
            return body.encode("utf-8", "surrogatepass")
        case {"base64_string": str(text)} | {"encoding": "base64", "string": str(text)}:
            try:
                return base64.b64decode(text)
            except ValueError as error:
                raise FormatError(f"a body is not base64: {error}") from error
        case {"string": inner}:
            return _bytes(inner)
        case list() | tuple() if all(isinstance(piece, (str, bytes)) for piece in body):
            return b"".join(_bytes(piece) or b"" for piece in body)
        case _:
            return _document(body)


def _document(value: Any) -> bytes:
    """Return a value as JSON. Its size with all aliases expanded is checked first."""
    left = _LARGEST
    waiting = [value]
    while waiting:
        item = waiting.pop()
        left -= 1 + (len(item) >> 8 if isinstance(item, (str, bytes)) else 0)
        if left < 0:
            raise FormatError("a body is too large")
        waiting += item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else ()
    return dump(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value) if isinstance(value, (str, int, float)) else ""
