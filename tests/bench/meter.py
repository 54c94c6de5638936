"""For mitmproxy, in every process that is measured: says where it listens, and what it has used so far.

The port is written to the file that `WIRELINT_BENCH_PORT` names. `GET /bench/meter` is answered right here.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from mitmproxy import ctx, http

_UNIT = 1 if sys.platform == "darwin" else 1024


class Meter:
    def running(self) -> None:
        addresses = ctx.master.addons.get("proxyserver").listen_addrs()  # type: ignore[no-untyped-call]
        path = Path(os.environ["WIRELINT_BENCH_PORT"])
        path.with_suffix(".new").write_text(str(addresses[0][1]))
        path.with_suffix(".new").rename(path)

    def request(self, flow: http.HTTPFlow) -> None:
        if flow.request.path == "/bench/meter":
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
            flow.response = http.Response.make(200, json.dumps({"processor": time.process_time(), "peak": peak}))


addons = [Meter()]
