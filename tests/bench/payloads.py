"""What the benchmarks send: synthetic requests and replies of two APIs, clean but for the one with leaked markup."""

from __future__ import annotations

from typing import Literal

from tests.build import Assistant, Call, Talk, User, schema
from tests.cuts import events_of

Api = Literal["openai.chat", "anthropic.messages"]
Kind = Literal["prose", "code", "call", "markup"]

PATHS: dict[Api, str] = {"openai.chat": "/v1/chat/completions", "anthropic.messages": "/v1/messages"}

_PROSE = (
    "A river bends where the rock is soft, and after a flood it may bend elsewhere. The survey lists nine crossings; "
    "two of them are closed in winter. Whoever walks the northern path needs a map, since signs are rare up there. "
)
_CODE = (
    "for (i = 0; i < n && a[i] <= b; i++) { s <<= 1; t->next = <T>(u); } // List<Map<K, V>>, x <- y, <!-- kept -->\n"
)
_ARGUMENTS = {"region": "north", "season": "winter", "depth": 3}
_SCHEMA = schema(
    ("region",),
    region={"type": "string", "description": "Which part of the country, by its compass point."},
    season={"type": "string", "enum": ["spring", "summer", "autumn", "winter"]},
    depth={"type": "integer", "description": "How many neighbouring regions to take in."},
    note="string",
)
_NAMES = ("crossings", "weather", "distance", "ferries", "closures", "permits", "guides", "huts")
_TOOLS = {name: (f"Looks up {name} in the survey.", _SCHEMA) for name in _NAMES}


def text(size: int, source: str = _PROSE) -> str:
    return (source * (size // len(source) + 1))[:size]


def request(api: str, size: int, *, stream: bool) -> bytes:
    """The body of a request of about `size` bytes: eight tools, a few turns."""
    start = (User("Which crossings are there?"), Assistant("Nine, as far as the survey goes."))

    def body(words: str) -> bytes:
        talk = Talk((*start, User(f"Tell me more about them. {words}")), tools=_TOOLS)
        made: str = talk.record(api, stream)["request"]["body"]
        return made.encode()

    return body(text(max(size - len(body("")), 0)))


def whole(api: Api, size: int) -> bytes:
    """The body of a reply of about `size` bytes that is no stream."""
    return _reply(Talk(text=text(max(size - 300, 16))), api, stream=False)


def stream(api: Api, kind: Kind, events: int, size: int = 16) -> list[bytes]:
    """The events of a streamed reply, one item each: about `events` deltas of `size` characters."""
    total = events * size
    match kind:
        case "prose":
            talk = Talk(text=text(total), step=size)
        case "code":
            talk = Talk(text=text(total, _CODE), step=size)
        case "call":
            note = text(max(total - 80, 0))
            talk = Talk(calls=(Call("crossings", {**_ARGUMENTS, "note": note}),), tools=_TOOLS, step=size)
        case "markup":
            values = {**_ARGUMENTS, "note": text(total // 2)}
            call = "".join(f'<parameter name="{name}">{value}</parameter>\n' for name, value in values.items())
            talk = Talk(text=text(total // 2) + f'<invoke name="crossings">\n{call}</invoke>', tools=_TOOLS, step=size)
    return events_of(_reply(talk, api, stream=True))


def _reply(talk: Talk, api: Api, *, stream: bool) -> bytes:
    body: str = talk.record(api, stream)["response"]["body"]
    return body.encode()
