"""Scorecards and comparisons as tables on a terminal, Markdown, JSON, an SVG picture and a section of the HTML page.

A table is a title, headings and rows of text cells; every format renders such a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from wirelint.model import Json
from wirelint.prices import Spending, cost_text, price_table
from wirelint.text.escaping import counted, printable, shorten
from wirelint.view.findings import Repeat, short_id, unicode_text, visible
from wirelint.view.scores import Bill, Card, Comparison, percentile
from wirelint.view.screen import Screen, hung, in_columns

NOTHING = "-"
_LAYERS = ("model", "gateway", "client", "tool", "wirelint")
_MOST_MODELS, _MOST_BARS, _LONGEST_NAME = 3, 8, 34
COLOURS = {
    "good": ("good calls", "#217a45"),
    "bad": ("schema errors", "#c0353a"),
    "plain": ("stop", "#5f7590"),
    "other": ("other", "#8f6400"),
    "failed": ("failed", "#5f5f6a"),
}
"""White text on each has a contrast of at least 4.5."""
_SIZES = {"width": 340, "row": 66, "top": 46}
"""In pixels: a phone shows the picture at full size."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. The first `labels` columns are names; numbers, aligned to the right, follow."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1


def score_tables(cards: Sequence[Card]) -> list[Sheet]:
    """Return the tables of `wirelint stats`: endings of replies, tokens and cost, times, findings."""
    rows = []
    for card in cards:
        ends = (card.finishes[finish] for finish in ("stop", "tool_calls", "other"))
        counts = map(str, (card.replies, card.failed, *ends, card.successful, card.schema_errors))
        rows.append((_name(card), *counts, share(card.schema_accuracy)))
    headings = ("model", "replies", "failed", "stop", "calls", "other", "good", "errors", "accuracy")
    sheets = [Sheet("tool calls", headings, tuple(rows))]
    if any(card.spending.counted for card in cards):
        sheets.append(_spending(("model",), [((_name(card),), card.spending) for card in cards]))
    if timed := [card for card in cards if card.duration or card.first_token]:
        sheets.append(_times(timed))
    if any(card.findings for card in cards):
        sheets.append(_findings(cards))
    return sheets


def comparison_tables(comparisons: Sequence[Comparison]) -> list[Sheet]:
    """Return the tables of `wirelint compare`: triggering against the reference, then the scores of both sides."""
    headings = ("model", "pairs", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "similar")
    rows = []
    for made in comparisons:
        counts, shares = made.triggering()
        numbers = map(str, (made.pairs, *counts.values()))
        rows.append((_name(made.card), *numbers, *map(share, (*shares.values(), made.similarity))))
    cards = [card for made in comparisons for card in (made.card, made.reference)]
    return [Sheet("triggering, against the reference", headings, tuple(rows)), *score_tables(cards)]


def issue_table(repeats: Sequence[Repeat]) -> Sheet:
    """Return the table of `wirelint stats --by issue`: each fault once."""
    rows = []
    for one in repeats:
        found, ids = one.finding, "\n".join(dict.fromkeys(map(short_id, (one.first, one.last))))
        rule = f"{printable(f'{found.code} {found.label}')}\n{shorten(printable(found.message), 60)}"
        rows.append((rule, ids, f"{found.severity}\n{found.layer}", str(one.count)))
    return Sheet("issues", ("rule", "first, last", "severity, layer", "exchanges"), tuple(rows), 3)


def bill_table(bills: Sequence[Bill]) -> Sheet:
    """Return the table of `wirelint stats --by conversation` or `--by run`, with a total."""
    rows, total = [], Spending()
    for bill in bills:
        name = printable(bill.conversation or unicode_text(bill.source))
        name += f"\n{printable(bill.prompt)}" if bill.conversation and bill.prompt else ""
        models = [printable(model) for model, _ in bill.models.most_common()]
        more = [f"and {len(models) - _MOST_MODELS} more"] if len(models) > _MOST_MODELS else []
        rows.append(((name, "\n".join([*models[:_MOST_MODELS], *more])), bill.spending))
        total.merge(bill.spending)
    if len(rows) > 1:
        rows.append((("all", ""), total))
    return _spending(("conversation" if bills[0].conversation else "run", "model"), rows)


def _spending(labels: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], Spending]]) -> Sheet:
    """Return the table of tokens, with costs if there is a price table."""
    table = price_table()
    headings = (*labels, "replies", "input", "cached", "output", "thinking", *(("cost",) if table else ()))
    made = []
    for names, spent in rows:
        counts = (spent.tokens.input, spent.tokens.cached, spent.tokens.output, spent.tokens.reasoning)
        shown = (f"{count:,}" if spent.counted else NOTHING for count in counts)
        made.append((*names, str(spent.exchanges), *shown, *((cost_text(spent),) if table else ())))
    return Sheet(f"tokens and cost ({table})" if table else "tokens", headings, tuple(made), len(labels))


