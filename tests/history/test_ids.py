"""Ids as strings: whose they are, which is which altered, what they were before."""

from __future__ import annotations

import hashlib

import pytest

from tests.build import some
from wirelint.history.ids import (
    is_placeholder,
    match,
    restore,
)

OPENAI = "call_9QfXb2LmZt7RkVw3Nc8HsYpD"
CLAUDE = "toolu_01Hk3TnBv5QxWz8LrMc2PdYf"
KIMI = "functions.read_map:3"


@pytest.mark.parametrize(
    ("one", "other", "how", "certainty"),
    [
        (KIMI, f"  {KIMI}", "white space", "high"),
        (KIMI, "functions.read_map%3A3", "percent", "high"),
        (CLAUDE, CLAUDE.lower(), "its letters lower-cased", "high"),
        (KIMI, "functionsreadmap3", "everything but letters and digits removed", "high"),
        (KIMI, "functions_read_map_3", "`.` and `:` replaced by `_`", "high"),
        (KIMI, "functionsread_map3", "`.` and `:` removed", "high"),
        (KIMI, "functions_read_map3", "`:` removed and `.` replaced by `_`", "high"),
        (KIMI, "FUNCTIONSREAD_MAP3", "`.` and `:` removed and its letters upper-cased", "high"),
        (KIMI, "functions-read_map:3", "`.` replaced by `-`", "high"),
        (KIMI.replace(":", ""), KIMI, "`:` put in", "high"),
        (OPENAI, OPENAI.replace("call_", "fc_"), "its prefix `call_` replaced by `fc_`", "medium"),
        (KIMI, "read_map:3", "its prefix `functions.` removed", "medium"),
        ("read_map:3", "call_read_map3", "the prefix `call_` put before it and `:` removed", "medium"),
        ("functions.read_map_long:3", "functionsread_map_l", "its end cut off and `.` removed", "high"),
        (OPENAI, f"{OPENAI}|fc_0d", "a second id", "high"),
        (f"{OPENAI}|fc_0d", OPENAI, "the second id in it removed", "high"),
        (f"{OPENAI}|fc_0d", f"{OPENAI}9|fc_0d", "something added to its end", "high"),
        (KIMI, "functions.read_map", "its end cut off", "high"),
        (OPENAI, OPENAI[:20], "its end cut off", "high"),
        (OPENAI, "call9QfXb", "its end cut off", "high"),
        (OPENAI, OPENAI[-9:], "its beginning cut off", "medium"),
        ("Zk93LmQ7t", "8841-Zk93LmQ7t", "something put before it", "medium"),
        (OPENAI, f"{OPENAI}x2", "something added", "high"),
        (OPENAI, hashlib.sha256(OPENAI.encode()).hexdigest()[:9], "digest", "high"),
        ("Edit:0", f"Tool_{hashlib.md5(b'Edit:0').hexdigest()[:8]}", "digest", "high"),
        (OPENAI, "read_map", "function's name", "medium"),
    ],
)
def test_one_id_is_another_altered(one: str, other: str, how: str, certainty: str) -> None:
    found = some(match(one, other, "read_map"))
    assert how in found.how
    assert found.certainty == certainty


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (OPENAI, OPENAI),
        (OPENAI, "call_Kp2ZtNv9QmXc4RbWs7LdHfYg"),
        ("call_1", "call_2"),
        ("call_1", "call_12"),
        ("toolcall_1", "toolcall_12"),
        ("functions.read:1", "functions.read:10"),
        ("functions.read:1", "functionsread10"),
        ("functions.read_directory:1", "functionsreaddirectory10"),
        ("read:0", "write:0"),
        ("", OPENAI),
        (OPENAI, ""),
        ("a" * 2000, "a" * 2001),
        (CLAUDE, OPENAI),
    ],
)
def test_strangers_do_not_match(one: str, other: str) -> None:
    assert match(one, other, "read_map") is None


@pytest.mark.parametrize(
    ("id_", "name", "before"),
    [
        ("functionsreadmap3", "read_map", KIMI),
        ("FUNCTIONS.READ_MAP:3", "read_map", KIMI),
        ("functions_read_map_3", "read_map", KIMI),
        ("functions.read_map3", "read_map", KIMI),
        (f"\t{KIMI}\n", "read_map", KIMI),
        ("functionsreadmap3t1767225600000", "read_map", KIMI),
        ("functionsread12", "read1", "functions.read1:2"),
        ("functionsmcpfsread0", "mcp__fs.read", "functions.mcp__fs.read:0"),
        (f"'{OPENAI}'", "read_map", OPENAI),
        (f"{OPENAI}|fc_0d", None, OPENAI),
        (f"{CLAUDE}|undefined", None, CLAUDE),
        ("callAb1AAAAAAAAAAAAAAAAAAAAAfc0123456789", None, "call_Ab1AAAAAAAAAAAAAAAAAAAAA"),
        (CLAUDE.replace("_", ""), None, CLAUDE),
        ("tooluvrtx01Hk3TnBv5QxWz8LrMc2PdYf", None, "toolu_vrtx_01Hk3TnBv5QxWz8LrMc2PdYf"),
        ("chatcmpltool3fa94c21bb07d6e8", None, "chatcmpl-tool-3fa94c21bb07d6e8"),
        ("callfunctionk3x9m2v7q1zt2", None, "call_function_k3x9m2v7q1zt_2"),
        (f"{CLAUDE}__vscode-1767225600123", None, CLAUDE),
    ],
)
def test_what_an_id_was_before(id_: str, name: str | None, before: str) -> None:
    origin = some(restore(id_, name))
    assert origin.id == before
    assert restore(before, name) is None


@pytest.mark.parametrize("id_", ["undefined", "NULL", "None", "[object Object]", "call_undefined", "defaulttoolid"])
def test_the_words_for_no_id(id_: str) -> None:
    assert is_placeholder(id_)
    origin = some(restore(id_, "go"))
    assert origin.id is None


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        (OPENAI, "go"),
        (CLAUDE, "go"),
        (KIMI, "read_map"),
        ("functionsreadmap3", "another"),
        ("functionsreadmap", "read_map"),
        ("functionsreadmap1774112539381", "read_map"),
        ("readmap1774112539381", "read_map"),
        ("call_function_k3x9m2v7q1zt_2", "go"),
        ("call_abcdef", "go"),
        ("call_a_b_c", "go"),
        ("calling_all_the_units_in_town", "go"),
        ("functions_list_0", None),
        ("functions0", "..."),
        ("nullable", "go"),
        ("", "go"),
        ("functionsgo0" * 500, "go"),
    ],
)
def test_what_needs_no_restoring(id_: str, name: str | None) -> None:
    assert restore(id_, name) is None
