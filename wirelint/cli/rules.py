"""`wirelint rules`, `rule`, `new-rule`, `where`, `docs` and `completion`: the catalogue, a manual, the draft of a rule,
paths, the generated parts of the documentation, the script that completes commands."""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import get_args

import click
import orjson
from click.shell_completion import get_completion_class
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from wirelint.cli import WIDTH, guided, help_texts
from wirelint.cli.options import Selection
from wirelint.jsonvalues import mapping, mappings
from wirelint.model import Json, Layer
from wirelint.registry import page_url, safeties, shipped, summary
from wirelint.rule import SEVERITIES, Finding, Rule
from wirelint.settings import load_rules
from wirelint.view.findings import MARKS, STYLES, place, visible
from wirelint.view.screen import Screen, hung, in_columns

_TITLES = ("code", "name", "severity", "layer", "fix")
_SUMMARY_WIDTH = 60
_LAYERS = [layer for layer in get_args(Layer) if layer != "wirelint"]
_TEMPLATES = Path(__file__).with_name("templates")
_SHELLS = ("bash", "zsh", "fish")
_WIDTH = 118
"""Columns of printed output in the README."""


def fix_words(rule: Rule) -> str:
    """Return the safety of a rule's fixes, for tables; `none` if the rule only reports."""
    return ", ".join(safeties(rule)) or "none"


@guided("rules")
def rules(selection: Selection, output_format: str) -> None:
    """List the rules, each with a summary."""
    chosen = selection.outlines()
    if output_format == "json":
        rows = []
        for rule in chosen:
            severity = rule.graded or rule.severity
            names = {"code": rule.code, "name": rule.name, "severity": severity, "layer": rule.layer}
            rows.append({**names, "fixes": list(safeties(rule)), "summary": summary(rule)})
        click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    console = Screen(sys.stdout)
    console.print_lines(_lines(chosen, console.width))


def _lines(rules: Sequence[Rule], width: int) -> Iterator[Text]:
    """Yield a line per rule; on a narrow terminal the summary is below it."""
    rows = [[Text(title, "dim") for title in _TITLES]]
    for rule in rules:
        severity = rule.graded or rule.severity
        cells = Text(rule.code), Text(rule.name, "bold"), Text(severity, STYLES[severity]), rule.layer, fix_words(rule)
        rows.append([Text(cell) if isinstance(cell, str) else cell for cell in cells])
    room = sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))
    texts = [Text("what is wrong", "dim"), *(Text(summary(rule)) for rule in rules)]
    if width >= room + _SUMMARY_WIDTH:
        for line in in_columns([*row, text] for row, text in zip(rows, texts, strict=True)):
            yield from hung(line, width, 0, room)
        return
    for number, (line, text) in enumerate(zip(in_columns(rows), texts, strict=True)):
        yield line
        yield from hung(Text(text.plain, "dim"), width, max(len(row[0]) for row in rows) + 2) if number else ()


def run_example(rule: Rule, record: Mapping[str, Json]) -> tuple[list[tuple[str, Json]], Sequence[Finding]]:
    """Run a rule on an example, after its `prior` exchanges. Return the bodies with their sides, and the findings."""
    from wirelint.capture.format import decode
    from wirelint.capture.offline import check_record
    from wirelint.engine import Engine  # 0.3 s, which the catalogue does not need

    engine = Engine([rule])
    bodies: list[tuple[str, Json]] = []
    findings: Sequence[Finding] = ()
    for one in (*(prior for _, prior in mappings(record.get("prior"))), record):
        findings = check_record(decode(dict(one), "example", "1"), engine).findings
        said = ((side, mapping(one.get(side)).get("body")) for side in ("request", "response"))
        bodies += [(side, body) for side, body in said if body is not None]
    return bodies, findings


def body_text(body: Json) -> tuple[str, str]:
    """Return the language of a body, `json` or `text`, and its text."""
    try:
        document = orjson.loads(body) if isinstance(body, str) else body
    except orjson.JSONDecodeError:
        return "text", str(body)
    return "json", orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


