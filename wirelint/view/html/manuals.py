"""The manuals of rules as HTML. They come from docstrings, never from the wire; HTML in them is shown as text."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

from wirelint.rule import Rule

_MARKDOWN = MarkdownIt("commonmark", {"html": False})


class Manual(NamedTuple):
    code: str
    name: str
    html: Markup


def manuals(rules: Iterable[Rule], codes: Iterable[str]) -> list[Manual]:
    """The manuals of the rules that have these codes."""
    wanted = set(codes)
    return [
        Manual(rule.code, rule.name, Markup(_MARKDOWN.render(inspect.getdoc(rule) or "")))
        for rule in rules
        if rule.code in wanted
    ]
