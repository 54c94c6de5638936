"""`python -m tests.bench.entered`: the modules and functions of wirelint that one exchange enters, counted by a profiler.

A measure of how much code a person has to know who follows one reply through the addon, or one run of `wirelint check`.
The first exchange warms caches up and is not counted.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from click.testing import CliRunner
from mitmproxy.test import taddons

from tests.addon.build import flow_of, head_of
from tests.build import Talk, as_record, schema
from tests.cuts import events_of
from wirelint.addon.addon import Inspector
from wirelint.cli import cli

ROOT = Path(__file__).parents[2]
TOOLS = {"find": schema(place="string")}
PROSE = "The ferry to the island leaves at nine in the morning, and it comes back at two if the sea is calm. "
TALKS = {
    "plain text": Talk(text=PROSE * 2, tools=TOOLS, step=5),
    "leaked tool call": Talk(
        text=PROSE + '<tool_call>\n{"name": "find", "arguments": {"place": "Bodø"}}\n</tool_call>', tools=TOOLS, step=4
    ),
}


@dataclass
class Entered:
    """Calls by code object, of the code below `wirelint/` and `rules/`."""

    calls: Counter[CodeType] = field(default_factory=Counter)

    @property
    def modules(self) -> Counter[str]:
        return Counter(code.co_filename for code in self.calls)

    def summary(self) -> str:
        return f"{len(self.modules)} modules, {len(self.calls)} functions, {self.calls.total()} calls"


@contextmanager
def entered() -> Iterator[Entered]:
    """Count what is called within the block, in this thread."""
    found, folders = Entered(), (f"{ROOT}/wirelint/", f"{ROOT}/rules/")

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(folders):
            found.calls[frame.f_code] += 1

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def stream(inspector: Inspector, talk: Talk, api: str) -> None:
    """Pass one streamed reply through the addon, an event at a time, as mitmproxy does."""
    record = talk.record(api, True)
    flow = flow_of(record)
    inspector.request(flow)
    flow.response = head_of(record)
    inspector.responseheaders(flow)
    assert callable(flow.response.stream)
    for event in events_of(as_record(record).response_body or b""):
        flow.response.stream(event)
    flow.response.stream(b"")
    inspector.response(flow)


def streamed(talk: Talk, api: str) -> Entered:
    """Count what the second of two equal exchanges enters, repairs and captures on."""
    with tempfile.TemporaryDirectory() as folder, taddons.context(inspector := Inspector()) as context:  # type: ignore[no-untyped-call]
        context.configure(inspector, wirelint_captures=folder, wirelint_fix="unsafe")
        stream(inspector, talk, api)
        with entered() as found:
            stream(inspector, talk, api)
        inspector.done()
    return found


def checked() -> Entered:
    """Count what `wirelint check` of the sample captures enters."""
    run: Callable[[], object] = lambda: CliRunner().invoke(cli, ["check", str(ROOT / "captures")])  # noqa: E731
    run()
    with entered() as found:
        run()
    return found


def main() -> None:
    for api in ("openai.chat", "anthropic.messages"):
        for name, talk in TALKS.items():
            print(f"{api}, {name}: {streamed(talk, api).summary()}")
    found = checked()
    print(f"check of the samples: {found.summary()}")


if __name__ == "__main__":
    main()
