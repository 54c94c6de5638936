"""For mitmproxy, in every process that is measured: it answers `GET /bench/meter` with what the process has used so far.

`processor` in seconds; `peak` and `resident` memory in bytes. Where the system does not tell the latter, both are the peak.
"""

import json
import resource
import sys
import time
from pathlib import Path

from mitmproxy import http

_UNIT = 1 if sys.platform == "darwin" else 1024
_PAGES = Path("/proc/self/statm")


def request(flow: http.HTTPFlow) -> None:
    if flow.request.path == "/bench/meter":
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
        resident = int(_PAGES.read_text().split()[1]) * resource.getpagesize() if _PAGES.exists() else peak
        used = {"processor": time.process_time(), "peak": peak, "resident": resident}
        flow.response = http.Response.make(200, json.dumps(used))
