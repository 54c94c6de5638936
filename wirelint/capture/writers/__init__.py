"""Writers of fixed captures in the format of their source: a line for a line, a flow for a flow.

    from wirelint.capture.writers import write

The output is the source file with the changes of the fixes. Exchanges without a fix and all other content are copied to
the byte. A HAR and other JSON documents keep the layout of their unchanged parts.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from wirelint.capture import har
from wirelint.capture.format import NAMES, beside_sent, changes, is_prior
from wirelint.capture.offline import Fixed
from wirelint.capture.readers import load
from wirelint.capture.record import Record, Sent
from wirelint.capture.storage import is_url
from wirelint.fix import Edit
from wirelint.jsonvalues import mapping, mappings
from wirelint.model import Json
from wirelint.rewrite.edits import apply
from wirelint.text.escaping import printable
from wirelint.text.pointers import at

# Output appears as a whole or not at all: it grows in a hidden folder beside its target, and is moved at the end.


class TargetError(ValueError):
    """The output path cannot be used. The message is one line for the user."""


class Staging:
    """An output file or folder that appears as a whole. Write at `path`, then `commit`; without `commit` nothing
    remains.

    `force` replaces an existing file, or the files of the same names in an existing folder. `members` names everything
    that a folder may hold; with `force`, such a folder is replaced as a whole. Everything may raise OSError. `TargetError`
    is raised for an existing target without `force`, and for a folder with other files than `members`.
    """

    def __init__(
        self, target: Path, *, folder: bool, force: bool = False, members: frozenset[str] = frozenset()
    ) -> None:
        if is_url(str(target).replace(":/", "://", 1)):  # a `Path` has one slash of two
            raise TargetError(f"{target}: output goes to the disk; name a file or folder there")
        if os.path.lexists(target) and not force:
            raise TargetError(f"{target} is there already; name another, or replace it with --force")
        if os.path.lexists(target) and target.is_dir() != folder:
            kinds = ("a file", "a folder") if folder else ("a folder", "a file")
            raise TargetError(f"{target} is {kinds[0]}, and the output is {kinds[1]}; name another")
        if members and target.is_dir() and (others := sorted(set(os.listdir(target)) - members)):
            raise TargetError(f"{target} holds other files ({printable(others[0])}); name another folder")
        self._target, self._folder, self._is_whole = target, folder, bool(members)
        home = next(parent for parent in target.absolute().parents if parent.is_dir())
        # It is removed also if an interrupt comes before the block begins.
        self._scratch = tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=home, ignore_cleanup_errors=True)
        self.path = Path(self._scratch.name, "out")
        if folder:
            self.path.mkdir()

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *raised: object) -> None:
        self._scratch.cleanup()

    def commit(self) -> None:
        self._target.parent.mkdir(parents=True, exist_ok=True)
        if not self._folder or not self._target.is_dir():
            os.replace(self.path, self._target)
            return
        if self._is_whole:
            before = self._target.rename(self.path.with_name("before"))
            try:
                os.replace(self.path, self._target)
            except OSError:
                os.replace(before, self._target)
                raise
            return
        for parent, _, names in os.walk(self.path):
            home = self._target / Path(parent).relative_to(self.path)
            home.mkdir(parents=True, exist_ok=True)
            for name in names:
                os.replace(Path(parent, name), home / name)


__all__ = ["write"]


def write(source: Path, items: Iterable[Fixed], target: Path) -> None:
    """Write the file at `source` to `target`, with its records replaced by those of `items`.

    `items` are all records of the file, in its order. Raises OSError, and ValueError for a document that is broken
    after the records that could be read.
    """
    rest = (item for item in items if not is_prior(item.record))
    if (first := next(rest, None)) is None:
        shutil.copyfile(source, target)
    else:
        items = itertools.chain((first,), rest)
        match first.record.place.partition(" ")[0]:  # `line 3`, `flow 2`, `entry 7`
            case "flow":
                # Loading mitmproxy takes most of a second, and only these files need it.
                from wirelint.capture.writers import flows

                flows.write(source, items, target)
            case "entry" | "record":
                write_document(source, items, target)
            case _:
                with source.open("rb") as lines:
                    write_pieces("line", lines, items, target, _line)
    shutil.copymode(source, target)


_MEMBERS = ("forwarded", "delivered", "fixes")


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


def write_document(source: Path, items: Iterator[Fixed], target: Path) -> None:
    """Write a document that is one record, an array of them, or a HAR, whose fixed entries show the sent bodies.

    Raises ValueError for a HAR that is cut off.
    """
    text = source.read_bytes()
    document = load(text.removeprefix(BOM_UTF8))
    edits: list[Edit] = []
    for record in (item.record for item in items):
        unit, _, number = record.place.partition(" ")
        position = int(number) - 1
        if unit == "entry":
            pointer = f"/log/entries/{position}"
            from_mitmproxy = har.is_from_mitmproxy(mapping(at(document, "/log")))
            edits += _entry_edits(mapping(at(document, pointer)), record, pointer, from_mitmproxy)
        else:
            pointer = f"/{position}" if isinstance(document, list) else ""
            edits += _record_edits(at(document, pointer), record, pointer)
    target.write_bytes(apply(text, edits))


def _line(line: bytes, record: Record) -> bytes:
    if not changes(record) and not any(member.encode() in line for member in _MEMBERS):
        return line
    end = line[len(line.rstrip()) :]
    return apply(line.rstrip(), _record_edits(load(line.removeprefix(BOM_UTF8)), record, "")) + end


def _record_edits(value: Json, record: Record, pointer: str) -> list[Edit]:
    before, made = mapping(value), changes(record)
    edits = [Edit("remove", f"{pointer}/{member}") for member in _MEMBERS if member not in made]
    made["notes"] = record.annotations.get("notes")
    edits += [Edit("replace", f"{pointer}/{name}", new) for name, new in made.items() if new != before.get(name)]
    return edits


def _entry_edits(entry: Mapping[str, Json], record: Record, pointer: str, from_mitmproxy: bool) -> list[Edit]:
    before = entry.get(har.BESIDE)
    kept = {name: item for name, item in mapping(before).items() if name not in NAMES}
    made = {**kept, **beside_sent(record)}
    if before == made or (before is None and not made):
        return []
    came = mapping(mapping(before).get("received"))
    edits = [Edit("replace", f"{pointer}/{har.BESIDE}", made) if made else Edit("remove", f"{pointer}/{har.BESIDE}")]
    sides = (
        ("request", "postData", record.forwarded, Sent(record.request_headers, record.request_body)),
        ("response", "content", record.delivered, Sent(record.response_headers, record.response_body)),
    )
    for side, content, sent, received in sides:
        shown = sent or (received if side in came else None)
        if shown is not None and shown.body is not None:
            message = mapping(entry.get(side))
            edits += _message_edits(message, content, shown, f"{pointer}/{side}", from_mitmproxy)
    return edits


def _message_edits(
    message: Mapping[str, Json], content: str, sent: Sent, pointer: str, from_mitmproxy: bool
) -> list[Edit]:
    body = sent.body or b""
    before = mapping(message.get(content))
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
    lengths = 0
    for number, field in mappings(message.get("headers")):
        name, place = str(field.get("name")).lower(), f"{pointer}/headers/{number}"
        lengths += name == "content-length"
        if name == "content-length" and lengths == 1:
            edits.append(Edit("replace", f"{place}/value", str(len(body))))
        elif name in ("content-length", "content-encoding"):
            edits.append(Edit("remove", place))
    return edits
