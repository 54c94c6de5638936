"""A reader of the live page's events, and the contrast of a page's texts."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

PATIENCE = 60.0


class Page:
    """The page at an address that has its token, without a browser."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self.port = self._parts.port or 80
        self.token = self._parts.query.removeprefix("token=")

    def get(self, path: str, **fields: str) -> tuple[int, str]:
        """Status and text. `token` and `host` are right unless given."""
        headers = {"host": fields.pop("host", self._parts.netloc)}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", f"{path}?{urlencode({'token': self.token, **fields})}", headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    def events(self) -> Iterator[tuple[str, Any]]:
        """Kind and data of each event, until the stream ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", f"/events?token={self.token}")
        kind = ""
        with contextlib.closing(connection), connection.getresponse() as reply:
            for line in reply:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    def states(self) -> Iterator[dict[str, Any]]:
        """The state of a page after each event: `rows` and `issues` by id, `totals`, `open`."""
        rows: dict[str, Any] = {}
        issues: dict[str, Any] = {}
        for kind, data in self.events():
            if kind == "end":
                return
            rows |= {row["id"]: row for row in data["rows"]}
            issues |= {issue["id"]: issue for issue in data["issues"]}
            yield {"rows": rows, "issues": issues, "totals": data["totals"], "open": data["open"]}


LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below, alpha) => below.map((value, n) => top[n] * alpha + value * (1 - alpha));
  const light = (colour) => colour
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, n) => sum + value * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (element) => {
    const above = element.parentElement ? ground(element.parentElement) : [255, 255, 255];
    const colour = read(getComputedStyle(element).backgroundColor);
    return over(colour, above, colour[3]);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.nodeValue.trim() || element.closest("script, style, noscript, option, .gone")) continue;
    if (!element.checkVisibility() || element.getBoundingClientRect().width < 2) continue;
    let alpha = 1;
    for (let at = element; at; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
    const below = ground(element);
    const ink = read(getComputedStyle(element).color);
    const [high, low] = [light(over(ink, below, ink[3] * alpha)), light(below)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) found.push([element.className, texts.currentNode.nodeValue.trim().slice(0, 30), ratio.toFixed(2)]);
  }
  return found;
}"""
"""Texts with a contrast below 4.5 (WCAG 1.4.3), with their ratio."""
