"""Entry point: `wirelint`, and `python -m wirelint`. Nothing else is imported before Ctrl-C is handled."""

from __future__ import annotations

import os

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. Ctrl-C while its modules are imported ends the process without a traceback."""
    try:
        import signal

        before = signal.getsignal(signal.SIGINT)
        if before is signal.default_int_handler:  # else the parent process ignores the signal
            # An exception could be swallowed or printed in the middle of an import.
            signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))
        from wirelint import cli

        signal.signal(signal.SIGINT, before)
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)
    cli.main()


if __name__ == "__main__":
    main()
