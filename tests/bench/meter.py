"""For mitmproxy, in every process that is measured: it answers `GET /bench/meter` with what the process has used so far."""

import json
import resource
import sys
import time

from mitmproxy import http

_UNIT = 1 if sys.platform == "darwin" else 1024


def request(flow: http.HTTPFlow) -> None:
    if flow.request.path == "/bench/meter":
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
        flow.response = http.Response.make(200, json.dumps({"processor": time.process_time(), "peak": peak}))