@guided("rule")
def rule(name: str, folders: tuple[Path, ...], markdown: bool) -> None:
    """Print the manual of a rule, by name (xml-leak) or code (LK101), with examples that are run now."""
    found = load_rules(folders).get(name)
    manual = inspect.getdoc(found) or ""
    if markdown:
        click.echo(f"# {found.name} ({found.code})\n\n{manual}")
        return
    from rich.markdown import Markdown

    console = Screen(sys.stdout)
    style = STYLES[found.severity]
    head = Text.assemble((f"{found.code} {found.name}", "bold"), (f"  {found.severity}", style), f" · {found.layer}")
    head.append(f" · fix: {', '.join(safeties(found)) or 'none (suggestion)'}")
    console.print(head, Markdown(manual), Text())
    console.print(_example(found, "Fires on", found.example.fires), _example(found, "Silent on", found.example.silent))
    if page := page_url(found.name):
        console.print(Text.assemble("This manual on the web: ", (page, f"blue link {page}")))


def _example(rule: Rule, title: str, record: Mapping[str, Json]) -> Group:
    from rich.syntax import Syntax

    bodies, findings = run_example(rule, record)
    shown = []
    for _, body in bodies:
        language, text = body_text(body)
        source = Syntax(text.strip(), language, theme="ansi_dark", word_wrap=True, background_color="default")
        shown.append(Padding(source, (0, 0, 0, 2)))
    texts = [
        Text(f"{MARKS[finding.severity]} {finding.message}\n  at {place(finding)}", STYLES[finding.severity])
        for finding in findings
    ]
    found = (Padding(text, (0, 0, 1, 2)) for text in texts or [Text("✓ nothing found", "green")])
    return Group(Text(title, "bold"), *shown, *found)


@guided("new-rule", severity={"choices": SEVERITIES}, layer={"choices": _LAYERS})
def new_rule(code: str, name: str, severity: str, layer: str, folder: Path | None) -> None:
    """Write the first draft of a rule.

    The draft is a working rule with a manual, an example and cases; replace these with your own.
    """
    if not re.fullmatch(r"[A-Z]{2}\d{3}", code):
        raise click.ClickException(f"code {code!r}: write two capitals and three digits, as in XX901")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise click.ClickException(f"name {name!r}: write small letters and hyphens, as in shouting-reply")
    for rule in load_rules().rules:
        if rule.code == code or rule.name == name:
            raise click.ClickException(f"{code} {name}: {rule.code} {rule.name} exists already; choose others")
    snake = name.replace("-", "_")
    title, words = "".join(part.capitalize() for part in name.split("-")), name.replace("-", " ")
    values = {"code": code, "name": name, "snake": snake, "title": title, "words": words}
    home = folder or shipped("rules")
    if folder is None and not (home.parent / "tests").is_dir():
        raise click.ClickException("not a checkout: name a folder for your rule, as in --folder my-rules")
    for suffix, template in ((".py", "rule.txt"), (".json", "cases.txt")):
        text = Template((_TEMPLATES / template).read_text(encoding="utf-8"))
        _write(home / f"{code.lower()}_{snake}{suffix}", text.substitute(values, severity=severity, layer=layer))
    using = f"wirelint check --rules {folder} …" if folder else f"make test, or pytest tests/rules -k {name}"
    click.echo(f"edit both files, then run: {using}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise click.ClickException(f"{path}: exists already; nothing was overwritten") from error
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}; name a writable folder with --folder") from error
    click.echo(f"wrote {path}")


@guided("where")
def where(what: str) -> None:
    """Print the path of the addon script, of the shipped rules, or of the captures folder."""
    match what:
        case "addon":
            click.echo(shipped("addons") / "inspector.py")
        case "rules":
            click.echo(shipped("rules"))
        case _:
            click.echo(Path("captures").resolve())


# --- generated pages ------------------------------------------------------------------------------------------------


@guided("docs")
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
    for name, made in (*((f"{rule.name}.md", _manual_page(rule)) for rule in rules), ("README.md", _index(rules))):
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

    rows = [(f"`{one.name}`", f"`{one.default}`" if one.default else "none", one.help) for one in OPTIONS]
    return "\n".join(_markdown(("option", "default", "what it does"), rows))


