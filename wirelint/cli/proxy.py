"""`wirelint proxy`: mitmproxy in front of an upstream, the addon loaded."""

from __future__ import annotations

import click

from wirelint.cli.guidance import guided
from wirelint.text.escaping import no_guard


@guided(
    examples=(
        (
            "in front of a vendor; then point the client at http://127.0.0.1:8080",
            "wirelint proxy --upstream https://api.openai.com",
        ),
        (
            "repair what is safe to repair, before the client gets it",
            "wirelint proxy --upstream https://openrouter.ai --set wirelint_fix=safe",
        ),
        ("watch in the browser", "wirelint proxy --upstream http://localhost:8000 --port 9000 --web"),
    ),
    exits={
        0: "stopped",
        1: "mitmproxy stopped with an error",
        2: "an address, a port or an option that cannot be used",
    },
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True},
)
@click.option("--upstream", required=True, metavar="URL", help="The API's address: https://api.openai.com.")
@click.option(
    "--listen-host",
    "host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen at: only this machine can connect, unless another address is given.",
)
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen at.")
@click.option("--web", is_flag=True, help="Open mitmweb, in the browser.")
@click.option("--console", is_flag=True, help="Open mitmproxy, in the terminal.")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[MITMPROXY OPTIONS]")
def proxy(upstream: str, host: str, port: int, web: bool, console: bool, extra: tuple[str, ...]) -> int:
    """Start mitmproxy with wirelint in front of an upstream.

    Without --web or --console it is mitmdump. Point the client at http://127.0.0.1:PORT, with the path it has now. All
    other options go to mitmproxy: wirelint proxy --upstream https://api.openai.com --set wirelint_ignore=think-leak.
    """
    from wirelint.addon.proxy import UpstreamError, run
    from wirelint.addon.starting import StartError

    if web and console:
        raise click.UsageError("--web and --console are two tools; choose one")
    try:
        with no_guard():  # mitmproxy sets colours itself
            return run("mitmweb" if web else "mitmproxy" if console else "mitmdump", upstream, host, port, extra)
    except (UpstreamError, StartError) as error:
        raise click.UsageError(str(error)) from error
