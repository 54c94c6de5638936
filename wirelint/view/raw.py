"""One exchange as it stood on the wire: heads, and the reply's events one by one with the findings that point at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.capture.record import Headers
from wirelint.engine import lower
from wirelint.rule import Finding
from wirelint.view.writer import MARKS, STYLES, visible
from wirelint.wire import Sniffer


def wire(checked: Checked) -> RenderableType:
    """Request and reply in raw form. Control characters are shown escaped, line ends as they were."""
    record = checked.record
    parts: list[RenderableType] = [
        Text(visible(f"{record.method} {record.url}"), "bold"),
        *_headers(record.request_headers),
        Text(""),
        _bytes(record.request_body),
        Text(""),
        Text(f"{record.status if record.status is not None else 'no status'}", "bold"),
        *_headers(record.response_headers),
        Text(""),
        *_body(checked),
    ]
    return Group(*parts)


def _headers(headers: Headers) -> Iterator[Text]:
    return (Text.assemble((visible(f"{name}: "), "dim"), visible(value), overflow="fold") for name, value in headers)


def _body(checked: Checked) -> Iterator[Text]:
    record = checked.record
    body = record.response_body
    if body is None:
        yield Text("(no body)", "dim")
        return
    sniffer = Sniffer(lower(record.response_headers))
    frames = [*sniffer.feed(body), *sniffer.close()]
    if not sniffer.streamed:
        yield _bytes(body)
        yield from _notes(checked.findings)
        return
    for frame in frames:
        number = Text(f"{frame.number:>5}  ", "dim")
        yield number.append(_visible(frame.raw), "")
        yield from _notes(finding for finding in checked.findings if finding.event == frame.number)
    yield from _notes(finding for finding in checked.findings if finding.event is None)


def _notes(findings: Iterable[Finding]) -> Iterator[Text]:
    for finding in findings:
        style = STYLES[finding.severity]
        yield Text(f"       {MARKS[finding.severity]} {finding.code} {finding.name}: {finding.message}", style)


def _bytes(body: bytes | None) -> Text:
    return Text("(no body)", "dim") if body is None else Text(_visible(body), overflow="fold")


def _visible(raw: bytes) -> str:
    """Text with everything that a terminal would obey made visible; a line feed ends a line, other ends are named."""
    shown = visible(raw.decode("utf-8", "backslashreplace").replace("\r", "␍"))
    return shown.rstrip("\n").replace("\n", "\n       ")
