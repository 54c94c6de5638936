"""User interface in mitmweb and the console: content view, live preview, commands, and flow retention; and the live
page, which every tool can have. No hook raises.

These parts are not separate addons, because mitmproxy calls every addon for every event. mitmproxy 11 expects lines of
styled spans from a content view, mitmproxy 12 a text; both take the view with the highest priority. A failure is shown
as one line above the raw body."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import itertools
import logging
import shutil
import sys
import threading
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mitmproxy import command, contentviews, ctx, exceptions, flow, http, types, websocket
from mitmproxy.addonmanager import Loader
from mitmproxy.log import ALERT

from wirelint.addon.annotate import annotate, annotation
from wirelint.addon.idle_queue import running_loop
from wirelint.addon.log import finding_line, logger, say
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.offline import Checked, Fixed, fix
from wirelint.capture.readers.flows import record_of, records_of
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import begin, replay
from wirelint.capture.writers.flows import show_sent
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.launch import describe_bind_error
from wirelint.model import Exchange, Side
from wirelint.prices import price_table
from wirelint.registry import Registry, RuleError, safeties
from wirelint.rule import Finding, Rule
from wirelint.state import keep
from wirelint.text.escaping import counted, printable, shorten
from wirelint.view.findings import known_note, read_finding, tally, visible
from wirelint.view.mitm import WIDTH, Line, Shown, Span, Style, failure, lines, plain
from wirelint.view.totals import Totals
from wirelint.wire.websocket import closes, opens

if TYPE_CHECKING:
    from wirelint.addon.addon import Inspector
    from wirelint.addon.dashboard import Dashboard
    from wirelint.view.dashboard import Board

NAME = "LLM exchange"
_OURS, _NOT_OURS = 100.0, -1.0
_STYLES: dict[str, dict[Style, str]] = tomllib.loads(
    Path(__file__).with_name("styles.toml").read_text(encoding="utf-8")
)

# --- exchanges of displayed flows -------------------------------------------------------------------------------------

_MOST, _MOST_BYTES = 200, 4 << 20
"""Exchanges that are cached, and the bytes of their bodies: a parsed exchange takes about ten times its bytes."""
_KNOWN = Finding("", "", "info", "high", "wirelint", "request", "")
"""A finding that earlier exchanges had: metadata holds only the number of these."""
_MOST_KNOWN = 100_000


class _Cached(NamedTuple):
    """Checked exchange with the flow's bodies at that time; with other bodies it is stale."""

    checked: Checked
    request: bytes | None
    response: bytes | None
    size: int


