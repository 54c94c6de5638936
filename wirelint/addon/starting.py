"""A start that fails says why in one line of ours, before mitmproxy says that it listens.

mitmproxy refuses wrong arguments in words of its own, and finds a taken port when it has begun to say where it listens.
Here its arguments are read by mitmproxy, and what can be known to fail is looked for between that and its start.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NoReturn

from mitmproxy import options as mitmproxy_options
from mitmproxy.proxy import mode_specs
from mitmproxy.tools import cmdline
from mitmproxy.tools.main import run

from wirelint.addon import options as ours
from wirelint.launch.listening import check

Tool = Literal["mitmdump", "mitmweb", "mitmproxy"]
_PARSERS: dict[Tool, Callable[[mitmproxy_options.Options], argparse.ArgumentParser]] = {
    "mitmdump": cmdline.mitmdump,
    "mitmweb": cmdline.mitmweb,
    "mitmproxy": cmdline.mitmproxy,
}


class StartError(RuntimeError):
    """mitmproxy cannot start. One line: what, why, the cure."""


def start(tool: Tool, arguments: Sequence[str], make: Callable[[mitmproxy_options.Options], Any], port: str) -> int:
    """Runs mitmproxy until it is told to stop; its exit status. Raises StartError.

    `make` gives the master, `port` is the option that chooses the port.
    """
    before, said, argv = sys.stderr, io.StringIO(), sys.argv[:]
    started = False

    def checked(given: mitmproxy_options.Options) -> Any:
        master = make(given)
        begin = master.run

        async def run_checked() -> None:
            nonlocal started
            sys.stderr = before
            if (complaint := next(complaints(tool, given, port), None)) is not None:
                raise StartError(complaint)
            started = True
            await begin()

        master.run = run_checked
        return master

    sys.argv[:] = [tool]  # mitmproxy's messages begin with it; its hints on old options would speak of our own
    try:
        with contextlib.redirect_stderr(said):
            run(checked, _parser(tool), arguments, _filters if tool == "mitmdump" else None)  # type: ignore[arg-type]
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        if status and not started:
            why = _named(reason(said.getvalue()), arguments)
            raise StartError(f"{why}; {tool} --options lists what can be set") from None
        return status
    finally:
        sys.argv[:] = argv
    return 0


def _filters(arguments: Any) -> dict[str, str]:
    """mitmdump takes a filter of flows as an argument without a name."""
    words = " ".join(arguments.filter_args or ())
    return dict.fromkeys(("save_stream_filter", "readfile_filter", "dumper_filter"), words) if words else {}


def _parser(tool: Tool) -> Callable[[mitmproxy_options.Options], argparse.ArgumentParser]:
    """What makes mitmproxy's parser, which raises StartError for a wrong argument.

    mitmproxy itself would print hints on old options to stdout, or an empty line where it has none.
    """

    def refuse(message: str) -> NoReturn:
        raise StartError(f"{message}; {tool} --options lists what can be set")

    def make(given: mitmproxy_options.Options) -> argparse.ArgumentParser:
        parser = _PARSERS[tool](given)
        parser.error = refuse  # type: ignore[method-assign]
        return parser

    return make


def reason(said: str) -> str:
    """The reason in what mitmproxy prints: `mitmdump: error: unrecognized arguments: --nope` after its usage."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith(("usage:", " "))]
    told = lines[-1] if lines else "mitmproxy refused its arguments"
    for tool in _PARSERS:
        told = told.removeprefix(f"{tool}: ").removeprefix("error: ")
    return told


def _named(why: str, arguments: Sequence[str]) -> str:
    """A reason with the values that were set, where it names none of them: mitmproxy 11 says only `must be "true"`."""
    given = [after for before, after in itertools.pairwise(arguments) if before == "--set"]
    wrong = [one for one in given if not one.startswith(("wirelint_", "flow_detail=0", "showhost=false"))]
    if not wrong or any(one.partition("=")[0] in why for one in wrong) or why.startswith(("unrecognized", "No such")):
        return why
    return f"--set {', '.join(wrong)}: {why}"


def complaints(tool: Tool, given: Any, port: str) -> Iterator[str]:
    """What will not work, by mitmproxy's table of options before it starts."""
    if tool == "mitmproxy" and not sys.stdout.isatty():
        yield "mitmproxy's console needs a terminal; start it in one, or leave out --console"
    complaint = ours.complaint_about(given.deferred)
    if complaint is not None:
        yield complaint
    if len(given.scripts) < 2:  # another script may bring options of its own
        for name, value in given.deferred.items():
            # What stands in mitmproxy's config.yaml may be for other runs.
            if hasattr(value, "val") and not name.startswith("wirelint_"):
                near = difflib.get_close_matches(name, given.keys(), 1)
                hint = f"did you mean {near[0]}?" if near else f"{tool} --options lists those there are"
                yield f"--set {name}: neither mitmproxy nor wirelint has this option; {hint}"
    for mode in given.mode if given.server else ():
        spec = mode_specs.ProxyMode.parse(mode)
        number = spec.listen_port(given.listen_port)
        if number is not None and spec.transport_protocol != "udp":
            host = spec.listen_host(given.listen_host)
            if (taken := check(host, number, port)) is not None:
                yield taken
    if tool == "mitmweb" and (taken := check(given.web_host, given.web_port, "--set web_port=PORT")) is not None:
        yield f"mitmweb's page: {taken}"
