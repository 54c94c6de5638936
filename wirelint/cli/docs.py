"""`wirelint docs`: the generated parts of the documentation, written or checked."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.cli.guidance import guided
from wirelint.cli.rule_pages import rule_pages
from wirelint.cli.selection import fixes, load
from wirelint.registry import shipped, summary
from wirelint.view.paths import Paths, path
from wirelint.view.screen import Screen

_WIDTH = 118
"""Columns of what stands in the README as it is printed."""


def _rule_table() -> str:
    rows = ["| code | name | severity | layer | fix | what is wrong |", "|---|---|---|---|---|---|"]
    for rule in load().rules:
        name = f"[`{rule.name}`](docs/rules/{rule.name}.md)"
        rows.append(f"| {rule.code} | {name} | {rule.severity} | {rule.layer} | {fixes(rule)} | {summary(rule)} |")
    return "\n".join(rows)


def _options() -> str:
    from wirelint.addon.options import OPTIONS

    rows = ["| option | default | what it does |", "|---|---|---|"]
    for option in OPTIONS:
        default = f"`{option.default}`" if option.default else "none"
        rows.append(f"| `{option.name}` | {default} | {option.help} |")
    return "\n".join(rows)


def _commands() -> str:
    from wirelint.cli import _COMMANDS

    return "\n".join(
        [
            "| command | what it does |",
            "|---|---|",
            *(f"| `wirelint {name}` | {text} |" for name, text in _COMMANDS.items()),
        ]
    )


def _path() -> str:
    """What `wirelint show captures/samples/one-call.jsonl ask --path` prints."""
    file = shipped("rules").parent / "captures" / "samples" / "one-call.jsonl"
    items = [item for item in judge(read([str(file)]), load().rules) if not isinstance(item, Problem)]
    out = io.StringIO()
    console = Screen(out, width=_WIDTH)
    for one in Paths(items).of_exchange("ask"):
        console.print(path(one))
    lines = (line.rstrip() for line in out.getvalue().strip().splitlines())
    return "\n".join(("```", *lines, "```"))


_PARTS: dict[str, Callable[[], str]] = {
    "rules": _rule_table,
    "options": _options,
    "commands": _commands,
    "path": _path,
}


def refreshed(text: str) -> str:
    """A page with every generated part between its `<!-- name -->` and `<!-- /name -->` made anew."""
    for name, make in _PARTS.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin in text and end in text:
            head, rest = text.split(begin, 1)
            tail = rest.split(end, 1)[1]
            text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


def _pages(root: Path) -> Iterator[tuple[Path, str | None, str]]:
    """Every page that is generated, in part or as a whole: its place, its text as it stands, and as it should be."""
    for page in (root / "README.md", root / "CONTRIBUTING.md"):
        if not page.is_file():
            raise click.ClickException(f"{page}: not there; run this in a checkout")
    for page in (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        yield page, text, refreshed(text)
    for name, made in rule_pages(load().rules).items():
        page = root / "docs" / "rules" / name
        yield page, page.read_text(encoding="utf-8") if page.is_file() else None, made


def _leftovers(root: Path) -> list[Path]:
    """Pages of rules that are no more."""
    names = {f"{rule.name}.md" for rule in load().rules} | {"README.md"}
    return sorted(page for page in (root / "docs" / "rules").glob("*.md") if page.name not in names)


@guided(
    examples=(
        ("write them", "wirelint docs"),
        ("only say whether they are up to date", "wirelint docs --check"),
    ),
    exits={0: "up to date, or written", 1: "out of date (with --check)", 2: "this is no checkout"},
)
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 when something is out of date.")
def docs(only_check: bool) -> int:
    """Bring the generated parts of the documentation up to date."""
    root = shipped("rules").parent
    stale = [(page, made) for page, text, made in _pages(root) if made != text]
    leftovers = _leftovers(root)
    for page in [*(page for page, _ in stale), *leftovers]:
        name = page.relative_to(root)
        click.echo(f"{name} is out of date; run `make docs`" if only_check else f"wrote {name}")
    if only_check:
        return 1 if stale or leftovers else 0
    for page, made in stale:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(made, encoding="utf-8")
    for page in leftovers:
        page.unlink()
    return 0
