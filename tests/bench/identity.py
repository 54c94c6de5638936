"""For mitmproxy: the least that a streaming addon can do, one call of Python per chunk."""

from mitmproxy import http


def responseheaders(flow: http.HTTPFlow) -> None:
    if flow.response is not None:
        flow.response.stream = lambda data: data
