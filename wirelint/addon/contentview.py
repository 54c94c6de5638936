"""The content view "LLM exchange" for both generations of mitmproxy: two adapters, and what they have in common.

mitmproxy 11 wants lines of styled spans, mitmproxy 12 a text; both ask every view how well it suits a body, and take the
one that says most. Whatever fails in here ends as one line above the body as it is: mitmproxy would show a traceback.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol

from mitmproxy import contentviews, ctx, http, websocket

from wirelint.addon.failures import Failures
from wirelint.addon.looking import Looking
from wirelint.model import Side
from wirelint.view.findings import visible
from wirelint.view.mitm import WIDTH, Line, Shown, Span, Style, failure, lines, plain

NAME = "LLM exchange"

_OURS = 100.0
_NOT_OURS = -1.0

_IN_CONSOLE: dict[Style, str] = {
    "head": "header",
    "speaker": "header",
    "text": "text",
    "thinking": "content_none",
    "remark": "content_none",
    "call": "replay",
    "result": "text",
    "failed": "error",
    "minus": "to_client",
    "plus": "Token_Name_Tag",
    "error": "error",
    "warning": "warn",
    "info": "offset",
}
"""mitmproxy 11: names of its palettes."""
_IN_BROWSER: dict[Style, str] = {
    "head": "header",
    "speaker": "header",
    "text": "text",
    "thinking": "content_none",
    "remark": "content_none",
    "call": "Token_Keyword_Constant",
    "result": "Token_Name_Tag",
    "failed": "Token_Literal_String",
    "minus": "Token_Literal_String",
    "plus": "Token_Name_Tag",
    "error": "Token_Literal_String header",
    "warning": "Token_Literal_Number header",
    "info": "offset",
}
"""mitmproxy 11: classes of mitmweb's style sheet."""


class Viewer:
    """What both generations have in common."""

    def __init__(self, looking: Looking, failures: Failures) -> None:
        self._looking, self._failures = looking, failures

    def claims(self, flow: object, message: object) -> bool:
        try:
            if not isinstance(flow, http.HTTPFlow):
                return False
            if isinstance(message, websocket.WebSocketMessage):
                return self._looking.knows_turn(flow, message)
            return message is not None and self._looking.knows(flow)
        except Exception as error:  # fail open: another view shows it
            self._failures.tell("choosing the content view", error)
            return False

    def page(self, data: bytes, flow: object, message: object) -> list[Line]:
        try:
            found = self._look(flow, message)
            if found is None:
                return _raw("there is no exchange to this content", data)
            shown, side = found
            if shown.checked.exchange is None and not shown.open:
                why = next((finding.message for finding in shown.checked.findings), "")
                return _raw(why or "unrecognised API", data)
            return lines(shown, side, _width())
        except Exception as error:  # fail open
            self._failures.tell("the content view", error)
            return _raw(f"the view of this exchange failed ({type(error).__name__}: {error})", data)

    def _look(self, flow: object, message: object) -> tuple[Shown, Side] | None:
        match flow, message:
            case http.HTTPFlow(), http.Message():
                return self._looking.look(flow), "response" if isinstance(message, http.Response) else "request"
            case http.HTTPFlow(), websocket.WebSocketMessage():
                return self._looking.look_at_turn(flow, message)
            case _:
                return None


def _raw(why: str, data: bytes) -> list[Line]:
    text = visible(data.decode("utf-8", "backslashreplace"))
    return [failure(why), (), *((Span("text", line),) for line in text.split("\n"))]


class Contentview:
    """mitmproxy 12."""

    name = NAME
    syntax_highlight: Literal["none"] = "none"

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def prettify(self, data: bytes, metadata: contentviews.Metadata) -> str:
        return plain(self._viewer.page(data, metadata.flow, metadata.http_message or metadata.websocket_message))

    def render_priority(self, data: bytes, metadata: contentviews.Metadata) -> float:
        return (
            _OURS
            if self._viewer.claims(metadata.flow, metadata.http_message or metadata.websocket_message)
            else _NOT_OURS
        )

    def __lt__(self, other: Named) -> bool:
        return self.name < other.name


class View:
    """mitmproxy 11."""

    name = NAME

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def __call__(
        self,
        data: bytes,
        *,
        flow: object = None,
        http_message: object = None,
        websocket_message: object = None,
        **_: object,
    ) -> tuple[str, Iterator[list[tuple[str, str]]]]:
        styles = _IN_CONSOLE if _is_console() else _IN_BROWSER
        page = self._viewer.page(data, flow, http_message or websocket_message)
        return NAME, ([(styles[span.style], span.text) for span in line] or [("text", " ")] for line in page)

    def render_priority(
        self,
        data: bytes,
        *,
        flow: object = None,
        http_message: object = None,
        websocket_message: object = None,
        **_: object,
    ) -> float:
        return _OURS if self._viewer.claims(flow, http_message or websocket_message) else _NOT_OURS

    def __lt__(self, other: Named) -> bool:
        return self.name < other.name


class Named(Protocol):
    name: str


def _is_console() -> bool:
    return ctx.master.addons.get("consoleaddon") is not None  # type: ignore[no-untyped-call]


def _width() -> int:
    """The console has a width that can be asked for; for mitmweb it is one at which its pane shows whole lines."""
    if not _is_console():
        return WIDTH
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return (columns // 2 if ctx.options.console_layout == "horizontal" else columns) - 2


def install(viewer: Viewer) -> Callable[[], None]:
    """Adds the view to mitmproxy's, in the place of one that an earlier load had added. The result takes it out again."""
    if hasattr(contentviews, "Contentview"):
        contentviews.add(Contentview(viewer))
        return lambda: None  # a later one takes its place; until then it knows no flow
    old: Any = contentviews
    view = View(viewer)
    if (earlier := old.get(NAME)) is not None:
        old.remove(earlier)
    old.add(view)

    def remove() -> None:
        if old.get(NAME) is view:
            old.remove(view)

    return remove
