"""A rule for the tests of the addon: what stands between « and » is said too quietly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from wirelint.events import Delta, Event
from wirelint.model import Exchange
from wirelint.rule import Edit, Finding, Fix, FixPolicy, RequestFix, RewriteContext, Rewriter, Rule
from wirelint.state.ledger import Ledger

_MURMUR = re.compile("«([^»]*)»")


class Murmur(Rule):
    """Something is said too quietly.

    ## What it does
    Looks for what stands between « and », in the messages of the user and in replies.

    ## Why is this bad?
    Nobody hears it.

    ## Example
    `say «hello» to them`

    ## False positives
    French.

    ## Fix safety
    Unsafe: it is said loudly, without the marks.
    """

    code = "XX901"
    name = "murmur"
    severity = "error"
    layer = "model"

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for message in exchange.request.messages if exchange.request is not None else ():
            if _MURMUR.search(message.text):
                yield self.finding(
                    "request", "a murmur of the user", message.pointer, fix=Fix("unsafe", "say it loudly")
                )

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for choice in exchange.reply.choices if exchange.reply is not None else ():
            if found := _MURMUR.search(choice.text):
                yield self.finding("response", f"a murmur: {found[1]}", fix=Fix("unsafe", "say it loudly"))

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        for message in exchange.request.messages if exchange.request is not None else ():
            if message.role == "user" and _MURMUR.search(message.text):
                loud = _MURMUR.sub(lambda found: found[1].upper(), message.text)
                edits = [Edit("replace", f"{message.pointer}/content", loud)]
                told = self.repair("request", "unsafe", "said it loudly", before=message.text, after=loud)
                yield edits, told

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        return _Loud(self, context) if context.permit.allows(self.code, "unsafe") else None


class _Loud:
    """Holds text from « to »."""

    phase: ClassVar[int] = 3

    def __init__(self, rule: Murmur, context: RewriteContext) -> None:
        self._rule, self._situation = rule, context
        self._waiting: list[Event] = []

    @property
    def held(self) -> int | None:
        if not self._waiting:
            return None
        frame = self._waiting[0].frame
        return frame.number if frame is not None else None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._waiting and not (isinstance(event, Delta) and "«" in event.text):
            return (event,)
        self._waiting.append(event)
        if not isinstance(event, Delta):
            return self.release()
        if "»" not in event.text:
            return ()
        first = self._waiting[0]
        assert isinstance(first, Delta)
        quiet = "".join(waiting.text for waiting in self._waiting if isinstance(waiting, Delta))
        loud = _MURMUR.sub(lambda found: found[1].upper(), quiet)
        self._waiting = []
        repair = self._rule.repair("response", "unsafe", "said it loudly", before=quiet, after=loud)
        self._situation.repairs.append(repair)
        return (first._replace(text=loud),)

    def release(self) -> Iterable[Event]:
        waiting, self._waiting = self._waiting, []
        return waiting
