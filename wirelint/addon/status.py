"""Script for proxies in tests: answers `GET /.wirelint/pending` with the number of exchanges not yet written.

A client has its reply before the exchange is checked and captured; a test polls until `{"pending": 0}`.
"""

from __future__ import annotations

import json

from mitmproxy import ctx, http

from wirelint.addon.addon import Inspector

PATH = "/.wirelint/pending"


class Status:
    """Loaded after the addon, in the same proxy."""

    name = "wirelint-status"

    def request(self, flow: http.HTTPFlow) -> None:
        if flow.request.path != PATH:
            return
        inspector = ctx.master.addons.get("wirelint")  # type: ignore[no-untyped-call]
        pending = inspector.pending if isinstance(inspector, Inspector) else 0
        flow.response = http.Response.make(
            200, json.dumps({"pending": pending}).encode(), {"content-type": "application/json"}
        )


addons = [Status()]
