"""The content view in both of mitmproxy's forms, and where what it shows comes from."""

from __future__ import annotations

from typing import Any

import pytest
from mitmproxy import contentviews, http
from mitmproxy.test import tflow

from tests.addon.build import CUT, ended, flow_of, head_of
from tests.addon.test_addon import BODY, RECORD
from tests.addon.test_websocket import CLEAN, LEAK, answered, asked, say, socket
from tests.build import Talk, User, some
from wirelint.addon import ui
from wirelint.addon.addon import Inspector
from wirelint.addon.ui import NAME
from wirelint.engine import Engine
from wirelint.model import Side

M12 = hasattr(contentviews, "Contentview")


@pytest.fixture(autouse=True)
def _shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirelint.addon.ui.is_shown", lambda: True)


def shown(flow: http.HTTPFlow, side: Side, view: str = "auto") -> tuple[str, str]:
    """The name of the view that mitmproxy takes, and what it shows."""
    return of_message(flow, getattr(flow, side), view)


def of_message(flow: http.HTTPFlow, message: Any, view: str = "auto") -> tuple[str, str]:
    views: Any = contentviews  # its types differ between the versions
    if M12:
        made = views.prettify_message(message, flow, view)
        return made.view_name, made.text
    name, lines, error = views.get_message_content_view(view, message, flow)
    assert error is None
    return name, "\n".join("".join(text for _, text in line) for line in lines)


def reopened(flow: http.HTTPFlow) -> http.HTTPFlow:
    """The flow as a file gives it back."""
    again = http.HTTPFlow.from_state(flow.get_state())
    assert isinstance(again, http.HTTPFlow)
    return again


def test_it_is_taken_for_exchanges_and_for_nothing_else(inspector: Inspector) -> None:
    flow = ended(inspector, RECORD)
    assert shown(flow, "request")[0] == shown(flow, "response")[0] == NAME
    other = tflow.tflow(resp=True)
    other.request.headers["content-type"] = "application/json"
    other.request.content = b'{"a": 1}'
    inspector.request(other)
    assert NAME not in (shown(other, "request")[0], shown(other, "response")[0])


