"""Fixes of one HTTP exchange in transit: which messages are fixed, and how.

A request is complete in its hook and is fixed there. A JSON reply to a request without streaming is buffered by
mitmproxy and fixed in its hook, so that its header can name the fixes. Every other reply is fixed by its `HttpReply`
while it streams. Not fixed: error replies, unknown content codings, bodies above the limit, and streams that another
addon rewrites.

Checks use the received messages: the client's request and the upstream's reply. The fix of a reply continues the
*forwarded* request, because its ids are the upstream's own (restored where a client had mangled them) and new ids
follow their form. Ids of the client's request count as used too, since a new id appears next to them in the next
request."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from mitmproxy import http

from wirelint.addon.mcp_streams import BatchAnswers, McpStreams
from wirelint.addon.options import Settings
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.streamed_reply import (
    CUT_OFF,
    HEADER,
    HttpReply,
    Stream,
    collect,
    is_decodable,
    is_json,
    is_plainly_framed,
    is_signed,
    is_within,
    replace_body,
)
from wirelint.apis import channel_of
from wirelint.capture.readers.flows import headers_of
from wirelint.capture.record import Sent
from wirelint.fix import AppliedFix, Edit
from wirelint.model import Exchange, Json
from wirelint.rewrite import ReplyStream, rewrite_reply
from wirelint.rewrite.edits import apply
from wirelint.rewrite.request import Mended, answer_request, mend_request
from wirelint.settings import Scope
from wirelint.state.ledger import Ledger

_GOOD = (200, 201, 202, 203)
"""Statuses whose body is the complete reply: 204 and 205 have no body, and that of 206 is a part."""


def mended_request(recorder: ExchangeRecorder, scope: Scope, ledger: Ledger) -> Mended | None:
    """Return the repaired request of an exchange, None if it is unchanged. Failures go to the recorder."""
    session, body = recorder.session, recorder.request_body
    if session is None or session.request is None or not body:
        return None
    mended = mend_request(session.head(), body, scope.rules, ledger, scope.permit)
    recorder.faults += mended.faults
    return mended if mended.body != body else None


def reply_stream_of(recorder: ExchangeRecorder, scope: Scope, settings: Settings, ledger: Ledger) -> ReplyStream | None:
    """Return the repair of a streamed reply whose head has arrived, None if nothing may repair it."""
    session = recorder.session
    if session is None or not recorder.is_readable or recorder.is_unread:
        return None
    hold = settings.hold * 1000
    return ReplyStream.begin(session, scope.rules, ledger, scope.permit, hold, recorder.sent_request)


class ExchangeFixer:
    """Fixer of one exchange, if its `scope` allows fixes. No method raises."""

    def __init__(self, recorder: ExchangeRecorder, settings: Settings, ledger: Ledger, streams: McpStreams) -> None:
        self._recorder, self._flow, self._settings = recorder, recorder.flow, settings
        self._scope, self._ledger, self._streams = settings.rules.default, ledger, streams
        self._reply: HttpReply | None = None
        self._added: BatchAnswers | None = None
        self.blocks = settings.policies

    def begin(self) -> bool:
        """Fix the request before it is forwarded. Return False if nothing may be fixed in this exchange."""
        with self._recorder.caught("finding the settings of the exchange", readable=True):
            self._scope = self._recorder.scope()
            if self._scope.repairs:
                with self._recorder.caught("repairing the request", readable=True):
                    self._fix_request()
                return True
        return False

    # --- requests -----------------------------------------------------------------------------------------------------

    def _fix_request(self) -> None:
        recorder, request = self._recorder, self._flow.request
        session = recorder.session
        if session is None or self._answer(session.head()):
            return
        mended = mended_request(recorder, self._scope, self._ledger)
        if mended is None:
            return
        if not is_decodable(request, recorder.limit):
            recorder.notes.append("the request does not match its content-encoding; it was not repaired")
        elif is_signed(request):
            recorder.notes.append("a header signs the body of the request; it was not repaired")
        else:
            replace_body(request, mended.body)
            recorder.forward(headers_of(request), mended)

    def _answer(self, head: Exchange) -> bool:
        """Answer a request that must not be sent. Return True if it was answered."""
        recorder, settings = self._recorder, self._settings
        answered = answer_request(head, self._scope.rules, self._ledger, self._scope.permit)
        recorder.faults += answered.faults
        if answered.answer is None:
            return False
        document, repair, edits, status = answered.answer
        fields = {"content-type": "application/json"}
        if settings.header:
            fields[HEADER] = f'answered; rules="{repair.name}"'
        note = "the request was not sent; the reply is wirelint's own"
        if edits:
            return self._answer_in_part(document, repair, edits)
        takes_json = "application/json" in self._flow.request.headers.get("accept", "") or isinstance(document, list)
        if takes_json or channel_of(head.api) == "model":
            self._flow.response = http.Response.make(status, orjson.dumps(document), fields)
        elif self._streams.answer(head, document):
            self._flow.response = http.Response.make(202, b"Accepted", {**fields, "content-type": "text/plain"})
            note = "the request was not sent; the answer on the stream of its session is wirelint's own"
        else:
            recorder.notes.append("the call should be blocked, but was sent: the stream of its session was not found")
            return False
        recorder.notes.append(note)
        recorder.note_fixes((repair,))
        return True

    def _answer_in_part(self, document: Json, repair: AppliedFix, edits: Sequence[Edit]) -> bool:
        """Send the allowed messages of a batch; the reply gets the answers to the others."""
        recorder, request = self._recorder, self._flow.request
        if not is_decodable(request, recorder.limit) or is_signed(request):
            recorder.notes.append("the call should be blocked, but was sent: the batch cannot be changed")
            return False
        body = apply(recorder.request_body or b"", edits)
        replace_body(request, body)
        recorder.forwarded = Sent(headers_of(request), body)
        recorder.note_fixes((repair,))
        self._added = BatchAnswers(recorder, document if isinstance(document, list) else [document])
        return True

    # --- replies ------------------------------------------------------------------------------------------------------

    def ready(self, response: http.Response, reply: HttpReply, before: bool | Stream) -> None:
        """Prepare the fix of a reply whose head has arrived. `before`: its stream setting without wirelint."""
        recorder, settings = self._recorder, self._settings
        with recorder.caught("preparing the repair of the reply", readable=True):
            if self._added is not None:
                self._added.begin(self._flow.request, response)
            elif not self._is_repairable(response):
                pass
            elif callable(before):
                recorder.notes.append("another addon rewrites this reply while it streams; it was not repaired")
            elif not before and self._is_document(response):
                response.stream, recorder.is_held = False, True
                collect(recorder)
            elif (stream := reply_stream_of(recorder, self._scope, settings, self._ledger)) is not None:
                reply.begin_repair(stream, f"fix={self._scope.permit.most}" if settings.header else "")
                self._reply = reply
            return
        response.stream = reply  # it passes as it comes

    def _is_repairable(self, response: http.Response) -> bool:
        recorder = self._recorder
        if recorder.session is None or channel_of(recorder.session.api.name) != "model":
            return False  # replies of tool servers are forwarded unchanged
        good = response.status_code in _GOOD and is_plainly_framed(recorder.session.reply_headers)
        return good and recorder.is_readable and not recorder.is_unread

    def _is_document(self, response: http.Response) -> bool:
        """Return True if the reply is a JSON document that may be buffered: not streamed, and within the limit."""
        session = self._recorder.session
        if session is None or session.request is None or session.request.stream or not is_json(response):
            return False
        return "content-length" not in response.headers or is_within(response, self._recorder.limit)

    def response(self, response: http.Response) -> None:
        with self._recorder.caught("repairing the reply"):
            if self._added is not None:
                self._added.response(response)
            elif not response.stream and response.raw_content and self._is_repairable(response):
                self._rewrite(response)

    def _rewrite(self, response: http.Response) -> None:
        recorder, settings = self._recorder, self._settings
        pieces = recorder.take_queued()
        if recorder.is_unread or recorder.session is None:
            return
        if not recorder.decoded_to_its_end:
            recorder.notes.append(f"{CUT_OFF}; it was not repaired")
            for piece, at in pieces:
                recorder.session.feed(piece, at)
            return
        plain = b"".join(piece for piece, _ in pieces)
        chunks = tuple((at, len(piece)) for piece, at in pieces if at is not None)
        made = rewrite_reply(
            recorder.session,
            plain,
            self._scope.rules,
            self._ledger,
            self._scope.permit,
            chunks=chunks,
            longest_hold=settings.hold * 1000,
            request=recorder.sent_request,
        )
        recorder.faults += made.faults
        recorder.must_reread = recorder.must_reread or bool(made.faults)
        recorder.notes += made.notes
        if made.body == plain:
            return
        replace_body(response, made.body)
        recorder.note_fixes(made.repairs)
        if settings.header:
            names = ", ".join(dict.fromkeys(repair.name for repair in made.repairs))
            response.headers.add(HEADER, f'rewrote; rules="{names}"')
        recorder.delivered = Sent(headers_of(response), made.body)

    def end(self, response: http.Response) -> bool:
        """Set the flow's body to the one that the client received. Return False if that is unknown here."""
        recorder = self._recorder
        if self._added is not None:
            return self._added.done
        if self._reply is not None:
            self._reply.settle(headers_of(response), "the exchange ended")
            response.raw_content = recorder.delivered.body if recorder.delivered is not None else recorder.raw_body()
            return True
        if recorder.is_held and not recorder.is_collected and response.raw_content is None:
            recorder.notes.append("the reply broke off while it was held for a repair; its bytes are lost")
            return True
        return False


def finish_body(recorder: ExchangeRecorder) -> None:
    """Complete the recorder from the flow's reply, and set the flow's body. Never raises."""
    response, fixer = recorder.flow.response, recorder.fixer
    if response is None:
        return
    with recorder.caught("reading the reply"):
        if recorder.status is None:
            recorder.respond(response.status_code, headers_of(response))
        if fixer is not None and fixer.end(response):
            return
        ours = recorder.is_collected or isinstance(response.stream, HttpReply)
        if response.raw_content is None and recorder.is_empty and not ours:
            recorder.mark_unread("another addon took the stream over; the reply passed unread")
        elif response.raw_content is None:
            # The client got the received bytes. mitmproxy has kept no body to show, filter or save, so set it.
            response.raw_content = recorder.raw_body()
        elif recorder.is_empty:
            recorder.settle_body(response.raw_content)
