"""The page itself: the template, the stylesheet and the script in one file, locked against everything else.

The policy in the head permits this script and this style by their digests and nothing besides: no other script, no request
to anywhere, and (Trusted Types) no text that is parsed as HTML while the page runs.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from wirelint import __version__
from wirelint.view.html.manuals import Manual
from wirelint.view.html.summary import Summary
from wirelint.view.writer import visible

_HERE = Path(__file__).resolve().parent
_PIECE = 1 << 20


class Section(NamedTuple):
    """A part of the page of somebody else's making, beneath the summary. Scripts, and styles in attributes, do not work."""

    title: str
    body: Markup


def write_page(
    out: BinaryIO,
    *,
    title: str,
    summary: Summary,
    manuals: Iterable[Manual],
    sections: Iterable[Section],
    problems: Iterable[str],
    data: BinaryIO,
    index: bytes,
) -> None:
    """Writes the page to `out`. `data` holds the elements with the exchanges, `index` is the one with the list of them."""
    script, style = (_asset(name) for name in ("report.js", "report.css"))
    template = _ENVIRONMENT.get_template("page.html.jinja")
    stream = template.stream(
        title=title,
        version=__version__,
        policy=_policy(script, style),
        script=Markup(script),
        style=Markup(style),
        summary=summary,
        chart=summary.chart(),
        manuals=manuals,
        sections=sections,
        problems=problems,
        data=_pieces(data, index),
    )
    stream.enable_buffering(16)
    stream.dump(out, encoding="utf-8", errors="replace")


def _pieces(data: BinaryIO, index: bytes) -> Iterable[Markup]:
    data.seek(0)
    while piece := data.read(_PIECE):
        yield Markup(piece.decode("ascii"))
    yield Markup(index.decode("ascii"))


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",  # the empty icon
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["visible"] = visible
    return made


_ENVIRONMENT = _environment()
