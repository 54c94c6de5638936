from __future__ import annotations

from collections.abc import Iterator

from wirelint.arguments.argument_faults import claims_complete
from wirelint.arguments.argument_repairs import coerce_types
from wirelint.arguments.schemas import validator
from wirelint.fixes.arguments import CoerceTypes
from wirelint.jsonvalues import mapping
from wirelint.model import Exchange, Request, Tool
from wirelint.rule import REDACTED, Finding, RewriteContext, Rewriter, Rule
from wirelint.state.ledger import Ledger
from wirelint.text.pointers import at

_SHOWN = 3


class SchemaViolation(Rule):
    """The arguments of a call violate the declared schema.

    ## What it does
    Validates the arguments of every call against the JSON Schema of its tool and reports violations: a missing
    parameter, a wrong type, a value outside an enumeration, an unknown parameter under `additionalProperties: false`.

    ## Why is this bad?
    Clients that validate refuse the call; others pass the tool a value that it cannot use. A provider that was asked
    for `strict` output and violates the schema has a broken decoder.

    ## Example
    `{"name":"read","arguments":"{\\"path\\":\\"a.py\\",\\"limit\\":\\"20\\"}"}` where `limit` is declared as an integer.

    ## False positives
    Silent on tools without a schema, on schemas that do not compile or refer elsewhere, and on cut-off replies.
    `format` is not checked; OpenAPI's `nullable` is. Arguments that are no object are `invalid-json-arguments`.

    ## Fix safety
    Unsafe: types are coerced (`"20"` to 20, `"null"` to null), and arguments move out of a parameter that the schema
    lacks (`{"arguments": {…}}`), if that alone makes them valid. Nothing else is added, removed or chosen.

    ## References
    - JSON Schema, Validation vocabulary
    - Moonshot AI, K2 Vendor Verifier: schema accuracy
    """

    severity = "warning"
    layer = "model"
    requires_in_reply = frozenset({"calls"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None:
            return
        for choice, call in exchange.calls:
            tool, arguments = request.tool(call.name) if call.form != "custom" else None, call.arguments.mapping
            if tool is None or tool.hosted or arguments is None or not claims_complete(exchange, choice, call):
                continue
            schema = validator(tool)
            violations = schema.violations(arguments) if schema is not None else ()
            # Redaction replaced a value, so whether the original was valid is unknown.
            if schema is None or not violations or REDACTED in call.arguments.text:
                continue
            strict = _is_strict(tool, request)
            shown = [f"{found.where}: {found.words}" if found.where else found.words for found in violations[:_SHOWN]]
            more = f"; and {len(violations) - _SHOWN} more" if len(violations) > _SHOWN else ""
            message = f"{tool.name}: {'; '.join(shown)}{more}{', though strict output was asked for' if strict else ''}"
            fix = coerce_types(call, tool, schema)
            yield self.finding("response", message, call, layer="gateway" if strict else None, fix=fix)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        return CoerceTypes(self, context)


def _is_strict(tool: Tool, request: Request) -> bool:
    """Return True if the request asks for strict decoding of this schema (`strict`; Cohere's `strict_tools`)."""
    if request.body.get("strict_tools") is True:
        return True
    declared = mapping(at(request.body, tool.pointer))
    inner = (declared, mapping(declared.get("function")), mapping(declared.get("toolSpec")))
    return any(one.get("strict") is True for one in inner)
