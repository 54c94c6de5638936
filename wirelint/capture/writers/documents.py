"""Writers of JSON captures (lines, documents, HAR). They edit the source, so that everything else keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from wirelint.capture import har
from wirelint.capture.flow_metadata import NAMES, beside_sent
from wirelint.capture.format import changes
from wirelint.capture.offline import Fixed
from wirelint.capture.readers.documents import load
from wirelint.capture.readers.source import as_mapping
from wirelint.capture.record import Record, Sent
from wirelint.fix import Edit
from wirelint.model import Json
from wirelint.rewrite.edits import apply

_BOM = b"\xef\xbb\xbf"
_MEMBERS = ("forwarded", "delivered", "fixes")


def write_lines(source: Path, items: Iterator[Fixed], target: Path) -> None:
    """Write a file of records, a line each. Lines that are no record are copied."""
    with source.open("rb") as lines:
        write_pieces("line", lines, items, target, _line)


def write_pieces(
    unit: str, pieces: Iterable[bytes], items: Iterator[Fixed], target: Path, make: Callable[[bytes, Record], bytes]
) -> None:
    """Write the pieces of a file to `target`: `make` of each record (at `line 3`), every other piece unchanged."""
    pending = next(items, None)
    with target.open("wb") as out:
        for number, piece in enumerate(pieces, 1):
            if pending is None or pending.record.place != f"{unit} {number}":
                out.write(piece)
                continue
            out.write(make(piece, pending.record))
            pending = next(items, None)
    for _ in items:  # the reader reports problems of the file at its end
        pass


def write_records(source: Path, items: Iterator[Fixed], target: Path) -> None:
    """Write a document that is one record, or an array of them."""
    text = source.read_bytes()
    document = load(text.removeprefix(_BOM))
    edits: list[Edit] = []
    for fixed in items:
        number = int(fixed.record.place.rpartition(" ")[2]) - 1
        value = document[number] if isinstance(document, list) else document
        edits += _record_edits(value, fixed.record, f"/{number}" if isinstance(document, list) else "")
    target.write_bytes(apply(text, edits))


def write_har(source: Path, items: Iterator[Fixed], target: Path) -> None:
    """Write a HAR. Fixed entries show the sent bodies, and hold the received ones in `_wirelint`.

    Raises ValueError for a HAR that is cut off.
    """
    text = source.read_bytes()
    log = as_mapping(as_mapping(load(text.removeprefix(_BOM))).get("log"))
    entries = log.get("entries")
    edits: list[Edit] = []
    for fixed in items:
        number = int(fixed.record.place.rpartition(" ")[2]) - 1
        entry = as_mapping(entries[number]) if isinstance(entries, list) else {}
        edits += _entry_edits(entry, fixed.record, f"/log/entries/{number}", har.is_from_mitmproxy(log))
    target.write_bytes(apply(text, edits))


def _line(line: bytes, record: Record) -> bytes:
    if not changes(record) and not any(member.encode() in line for member in _MEMBERS):
        return line
    end = line[len(line.rstrip()) :]
    return apply(line.rstrip(), _record_edits(load(line.removeprefix(_BOM)), record, "")) + end


def _record_edits(value: Json, record: Record, pointer: str) -> list[Edit]:
    """Return the edits that put the fixes into the object of a record."""
    before, made = as_mapping(value), changes(record)
    edits: list[Edit] = []
    for member in _MEMBERS:
        if member not in made:
            edits.append(Edit("remove", f"{pointer}/{member}"))
        elif made[member] != before.get(member):
            edits.append(Edit("replace", f"{pointer}/{member}", made[member]))
    notes = record.annotations.get("notes")
    if notes != before.get("notes"):
        edits.append(Edit("replace", f"{pointer}/notes", notes))
    return edits


def _entry_edits(entry: Mapping[str, Json], record: Record, pointer: str, from_mitmproxy: bool) -> list[Edit]:
    before = entry.get(har.BESIDE)
    kept = {name: item for name, item in as_mapping(before).items() if name not in NAMES}
    made = {**kept, **beside_sent(record)}
    if before == made or (before is None and not made):
        return []
    came = as_mapping(as_mapping(before).get("received"))
    edits = [Edit("replace", f"{pointer}/{har.BESIDE}", made) if made else Edit("remove", f"{pointer}/{har.BESIDE}")]
    sides = (
        ("request", "postData", record.forwarded, Sent(record.request_headers, record.request_body)),
        ("response", "content", record.delivered, Sent(record.response_headers, record.response_body)),
    )
    for side, content, sent, received in sides:
        shown = sent or (received if side in came else None)
        if shown is not None and shown.body is not None:
            message = as_mapping(entry.get(side))
            edits += _message_edits(message, content, shown, f"{pointer}/{side}", from_mitmproxy)
    return edits


def _message_edits(
    message: Mapping[str, Json], content: str, sent: Sent, pointer: str, from_mitmproxy: bool
) -> list[Edit]:
    body = sent.body or b""
    before = as_mapping(message.get(content))
    as_base64 = before.get("encoding") == "base64"
    text, encoding = har.written(body, sent.headers, from_mitmproxy=from_mitmproxy, as_base64=as_base64)
    edits = [Edit("replace", f"{pointer}/{content}/text", text)]
    if encoding is not None and not as_base64:
        edits.append(Edit("replace", f"{pointer}/{content}/encoding", encoding))
    size = message.get("bodySize")
    if isinstance(size, int) and size > 0:
        edits.append(Edit("replace", f"{pointer}/bodySize", len(body)))
    if "size" in before:
        edits.append(Edit("replace", f"{pointer}/{content}/size", len(body)))
    if "compression" in before:  # number of bytes that the content coding saved
        edits.append(Edit("remove", f"{pointer}/{content}/compression"))
    headers = message.get("headers")
    length = False
    for number, field in enumerate(headers if isinstance(headers, list) else []):
        name = str(as_mapping(field).get("name")).lower()
        place = f"{pointer}/headers/{number}"
        if name == "content-encoding" or (name == "content-length" and length):
            edits.append(Edit("remove", place))
        elif name == "content-length":
            length = True
            edits.append(Edit("replace", f"{place}/value", str(len(body))))
    return edits
