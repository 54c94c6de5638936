"""Entry point: `wirelint`, and `python -m wirelint`. Nothing heavy is imported before Ctrl-C is handled."""

from __future__ import annotations

import os
import signal

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. Ctrl-C while its modules are imported ends the process without a traceback."""
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))
    from wirelint import cli

    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
