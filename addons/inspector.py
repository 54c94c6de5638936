"""wirelint for mitmproxy: `mitmdump -s addons/inspector.py`, the same with mitmweb and mitmproxy.

A shim. It finds the package (the checkout around this file first, else what is installed beside mitmproxy) and hands over
one instance of the addon, which holds all state: mitmproxy runs this file again whenever it changes.
"""

import logging
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_IN_CHECKOUT = (_ROOT / "wirelint" / "addon" / "addon.py").is_file()

# The root stays on the path only while the package is found: `tests` and `rules` lie there too, and would shadow others.
if _IN_CHECKOUT:
    sys.path.insert(0, str(_ROOT))
try:
    from wirelint.addon.addon import Inspector
except ModuleNotFoundError as error:
    if (error.name or "").startswith(("wirelint.", "mitmproxy.")):
        raise
    # An error while mitmproxy starts makes it stop; without the addon it would run on, unnoticed.
    logging.getLogger("wirelint").error(
        "wirelint cannot start: no module %r in the environment of mitmproxy; install it there: %s -m pip install %s",
        error.name,
        sys.executable,
        _ROOT if _IN_CHECKOUT else "wirelint",
    )
    addons = []
else:
    addons = [Inspector()]
finally:
    if _IN_CHECKOUT:
        sys.path.remove(str(_ROOT))
