"""`wirelint mock`: the fault-injecting LLM server, until it is told to stop."""

from __future__ import annotations

import signal
import threading

import click

from wirelint.cli.guidance import guided
from wirelint.mock import FAULTS, MockServer, ScenarioError
from wirelint.mock.markup import MARKUP


class MockError(click.ClickException):
    """A start that is not possible: one line, exit status 2."""

    exit_code = 2


@guided(
    examples=(
        ("what can go wrong on demand", "wirelint mock --list"),
        ("a server whose model leaks its markup", "wirelint mock --port 8000 --fault xml-leak+dialect=kimi_k2"),
        ("several faults in turn, slowly", "wirelint mock --fault think-leak --fault stream-burst --pace 40"),
    ),
    exits={0: "stopped", 2: "no such fault, or the port is taken"},
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 takes a free one.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME",
    help="Fault to play, with options: xml-leak+dialect=kimi_k2. Several take turns.",
)
@click.option("--list", "listing", is_flag=True, help="Print the faults with their modes, and exit.")
@click.option(
    "--pace", default=0.0, metavar="MS", type=click.FloatRange(0, 60_000), help="Milliseconds between events."
)
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same answers.")
def mock(host: str, port: int, faults: tuple[str, ...], listing: bool, pace: float, seed: int) -> None:
    """Serve believable LLM APIs with faults on demand.

    Whole and streamed, each at its vendor's path: OpenAI (chat completions, responses, completions), Anthropic (also at
    the paths of Bedrock and Vertex), Gemini, Ollama, Mistral (by its SDK or host), Cohere, Bedrock Converse, DeepInfra;
    and GET /v1/models. A request selects its scenario with the header `x-wirelint-mock:
    fault=xml-leak;dialect=kimi_k2;chunk=7` or with the model name `mock/xml-leak+dialect=kimi_k2`; without one, --fault
    decides, and without that the answers are healthy.

    Options of every scenario: chunk=BYTES, pace=MS, encoding=gzip|deflate|br|zstd|auto, crlf, bom, comments, azure,
    cut=BYTES, content_length, calls=N, reasoning, refusal, model=NAME.
    """
    if listing:
        click.echo(list_faults())
        return
    try:
        server = MockServer(host=host, port=port, seed=seed, faults=faults, pace=pace)
    except ScenarioError as error:
        raise MockError(f"--fault: {error} (see wirelint mock --list)") from error
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        server.start()
    except OSError as error:
        raise MockError(f"cannot listen at {host} port {port}: {error.strerror or error}") from error
    try:
        click.echo(f"wirelint mock listening on {server.url}")
        # Not an endless wait: on Windows only a wait that ends lets a signal handler run.
        while not stop.wait(0.5):
            pass
    finally:
        server.close()


def list_faults() -> str:
    """A line a fault: name, what it does, its modes and options."""
    width = max(map(len, FAULTS))
    lines = []
    for name, fault in FAULTS.items():
        lines.append(f"{name:<{width}}  {fault.doc}")
        details = [f"mode={'|'.join(fault.modes)}"] if fault.modes else []
        details += [f"{option}={_OPTION_HELP[option]}" for option in sorted(fault.takes)]
        if details:
            lines.append(f"{'':<{width}}  {'  '.join(details)}")
    return "\n".join(lines)


_OPTION_HELP = {"dialect": "|".join(MARKUP), "place": "content|reasoning", "seconds": "N", "status": "N"}
