"""A rule of the tests' own, with a safe and an unsafe fix on both sides, and captures that it repairs.

`LOUD` becomes `calm` (safe), `SCREAM` becomes `word` (unsafe): in the first message of a request, in any text of a reply.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.build import Talk, User
from tests.rules.case import write_example
from wirelint.fix import NO_FIXES, FixPolicy
from wirelint.registry import Registry
from wirelint.rule import Rule

RULE = '''
from __future__ import annotations

from wirelint.events import Delta
from wirelint.model import Text
from wirelint.rule import Edit, Fix, Rule

WORDS = (("LOUD", "calm", "safe"), ("SCREAM", "word", "unsafe"))


class Shout(Rule):
    """A text shouts.

    ## What it does
    Finds words in capitals.

    ## Why is this bad?
    It is loud.

    ## Example
    LOUD

    ## False positives
    None.

    ## Fix safety
    Both.
    """

    code = "XX901"
    name = "shout"
    severity = "warning"
    layer = "model"

    def check_request(self, exchange, ledger):
        for part in exchange.request.messages[0].parts:
            yield from self._found("request", part)

    def check_reply(self, exchange, ledger):
        for choice in exchange.reply.choices:
            for part in choice.parts:
                yield from self._found("response", part)

    def _found(self, side, part):
        for loud, calm, safety in WORDS if isinstance(part, Text) else ():
            if loud in part.text:
                yield self.finding(side, f"says {loud}", part.pointer, fix=Fix(safety, f"say {calm}"))

    def rewriter(self, situation):
        return Quieter(self, situation)

    def fix_request(self, exchange, ledger, permit):
        text = exchange.request.messages[0].text
        for loud, calm, safety in WORDS:
            if loud in text and permit.allows(self.code, safety):
                made = text = text.replace(loud, calm)
                repair = self.repair("request", safety, f"said {calm}", "/messages/0", before=loud, after=calm)
                yield [Edit("replace", "/messages/0/content", made)], repair


class Quieter:
    held = None

    def __init__(self, rule, situation):
        self.rule, self.situation = rule, situation

    def push(self, event):
        for loud, calm, safety in WORDS:
            if isinstance(event, Delta) and loud in event.text and self.situation.permit.allows("XX901", safety):
                event = event._replace(text=event.text.replace(loud, calm))
                repair = self.rule.repair("response", safety, f"said {calm}", event=event.frame.number,
                                          before=loud, after=calm)
                self.situation.repairs.append(repair)
        return (event,)

    def release(self):
        return ()
'''


def write_rule(folder: Path) -> Path:
    """A folder that holds the rule, for `--rules`."""
    folder.mkdir(exist_ok=True)
    path = folder / "xx901_shout.py"
    path.write_text(RULE, encoding="utf-8")
    write_example(path)
    return folder


def _load() -> tuple[Rule, ...]:
    with tempfile.TemporaryDirectory() as folder:
        return Registry.load([write_rule(Path(folder))]).select(["XX901"])


SHOUT = _load()


SAFE, UNSAFE, NONE = FixPolicy("safe"), FixPolicy("unsafe"), NO_FIXES


def record(said: str = "Hello", answer: str = "Good day.", api: str = "openai.chat", stream: bool = True) -> Any:
    """A hand-made record. The reply's text comes in one delta, so that the rule needs no memory."""
    return Talk((User(said),), text=answer, step=10_000).record(api, stream)


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in records), encoding="utf-8")
    return path