def test_what_was_judged_is_not_read_again(inspector: Inspector, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = ended(inspector, CUT)

    def fail(*_: object) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr(ui, "recall", fail)
    assert "‼ error truncated-stream" in shown(flow, "response")[1]


def test_a_flow_that_nobody_remembers_is_read_and_shows_the_same(
    inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = ended(inspector, CUT)
    before = [shown(flow, "request")[1], shown(flow, "response")[1]]
    again = reopened(flow)
    monkeypatch.setattr(Engine, "judge", lambda *_: pytest.fail("its result stands in its metadata"))
    after = [shown(again, "request")[1], shown(again, "response")[1]]
    assert _timeless(after) == _timeless(before)
    assert "‼ error truncated-stream" in after[1]


def _timeless(pages: list[str]) -> list[str]:
    """The first line has times, which are measured otherwise in a file."""
    return [page.split("\n", 1)[1] for page in pages]


def test_a_flow_that_was_edited_is_judged_again(inspector: Inspector) -> None:
    flow = ended(inspector, CUT)
    flow.backup()
    some(flow.response).content = BODY
    page = shown(flow, "response")[1]
    assert "All is well." in page
    assert "truncated-stream" not in page


def test_while_it_streams(inspector: Inspector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "recall", lambda *_: pytest.fail("it is read along"))
    flow = flow_of(RECORD)
    inspector.request(flow)
    assert "no response bytes yet" in shown(flow, "request")[1]
    flow.response = head_of(RECORD)
    inspector.responseheaders(flow)
    half = BODY[: BODY.index(b"well")]
    assert callable(flow.response.stream)
    flow.response.stream(half)
    (found,) = inspector.open.values()
    glimpses = inspector.ui.preview
    glimpses._lend(found)
    assert flow.response.raw_content == half[:-1]
    name, page = shown(flow, "response")
    assert name == NAME
    assert "in progress" in page
    assert "reply      All" in page
    flow.response.stream(BODY[len(half) :])
    inspector.response(flow)
    assert flow.response.raw_content == BODY
    assert "in progress" not in shown(flow, "response")[1]


def test_a_failure_of_ours_is_one_line_above_the_body(inspector: Inspector, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = ended(inspector, RECORD)

    def fail(*_: object) -> None:
        raise RuntimeError("broken\nin two lines")

    monkeypatch.setattr("wirelint.addon.ui.lines", fail)
    for view in ("auto", NAME):
        name, page = shown(flow, "response", view)
        first, _, rest = page.partition("\n")
        assert name == NAME
        assert first == (
            "wirelint: the view of this exchange failed (RuntimeError: broken in two lines); raw body shown"
        )
        assert [line for line in rest.split("\n") if line.strip()] == BODY.decode().split("\n\n")[:-1]
        assert "Traceback" not in page


def test_what_is_no_exchange_says_so_when_the_view_is_chosen_by_hand(inspector: Inspector) -> None:
    flow = tflow.tflow(resp=True)
    assert shown(flow, "response", NAME)[1].startswith("wirelint: unrecognised API; raw body")
    assert "message" in shown(flow, "response", NAME)[1]


def test_both_forms_show_the_same(inspector: Inspector) -> None:
    flow = ended(inspector, CUT)
    view = inspector.ui._view
    assert flow.response is not None
    metadata: Any = type("Metadata", (), {"flow": flow, "http_message": flow.response})()
    name, lines = view(BODY, flow=flow, http_message=flow.response, content_type=None, tcp_message=None)
    spans = [line for line in lines if all(isinstance(style, str) and style for style, _ in line)]
    assert name == NAME
    assert "\n".join("".join(text for _, text in line).rstrip() or " " for line in spans) == view.prettify(
        BODY, metadata
    )
    assert view.render_priority(BODY, metadata) > 50
    assert view.render_priority(BODY, flow=flow, http_message=flow.response) > 50
    assert view.render_priority(BODY, flow=None, http_message=None) < 0


@pytest.mark.parametrize(
    "detail",
    [None, "text", [], [1], [{}], [{"code": "X", "name": "y", "message": "z", "severity": "fatal"}], {"a": 1}],
    ids=repr,
)
def test_metadata_that_is_no_result(inspector: Inspector, detail: Any) -> None:
    flow = ended(inspector, RECORD)
    again = reopened(flow)
    again.metadata["wirelint.detail"] = detail
    again.metadata["wirelint.notes"] = detail
    assert "All is well." in shown(again, "response")[1]


def test_a_call_shows_what_it_gave_later(inspector: Inspector) -> None:
    from tests.view.test_exchange_view import HISTORY, SEARCH, TOOLS

    first = ended(inspector, Talk(history=HISTORY[:1], tools=TOOLS, calls=(SEARCH,)).record("openai.chat", True))
    ended(inspector, Talk(history=HISTORY, tools=TOOLS, text="On the fourth.").record("openai.chat", True))
    ended(inspector, Talk(history=(User("Something else."),)).record("openai.chat", True))
    assert "← On the 4th.  in a later request" in shown(first, "response")[1]


def test_messages_that_begin_and_end_an_exchange_of_a_socket(inspector: Inspector) -> None:
    flow = socket()
    assert flow.websocket is not None
    flow.websocket.closed_by_client = None
    say(inspector, flow, True, asked(CLEAN))
    name, page = of_message(flow, flow.websocket.messages[-1])
    assert (name, "in progress" in page) == (NAME, True)
    say(inspector, flow, False, *answered(CLEAN))
    say(inspector, flow, True, asked(LEAK))
    say(inspector, flow, False, *answered(LEAK))
    shown = [of_message(flow, message) for message in flow.websocket.messages]
    ours = [page for name, page in shown if name == NAME]
    assert len(ours) == 4
    assert "user       Please go on." in ours[0]
    assert "in progress" not in ours[0]
    assert "reply      All is well." in ours[1]
    assert "‼ error xml-leak" in ours[3]
    assert "‼ error xml-leak" in of_message(again := reopened(flow), some(again.websocket).messages[-1])[1]
    other = socket()
    other.request.path = "/chat"
    say(inspector, other, True, b'{"type": "response.create"}')
    say(inspector, other, False, b'{"type": "error"}')
    assert NAME not in [of_message(other, message)[0] for message in some(other.websocket).messages]
