"""What is loaded when the proxy begins to run stays. To go through all that, the collector would stop the traffic for a
tenth of a second at a time."""

from __future__ import annotations

import gc


def freeze() -> None:
    """Has the collector leave alone what is there now; once."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
