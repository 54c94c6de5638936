"""Models stuck in a loop: their tags pass unchanged, with a note, in linear time."""

from __future__ import annotations

import time
from itertools import product

import pytest

from tests.build import CALLING, Talk, User, schema, some
from tests.cuts import between_events
from tests.fixes.drive import run
from tests.selection import sampled
from wirelint.text.loops import MOST_MARKS

TOOLS = {"look": schema(q="string")}
UNITS = [
    "</think>",
    "<think>",
    "<",
    "<tool_call>{",
    '[TOOL_CALLS][{"name":',
    "<|im_end|>",
    "[ARGS]",
    "&lt;tool_call&gt;{",
]
CALL = '<tool_call>\n{"name": "look", "arguments": {"q": "ferry"}}\n</tool_call>\n'


def talk(text: str, step: int = 64) -> Talk:
    return Talk((User("Go on."),), text=text, tools=TOOLS, step=step)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_loops_take_bounded_time(unit: str, stream: bool) -> None:
    """Any of these took longer than ten seconds."""
    record = talk(unit * (24_000 // len(unit))).record("openai.chat", stream)
    body = record["response"]["body"].encode()
    start = time.thread_time()
    done = run(record, cuts=between_events(body) if stream else ())
    assert not done.faults
    assert done.findings is not None
    assert time.thread_time() - start < 3


@pytest.mark.parametrize(("api", "step"), sampled(list(product(CALLING[:4], [0, 1, 8, 64])), 3))
def test_text_before_too_many_marks_is_fixed_in_any_pieces(api: str, step: int) -> None:
    said = CALL + "\nand then\n" + "a <tool_call> b " * (2 * MOST_MARKS)
    done = run(talk(said, step or 7).record(api, bool(step)), ["xml-leak"])
    choice = some(done.after.reply).choices[0]
    assert [(call.name, call.arguments.mapping) for call in choice.calls] == [("look", {"q": "ferry"})]
    assert choice.text.strip() == said.removeprefix(CALL).strip()
