from __future__ import annotations

from collections.abc import Iterator

from wirelint.fixes.calls import item_faults
from wirelint.history.origins import Mangling, manglings
from wirelint.history.pairing import pair, rename, rename_repeats
from wirelint.model import Exchange, Request
from wirelint.rule import Finding, Fix, Fixable, FixPolicy, RequestRule, excerpt
from wirelint.state.ledger import Ledger


class MangledId(RequestRule):
    """The client changed a tool call's id before sending it back.

    ## What it does
    Compares every id in the history with the ids that passed on this wire: equal letters and digits, or an equal call
    (function and arguments) under another id, if only one call of the conversation matches. Exchanges belong to one
    conversation only between one client, host and model, and only if a single earlier exchange matches. Without earlier
    traffic the form of an id is evidence in a few cases: `functionsread0` on a call of `read` was `functions.read:0`;
    `call_…|fc_…` was two ids; `undefined` was none. A result whose id is an altered id of its call is reported too. In a
    history of OpenAI's Responses, ids of items count: `call_…` and `msg_…` cannot name a function call (`fc_…`).

    ## Why is this bad?
    Ids are opaque: a result must carry the id of its call. If the two differ, the API rejects the request or assigns
    the result to the wrong call. Even equal changes on both sides can hurt: Kimi K2 is trained on its own ids, and with
    altered ones in the history it announces calls in words and stops.

    ## Example
    The reply carried `"id": "functions.read:0"`; the next request says `"id": "functionsread0"` on the call and
    `"tool_call_id": "functionsread0"` on its result.

    ## False positives
    Silent on unchanged ids, on well-formed ids of other vendors (clients switch models), on ids that the client made,
    that agree on both sides and that the target accepts (Kimi K2 accepts any, and suffers), on missing ids where the
    API needs none (Gemini, Ollama), on item ids at servers other than OpenAI's that accept them, and on originals that
    the target would refuse (Mistral's nine characters, Anthropic's character set): that change was necessary.

    ## Fix safety
    Safe: the id from the wire, or the only one that the form allows, is restored on the call and its result together. A
    wrong item id is removed. No fix where the original is unknown or another call would share it.

    ## References
    - OpenAI, Function calling: `tool_call_id`; Anthropic, Tool use: `tool_use_id`
    - Moonshot AI, Kimi K2 tool call guidance: `functions.{name}:{index}`
    """

    severity = "warning"
    layer = "client"
    requires_in_request = frozenset({"history"})

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        groups: dict[str, tuple[Finding, list[Mangling]]] = {}
        for found in manglings(exchange, ledger):
            finding = self._report(found, exchange)
            groups.setdefault(finding.message, (finding, []))[1].append(found)
        for finding, group in groups.values():
            restorable = [found for found in group if found.restorable]
            if not restorable:
                yield finding, None
                continue
            first, new = restorable[0], restorable[0].origin.id or ""
            edits = [edit for found in restorable for edit in rename(found.pair, new, exchange.api)]
            if first.place != "result" and first.pair.call.id:
                edits += rename_repeats(pair(request).repeats, {first.pair.call.id: new}, exchange.api)
            title = f"restored `{excerpt(new)}` on the {first.place}"
            record = self.repair("request", "safe", title, first.part.pointer, before=first.given, after=new)
            yield finding, (edits, record)
        yield from item_faults(self, exchange, mixed_up=True)

    def _report(self, found: Mangling, exchange: Exchange) -> Finding:
        origin, place, answer = found.origin, found.place, found.pair.answer
        before = f"`{excerpt(origin.id)}` with {origin.how}" if origin.id else f"no id: {origin.how}"
        name, id_ = excerpt(found.pair.call.name or ""), excerpt(found.given) or "(empty)"
        refused = exchange.status is not None and 400 <= exchange.status < 500
        return self.finding(
            "request",
            f"id `{id_}` of the `{name}` {place} is {before}",
            found.part.pointer,
            severity="error" if refused or (answer is not None and answer.match is not None) else None,
            confidence=origin.certainty,
            fix=Fix("safe", f"restore `{excerpt(origin.id)}` on the {place}")
            if found.restorable and origin.id
            else None,
        )
