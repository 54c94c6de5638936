"""Tool calls in the native markup of a model family, as they look when a serving engine fails to convert them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources

from wirelint.mock.plan import Call, dump_json

_FORMS: dict[str, dict[str, str]] = tomllib.loads(
    resources.files(__package__).joinpath("markup.toml").read_text(encoding="utf-8")
)


def _write(form: dict[str, str], calls: Sequence[Call]) -> str:
    written = form.get("join", "").join(_write_call(form, number, call) for number, call in enumerate(calls))
    return form.get("whole", "{calls}").format(calls=written)


def _write_call(form: dict[str, str], number: int, call: Call) -> str:
    parameters = "".join(
        form.get("parameter", "").format(name=name, value=value if isinstance(value, str) else dump_json(value))
        for name, value in call.members.items()
    )
    return form["call"].format(
        name=call.name,
        quoted=dump_json(call.name),
        arguments=call.arguments,
        parameters=parameters,
        # A Kimi reply has native ids already.
        native=call.id if call.id.startswith("functions.") else f"functions.{call.name}:{number}",
    )


MARKUP: dict[str, Callable[[Sequence[Call]], str]] = {name: partial(_write, form) for name, form in _FORMS.items()}
"""Dialect name -> a function that writes healthy calls in its markup."""
