"""What the shell completes beyond commands and options: rules, captures, the exchanges in one."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from wirelint.registry import shipped

_MOST = 500
"""Exchanges of a capture that are looked through; the user waits meanwhile."""


def rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of rules, and codes where one was begun; the last of several with commas between."""
    before, comma, begun = incomplete.rpartition(",")
    given = set(before.split(","))
    words = [
        (name, code) if not begun[:1].isupper() else (code, name) for code, name in _shipped() if name not in given
    ]
    words.append(("ALL", "every rule"))
    return [CompletionItem(f"{before}{comma}{word}", help=about) for word, about in words if word.startswith(begun)]


def paths(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and folders, which the shell knows best."""
    return [CompletionItem(incomplete, type="file")]


def exchanges(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids in the capture that the first argument names."""
    target = ctx.params.get("target")
    if not isinstance(target, str) or not Path(target).exists():
        return []
    # Whatever is wrong with a capture is told by the command; here it would stand in the middle of a line.
    with contextlib.suppress(Exception):
        return [CompletionItem(name) for name in dict.fromkeys(_ids(target)) if name.startswith(incomplete)]
    return []


def _ids(target: str) -> Iterator[str]:
    from wirelint.capture.readers import Problem, read

    for item in itertools.islice(read([target]), _MOST):
        if not isinstance(item, Problem):
            yield item.id


def _shipped() -> Iterator[tuple[str, str]]:
    """Code and name of each shipped rule, by the name of its file: none has to be loaded for that."""
    for path in sorted(shipped("rules").glob("[a-z][a-z][0-9][0-9][0-9]_*.py")):
        code, _, name = path.stem.partition("_")
        yield code.upper(), name.replace("_", "-")