def _commands() -> str:
    from wirelint.cli import COMMANDS

    rows = [(f"[`wirelint {name}`](#wirelint-{name})", entry.about) for name, entry in COMMANDS.items()]
    return "\n".join(_markdown(("command", "what it does"), rows))


def _markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _help() -> str:
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
    from wirelint.capture.offline import check as check_records
    from wirelint.capture.readers import Problem, read
    from wirelint.view.paths import Paths, render_path

    file = shipped("rules").parent / "captures" / "samples" / "one-call.jsonl"
    items = [item for item in check_records(read([str(file)]), load_rules().rules) if not isinstance(item, Problem)]
    out = io.StringIO()
    console = Screen(out, width=_WIDTH)
    for one in Paths(items).all():
        if one.exchange == "ask":
            console.print(render_path(one))
    lines = (line.rstrip() for line in out.getvalue().strip().splitlines())
    return "\n".join(("```", *lines, "```"))


_PARTS: dict[str, Callable[[], str]] = {"options": _options, "commands": _commands, "help": _help, "path": _path}


def _index(rules: Sequence[Rule]) -> str:
    lines = [
        "# The rules",
        "",
        "Each rule has a page: what it finds, why that is bad, an example, when it stays silent, what its fix does.",
        "`wirelint rule NAME` prints the page in a terminal. *Safe* and *unsafe* fixes are explained under",
        "[Repair traffic](../fixes.md); rules without a fix only report.",
    ]
    families: dict[str, str] = help_texts()["families"]
    for prefix in dict.fromkeys(rule.code[:2] for rule in rules):
        rows = [
            (one.code, f"[`{one.name}`]({one.name}.md)", one.severity, one.layer, fix_words(one), summary(one))
            for one in rules
            if one.code[:2] == prefix
        ]
        titles = ("code", "rule", "severity", "layer", "fix", "what is wrong")
        lines += ["", f"## {families.get(prefix, prefix)}", "", *_markdown(titles, rows)]
    return "\n".join(lines) + "\n"


def _manual_page(rule: Rule) -> str:
    head, _, manual = (inspect.getdoc(rule) or "").partition("\n")
    fix = ", ".join(safeties(rule)) or "none (suggestion)"
    facts = f"{rule.code} · {rule.severity} · layer: {rule.layer} · fix: {fix}"
    commands = [
        f"wirelint {one} {rule.name}" for one in ("check captures/ --select", "check captures/ --ignore", "rule")
    ]
    lines = [f"# {rule.name}", "", facts, "", head, "", manual.strip(), ""]
    lines += _markdown_example(rule, "Fires on", rule.example.fires)
    lines += _markdown_example(rule, "Silent on", rule.example.silent)
    lines += ["## Use", "", "```sh", *commands, "```", "", "[All rules](README.md)"]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_example(rule: Rule, title: str, record: Mapping[str, Json]) -> Iterator[str]:
    bodies, findings = run_example(rule, record)
    yield from (f"## {title}", "")
    for side, body in bodies:
        language, text = body_text(body)
        text = visible(text.strip("\n")) if language == "text" else text
        longest = max(map(len, re.findall("`+", text)), default=0)  # a fence must be longer than any run of backquotes
        fence = "`" * max(3, longest + 1)
        yield from (f"{side.capitalize()}:", "", f"{fence}{language}", text, fence, "")
    yield from [f"- {one.message} ({one.layer}; {place(one)})" for one in findings] or ["Nothing is found."]
    yield ""


@guided("completion")
def completion(shell: str | None) -> None:
    """Print the script that completes wirelint in a shell.

    Completed are commands, options and their values, names and codes of rules (several separated by commas), paths, and
    the exchanges of a capture. The default shell is that of $SHELL.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(name) if name in _SHELLS else None
    if found is None:
        raise click.UsageError(f"name a shell: wirelint completion {'|'.join(_SHELLS)}")
    from wirelint.cli import cli

    click.echo(found(cli, {}, "wirelint", "_WIRELINT_COMPLETE").source())
