"""The repair of one exchange while it passes: which messages are repaired, and in which way.

Theory of operation. A request is whole in its hook and is repaired there. A reply that is one JSON document, asked for
without streaming, is left to mitmproxy to hold until its hook, so that its header can say what was done. Every other reply
gets a `Delivery`. Left alone are error replies, codings that nobody knows, bodies above the limit, and replies that another
addon rewrites while they stream.

The exchange that is judged stays what came in: the client's own request and the upstream's own reply. For the repair of a
reply the request is the one that was *forwarded*. The reply continues that one, so its ids are the upstream's own (restored
where a client had mangled them), and new ones have to go on in their form and their count. The ids of the client's own
request count as taken as well, since a new one comes back beside them in the next request.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from mitmproxy import http

from wirelint.addon.blocking import AddedAnswers, SessionStreams
from wirelint.addon.delivery import CUT_OFF, Delivery
from wirelint.addon.failures import Failures
from wirelint.addon.http_headers import (
    HEADER,
    add_field,
    headers_of,
    is_decodable,
    is_plainly_framed,
    is_signed,
    replace_body,
)
from wirelint.addon.options import Settings
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.tee import Stream, collect, is_json, is_within, length_of
from wirelint.apis import channel_of
from wirelint.capture.record import Sent
from wirelint.fix import AppliedFix, Edit
from wirelint.model import Exchange, Json
from wirelint.rewrite import ReplyStream, rewrite_reply
from wirelint.rewrite.edits import apply
from wirelint.rewrite.request import answer_request, mend_request
from wirelint.settings.scopes import Scope
from wirelint.state.ledger import Ledger

_GOOD = (200, 201, 202, 203)
"""Statuses with a body of the reply itself: 204 and 205 have none, that of 206 is a part."""


class ExchangeFixer:
    """One for every exchange, and only where repairs are asked for by its `scope`. Nothing in here raises."""

    def __init__(
        self,
        flow: http.HTTPFlow,
        visit: ExchangeRecorder,
        settings: Settings,
        scope: Scope,
        ledger: Ledger,
        failures: Failures,
        streams: SessionStreams,
    ) -> None:
        self._flow, self._visit, self._scope = flow, visit, scope
        self._settings, self._ledger, self._failures = settings, ledger, failures
        self._streams = streams
        self._delivery: Delivery | None = None
        self._added: AddedAnswers | None = None
        self._held = False

    @classmethod
    def begin(
        cls,
        flow: http.HTTPFlow,
        visit: ExchangeRecorder,
        settings: Settings,
        ledger: Ledger,
        failures: Failures,
        streams: SessionStreams,
    ) -> ExchangeFixer | None:
        """Repairs the request, before it leaves. None when nothing may be repaired in this exchange."""
        try:
            scope = settings.scope_of(visit.session)
        except Exception as error:  # fail open: the exchange passes as it comes
            failures.add(visit, "finding the settings of the exchange", error)
            return None
        if not scope.repairs:
            return None
        mending = cls(flow, visit, settings, scope, ledger, failures, streams)
        mending.request()
        return mending

    @property
    def blocks(self) -> bool:
        """Return True if there are policies, by which calls may be blocked."""
        return bool(self._settings.policies)

    # --- requests -----------------------------------------------------------------------------------------------------

    def request(self) -> None:
        """Repairs the request, before it leaves."""
        try:
            self._mend()
        except Exception as error:  # fail open: the request goes out as it is
            self._failures.add(self._visit, "repairing the request", error)

    def _mend(self) -> None:
        visit, request = self._visit, self._flow.request
        session, body = visit.session, visit.request_body
        if session is None or session.request is None or not body:
            return
        head = session.head()
        if self._answer(head):
            return
        mended = mend_request(head, body, self._scope.menders, self._ledger, self._scope.permit)
        visit.faults += mended.faults
        if mended.body is body or mended.body == body:
            return
        if not is_decodable(request, visit.limit):
            visit.notes.append("the request is not what its content-encoding says; it was not repaired")
            return
        if is_signed(request):
            visit.notes.append("a header vouches for the body of the request; it was not repaired")
            return
        replace_body(request, mended.body)
        visit.forwarded = Sent(headers_of(request), mended.body)
        visit.asked = mended.request
        visit.note_fixes(mended.repairs)

    def _answer(self, head: Exchange) -> bool:
        """Answers a request that must not be sent; whether it did."""
        visit, settings = self._visit, self._settings
        answered = answer_request(head, self._scope.answerers, self._ledger, self._scope.permit)
        visit.faults += answered.faults
        if answered.answer is None:
            return False
        document, repair, edits, status = answered.answer
        fields = {"content-type": "application/json"}
        if settings.header:
            fields[HEADER] = f'answered; rules="{repair.name}"'
        told = "the request was not sent; the reply is wirelint's own"
        if edits:
            return self._answer_in_part(document, repair, edits)
        takes_json = "application/json" in self._flow.request.headers.get("accept", "") or isinstance(document, list)
        if takes_json or channel_of(head.api) == "model":
            self._flow.response = http.Response.make(status, orjson.dumps(document), fields)
        elif self._streams.answer(head, document):
            self._flow.response = http.Response.make(202, b"Accepted", {**fields, "content-type": "text/plain"})
            told = "the request was not sent; the answer on the stream of its session is wirelint's own"
        else:
            visit.notes.append("the call is to be blocked, and was sent: the stream of its session was not found")
            return False
        visit.notes.append(told)
        visit.note_fixes((repair,))
        return True

    def _answer_in_part(self, document: Json, repair: AppliedFix, edits: Sequence[Edit]) -> bool:
        """Sends what is left of a batch; the answers to what is not sent come with the reply."""
        visit, request = self._visit, self._flow.request
        body = apply(visit.request_body or b"", edits)
        if not is_decodable(request, visit.limit) or is_signed(request):
            visit.notes.append("the call is to be blocked, and was sent: the batch cannot be changed")
            return False
        replace_body(request, body)
        visit.forwarded = Sent(headers_of(request), body)
        visit.note_fixes((repair,))
        self._added = AddedAnswers(visit, document if isinstance(document, list) else [document])
        return True

    # --- replies ------------------------------------------------------------------------------------------------------

    def ready(self, response: http.Response, before: bool | Stream) -> None:
        """Readies the repair of a reply whose head has come. `before`: how it would be streamed without us."""
        tee = response.stream
        try:
            self._ready(response, before)
        except Exception as error:  # fail open: it passes as it comes
            response.stream = tee
            self._failures.add(self._visit, "preparing the repair of the reply", error)

    def _ready(self, response: http.Response, before: bool | Stream) -> None:
        visit, settings = self._visit, self._settings
        if self._added is not None:
            self._added.begin(self._flow.request, response)
            return
        if not self._is_repairable(response) or visit.session is None:
            return
        if callable(before):
            visit.notes.append("another addon rewrites this reply while it streams; it was not repaired")
            return
        if not before and self._is_document(response):
            self._held, response.stream = True, False
            collect(self._flow, visit, self._failures)
            return
        rewriting = ReplyStream.begin(
            visit.session, self._scope.rewriters, self._ledger, self._scope.permit, settings.hold * 1000, visit.asked
        )
        if rewriting is not None:
            announce = f"fix={self._scope.permit.most}" if settings.header else ""
            self._delivery = Delivery(self._flow, visit, rewriting, self._failures, announce)

    def _is_repairable(self, response: http.Response) -> bool:
        visit = self._visit
        if visit.session is None or channel_of(visit.session.api.name) != "model":
            return False  # what tools say is passed on as it comes
        good = response.status_code in _GOOD and is_plainly_framed(visit.session.reply_headers)
        return good and visit.readable and not visit.unread

    def _is_document(self, response: http.Response) -> bool:
        """Return True if a reply is a JSON document that nobody waits to see the beginning of, small enough to be held."""
        session = self._visit.session
        if session is None or session.request is None or session.request.stream or not is_json(response):
            return False
        return length_of(response) is None or is_within(response, self._visit.limit)

    def response(self, response: http.Response) -> None:
        """Repairs a reply that is whole and not yet on its way."""
        visit = self._visit
        try:
            if self._added is not None:
                self._added.response(response)
                return
            if self._delivery is None and visit.empty and response.raw_content and self._is_repairable(response):
                self._rewrite(response, response.raw_content)
        except Exception as error:  # fail open
            self._failures.fail(visit, "repairing the reply", error)

    def _rewrite(self, response: http.Response, raw: bytes) -> None:
        visit, settings = self._visit, self._settings
        kept = visit.keep_whole(raw)
        if kept is None or visit.session is None:
            return
        plain, chunks = kept
        if not visit.decoded_to_its_end:
            visit.notes.append(f"{CUT_OFF}; it was not repaired")
            visit.take_kept(plain, chunks)
            return
        made = rewrite_reply(
            visit.session,
            plain,
            self._scope.rewriters,
            self._ledger,
            self._scope.permit,
            chunks=chunks,
            longest_hold=settings.hold * 1000,
            request=visit.asked,
        )
        visit.faults += made.faults
        visit.reread = visit.reread or bool(made.faults)
        visit.notes += made.notes
        if made.body == plain:
            return
        replace_body(response, made.body)
        visit.note_fixes(made.repairs)
        if settings.header:
            names = ", ".join(dict.fromkeys(repair.name for repair in made.repairs))
            add_field(response, HEADER, f'rewrote; rules="{names}"')
        visit.delivered = Sent(headers_of(response), made.body)

    def catch_up(self) -> None:
        """Has what has come by read, as far as it was put off."""
        if self._delivery is not None:
            self._delivery.catch_up()

    def end(self, response: http.Response) -> bool:
        """The exchange is over: puts the body that the client got where mitmproxy has none. False: that is not known."""
        visit = self._visit
        if self._added is not None:
            return self._added.done
        if self._delivery is not None:
            self._delivery.settle()
            response.raw_content = visit.delivered.body if visit.delivered is not None else visit.raw_body()
            return True
        if self._held and response.raw_content is None and visit.collected:
            response.raw_content = visit.raw_body()
            return True
        if self._held and response.raw_content is None:
            visit.notes.append("the reply was cut off while it was held to be repaired; what had come of it is lost")
            return True
        return False
