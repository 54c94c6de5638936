"""`wirelint demo`: faults found, blamed and fixed, on an embedded faulty server."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import orjson
from rich.padding import Padding
from rich.text import Text

from wirelint.cli import guided
from wirelint.launch.demo.clients import MissingSdkError, Step, drive, import_sdks, load_steps
from wirelint.launch.demo.vendor import compare
from wirelint.launch.processes import StartError
from wirelint.mock import serve
from wirelint.mock.scenario import HEADER
from wirelint.testing import Process
from wirelint.view.findings import MARKS, STYLES, visible
from wirelint.view.screen import Screen, in_columns

_REPAIRS = "wirelint_fix=unsafe"
_LIMITS = {"stall": 2, "burst": 2, "hang": 3}
"""Seconds; the usual limits would make the demo slow."""
_Played = tuple[Step, str, list[dict[str, Any]]]
_IDENTITY = ("exchange", "code", "side", "pointer", "event", "message")


@guided("demo")
def demo(captures: Path, vendor: bool) -> int:
    """See it work: a faulty LLM server, a real mitmdump with the addon in front of it, the real SDKs as clients.

    Shows findings live, and some faults again with fixes; then checks the captures offline and compares. Ends by itself.

    With --vendor no process is started: some hundreds of agent runs with a vendor whose mistakes depend on its input,
    first without wirelint, then with all fixes.
    """
    console = Screen(sys.stdout, markup=True)
    if vendor:
        return _compare_vendor(console)
    steps = load_steps()
    seen: dict[Step, str] = {}
    files: list[Path] = []
    try:
        with tempfile.TemporaryDirectory(prefix="wirelint-demo-") as scratch, serve(seed=7) as upstream:

            def start(name: str, **options: str) -> Process:
                folder, limits = Path(scratch), {limit: str(seconds) for limit, seconds in _LIMITS.items()}
                settings = {**limits, **options}
                return Process(upstream.url, settings, folder / name, folder / "confdir", Path.cwd(), captures)

            threading.Thread(target=import_sdks, daemon=True).start()  # 3 s, in which the proxy starts
            with start("plain") as proxy:
                console.print(
                    f"[dim]SDKs → mitmdump with wirelint,[/] {proxy.url} [dim]→ a faulty server,[/] {upstream.url}\n"
                )
                with start("repairs", fix="unsafe") as repairing:  # it starts while the steps run
                    wrong = []
                    for played in _play(steps, proxy):
                        step, saw, _ = played
                        seen[step] = saw
                        wrong += [] if _show(played, console) else [step]
                    console.print(
                        f"\n[dim]again with[/] {_REPAIRS}[dim]: what the client sees without and with it[/]\n"
                    )
                    again = _play([step for step in steps if step.repaired], repairing)
                    wrong += [played[0] for played in again if not _show_repaired(played, console, seen[played[0]])]
                    files += [*proxy.files(), *repairing.files()]
    except MissingSdkError as error:
        raise click.ClickException(f"the {error} SDK is not installed; pip install 'wirelint[demo]'") from error
    except (StartError, OSError) as error:
        raise click.ClickException(str(error)) from error
    agree = _compare(files, console)
    if wrong:
        console.print(f"[red]not as expected:[/] {', '.join(step.title for step in wrong)}")
    return 0 if agree and not wrong else 1


def _play(steps: list[Step], proxy: Process) -> Iterator[_Played]:
    """Yield the steps as they have run: one after another, but those that wait for the server together."""
    for waits, together in groupby(steps, lambda step: step.waits):
        for group in [list(together)] if waits else [[step] for step in together]:
            yield from _drive(group, proxy)


def _drive(steps: list[Step], proxy: Process) -> list[_Played]:
    """Run steps at the same time. Return each with a text of the result that its client got, and its exchanges."""
    url, before = proxy.url, len(proxy.lines())
    pool = ThreadPoolExecutor(len(steps))
    try:
        seen = list(pool.map(lambda step: drive(step, url), steps))
    finally:
        pool.shutdown(wait=False)  # after Ctrl-C the proxy ends, and with it what the clients wait for
    proxy.settle()
    lines: list[Any] = proxy.lines()[before:]
    return [
        (step, saw, [line for line in lines if line["request"]["headers"].get(HEADER, "") == step.scenario])
        for step, saw in zip(steps, seen, strict=True)
    ]


def _show(played: _Played, console: Screen) -> bool:
    """Print a step with its findings. Return True if they are the ones that it must have."""
    step, saw, exchanges = played
    findings = [finding for exchange in exchanges for finding in exchange.get("findings", ())]
    blamed = {finding["name"] for finding in findings if finding["severity"] != "info"}
    right = blamed >= set(step.finds) and bool(step.finds) == bool(blamed)
    console.print(_title(step, right).append("clean" if not findings else "", "green"))
    console.print(Padding(Text(visible(f"the client saw {saw}"), "dim", overflow="fold"), (0, 0, 0, 2)))
    for finding in findings:
        style = STYLES[finding["severity"]]
        line = Text(f"{MARKS[finding['severity']]} {finding['code']} {finding['name']}", f"bold {style}")
        line = Text.assemble(line, (f" ({finding['layer']})", style), f" {visible(finding['message'])}")
        console.print(Padding(line, (0, 0, 0, 2)))
    return right


def _show_repaired(played: _Played, console: Screen, before: str) -> bool:
    step, saw, exchanges = played
    fixes = [fix["name"] for exchange in exchanges for fix in exchange.get("fixes", ())]
    right = step.repaired in saw and step.repaired not in before and bool(fixes)
    console.print(_title(step, right).append(f"fixed: {', '.join(dict.fromkeys(fixes))}", "green"))
    for mark, text in (("-", before), ("+", saw)):
        shown = Text(visible(f"{mark} {text}"), "dim" if mark == "-" else "", overflow="fold")
        console.print(Padding(shown, (0, 0, 0, 2)))
    return right


def _title(step: Step, right: bool) -> Text:
    form = "stream" if step.stream else "JSON"
    mark = ("✓", "green") if right else ("✗", "red")
    return Text.assemble(mark, f" {step.title:<31}", (f"{step.sdk:<10}{form:<7}", "dim"))


def _compare(files: list[Path], console: Screen) -> bool:
    """Return True if `wirelint check` of the captures gives the findings that the live run recorded."""
    live: Counter[tuple[Any, ...]] = Counter()
    exchanges = 0
    for path in files:
        for line in path.read_bytes().splitlines():
            record = orjson.loads(line)
            exchanges += 1
            live.update(_identity({**finding, "exchange": record["id"]}) for finding in record["findings"])
    limits = [part for name, seconds in _LIMITS.items() for part in (f"--{name}", str(seconds))]
    command = [sys.executable, "-m", "wirelint", "check", "--output-format", "jsonl", "--exit-zero", *limits]
    command += map(str, files)
    run = subprocess.run(command, capture_output=True, check=False, timeout=120)
    offline = Counter(_identity(orjson.loads(line)) for line in run.stdout.splitlines())
    console.print(f"\n[dim]$ wirelint check {' '.join([*limits, *map(str, files)])}[/]")
    console.print(run.stderr.decode(errors="replace").strip(), markup=False)
    if run.returncode or live != offline:
        console.print(f"[red]live and offline differ:[/] {sum(live.values())} live, {sum(offline.values())} offline")
        return False
    console.print(
        f"[green]live and offline agree:[/] the same {sum(live.values())} findings in {exchanges} exchanges\n"
        f"[dim]next:[/] wirelint show {files[0] if files else 'captures'}"
    )
    return bool(live)


def _compare_vendor(console: Screen) -> int:
    without, repaired = compare()
    console.print(
        f"{without.runs} agents need {without.needed:,} tool calls; "
        "their vendor of Kimi K2 makes faults that users have reported\n",
        soft_wrap=True,
    )
    both = without, repaired
    rows: list[list[Text | str]] = [[Text(head, "dim") for head in ("", "without wirelint", f"with {_REPAIRS}")]]
    rows.append(["calls that succeeded", *(f"{score.succeeded:,} ({score.share:.0%})" for score in both)])
    rows.append(["calls the client could not run", *(f"{score.refused:,}" for score in both)])
    ends = ("tool_calls", "stop")
    rows += [[f"replies that end with {end}", *(f"{score.finishes[end]:,}" for score in both)] for end in ends]
    console.print_lines(in_columns(rows, {1, 2}))
    made = ", ".join(f"{name} {count:,}" for name, count in repaired.repairs.most_common())
    console.print(
        f"\n[dim]fixes:[/] {made}\n[dim]the report behind it: 218 and 971 calls of some 1,300[/]", soft_wrap=True
    )
    return 0 if repaired.succeeded > without.succeeded else 1


def _identity(finding: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(finding.get(key) for key in _IDENTITY)
