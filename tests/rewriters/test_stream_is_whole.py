"""A stream that was repaired says, once it is put together, what the same reply says that came whole and was repaired."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pytest

from tests.build import APIS, REGISTRY
from tests.rewriters.drive import Result, run
from tests.rules.case import Fires, Silent, expand

# What only one of the two forms can have, or where text had gone out before it was known for what it was.
DIFFERENT: dict[str, str] = {
    "control-token-leak-both sides of a dialogue": "tokens that people write too are told by what follows, much later",
    "control-token-leak-Kimi's beginning": "the other half of the pair may come yet, and then both are spoken of",
}


def _pairs() -> list[Any]:
    pairs = []
    for rule in REGISTRY.rules:
        module = importlib.import_module(f"tests.rules.{rule.name.replace('-', '_')}")
        for kind in ("FIRES", "SILENT"):
            for id_, case in getattr(module, kind).items():
                wrapped = case if isinstance(case, Fires | Silent) else (Fires if kind == "FIRES" else Silent)(case)
                for api in APIS:
                    forms = [form for form in ((api, False), (api, True)) if form in wrapped.forms]
                    runs = [records for label, records in expand(wrapped.case, forms) if label]
                    if len(runs) == 2:
                        name = f"{rule.name}-{id_}"
                        reason = DIFFERENT.get(f"{name} {api}") or DIFFERENT.get(name)
                        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                        pairs.append(pytest.param(*runs, id=f"{name} {api}", marks=marks))
    return pairs


@pytest.mark.parametrize(("whole", "streamed"), _pairs())
def test_streamed_is_whole(whole: list[Mapping[str, Any]], streamed: list[Mapping[str, Any]]) -> None:
    one, other = run(whole), run(streamed)
    assert not one.faults
    assert not other.faults
    assert _assembled(one) == _assembled(other)


def _assembled(result: Result) -> list[tuple[Any, ...]]:
    reply = result.after.reply
    return [
        (
            choice.text.strip(),
            choice.reasoning.strip(),
            [(call.id, call.name, call.arguments.value, call.arguments.rest) for call in choice.calls],
            choice.finish_reason,
        )
        for choice in (reply.choices if reply is not None else ())
    ]
