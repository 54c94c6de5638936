"""What `wirelint doctor` tells of the clients that it tried, and the cures that it names."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wirelint.launch.doctor.clients import Trial, judge

REFUSED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"


def test_the_cure_for_a_lack_of_trust_keeps_who_was_trusted_and_works_a_second_time(tmp_path: Path) -> None:
    system, authority, bundle = (tmp_path / name for name in ("system.pem", "own.pem", "wirelint-bundle.pem"))
    system.write_text("SYSTEM\n")
    for trusted, begin in ((system, "OLD\n"), (bundle, "NEW\n")):
        authority.write_text(begin)
        check = judge("curl", "curl", REFUSED, Trial({"CURL_CA_BUNDLE": str(trusted)}, authority))
        command = check.cure.removesuffix(", or use wirelint run")
        subprocess.run(["sh", "-ec", command], check=True, timeout=10)
    assert bundle.read_text() == "SYSTEM\nOLD\nNEW\n"
