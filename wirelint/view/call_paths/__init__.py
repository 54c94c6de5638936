"""The path of a tool call through all layers: model, gateway, client, tool, client, model; and where it ends.

Theory of operation. A call is born in a reply. What the client got of it is told by that exchange too: the reply as it
came, or as it was delivered instead. Then the exchanges that go on from there are looked at (`Exchange.link`, else the same
call in a later history of the conversation): the one that carries the call shows what the client made of it and of its
result, and its reply is what the model made of that. Where the servers of tools speak on the same wire, what passed
between client and tool is known as well, and told in its place; where they do not, the result in the history is all there
is.

A path ends where the next thing did not happen. It is not wrong for that: the last exchange of a capture is the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wirelint.capture.offline import Checked
from wirelint.history.ids import key
from wirelint.view.call_paths.calls import calls_of_exchange
from wirelint.view.call_paths.tracer import Source, Tracer, in_the_text
from wirelint.view.call_paths.values import Path, State, Step

__all__ = ["Path", "Paths", "State", "Step"]


class Paths:
    """The paths of all calls in some captures. Exchanges are added in their order; then paths can be asked for."""

    def __init__(self, items: Iterable[Checked] = ()) -> None:
        self._sources: dict[str, Source] = {}
        for checked in items:
            if checked.exchange is not None:
                self._sources.setdefault(checked.record.source, Source()).add(checked, checked.exchange)

    def all(self) -> Iterator[Path]:
        """A path for each call of a reply, those among them that stand in its text only, in the order of the replies."""
        for source in self._sources.values():
            for number, (checked, exchange) in enumerate(source.items):
                if exchange.api == "mcp":
                    continue
                for choice, call in calls_of_exchange(exchange):
                    yield Tracer(source, number, choice, call).path()
                yield from in_the_text(checked, exchange)

    def of_call(self, id_: str) -> tuple[Path, ...]:
        """The paths of the calls with this id, or with an id that is the same but for marks and case; else of this name."""
        found = tuple(self.all())
        for same in (
            [path for path in found if path.id == id_],
            [path for path in found if path.id and key(path.id) == key(id_)],
            [path for path in found if path.name == id_],
        ):
            if same:
                return tuple(same)
        return ()

    def of_exchange(self, id_: str) -> tuple[Path, ...]:
        return tuple(path for path in self.all() if path.exchange == id_)

    def of_conversation(self, conversation: str) -> tuple[Path, ...]:
        return tuple(path for path in self.all() if path.conversation == conversation)
