"""What a live run repaired, repaired again from its captures: the same code, so the same result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.build import REGISTRY
from tests.live.harness import Upstream, running
from tests.live.test_captures import drive_all
from tests.selection import sampled
from wirelint.capture.format import changes
from wirelint.capture.offline import Fixed, fix
from wirelint.capture.readers import read
from wirelint.capture.record import Record
from wirelint.capture.replay import mended, replay
from wirelint.capture.writers import write
from wirelint.fix import Safety

pytestmark = pytest.mark.live


def _told(record: Record) -> list[tuple[str, ...]]:
    return [(fix.code, fix.safety, fix.side, fix.title) for fix in record.fixes]


def _reply(record: Record) -> list[tuple[str, list[tuple[str | None, str]]]]:
    """What the client made of its reply."""
    exchange = replay(mended(record))
    assert exchange is not None
    assert exchange.reply is not None
    calls = [[(call.name, call.arguments.text) for call in choice.calls] for choice in exchange.reply.choices]
    return list(zip([choice.text for choice in exchange.reply.choices], calls, strict=True))


def _fixed(path: Path, most: Safety) -> list[Fixed]:
    return [item for item in fix(read([path]), REGISTRY.rules, REGISTRY.permit(most)) if isinstance(item, Fixed)]


@pytest.mark.parametrize("most", sampled(["safe", "unsafe"], 1))
def test_offline_gives_what_live_gave(upstream: Upstream, tmp_path: Path, most: Safety) -> None:
    with running(tmp_path, upstream.url, f"wirelint_fix={most}") as proxy:
        count = drive_all(proxy, upstream, repaired=True)
        proxy.stop()
        folder = proxy.capture().parent
    for name in ("exchanges.jsonl", "flows.mitm"):
        path = folder / name
        live = [item for item in read([path]) if isinstance(item, Record)]
        offline = _fixed(path, most)
        assert len(live) == len(offline) == count
        assert sum(bool(item.fixes) for item in live) >= 3, "nothing was repaired, so nothing was compared"
        for one, two in zip(live, offline, strict=True):
            assert _told(two.record) == _told(one), one.request_headers
            # A mark in the place of a secret may come with another event than the secret did.
            if b"[redacted:" not in (one.response_body or b""):
                assert changes(two.record) == changes(one), one.request_headers
            else:
                assert _reply(two.record) == _reply(one), one.request_headers
        write(path, offline, tmp_path / name)
        again = _fixed(tmp_path / name, most)
        assert [changes(item.record) for item in again] == [changes(item.record) for item in offline]
