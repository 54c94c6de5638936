"""What the history has on record that backs a claim: earlier calls, and content that came with the conversation."""

from __future__ import annotations

import re

from wirelint.claims import evidence
from wirelint.claims.actions import Kind
from wirelint.claims.claims import Claim
from wirelint.claims.toolkinds import PATH, Ability, abilities, ability, fits
from wirelint.model import HostedCall, HostedResult, Request, Tool, ToolCall

_MARKS = re.compile(
    r"[\w./-]*\d{2,}[\w./-]*|[\w-]+\.\w{1,5}\b|(?<=`)[^`\n]+(?=`)|(?<=[\"“])[^\"”\n]+(?=[\"”])|\b[A-Z][\w-]{2,}"
)
"""What a claim names: numbers, file names, code, quotations, proper names."""


def on_record(claim: Claim, request: Request, wanted: frozenset[Kind]) -> bool:
    """Whether an earlier call of the history may be what the claim speaks of.

    It is when its arguments hold what the claim names, and when the user has not just asked for another action of the
    kind.
    """
    same = calls_before(claim, request)
    if not same:
        return False
    marks = {mark.lower() for mark in _MARKS.findall(claim.object)}
    if any(mark in call.arguments.text.lower() for call in same for mark in marks):
        return True
    if _is_new(marks, same, request):
        return False
    place = PATH.search(claim.object)
    if place is not None and not _heard_of(place[0].rsplit("/", 1)[-1], same, request):
        return False
    return not wanted & claim.kinds


def _is_new(marks: set[str], calls: list[ToolCall], request: Request) -> bool:
    """Whether a claim names what the user has just named, and what neither those calls nor any result speaks of."""
    words = evidence.last_words(request).lower()
    named = [mark for mark in marks if mark in words]
    if not named or not all(call.arguments.mapping for call in calls):
        return False
    results = [result.text.lower() for message in request.messages for result in message.results]
    return not any(mark in text for mark in named for text in results)


def _heard_of(name: str, calls: list[ToolCall], request: Request) -> bool:
    """Whether a file may be among what the calls had to do with: they name it, a result does, or they name no file."""
    name = name.lower()
    if any(not PATH.search(call.arguments.text) or name in call.arguments.text.lower() for call in calls):
        return True
    return any(name in result.text.lower() for message in request.messages for result in message.results)


def calls_before(claim: Claim, request: Request) -> list[ToolCall]:
    """The calls on record that could have done what is claimed."""
    before = [call for message in request.messages for call in message.calls if call.name]
    return [call for call in before if fits(_of(call, request), claim.kinds, claim.verb, claim.object)]


def _of(call: ToolCall, request: Request) -> Ability:
    return ability(request.tool(call.name) or Tool(call.name or "", call.pointer))


def brought_along(claim: Claim, request: Request) -> bool:
    """Whether what was read or changed came with the conversation."""
    if not claim.kinds & {"read", "search", "write"}:
        return False
    if claim.kinds & {"read", "search"} and evidence.supplies_results(request):
        return True
    place = PATH.search(claim.object)
    if place is not None:
        return evidence.introduces(request, place[0].rsplit("/", 1)[-1])
    return "read" in claim.kinds and evidence.brings_content(request)


def tools_used(request: Request) -> tuple[Ability, ...]:
    """The abilities of the tools that were called in the conversation; none when any of it may have been anything."""
    if request.hosted or not request.tools_known or request.is_partial:
        return ()
    if not any(message.calls for message in request.turn):
        return ()
    calls = [call for message in request.messages for call in message.calls]
    if any(isinstance(part, (HostedCall, HostedResult)) for message in request.messages for part in message.parts):
        return ()
    declared = {name: request.tool(name) for name in {call.name for call in calls}}
    tools = [tool for tool in declared.values() if tool is not None and not tool.hosted]
    return abilities(tools) if len(tools) == len(declared) else ()
