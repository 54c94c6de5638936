"""Conversations are the same live and in the captures that a live run writes, branches included."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from tests.addon.build import result_of_record
from tests.build import Assistant, Call, Result, Talk, Turn, User, checked
from wirelint.capture.format import encode
from wirelint.capture.offline import Checked
from wirelint.capture.readers import read
from wirelint.engine import Engine
from wirelint.model import Link
from wirelint.view.findings import annotations_of

_KEY = "sk-proj-4hTq8ZmWc2Rk9LxYv0BnA7dE5fG3hJ6kP1sU"


def _talks(draw: random.Random) -> list[Talk]:
    """Conversations that open alike, go on and branch off, in the order in which their exchanges end."""
    ended: list[Talk] = []
    for _ in range(60):
        history: tuple[Turn, ...] = (User(f"The key is {_KEY}. Look."),)
        if ended and draw.random() < 0.8:
            before = draw.choice(ended[-5:])
            said = Assistant(before.text, tuple(before.calls))
            given: list[Turn] = [Result(call.id, draw.choice(["dust", "gold"])) for call in before.calls]
            history = (*before.history, said, *(given or [User(draw.choice(["why", f"with {_KEY}"]))]))
        calls = (Call("look", {"at": draw.choice("ab")}, f"call_{draw.getrandbits(90):022x}z1"),)
        talk = Talk(history, text=draw.choice(["well", "so"]), calls=calls if draw.random() < 0.5 else ())
        ended.append(replace(talk, status=500) if draw.random() < 0.05 else talk)
    return ended


def test_a_capture_gives_the_same_conversations(tmp_path: Path) -> None:
    engine = Engine(())
    verdicts = [
        result_of_record(talk.record("openai.chat", number % 2 == 0), engine=engine, name=f"flow-{number}")
        for number, talk in enumerate(_talks(random.Random(5)))
    ]
    file = tmp_path / "exchanges.jsonl"
    file.write_bytes(b"".join(encode(result.record, annotations_of(result)) for result in verdicts))
    assert _KEY.encode() not in file.read_bytes()
    again = checked(read([str(file)]), ())

    def links(items: list[Checked]) -> list[tuple[str | None, Link | None]]:
        return [(item.exchange.conversation, item.exchange.link) for item in items if item.exchange is not None]

    live = links(verdicts)
    assert live == links(again)
    assert [item.record.annotations["conversation"] for item in again] == [conversation for conversation, _ in live]
    assert len({conversation for conversation, _ in live}) > 5
    assert any(link is not None and link.how == "fork" for _, link in live)