class Exchanges:
    """The exchanges of displayed flows: in progress, checked, or from a file. The latest are cached by flow id."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self.cached: OrderedDict[str, _Cached] = OrderedDict()

    def keep(self, flow: http.HTTPFlow, checked: Checked, name: str) -> None:
        """Cache an exchange. `name`: the id of its flow, or its own if it is one of several on a socket."""
        bodies = checked.record.request_body or b"", checked.record.response_body or b""
        size = sum(map(len, bodies)) + 4096
        keep(self.cached, name, _Cached(checked, flow.request.raw_content, _response_body(flow), size), _MOST)
        while len(self.cached) > 1 and sum(one.size for one in self.cached.values()) > _MOST_BYTES:
            self.cached.popitem(last=False)

    def knows(self, flow: http.HTTPFlow) -> bool:
        """Return True if a flow is an exchange of a known API. Cheap."""
        if flow.websocket is not None:
            return False
        api = flow.metadata.get("wirelint.api")
        return (isinstance(api, str) and bool(api)) or flow.id in self._inspector.open

    def is_known_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> bool:
        """Return True if a socket message begins or ends an exchange of a known API."""
        found = _turn_of(flow, message)
        if found is None:
            return False
        return bool(flow.metadata.get("wirelint.api")) or begin(records_of(flow)[found[0] - 1]) is not None

    def look(self, flow: http.HTTPFlow) -> Shown:
        """Return the exchange of a flow. Raises parse errors."""
        inspector = self._inspector
        if (recorder := inspector.open.get(flow.id)) is not None:
            exchange = recorder.look() if recorder.is_readable else None
            findings = (*recorder.faults, *(recorder.open_findings if exchange is not None else ()))
            return Shown(Checked(recorder.record(), exchange, findings), open=True)
        inspector.queue.drain()
        checked = self._find(flow, flow.id)
        if checked is None:
            checked = recall(flow, inspector.engine, inspector.redactor)
            self.keep(flow, checked, flow.id)
        return self._shown(checked)

    def find_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[Shown, Side] | None:
        """Return the exchange that a socket message begins or ends; None for other messages."""
        found, inspector = _turn_of(flow, message), self._inspector
        if found is None:
            return None
        number, side = found
        inspector.queue.drain()
        checked = self._find(flow, f"{flow.id}:{number}")
        if checked is None:
            record = inspector.redactor.record(records_of(flow)[number - 1])
            exchange, engine = replay(record), inspector.engine
            findings = engine.judge(engine.ledger.place(exchange)) if exchange is not None else ()
            checked = Checked(record, exchange, findings).folded
            if record.end == "unknown":  # the socket is open
                return Shown(checked, open=True), side
            self.keep(flow, checked, f"{flow.id}:{number}")
        return self._shown(checked), side

    def _find(self, flow: http.HTTPFlow, name: str) -> Checked | None:
        cached = self.cached.get(name)
        if cached is None or (cached.request, cached.response) != (flow.request.raw_content, _response_body(flow)):
            return None
        self.cached.move_to_end(name)
        return cached.checked

    def _shown(self, checked: Checked) -> Shown:
        exchange = checked.exchange
        return Shown(checked) if exchange is None else Shown(checked, later=lambda id_: self._result_of(id_, exchange))

    def _result_of(self, call_id: str, exchange: Exchange) -> str | None:
        """Return the result of a call from the latest cached request of the conversation that has it."""
        for cached in reversed(self.cached.values()):
            other = cached.checked.exchange
            if other is not None and other.conversation == exchange.conversation and other.id != exchange.id:
                for result in other.request.results if other.request is not None else ():
                    if result.call_id == call_id:
                        return result.text
        return None


def _response_body(flow: http.HTTPFlow) -> bytes | None:
    return flow.response.raw_content if flow.response is not None else None


def _turn_of(flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[int, Side] | None:
    """Return the number (from one) and side of the exchange that a message begins or ends."""
    opened = closed = 0
    for other in flow.websocket.messages if flow.websocket is not None else ():
        is_turn = other.is_text and (opens if other.from_client else closes)(other.content)
        if is_turn and other.from_client:
            opened += 1
        elif is_turn and closed < opened:
            closed += 1
        elif other is message:
            return None  # it begins or answers nothing
        if other is message:
            return (opened, "request") if message.from_client else (closed, "response")
    return None


def recall(flow: http.HTTPFlow, engine: Engine, redactor: Redactor) -> Checked:
    """Return the exchange of a flow with findings. A flow that was modified since its check is checked again."""
    record = redactor.record(record_of(flow))
    exchange, details = replay(record), flow.metadata.get("wirelint.detail")
    was_checked = isinstance(details, list)
    findings = tuple(filter(None, map(read_finding, details if isinstance(details, list) else ())))
    if exchange is not None and (not was_checked or flow.modified()):  # type: ignore[no-untyped-call, unused-ignore]
        findings = engine.judge(engine.ledger.place(exchange))
    known = flow.metadata.get("wirelint.known")
    checked = Checked(record, exchange, findings).folded
    if not checked.known and isinstance(known, int) and 0 < known <= _MOST_KNOWN:
        checked = dataclasses.replace(checked, known=(_KNOWN,) * known)
    return checked


# --- content view -----------------------------------------------------------------------------------------------------


class ExchangeView:
    """Content view for mitmproxy 12, which passes flow and message as `metadata`, and for 11, which passes keywords."""

    name = NAME
    syntax_highlight = "none"

    def __init__(self, exchanges: Exchanges, inspector: Inspector) -> None:
        self._exchanges, self._failures = exchanges, inspector.failures

    def prettify(self, data: bytes, metadata: object) -> str:
        return plain(self._page(data, *_subject(metadata, {})))

    def __call__(self, data: bytes, **given: object) -> tuple[str, Iterator[list[tuple[str, str]]]]:
        styles = _STYLES["console"] | ({} if _is_console() else _STYLES["browser"])
        page = self._page(data, *_subject(None, given))
        return NAME, ([(styles[span.style], span.text) for span in line] or [("text", " ")] for line in page)

    def render_priority(self, data: bytes, metadata: object = None, **given: object) -> float:
        flow, message = _subject(metadata, given)
        is_ours = False
        with self._failures.caught("choosing the content view"):
            if isinstance(flow, http.HTTPFlow) and isinstance(message, websocket.WebSocketMessage):
                is_ours = self._exchanges.is_known_turn(flow, message)
            elif isinstance(flow, http.HTTPFlow):
                is_ours = message is not None and self._exchanges.knows(flow)
        return _OURS if is_ours else _NOT_OURS

    def __lt__(self, other: Any) -> bool:
        return bool(self.name < other.name)

    def _page(self, data: bytes, flow: object, message: object) -> list[Line]:
        try:
            found: tuple[Shown, Side] | None = None
            match flow, message:
                case http.HTTPFlow(), http.Message():
                    side: Side = "response" if isinstance(message, http.Response) else "request"
                    found = self._exchanges.look(flow), side
                case http.HTTPFlow(), websocket.WebSocketMessage():
                    found = self._exchanges.find_turn(flow, message)
            if found is None:
                return _raw("no exchange belongs to this content", data)
            shown, side = found
            if shown.checked.exchange is None and not shown.open:
                why = next((finding.message for finding in shown.checked.findings), "")
                return _raw(why or "unrecognised API", data)
            return lines(shown, side, _width())
        except Exception as error:  # fail open
            self._failures.log("the content view", error)
            return _raw(f"the view of this exchange failed ({type(error).__name__}: {error})", data)


def _subject(metadata: object, given: Mapping[str, object]) -> tuple[object, object]:
    names = ("flow", "http_message", "websocket_message")
    flow, message, socket = (given.get(name) or getattr(metadata, name, None) for name in names)
    return flow, message or socket


def _raw(why: str, data: bytes) -> list[Line]:
    text = visible(data.decode("utf-8", "backslashreplace"))
    return [failure(why), (), *((Span("text", line),) for line in text.split("\n"))]


def _is_console() -> bool:
    return ctx.master.addons.get("consoleaddon") is not None  # type: ignore[no-untyped-call]


def _width() -> int:
    """Return the width in columns: the console's, or one that fits mitmweb's pane."""
    if not _is_console():
        return WIDTH
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return (columns // 2 if ctx.options.console_layout == "horizontal" else columns) - 2


def remove(view: ExchangeView | None) -> None:
    """Remove a view, or that of an earlier load, from mitmproxy 11. In 12 a later view replaces it."""
    views: Any = contentviews  # its types differ between the versions
    found = None if hasattr(contentviews, "Contentview") else views.get(NAME)
    if found is not None and view in (None, found):
        views.remove(found)


# --- live preview -----------------------------------------------------------------------------------------------------

_PAUSE = 0.7
"""Seconds between two updates of the open exchanges."""
_AT_ONCE = 16
"""Most exchanges that are redrawn in one update; if more are open, they take turns."""
_LARGEST = 8 << 20
"""Bytes of a body above which it is shown only at the end of the exchange."""


class LivePreview:
    """Shows replies while they stream; mitmproxy has no body of them before the end.

    A timer gives each open flow a copy of the bytes so far, and removes it before the exchange ends. The copy lacks
    the last byte, so that the final body differs and mitmweb asks for the view again. `show` redraws a flow."""

    def __init__(self, inspector: Inspector, show: Callable[[http.HTTPFlow], None]) -> None:
        self._inspector, self._show = inspector, show
        self._lent: dict[str, int] = {}
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None

    def done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def wake(self) -> None:
        if self._timer is None and is_shown() and (loop := running_loop()) is not None:
            self._timer = loop.call_later(_PAUSE, self._step)

    def _step(self) -> None:
        self._timer = None
        found = list(self._inspector.open.values())
        start = self._turn % len(found) if len(found) > _AT_ONCE else 0
        self._turn = start + _AT_ONCE
        for one in [*found[start:], *found[:start]][:_AT_ONCE]:
            with self._inspector.failures.caught("showing a reply that streams"):
                self._lend(one)
        if found:
            self.wake()

    def _lend(self, recorder: ExchangeRecorder) -> None:
        flow = recorder.flow
        if flow.response is None or (flow.response.raw_content is not None and flow.id not in self._lent):
            return
        if recorder.session is None or recorder.session.terminated:  # it is about to end
            return
        body = None if recorder.is_empty or recorder.is_collected else recorder.raw_body()
        if body is None or not 2 <= len(body) <= _LARGEST or len(body) == self._lent.get(flow.id):
            return
        self._lent[flow.id] = len(body)
        flow.response.raw_content = body[:-1]
        self._show(flow)

    def end(self, flow: http.HTTPFlow) -> None:
        """Remove the copy: after the end of an exchange, mitmproxy and the addon set its body."""
        if self._lent.pop(flow.id, None) is not None and flow.response is not None:
            flow.response.raw_content = None


def is_shown() -> bool:
    """Return True if flows are displayed: mitmdump has no view."""
    master = getattr(ctx, "master", None)
    return master is not None and "view" in master.addons.lookup


# --- commands of mitmproxy's prompt ------------------------------------------------------------------------------------
#
# Results are lists of lines, which the console shows in a window and mitmweb below its prompt. Errors are one line.

_TRIED = "fix tried"
_EARLIER = 50
"""Most earlier flows of the conversation that are read before a fix is tried."""
_MOST_LINES = 2000


class RuleName(str):
    """Argument type: name or code of a rule."""

    __slots__ = ()


_NO_RULE = RuleName()


class _RuleNames:
    """Completion and validation of that type in mitmproxy."""

    typ = RuleName
    display = "rule"

    def __init__(self, rules: Callable[[], Sequence[Rule]]) -> None:
        self._rules = rules

    def completion(self, manager: object, kind: object, start: str) -> list[str]:
        return [rule.code if start[:1].isupper() else rule.name for rule in self._rules()]

    def parse(self, manager: object, kind: object, text: str) -> str:
        return text

    def is_valid(self, manager: object, kind: object, value: object) -> bool:
        return isinstance(value, str)


class Commands:
    def __init__(self, inspector: Inspector, exchanges: Exchanges) -> None:
        self._inspector, self._exchanges = inspector, exchanges
        # mitmproxy's table of argument types accepts additions, though this is not documented. It enables completion.
        types.CommandTypes.typemap[RuleName] = _RuleNames(self._rules)

    @command.command("wirelint.findings")  # type: ignore[untyped-decorator]
    def findings(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """Print the findings of these flows (default: all flows): one line per exchange and one per finding."""
        lines: list[str] = []
        clean = 0
        for one in self._known(flows or _all_flows()):
            checked = self._exchanges.look(one).checked
            if not checked.findings and not checked.known:
                clean += 1
                continue
            exchange = checked.exchange
            what = " ".join(part for part in ((exchange.api, exchange.model) if exchange else ()) if part)
            counts = " ".join(filter(None, (tally(checked.findings), known_note(len(checked.known)))))
            lines.append(printable(f"{what or one.request.path}: {counts} [{one.id[:8]}]"))
            lines += [printable(finding_line(finding)) for finding in checked.findings]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} more lines; name fewer flows, as with ~marked"]
        return [*lines, f"{counted(clean, 'exchange')} without findings"]

    @command.command("wirelint.explain")  # type: ignore[untyped-decorator]
    def explain(self, rule: RuleName = _NO_RULE) -> Sequence[str]:
        """Print the manual of a rule, by its name or code."""
        if not rule:
            raise wrong("wirelint.explain RULE: name a rule, such as xml-leak or LK101")
        settings = self._inspector.settings
        try:  # also one that is left out in this run
            found = (settings.known if settings is not None else Registry.load()).get(rule)
        except RuleError as error:
            raise wrong(str(error)) from error
        fixes = ", ".join(safeties(found)) or "none"
        head = f"{found.code} {found.name} · {found.severity} · {found.layer} · fix: {fixes}"
        return [head, "", *(inspect.getdoc(found) or "").split("\n")]

    @command.command("wirelint.fix")  # type: ignore[untyped-decorator]
    def fix(self, flows: Sequence[flow.Flow]) -> Sequence[str]:
        """Try all fixes on these flows: each flow with a fix gets a copy with the repaired bodies."""
        lines: list[str] = []
        made: list[http.HTTPFlow] = []
        for one in self._known(flows):
            lines += self._try(one, made)
        if not lines:
            raise wrong("none of these flows is an exchange of a supported API")
        view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
        if view is not None and made:
            view.add(made)
            view.focus.flow = made[0]
        return lines

    def _try(self, one: http.HTTPFlow, made: list[http.HTTPFlow]) -> list[str]:
        """Try all fixes on a flow, add its fixed copy to `made`, and return the lines about it."""
        if one.id in self._inspector.open:
            return [f"{one.id[:8]}: still under way; try again when it has ended"]
        records = [dataclasses.replace(record_of(flow), source="flows") for flow in (*flows_before(one), one)]
        *_, fixed = fix(records, self._rules(), FixPolicy("unsafe"))
        if not isinstance(fixed, Fixed) or fixed.exchange is None:
            return [f"{one.id[:8]}: not an exchange of a supported API"]
        if not fixed.record.fixes:
            return [f"{one.id[:8]}: nothing to repair"]
        copy: http.HTTPFlow = one.copy()  # type: ignore[no-untyped-call, unused-ignore]
        show_sent(copy, fixed.record)
        record = dataclasses.replace(fixed.record, id=copy.id, source="")
        described = annotation(dataclasses.replace(fixed, record=record))
        copy.comment = copy.marked = ""
        annotate(copy, dataclasses.replace(described, comment=f"{_TRIED} · {described.comment}"), record)
        made.append(copy)
        self._exchanges.keep(copy, fixed.folded, copy.id)
        left = tally(fixed.remaining) or "none"
        many = counted(len(fixed.record.fixes), "repair")
        lines = [f"{one.id[:8]}: {many}, findings left: {left}; see the copy {copy.id[:8]}"]
        titles = [f"  ✎ {repair.name} ({repair.safety}) {repair.title}" for repair in fixed.record.fixes]
        return lines + [printable(shorten(title, 400)) for title in titles]

    @command.command("wirelint.view")  # type: ignore[untyped-decorator]
    def report(self, flows: Sequence[flow.Flow], path: types.Path) -> str:
        """Write a report of these flows to an HTML file."""
        from wirelint.view.html import write_report  # 5 MB, which most runs do not need

        out = _file(path, "report.html")
        known = self._known(flows)
        if not known:
            raise wrong("none of these flows is an exchange of a supported API; nothing was written")
        items = (self._exchanges.look(one).checked for one in known)
        try:
            written = write_report(items, out, rules=self._rules(), title="mitmproxy")
        except OSError as error:
            raise wrong(_unwritable(path, error)) from error
        return printable(f"{counted(written.exchanges, 'exchange')} written to {out.absolute()}")

    @command.command("wirelint.case")  # type: ignore[untyped-decorator]
    def case(self, flow: flow.Flow, path: types.Path) -> str:
        """Write a minimal redacted reproducer of this flow's findings to a file."""
        from wirelint.capture.cases import NoFindingError, encode_case, reproduce

        out = _file(path, "case.jsonl")
        if not isinstance(flow, http.HTTPFlow) or not self._exchanges.knows(flow):
            raise wrong("this flow is not an exchange of a supported API; nothing was written")
        if flow.id in self._inspector.open:
            raise wrong("this exchange is still under way; make a case of it when it has ended")
        if not self._exchanges.look(flow).checked.findings:
            raise wrong("nothing was found in this exchange; there is nothing to reproduce")
        record, before = record_of(flow), [record_of(one) for one in flows_before(flow)]
        rules = self._rules()

        def make() -> str:
            try:
                out.write_bytes(encode_case(reproduce(record, rules, prior=before)))
            except NoFindingError as error:
                return printable(f"no case was made: {error}")
            except OSError as error:
                return printable(_unwritable(str(out), error))
            except Exception as error:  # fail open: an exception in a thread is not shown
                return printable(f"no case was made: {type(error).__name__}: {error}")
            return printable(f"the case is written to {out.absolute()}; see it with: wirelint show {out}")

        loop = running_loop()
        if loop is None:
            return make()
        # It takes seconds, and must not block the traffic.
        loop.run_in_executor(None, lambda: say(f"wirelint: {make()}", logging.WARNING))
        where = f"the event log will say when it is in {out.absolute()}"
        return printable(f"the case of {flow.id[:8]} is being made; {where}")

    def _known(self, flows: Sequence[flow.Flow]) -> list[http.HTTPFlow]:
        return [one for one in flows if isinstance(one, http.HTTPFlow) and self._exchanges.knows(one)]

    def _rules(self) -> Sequence[Rule]:
        return self._inspector.engine.rules


