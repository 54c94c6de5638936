"""A faulty vendor inside a test of your own: `with wirelint.mock.serve("xml-leak") as vendor:`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wirelint.mock.scenario import Options
from wirelint.mock.script import Script, load_script, read_script
from wirelint.mock.server import Exchange, MockServer
from wirelint.model import Json


@dataclass(frozen=True, slots=True)
class Vendor:
    """Where it is served. Every API answers at every one of these; they differ in the path that its SDK adds to."""

    url: str
    """`http://127.0.0.1:PORT`: for Anthropic, Gemini, Cohere, Mistral, Ollama, Bedrock."""
    server: MockServer

    @property
    def openai(self) -> str:
        """The base URL of OpenAI's SDK and of all that are made like it."""
        return f"{self.url}/v1"

    @property
    def anthropic(self) -> str:
        return self.url

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead SDKs here; with keys, since some do not start without."""
        key = "sk-mock-0000000000000000"
        return {
            "OPENAI_BASE_URL": self.openai,
            "OPENAI_API_KEY": key,
            "ANTHROPIC_BASE_URL": self.anthropic,
            "ANTHROPIC_API_KEY": key,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_API_KEY": key,
            "CO_API_URL": self.url,
            "CO_API_KEY": key,
            "OLLAMA_HOST": self.url,
        }

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """What has passed so far, oldest first; the last one is there once the server has sent it."""
        return tuple(self.server.exchanges)


@contextmanager
def serve(
    *faults: str,
    scenario: Path | str | Mapping[str, Json] | None = None,
    seed: int | None = None,
    pace: float = 0.0,
    delay: float = 0.0,
    chunk: int = 0,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Vendor]:
    """Serves LLM APIs until the block ends, in a thread of its own, on a free port of this machine.

    `faults` as on the command line: `"xml-leak"`, `"xml-leak+dialect=kimi_k2"`, `"xml-leak=0.2"` (one answer out of five);
    a request can choose for itself by the header `x-wirelint-mock` or the model `mock/xml-leak`. `scenario` is a scenario
    file, or what would stand in one. `pace` and `delay` in milliseconds, `chunk` in bytes. The same seed and the same
    requests in the same order give the same bytes. Raises ScenarioError for a fault that is not known, OSError for an
    address that is taken.
    """
    script = _script(scenario, Options(pace=pace, delay=delay, chunk=chunk))
    chosen = seed if seed is not None else script.seed or 0
    server = MockServer(
        host=host, port=port, seed=chosen, faults=faults, script=script, pace=pace, delay=delay, chunk=chunk, tls=tls
    )
    with server:
        yield Vendor(server.url, server)


def _script(scenario: Path | str | Mapping[str, Json] | None, base: Options) -> Script:
    match scenario:
        case None:
            return Script()
        case str() | Path():
            return load_script(Path(scenario), base)
        case _:
            return read_script(scenario, base)
