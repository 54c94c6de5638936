"""`wirelint mock` as a process."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys

import pytest

from tests.command import Wirelint
from wirelint.mock import FAULTS, MockServer


def test_list_names_every_fault_and_mode(wirelint: Wirelint) -> None:
    ran = wirelint("mock", "--list")
    assert ran.status == 0
    for name, fault in FAULTS.items():
        assert re.search(rf"^{name} ", ran.out, re.MULTILINE)
        assert all(mode in ran.out for mode in fault.modes)


def test_taken_port_is_one_line_and_status_2(wirelint: Wirelint) -> None:
    with MockServer() as server:
        ran = wirelint("mock", "--port", server.port)
    ran.refuses("--port", f"wirelint: 127.0.0.1 port {server.port} is taken by another program; ")


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
def test_process_serves_until_told_to_stop(number: signal.Signals) -> None:
    command = [sys.executable, "-c", "from wirelint.cli.mock import mock; mock()", "--fault", "think-leak"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            port = re.fullmatch(r"wirelint mock listening on http://127\.0\.0\.1:(\d+)\n", line)
            assert port
            connection = http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=5)
            body = '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
            connection.request("POST", "/v1/chat/completions", body)
            assert b"</think>" in connection.getresponse().read()
            process.send_signal(number)
            out, err = process.communicate(timeout=10)
            connection.close()
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", "")
