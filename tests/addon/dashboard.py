"""A reader of the live page's events, and the contrast of a page's texts."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
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


LOW_CONTRAST = Path(__file__).with_name("low_contrast.js").read_text(encoding="utf-8")
"""A script: the texts with a contrast below 4.5 (WCAG 1.4.3), with their ratio."""