def _times(cards: Sequence[Card]) -> Sheet:
    headings = ("model", "TTFT\np50", "\np95", "gap\np50", "\nmax", "total\np50", "\np95", "tokens/s\np50")
    rows = []
    for card in cards:
        measured = (card.first_token, (0.5, 0.95)), (card.longest_gap, (0.5, 1.0)), (card.duration, (0.5, 0.95))
        times = (_seconds(values, rank) for values, ranks in measured for rank in ranks)
        speed = percentile(card.speed, 0.5)
        rows.append((_name(card), *times, NOTHING if speed is None else f"{speed:.0f}"))
    return Sheet("times: first token, longest silence of a stream, total", headings, tuple(rows))


def _findings(cards: Sequence[Card]) -> Sheet:
    counts, names = Counter[tuple[str, str]](), Counter[str]()
    for card in cards:
        counts.update(card.findings)
    for (name, _), count in counts.items():
        names[name] += count
    layers = [layer for layer in _LAYERS if any(key[1] == layer for key in counts)]
    rows = tuple(
        (name, *(str(counts[name, layer] or NOTHING) for layer in layers), str(count))
        for name, count in sorted(names.items(), key=lambda item: (-item[1], item[0]))
    )
    return Sheet("findings, by blamed layer", ("rule", *layers, "all"), rows)


def _name(card: Card) -> str:
    name = printable(card.model) or "unknown"
    return f"{name}\n{printable(card.provider)}" if card.model else printable(card.provider)


def _seconds(values: Sequence[float], rank: float) -> str:
    value = percentile(values, rank)
    return NOTHING if value is None else f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2f} s"


def share(value: float | None) -> str:
    return NOTHING if value is None else f"{value * 100:.1f} %"


# --- terminal and Markdown --------------------------------------------------------------------------------------------


def write_tables(sheets: Sequence[Sheet], out: TextIO) -> None:
    console = Screen(out)
    for number, sheet in enumerate(sheets):
        if number:
            console.print()
        console.print(Text(sheet.title, "bold"))
        columns = zip(sheet.headings, *sheet.rows, strict=True)
        widths = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
        fits = sum(widths) + 2 * (len(widths) - 1) <= console.width
        console.print(_table(sheet) if fits else _stacked(sheet, console.width))


def _table(sheet: Sheet) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, heading in enumerate(sheet.headings):
        label = place < sheet.labels
        table.add_column(heading, justify="left" if label else "right", no_wrap=not label, overflow="fold")
    for row in sheet.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _stacked(sheet: Sheet, width: int) -> Group:
    """Return a table for a narrow terminal: the names of a row are above its numbers, or behind them if there is one."""
    labels = sheet.labels
    heads = [*zip_longest(*(heading.split("\n") for heading in sheet.headings[labels:]), fillvalue="")]
    numbers: list[Sequence[Text | str]] = [[Text(cell, "dim") for cell in head] for head in heads]
    numbers += [row[labels:] for row in sheet.rows]
    lines = [*in_columns(numbers, range(len(sheet.headings)))]
    is_one = len(sheet.headings) == labels + 1
    titles = "  ".join(heading.split("\n")[0] for heading in sheet.headings[: labels + is_one])
    made = [Text(titles, "dim", overflow="fold"), *([] if is_one else lines[: len(heads)])]
    for row, line in zip(sheet.rows, lines[len(heads) :], strict=True):
        name, *more = "\n".join(row[:labels]).split("\n")
        head, rest = Text(name, "bold"), Text("  ".join(filter(None, more)), "dim")
        if is_one:
            count = counted(int(row[-1]), sheet.headings[-1].removesuffix("s"))
            made += [*hung(Text.assemble(head, f"  {count}"), width, 0), *hung(rest, width, 2)]
        else:
            made += [*hung(Text.assemble(head, "  " if rest else "", rest), width, 0), line]
    return Group(*made)


def write_markdown(sheets: Sequence[Sheet], out: TextIO) -> None:
    for number, sheet in enumerate(sheets):
        out.write("\n" if number else "")
        marks = [":--" if place < sheet.labels else "--:" for place in range(len(sheet.headings))]
        out.write(f"### {sheet.title}\n\n")
        for cells in (_one_line(sheet.headings), marks, *([_escaped(cell) for cell in row] for row in sheet.rows)):
            out.write(f"| {' | '.join(cells)} |\n")