def flows_before(one: http.HTTPFlow) -> list[http.HTTPFlow]:
    """Return the latest earlier flows of the conversation."""
    talk = one.metadata.get("wirelint.conversation")
    if not talk:
        return []
    earlier = itertools.takewhile(lambda other: other is not one, _all_flows())
    flows = (other for other in earlier if isinstance(other, http.HTTPFlow))
    return [other for other in flows if other.metadata.get("wirelint.conversation") == talk][-_EARLIER:]


def _all_flows() -> Sequence[flow.Flow]:
    found: Any = ctx.master.commands.call("view.flows.resolve", "@all")
    return tuple(found)


def wrong(text: str) -> exceptions.CommandError:
    return exceptions.CommandError(printable(text))


def _file(path: str, usual: str) -> Path:
    out = Path(path).expanduser()
    if not path or out.is_dir():
        raise wrong(f"{path or '(no path)'}: not the name of a file; give one, such as {out / usual}")
    if not out.parent.is_dir():
        raise wrong(f"{path}: the folder {out.parent} does not exist; name a file in an existing one")
    return out


def _unwritable(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}; name a file that can be written"


# --- all parts --------------------------------------------------------------------------------------------------------

_OPEN_AT_ONCE = 64
"""Most flows in progress that one call skips, because they must be kept."""


