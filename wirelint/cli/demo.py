"""`wirelint demo`: the main job, on an embedded faulty server."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from wirelint.demo.clients import MissingSdkError, drive
from wirelint.demo.processes import Captures, StartError, mock_server, proxy
from wirelint.demo.steps import STEPS, Step
from wirelint.report.writer import MARKS, STYLES, visible

_IDENTITY = ("exchange", "code", "side", "pointer", "event", "message")


@click.command()
@click.option(
    "--captures", type=click.Path(path_type=Path), default=Path("captures"), show_default=True, metavar="DIR",
    help="Where the captures go.",
)  # fmt: skip
def demo(captures: Path) -> int:
    """See it work: a faulty LLM server, a real mitmdump with the addon in front of it, the real SDKs as clients.

    Shows what is found while it happens, then judges the captures offline and compares. Ends by itself; exit status 0
    when every fault was found, nothing healthy was blamed, and live and offline agree.
    """
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="wirelint-demo-") as scratch:
        logs = Path(scratch)
        written = Captures(captures)
        try:
            with (
                mock_server(logs / "mock.log") as upstream,
                proxy(upstream, captures, logs / "confdir", logs / "mitmdump.log") as url,
            ):
                console.print(f"[dim]SDKs → mitmdump with wirelint,[/] {url} [dim]→ a faulty server,[/] {upstream}\n")
                wrong = [step for step in STEPS if not _play(step, url, written, console)]
        except MissingSdkError as error:
            raise click.ClickException(f"the {error} SDK is not installed; pip install 'wirelint[demo]'") from error
        except StartError as error:
            tail = "".join(path.read_text(errors="replace")[-600:] for path in sorted(logs.glob("*.log")))
            raise click.ClickException(f"{error}: {tail}") from error
    agree = _compare(written.files, console)
    if wrong:
        console.print(f"[red]not as expected:[/] {', '.join(step.title for step in wrong)}")
    return 0 if agree and not wrong else 1


def _play(step: Step, url: str, written: Captures, console: Console) -> bool:
    saw = drive(step, url)
    exchanges = written.wait(2 if step.mangle else 1)
    findings = [finding for exchange in exchanges for finding in exchange.get("findings", ())]
    blamed = {finding["name"] for finding in findings if finding["severity"] != "info"}
    right = blamed >= step.finds and bool(step.finds) == bool(blamed)
    form = "stream" if step.stream else "JSON"
    mark = ("✓", "green") if right else ("✗", "red")
    title = Text.assemble(mark, f" {step.title:<31}", (f"{step.sdk:<10}{form:<7}", "dim"))
    title.append("clean" if not findings else "", "green")
    console.print(title)
    console.print(Padding(Text(visible(f"the client saw {saw}"), "dim", overflow="fold"), (0, 0, 0, 2)))
    for finding in findings:
        console.print(Padding(_line(finding), (0, 0, 0, 2)))
    return right


def _line(finding: dict[str, Any]) -> Text:
    style = STYLES[finding["severity"]]
    line = Text.assemble((f"{MARKS[finding['severity']]} {finding['code']} {finding['name']}", f"bold {style}"))
    return line.append(f" ({finding['layer']})", style).append(f" {visible(finding['message'])}")


def _compare(files: list[Path], console: Console) -> bool:
    """Whether `wirelint check` of the captures finds what the live run wrote into them."""
    live: Counter[tuple[Any, ...]] = Counter()
    exchanges = 0
    for path in files:
        for line in path.read_bytes().splitlines():
            record = orjson.loads(line)
            exchanges += 1
            live.update(_identity({**finding, "exchange": record["id"]}) for finding in record["findings"])
    command = [sys.executable, "-m", "wirelint", "check", "--output-format", "jsonl", "--exit-zero", *map(str, files)]
    run = subprocess.run(command, capture_output=True, check=False, timeout=120)
    offline = Counter(_identity(orjson.loads(line)) for line in run.stdout.splitlines())
    console.print(f"\n[dim]$ wirelint check {' '.join(map(str, files))}[/]")
    console.print(run.stderr.decode(errors="replace").strip())
    if run.returncode or live != offline:
        console.print(f"[red]live and offline differ:[/] {sum(live.values())} live, {sum(offline.values())} offline")
        return False
    console.print(
        f"[green]live and offline agree:[/] the same {sum(live.values())} findings in {exchanges} exchanges\n"
        f"[dim]next:[/] wirelint show {files[0] if files else 'captures'}"
    )
    return bool(live)


def _identity(finding: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(finding.get(key) for key in _IDENTITY)
