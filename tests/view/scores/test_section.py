"""The scorecard on a page: what came from the wire is text there."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from wirelint.view.scorecard import section
from wirelint.view.scores import Card, Observation, Outcome


def test_names_are_text() -> None:
    card = Card('<img src=x onerror="x">', "</svg><script>alert(1)</script>")
    card.add(Observation(card.provider, card.model, Outcome("tool_calls", 1, 1, ("tide",)), duration=1200.0))
    page = ElementTree.fromstring(f"<div>{section([card])}</div>".replace("<br>", "<br/>"))
    names = {node.tag.rpartition("}")[2] for node in page.iter()}
    assert not names & {"script", "img"}
    assert {"svg", "table", "details"} <= names
    shown = "".join(page.itertext())
    assert "</svg><script>alert(1)</script>" in shown
    assert "100.0 %" in shown
