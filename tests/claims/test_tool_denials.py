"""What counts as a denial of tools, and what only sounds like one."""

from __future__ import annotations

import pytest

from wirelint.claims.tool_denials import denial
from wirelint.model import Tool

TIDES = (Tool("get_tides", "/tools/0", "Tide tables of a harbour."),)
NOTES = (Tool("notes_search", "/tools/0", "Search the notes."), Tool("http", "/tools/1", "Perform an HTTP request."))
CALENDAR = (Tool("list_events", "/tools/0"), Tool("readFile", "/tools/1", "Read a file."))

DENIALS: dict[str, tuple[str, str, tuple[Tool, ...], bool]] = {
    "none at all": ("I don't have any tools available in this conversation.", "", TIDES, True),
    "no access to any": ("Sorry, I do not currently have access to any tools.", "", TIDES, True),
    "one of its kind": ("I do not have a tide tool.", "", TIDES, True),
    "for what it is": ("I don't have a function for looking up tides.", "", TIDES, True),
    "for what was asked": ("I don't have a tool for that.", "When is high tide?", TIDES, True),
    "there are none": ("There are no tools available to me.", "", TIDES, True),
    "none were given": ("No functions have been provided to me.", "", TIDES, True),
    "it would need one": ("I would need a search tool for that, but I do not have one.", "", NOTES, True),
    "it cannot call": ("I can't call functions in this chat.", "", NOTES, True),
    "typographic": ("I don’t have HTTP tools here.", "", NOTES, True),
    "no access": ("I don't have access to tide data.", "", TIDES, False),
    "an ability, by its field": ("I don't have the ability to see your calendar.", "", CALENDAR, False),
    "unable": ("I'm unable to open files on your disk.", "", CALENDAR, False),
    "German": ("Mir fehlt das: ich habe hier keine Tools.", "", TIDES, True),
    "Spanish": ("No tengo ninguna herramienta para eso.", "", TIDES, True),
    "German, for what it is": ("Ich habe leider kein Werkzeug, um Gezeiten abzufragen.", "", TIDES, True),
    "Russian": ("К сожалению, у меня нет доступа к инструментам.", "", TIDES, True),
    "Polish": ("Niestety nie mam dostępu do narzędzi.", "", TIDES, True),
    "Dutch": ("Ik heb geen toegang tot tools in dit gesprek.", "", TIDES, True),
    "Korean": ("저는 현재 도구를 사용할 수 없습니다.", "", TIDES, True),
    "for a deed of a declared one": ("I don't have a tool to list events.", "", CALENDAR, True),
    "Japanese": ("そのためのツールはありません。", "", TIDES, True),
}

OTHERS: dict[str, tuple[str, str, tuple[Tool, ...]]] = {
    "nothing of the kind": ("High tide is at noon.", "", TIDES),
    "something else": ("I don't have a tool for booking ferries.", "Book the ferry.", TIDES),
    "for that, which no tool does": ("I don't have a tool for that.", "Write a sonnet.", TIDES),
    "another deed, of the same things": ("I don't have a tool to delete files; I can only read them.", "", CALENDAR),
    "another deed, in another form": ("There is no function for deleting files.", "", CALENDAR),
    "another deed, an ability": ("I don't have the ability to delete events.", "", CALENDAR),
    "another deed, in German": ("Ich habe kein Werkzeug, um Dateien zu löschen.", "", CALENDAR),
    "another deed, in Spanish": ("No tengo ninguna herramienta para enviar archivos.", "", CALENDAR),
    "supposed": ("If I don't have any tools, I say so.", "", TIDES),
    "affirmed": ("I have a tide tool for that.", "", TIDES),
    "quoted": ("`I don't have any tools`", "", TIDES),
    "what the user is to give": ("I can't read the file. Please paste it here.", "", CALENDAR),
    "knowledge": ("I don't have access to your location.", "", TIDES),
    "code": ("There is no function in this class that takes two arguments.", "", CALENDAR),
    "power tools": ("I don't have opinions on power tools.", "", TIDES),
}


@pytest.mark.parametrize("name", DENIALS)
def test_denials(name: str) -> None:
    text, asked, tools, outright = DENIALS[name]
    found = denial(text, asked, tools)
    assert found is not None
    assert (text[found.start :].startswith(found.said), found.outright) == (True, outright)


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_sounds_like_one(name: str) -> None:
    assert denial(*OTHERS[name]) is None


def test_it_is_linear() -> None:
    """A text of nothing but beginnings; four times of it must not cost sixteen times as much."""
    assert denial("I currently actually do not have " * 2_000, "", TIDES) is None
