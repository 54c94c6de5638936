"""LHAR, the archive of Context Lens: `{"type": "session", …}` and `{"type": "entry", …}`, a line each or in one document.

An entry has the bodies under `raw`, when it was exported in full: `request_body` a JSON value, `response_body` a JSON
value or the text of the stream. In the other levels of privacy it has only counts, from which nothing can be judged.
Source: schema/lhar.schema.json and src/lhar of larsderidder/context-lens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wirelint.capture.format import FormatError, dump, read_headers
from wirelint.capture.readers.source import LineReader, Problem, as_mapping, as_number, as_seconds
from wirelint.capture.record import Record
from wirelint.model import Json, MissingInfo, Timing

_LACKS: frozenset[MissingInfo] = frozenset({"times"})
_PATHS = {
    "anthropic-messages": "/v1/messages",
    "chat-completions": "/v1/chat/completions",
    "responses": "/v1/responses",
}
"""Paths of APIs, for entries without an address."""


def is_line(value: Mapping[str, Json]) -> bool:
    kind = value.get("type")
    return "trace_id" in value and (kind == "session" or (kind == "entry" and "gen_ai" in value))


class Lines(LineReader):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._empty = self._entries = 0

    def add(self, value: Json, number: int, noun: str = "line") -> Iterator[Record]:
        """The record of an entry. Raises FormatError."""
        if not isinstance(value, dict) or not is_line(value):
            raise FormatError("neither a session nor an entry")
        if value["type"] == "session":
            return
        self._entries += 1
        record = _entry(value, self._source, f"{noun} {number}")
        if record.request_body is None and record.response_body is None:
            self._empty += 1
        else:
            yield record

    def close(self) -> Iterator[Record | Problem]:
        if self._empty:
            some = f"{self._empty} of {self._entries} entries without bodies"
            cure = "nothing can be judged without them; export with privacy `full`"
            yield Problem(self._source, "", some, cure, fatal=self._empty == self._entries)


def read_document(document: Mapping[str, Json], source: str) -> Iterator[Record | Problem]:
    """The records of the wrapped form, `{"lhar": {"entries": […]}}`."""
    entries = as_mapping(document.get("lhar")).get("entries")
    if not isinstance(entries, list):
        yield Problem(source, "", "LHAR without entries", "export it again", fatal=True)
        return
    lines = Lines(source)
    for number, entry in enumerate(entries, 1):
        try:
            yield from lines.add(entry, number, "entry")
        except FormatError as error:
            yield Problem(source, f"entry {number}", str(error), "the others were read", fatal=False)
    yield from lines.close()


def _entry(value: Mapping[str, Json], source: str, place: str) -> Record:
    http, raw, timings = as_mapping(value.get("http")), as_mapping(value.get("raw")), as_mapping(value.get("timings"))
    status, url, method = http.get("status_code"), http.get("url"), http.get("method")
    if not isinstance(url, str):
        url = _PATHS.get(str(http.get("api_format")), "")
    asked = raw.get("request_body")
    id_ = value.get("id")
    answer = raw.get("response_body")
    answered = answer is not None or isinstance(status, int)
    send, wait = as_number(timings.get("send_ms")), as_number(timings.get("wait_ms"))
    return Record(
        id=id_ if isinstance(id_, str) and id_ else f"{source}:{place.rpartition(' ')[2]}",
        method=method if isinstance(method, str) and method else "POST",
        url=url,
        request_headers=read_headers(http.get("request_headers")),
        request_body=dump(asked) if asked is not None else None,
        status=int(status) if isinstance(status, int) and status > 0 else 200 if answered else None,
        response_headers=tuple(
            field for field in read_headers(http.get("response_headers")) if field[0].lower() != "content-encoding"
        ),
        response_body=_answer(answer),
        timing=Timing(
            as_seconds(value.get("timestamp")),
            send + wait if send is not None and wait is not None else None,
            None,
            as_number(timings.get("total_ms")),
        ),
        source=source,
        place=place,
        form="lhar",
        missing=_LACKS,
    )


def _answer(body: Json) -> bytes | None:
    match body:
        case None:
            return None
        case str():
            return body.encode("utf-8", "surrogatepass")
        case {"streaming": True, "chunks": str(text)} | {"raw": str(text)}:
            return text.encode("utf-8", "surrogatepass")
        case _:
            return dump(body)
