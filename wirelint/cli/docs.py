"""`wirelint docs`: the generated parts of the documentation, written or checked; a page for each rule."""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from wirelint.capture.offline import check as check_records
from wirelint.capture.readers import Problem, read
from wirelint.cli.guidance import WIDTH, guided
from wirelint.cli.rules import body_text, fix_words, run_example
from wirelint.model import Json
from wirelint.registry import safeties, shipped, summary
from wirelint.rule import Rule
from wirelint.settings import load_rules
from wirelint.view.findings import place, visible
from wirelint.view.paths import Paths, render_path
from wirelint.view.screen import Screen

_WIDTH = 118
"""Columns of printed output in the README."""
_FAMILIES = {
    "AR": "Arguments of calls",
    "FB": "Fabrication",
    "ID": "Ids of calls",
    "LK": "Leaks",
    "MC": "Tool servers (MCP)",
    "PR": "Prompts",
    "ST": "Streams",
    "TC": "Tools and finish reasons",
}


@guided("docs")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if something is out of date.")
def docs(only_check: bool) -> int:
    """Update the generated parts of the documentation."""
    root = shipped("rules").parent
    rules = load_rules().rules
    stale = [(page, made) for page, text, made in _pages(root, rules) if made != text]
    names = {f"{rule.name}.md" for rule in rules} | {"README.md"}
    leftovers = sorted(page for page in (root / "docs" / "rules").glob("*.md") if page.name not in names)
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


def _pages(root: Path, rules: Sequence[Rule]) -> Iterator[tuple[Path, str | None, str]]:
    """Yield every generated page: its path, its text, and the text it should have."""
    main = (root / "README.md", root / "CONTRIBUTING.md")
    for page in main:
        if not page.is_file():
            raise click.ClickException(f"{page}: not there; run this in a checkout")
    for page in (*main, *sorted((root / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        yield page, text, refreshed(text)
    for name, made in rule_pages(rules).items():
        page = root / "docs" / "rules" / name
        yield page, page.read_text(encoding="utf-8") if page.is_file() else None, made


def refreshed(text: str) -> str:
    """Return a page with the parts between `<!-- name -->` and `<!-- /name -->` generated again."""
    for name, make in _PARTS.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin in text and end in text:
            head, rest = text.split(begin, 1)
            text = f"{head}{begin}\n{make()}\n{end}{rest.split(end, 1)[1]}"
    return text


def _options() -> str:
    from wirelint.addon.options import OPTIONS

    rows = ["| option | default | what it does |", "|---|---|---|"]
    for option in OPTIONS:
        default = f"`{option.default}`" if option.default else "none"
        rows.append(f"| `{option.name}` | {default} | {option.help} |")
    return "\n".join(rows)


def _commands() -> str:
    from wirelint.cli import COMMANDS

    rows = [f"| [`wirelint {name}`](#wirelint-{name}) | {entry.about} |" for name, entry in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def _help() -> str:
    """Return the help page of each command."""
    from wirelint.cli import COMMANDS, cli, command

    parent = cli.make_context("wirelint", [], resilient_parsing=True, terminal_width=WIDTH)
    pages = []
    for name in COMMANDS:
        made = command(name)
        context = made.make_context(name, [], parent=parent, resilient_parsing=True)
        pages += [f"## wirelint {name}\n", "```text", click.unstyle(made.get_help(context)), "```\n"]
    return "\n".join(pages).rstrip()


def _path() -> str:
    """Return the output of `wirelint show captures/samples/one-call.jsonl ask --path`."""
    file = shipped("rules").parent / "captures" / "samples" / "one-call.jsonl"
    items = [item for item in check_records(read([str(file)]), load_rules().rules) if not isinstance(item, Problem)]
    out = io.StringIO()
    console = Screen(out, width=_WIDTH)
    for one in Paths(items).of_exchange("ask"):
        console.print(render_path(one))
    lines = (line.rstrip() for line in out.getvalue().strip().splitlines())
    return "\n".join(("```", *lines, "```"))


_PARTS: dict[str, Callable[[], str]] = {
    "options": _options,
    "commands": _commands,
    "help": _help,
    "path": _path,
}


# --- pages of rules ---------------------------------------------------------------------------------------------------


def rule_pages(rules: Sequence[Rule]) -> dict[str, str]:
    """Return the pages by file name: one for each rule, and the list of rules."""
    return {**{f"{rule.name}.md": _page(rule) for rule in rules}, "README.md": _index(rules)}


def _index(rules: Sequence[Rule]) -> str:
    lines = ["# The rules", ""]
    lines += [
        "Each rule has a page: what it finds, why that is bad, an example, when it stays silent, what its fix does."
    ]
    lines += ["`wirelint rule NAME` prints the page in a terminal. *Safe* and *unsafe* fixes are explained under"]
    lines += ["[Repair traffic](../fixes.md); rules without a fix only report."]
    for prefix in dict.fromkeys(rule.code[:2] for rule in rules):
        lines += ["", f"## {_FAMILIES.get(prefix, prefix)}", ""]
        lines += ["| code | rule | severity | layer | fix | what is wrong |", "|---|---|---|---|---|---|"]
        for rule in (rule for rule in rules if rule.code[:2] == prefix):
            cells = rule.code, f"[`{rule.name}`]({rule.name}.md)", rule.severity, rule.layer, fix_words(rule)
            lines.append(f"| {' | '.join(cells)} | {summary(rule)} |")
    return "\n".join(lines) + "\n"


def _page(rule: Rule) -> str:
    head, _, manual = (inspect.getdoc(rule) or "").partition("\n")
    fix = ", ".join(safeties(rule)) or "none (suggestion)"
    facts = f"{rule.code} · {rule.severity} · layer: {rule.layer} · fix: {fix}"
    commands = (
        f"wirelint check captures/ --select {rule.name}",
        f"wirelint check captures/ --ignore {rule.name}",
        f"wirelint rule {rule.name}",
    )
    lines = [f"# {rule.name}", "", facts, "", head, "", manual.strip(), ""]
    lines += [*_example(rule, "Fires on", rule.example.fires), *_example(rule, "Silent on", rule.example.silent)]
    lines += ["## Use", "", "```sh", *commands, "```", "", "[All rules](README.md)"]
    return "\n".join(lines).rstrip() + "\n"


def _example(rule: Rule, title: str, record: Mapping[str, Json]) -> Iterator[str]:
    example = run_example(rule, record)
    yield from (f"## {title}", "")
    for side, body in example.bodies:
        language, text = body_text(body)
        text = visible(text.strip("\n")) if language == "text" else text
        longest = max(map(len, re.findall("`+", text)), default=0)  # a fence must be longer than any run of backquotes
        fence = "`" * max(3, longest + 1)
        yield from (f"{side.capitalize()}:", "", f"{fence}{language}", text, fence, "")
    yield from [f"- {one.message} ({one.layer}; {place(one)})" for one in example.findings] or ["Nothing is found."]
    yield ""