class UserInterface:
    """All parts of the user interface.

    `totals` counts all exchanges. `notice`: the address of the dashboard, or why there is none; empty if none is wanted.
    """

    def __init__(self, inspector: Inspector) -> None:
        self._inspector, self._failures = inspector, inspector.failures
        self._exchanges = Exchanges(inspector)
        self._view = ExchangeView(self._exchanges, inspector)
        self._commands = Commands(inspector, self._exchanges)
        self.preview = LivePreview(inspector, self.show)
        self.totals = Totals()
        self.notice = ""
        self._passed: OrderedDict[str, None] = OrderedDict()
        self._board: Board | None = None
        self._dashboard: Dashboard | None = None
        self._port: int | None = None

    def load(self, loader: Loader) -> None:
        with self._failures.caught("adding the content view"):
            remove(None)
            contentviews.add(self._view)  # type: ignore[arg-type, unused-ignore]
        loader.master.commands.collect_commands(self._commands)

    def done(self) -> None:
        remove(self._view)
        self._exchanges.cached.clear()
        self.preview.done()
        self._passed.clear()
        self.serve(None)

    def begins(self, flow: flow.Flow) -> None:
        """Limit how many flows mitmweb and the console keep: count a new flow, and drop the oldest ones.

        Only flows that passed in this run count; open ones stay."""
        if not flow.live or not is_shown():
            return
        self._passed[flow.id] = None
        settings = self._inspector.settings
        most = settings.keep_flows if settings is not None else None
        if most is None:
            return
        with self._failures.caught("dropping the oldest flows"):
            view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
            skipped = 0
            while len(self._passed) > most and skipped < _OPEN_AT_ONCE:
                name, _ = self._passed.popitem(last=False)
                found = view.get_by_id(name)
                if found is not None and found.live:
                    self._passed[name] = None
                    skipped += 1
                elif found is not None:  # else somebody removed it
                    view.remove([found])
                    self._exchanges.cached.pop(name, None)

    def board(self) -> Board:
        """Return the conversations, costs and issues of exchanges; they are counted from the first call on."""
        if self._board is None:
            from wirelint.view.dashboard import Board  # 1 MB, which few runs need

            self._board = Board(self.totals)
            # The price table takes almost a second to load, which must not delay the first exchange.
            threading.Thread(target=price_table, daemon=True).start()
        return self._board

    def serve(self, port: int | None) -> None:
        """Start the dashboard at a port, 0 for a free one, or end it (None). Needs a running loop."""
        if port == self._port:
            return
        self._port, self.notice = port, ""
        if self._dashboard is not None:
            self._dashboard.stop()
            self._dashboard = None
        if port is None:
            return
        with self._failures.caught("starting the dashboard"):
            # Imported here: the page's server costs 40 ms and 5 MB, and few runs have a page.
            from wirelint.addon.dashboard import HOST, Dashboard

            inspector = self._inspector
            made = Dashboard(self.board(), inspector.under_way, lambda: inspector.redactor, self._failures)
            try:
                made.start(port)
            except OSError as error:
                why = describe_bind_error(HOST, port, error, "--set wirelint_dashboard=PORT")
                self._say(f"wirelint: no dashboard: {why}; traffic is checked as usual", logging.WARNING)
                return
            self._dashboard = made
            self._say(f"wirelint: dashboard at {made.url}", ALERT)

    def _say(self, notice: str, level: int) -> None:
        """Log a notice; the parent of a private proxy prints it instead. Not redacted: the address has its token."""
        self.notice = notice
        if ctx.master.addons.get("wirelint-private") is None:  # type: ignore[no-untyped-call]
            logger.log(level, "%s", notice)

    def judged(self, flow: http.HTTPFlow, checked: Checked) -> None:
        """Count an exchange, and cache its result."""
        with self._failures.caught("counting the exchange"):
            self.totals.add(checked)
            if self._dashboard is not None:
                self._dashboard.add(checked)
            elif self._board is not None:
                self._board.add(checked)
        if is_shown():
            self._exchanges.keep(flow, checked.folded, checked.record.id)
            module = sys.modules.get("mitmproxy.tools.console.flowview")
            with self._failures.caught("showing the result"):
                if module is not None:  # the console's cache of rendered bodies does not notice new findings
                    module.FlowDetails._get_content_view.cache_clear()

    def show(self, flow: http.HTTPFlow) -> None:
        with self._failures.caught("showing the result"):
            view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
            if view is not None:
                view.update([flow])
