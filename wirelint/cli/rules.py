"""`wirelint rules`, `rule`, `new-rule` and `where`: the catalogue, a manual, the draft of a rule, paths."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple, get_args

import click
import orjson
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from wirelint.cli import completion
from wirelint.cli.guidance import guided
from wirelint.cli.options import Selection, folders_option, format_option, rule_options
from wirelint.model import Json, Layer
from wirelint.registry import page_url, safeties, shipped, summary
from wirelint.rule import SEVERITIES, Finding, Rule
from wirelint.settings import load_rules
from wirelint.view.findings import MARKS, STYLES, place
from wirelint.view.screen import Screen, hung

_TITLES = ("code", "name", "severity", "layer", "fix")
_SUMMARY_WIDTH = 60
_LAYERS = [layer for layer in get_args(Layer) if layer != "wirelint"]
_TEMPLATES = Path(__file__).with_name("templates")


def fix_words(rule: Rule) -> str:
    """Return the safety of a rule's fixes, for tables; `none` if the rule only reports."""
    return ", ".join(safeties(rule)) or "none"


# --- the catalogue ----------------------------------------------------------------------------------------------------


@guided("rules")
@rule_options()
@format_option(["table", "json"])
def rules(selection: Selection, output_format: str) -> None:
    """List the rules, each with a summary."""
    chosen = selection.outlines()
    if output_format == "json":
        rows = [
            {
                "code": rule.code,
                "name": rule.name,
                "severity": rule.graded or rule.severity,
                "layer": rule.layer,
                "fixes": list(safeties(rule)),
                "summary": summary(rule),
            }
            for rule in chosen
        ]
        click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    console = Screen(sys.stdout)
    console.print_lines(_lines(chosen, console.width))


def _lines(rules: Sequence[Rule], width: int) -> Iterator[Text]:
    """Yield a line per rule; on a narrow terminal the summary is below it."""
    rows = [(rule.code, rule.name, rule.graded or rule.severity, rule.layer, fix_words(rule)) for rule in rules]
    widths = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    room = sum(widths) + 2 * len(widths)
    is_wide = width >= room + _SUMMARY_WIDTH
    titles = "".join(f"{title:<{size}}  " for title, size in zip(_TITLES, widths, strict=True))
    yield Text(f"{titles}what is wrong" if is_wide else titles.rstrip(), "dim")
    for rule, row in zip(rules, rows, strict=True):
        line = Text()
        for number, (cell, size) in enumerate(zip(row, widths, strict=True)):
            style = "bold" if number == 1 else STYLES[rule.graded or rule.severity] if number == 2 else ""
            line.append(f"{cell:<{size}}", style).append("  ")
        if is_wide:
            yield from hung(line.append(summary(rule)), width, 0, room)
        else:
            line.rstrip()
            yield line
            yield from hung(Text(summary(rule), "dim"), width, widths[0] + 2)


# --- a manual ---------------------------------------------------------------------------------------------------------


class Example(NamedTuple):
    """An example of a rule: the bodies with their sides, and the findings."""

    bodies: Sequence[tuple[str, Json]]
    findings: Sequence[Finding]


def run_example(rule: Rule, record: Mapping[str, Json]) -> Example:
    """Run a rule on one of its examples. `prior` exchanges come first."""
    from wirelint.capture.format import decode
    from wirelint.capture.offline import check_record
    from wirelint.engine import Engine  # 0.3 s, which the catalogue does not need

    engine = Engine([rule])
    bodies: list[tuple[str, Json]] = []
    findings: Sequence[Finding] = ()
    prior = record.get("prior")
    for one in (*(prior if isinstance(prior, list) else ()), record):
        if not isinstance(one, Mapping):
            continue
        findings = check_record(decode(dict(one), "example", "1"), engine).findings
        for side in ("request", "response"):
            message = one.get(side)
            if isinstance(message, dict) and (body := message.get("body")) is not None:
                bodies.append((side, body))
    return Example(bodies, findings)


def body_text(body: Json) -> tuple[str, str]:
    """Return the language of a body, `json` or `text`, and its text."""
    document = body
    if isinstance(body, str):
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            return "text", body
    return "json", orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


@guided("rule")
@click.argument("name", shell_complete=completion.complete_rules)
@folders_option
@click.option("--markdown", is_flag=True, help="Print the manual as Markdown, without the examples.")
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

    example = run_example(rule, record)
    bodies = []
    for _, body in example.bodies:
        language, text = body_text(body)
        shown = Syntax(text.strip(), language, theme="ansi_dark", word_wrap=True, background_color="default")
        bodies.append(Padding(shown, (0, 0, 0, 2)))
    texts = [
        Text(f"{MARKS[finding.severity]} {finding.message}\n  at {place(finding)}", STYLES[finding.severity])
        for finding in example.findings
    ]
    return Group(
        Text(title, "bold"),
        *bodies,
        *(Padding(text, (0, 0, 1, 2)) for text in texts or [Text("✓ nothing found", "green")]),
    )


# --- a draft and paths ------------------------------------------------------------------------------------------------


@guided("new-rule")
@click.argument("code")
@click.argument("name")
@click.option(
    "--severity", type=click.Choice(list(SEVERITIES)), default="warning", show_default=True,
    help="Severity of its findings.",
)  # fmt: skip
@click.option("--layer", type=click.Choice(_LAYERS), default="model", show_default=True, help="Layer at fault.")
@click.option(
    "--folder", type=click.Path(path_type=Path),
    help="Folder for the rule and its cases; by default the rules of this checkout.",
)  # fmt: skip
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
@click.argument("what", type=click.Choice(["addon", "rules", "captures"]))
def where(what: str) -> None:
    """Print the path of the addon script, of the shipped rules, or of the captures folder."""
    match what:
        case "addon":
            click.echo(shipped("addons") / "inspector.py")
        case "rules":
            click.echo(shipped("rules"))
        case _:
            click.echo(Path("captures").resolve())