def _one_line(headings: Sequence[str]) -> list[str]:
    """Join headings of two lines; the first line of a group also applies to the headings after it without one."""
    made: list[str] = []
    group = ""
    for heading in headings:
        first, gap, second = heading.partition("\n")
        group = first or group
        made.append(f"{group} {second}" if gap else heading)
    return made


def _escaped(cell: str) -> str:
    """Escape wire text for a Markdown cell, where HTML would be interpreted too."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("`", "&#96;")):
        cell = cell.replace(character, entity)
    return cell.replace("\n", "<br>")


# --- picture and HTML -------------------------------------------------------------------------------------------------


@cache
def templates() -> Environment:
    """Return the templates of the picture and of the HTML page, which escape everything."""
    here = Path(__file__).parent
    loader = FileSystemLoader([here, here / "html"])
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"share": share, "short": lambda text: shorten(printable(text), _LONGEST_NAME), "visible": visible}
    return made


def picture(cards: Sequence[Card]) -> Markup:
    """Return an SVG element: a bar per model. `--ink` and `--dim` are CSS variables with defaults."""
    module = templates().get_template("scorecard.jinja").module
    return Markup(str(module.picture(cards, COLOURS, **_SIZES)).strip())  # type: ignore[attr-defined]


def title(cards: Sequence[Card]) -> str:
    more = f" (the {_MOST_BARS} most used of {len(cards)}; the table has all)" if len(cards) > _MOST_BARS else ""
    return f"Scorecard: how replies ended, and whether calls were valid{more}"


def section(cards: Sequence[Card]) -> Markup:
    """Return a part of the HTML page, without scripts and styles of its own."""
    sheets = [sheet for sheet in score_tables(cards) if not sheet.title.startswith("findings")]  # the page has those
    return Markup("").join([picture(cards[:_MOST_BARS]), *map(page_table, sheets)])


def page_table(sheet: Sheet, *, is_open: bool = False) -> Markup:
    module = templates().get_template("scorecard.jinja").module
    return Markup(module.sheet(sheet, _one_line(sheet.headings), is_open))  # type: ignore[attr-defined]


def card_document(card: Card) -> dict[str, Json]:
    """Return a card as JSON: counts, shares between 0 and 1, times in milliseconds; null for unknown values."""
    findings = sorted(card.findings.items(), key=lambda item: (-item[1], item[0]))
    return {
        **{name: getattr(card, name) for name in ("provider", "model", "exchanges", "failed", "streamed")},
        "finish_stop": card.finishes["stop"],
        "finish_tool_calls": card.finishes["tool_calls"],
        "finish_others": card.finishes["other"],
        "successful_tool_calls": card.successful,
        "schema_errors": card.schema_errors,
        "schema_accuracy": _rounded(card.schema_accuracy, 4),
        "calls": card.calls,
        "valid_calls": card.valid_calls,
        **_spending_document(card.spending),
        **{f"{name}_ms": _spread(getattr(card, name)) for name in ("first_token", "longest_gap", "duration")},
        "tokens_per_second": _spread(card.speed),
        "findings": [{"name": name, "layer": layer, "count": count} for (name, layer), count in findings],
    }


def bill_document(bill: Bill) -> dict[str, Json]:
    return {
        "source": unicode_text(bill.source),
        **({"conversation": bill.conversation, "prompt": bill.prompt} if bill.conversation else {}),
        "models": [*bill.models],
        "replies": bill.spending.exchanges,
        **_spending_document(bill.spending),
    }


def _spending_document(spent: Spending) -> dict[str, Json]:
    """Return tokens and cost. `cost_usd` is null if no reply has a price; `unpriced` counts the replies without one."""
    counts = spent.tokens.document if spent.counted else {}
    return {
        **{f"{name}_tokens": counts.get(name) for name in ("input", "cached", "output", "reasoning")},
        "cost_usd": round(spent.cost, 8) if spent.priced else None,
        "unpriced": spent.exchanges - spent.priced,
        "prices": price_table(),
    }


def comparison_document(made: Comparison) -> dict[str, Json]:
    counts, shares = made.triggering()
    return {
        **{name: getattr(made, name) for name in ("provider", "model", "pairs", "unmatched")},
        **counts,
        **{name: _rounded(value, 4) for name, value in shares.items()},
        "similarity": _rounded(made.similarity, 4),
        "candidate": card_document(made.card),
        "reference": card_document(made.reference),
    }


def _spread(values: Sequence[float]) -> Json:
    ranks = {"p50": 0.5, "p95": 0.95, "max": 1.0}
    found: dict[str, Json] = {name: _rounded(percentile(values, rank)) for name, rank in ranks.items()}
    return {"count": len(values), **found} if values else None


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)
