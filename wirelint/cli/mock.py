"""`wirelint mock`: the fault-injecting LLM server, until a signal stops it."""

from __future__ import annotations

import shutil
import signal
import ssl
import threading
from pathlib import Path

import click
import orjson
from rich.text import Text

from wirelint.cli import guided
from wirelint.launch import describe_bind_error
from wirelint.mock import FAULTS, NOT_PLAYED, ScenarioError, serve
from wirelint.mock.apis import APIS
from wirelint.mock.faults import Fault
from wirelint.mock.plan import MARKUP
from wirelint.mock.service import TOOLS_NAME, TOOLS_PATH
from wirelint.view.screen import hung


@guided("mock")
def mock(
    host: str,
    port: int,
    faults: tuple[str, ...],
    scenario: Path | None,
    listing: bool,
    output_format: str,
    delay: float,
    pace: float,
    chunk: int,
    seed: int | None,
    tls: Path | None,
) -> None:
    """Serve realistic LLM APIs with faults on demand, named like the rules of `wirelint rules` that they break.

    Whole and streamed, each at its vendor's path: OpenAI (chat completions, responses, completions), Anthropic (also at
    the paths of Bedrock and Vertex), Gemini, Ollama, Mistral (with its SDK or host), Cohere, Bedrock Converse, DeepInfra;
    GET /v1/models; and a tool server (MCP) at /mcp. A request selects its scenario with the header `x-wirelint-mock:
    fault=xml-leak;dialect=kimi_k2;chunk=7` or with the model name `mock/xml-leak+dialect=kimi_k2`; without one, the
    scenario file and --fault decide, and without those the replies are healthy. The response header `x-wirelint-mock`
    names the fault, or says why it could not be played.

    Options of every scenario: chunk=BYTES, pace=MS, delay=MS, encoding=gzip|deflate|br|zstd|auto, crlf, bom, comments,
    azure, cut=BYTES, content_length, calls=N, reasoning, refusal, model=NAME.
    """
    if listing:
        click.echo(list_faults() if output_format == "text" else orjson.dumps(_rows(), option=orjson.OPT_INDENT_2))
        return
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        with serve(
            *faults,
            scenario=scenario,
            seed=seed,
            pace=pace,
            delay=delay,
            chunk=chunk,
            host=host,
            port=port,
            tls=_tls(tls),
        ) as vendor:
            click.echo(f"wirelint mock listening on {vendor.url}")
            # Not an endless wait: on Windows a signal handler runs only after a wait ends.
            while not stop.wait(0.5):
                pass
    except ScenarioError as error:
        culprit = "--scenario" if scenario is not None and str(scenario) in str(error) else "--fault"
        raise click.ClickException(f"{culprit}: {error} (see wirelint mock --list)") from error
    except OSError as error:
        raise click.ClickException(describe_bind_error(host, port, error, "--port (0 takes a free one)")) from error


def _tls(file: Path | None) -> ssl.SSLContext | None:
    if file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(file)
    except (ssl.SSLError, OSError) as error:
        raise click.ClickException(f"--tls {file}: it must hold a certificate and its key, in PEM: {error}") from error
    return context


def list_faults() -> str:
    """Return the faults with their modes, options and APIs, then the rules that no fault breaks."""
    width = max(map(len, (*FAULTS, *NOT_PLAYED)))
    columns = max(shutil.get_terminal_size((100, 24)).columns, width + 30)

    def lay(name: str, text: str) -> str:
        lines = [line.plain for line in hung(Text(text), columns, width + 2)]
        return f"{name:<{width + 2}}" + "\n".join(lines)[width + 2 :]

    lines = []
    for name, fault in FAULTS.items():
        lines += [lay(name, fault.doc), *(lay("", detail) for detail in _details(fault))]
    lines += ["", "Rules that no reply can break, and what can:"]
    lines += [lay(name, reason) for name, reason in NOT_PLAYED.items()]
    return "\n".join(lines)


def _details(fault: Fault) -> list[str]:
    options = [f"mode={' | '.join(fault.modes)}"] if fault.modes else []
    options += [f"{option}={_OPTION_HELP[option]}" for option in sorted(fault.takes)]
    if fault.tools is not None:
        return [*options, f"at POST {TOOLS_PATH}"]
    able = _apis(fault)
    unable = [name for name in _API_NAMES if name not in able]
    places = ["streams only"] if fault.stream else []
    if unable:
        places.append(f"not at {', '.join(unable)}" if len(unable) <= len(able) else f"at {', '.join(able)}")
    return [*options, "; ".join(places)] if places else options


_API_NAMES = tuple(dict.fromkeys(api.name for api in APIS))


def _apis(fault: Fault) -> list[str]:
    if fault.tools is not None:
        return [TOOLS_NAME]
    able = {api.name for api in APIS if api.abilities.issuperset(fault.needs)}
    return [name for name in _API_NAMES if name in able]


def _rows() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, fault in FAULTS.items():
        words = {"name": name, "summary": fault.doc, "modes": list(fault.modes), "options": sorted(fault.takes)}
        rows.append({**words, "streams_only": fault.stream, "apis": _apis(fault)})
    return rows


_OPTION_HELP = {"dialect": " | ".join(MARKUP), "place": "content | reasoning", "seconds": "N", "status": "N"}
