"""A server of tools and a client of it, built with the `mcp` package in either of its major versions."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.metadata
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Literal

import mcp
import uvicorn
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.live.harness import PATIENCE, wait_until

FIRST = importlib.metadata.version("mcp").startswith("1.")
http: Any = importlib.import_module("httpx" if FIRST else "httpx2")

Transport = Literal["json", "stream", "older"]
TRANSPORTS: tuple[Transport, ...] = ("json", "stream", "older")
PAGES = {"leave": "2 pages: Leave, Absence", "pay": "1 page: Salaries", "sick": "3 pages: Illness, Doctors, Pay"}


def _app(transport: Transport, add_tools: Callable[[Any], None]) -> Any:
    if FIRST:
        made: Any = importlib.import_module("mcp.server.fastmcp").FastMCP("wiki", json_response=transport == "json")
        add_tools(made)
        return made.sse_app() if transport == "older" else made.streamable_http_app()
    made = importlib.import_module("mcp.server.mcpserver").MCPServer("wiki")
    add_tools(made)
    return made.sse_app() if transport == "older" else made.streamable_http_app(json_response=transport == "json")


def _add_tools(server: Any) -> None:
    def search_wiki(query: str) -> str:
        """Search the wiki for pages."""
        if query not in PAGES:
            raise ValueError(f"the index of {query} is offline")
        return PAGES[query]

    def add_page(title: str) -> str:
        """Add a page to the wiki."""
        return f"added {title}"

    for tool in (search_wiki, add_page):
        server.tool()(tool)


@contextlib.contextmanager
def serving(transport: Transport, add_tools: Callable[[Any], None] = _add_tools) -> Iterator[str]:
    """A running server of tools, and the URL of its endpoint. `add_tools` gives the server what it offers."""
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(_app(transport, add_tools), log_level="error", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, "the server of tools")
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/{'sse' if transport == 'older' else 'mcp'}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        bound.close()


@contextlib.asynccontextmanager
async def _connected(url: str, proxy: str) -> AsyncIterator[mcp.ClientSession]:
    if url.endswith("/sse"):
        factory: Any = lambda **given: http.AsyncClient(proxy=proxy, **given)  # noqa: E731
        async with (
            sse_client(url, httpx_client_factory=factory) as (read, write),
            mcp.ClientSession(read, write) as one,
        ):
            await one.initialize()
            yield one
        return
    async with (
        http.AsyncClient(proxy=proxy, timeout=PATIENCE, follow_redirects=True) as client,
        streamable_http_client(url, http_client=client) as streams,
        mcp.ClientSession(streams[0], streams[1]) as one,
    ):
        await one.initialize()
        yield one


def in_session(url: str, proxy: str, use: Callable[[mcp.ClientSession], Awaitable[Any]]) -> Any:
    """Runs `use` with a session through the proxy."""

    async def run() -> Any:
        async with _connected(url, proxy) as session:
            return await use(session)

    return asyncio.run(asyncio.wait_for(run(), PATIENCE))


Tools = Callable[[str, dict[str, Any]], Awaitable[str]]


def with_tools(url: str, proxy: str, use: Callable[[Tools], Awaitable[None]]) -> None:
    """Runs `use` with a function that calls a tool by name, over a session through the proxy."""

    async def run(session: mcp.ClientSession) -> None:
        listed = await session.list_tools()
        assert sorted(tool.name for tool in listed.tools) == ["add_page", "search_wiki"]

        async def call(name: str, arguments: dict[str, Any]) -> str:
            return text_of(await session.call_tool(name, arguments))

        await use(call)

    in_session(url, proxy, run)


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
