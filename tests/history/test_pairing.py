"""Which result answers which call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import APIS, Assistant, Call, Result, Talk, User, exchange, read
from wirelint.fix import Edit
from wirelint.history.id_demands import Anthropic, Demand, KimiK2, Limited, Mistral
from wirelint.history.ids import restore
from wirelint.history.pairing import Pairing, Succession, announced, keeps_words, next_id, orphans, pair, removals
from wirelint.model import Arguments, Json, Piece, Request, ToolCall

ASK = User("Go.")
OPENAI = "call_9QfXb2LmZt7RkVw3Nc8HsYpD"
OTHER = "call_Kp2ZtNv9QmXc4RbWs7LdHfYg"


def calls(*ids: str | None) -> Assistant:
    return Assistant(calls=tuple(Call(f"f{n}", {}, id_) for n, id_ in enumerate(ids)))


def results(*ids: str | None) -> list[Result]:
    return [Result(id_, f"r{n}") for n, id_ in enumerate(ids)]


def request(*turns: User | Assistant | Result, api: str = "openai.chat") -> Request:
    found = read(Talk(turns).record(api, False)).request
    assert found is not None
    return found


def shape(pairing: Pairing) -> tuple[list[str | None], int, int]:
    """Per call the text of its answer; the numbers of orphans and repeats."""
    texts = [each.answer.result.text if each.answer is not None else None for each in pairing.pairs]
    return texts, len(pairing.orphans), len(pairing.repeats)


CASES = {
    "nothing": ([ASK], [], 0, 0),
    "exact": ([ASK, calls("a", "b"), *results("a", "b")], ["r0", "r1"], 0, 0),
    "out of order": ([ASK, calls("a", "b"), *results("b", "a")], ["r1", "r0"], 0, 0),
    "one id, two calls": ([ASK, calls("a", "a"), *results("a", "a")], ["r0", "r1"], 0, 0),
    "one id, two turns": ([ASK, calls("a"), Result("a", "x"), calls("a"), Result("a", "y")], ["x", "y"], 0, 0),
    "the latest turn first": ([ASK, calls("a"), calls("a"), Result("a", "x")], [None, "x"], 0, 0),
    "answered twice": ([ASK, calls("a"), *results("a", "a")], ["r0"], 0, 1),
    "orphan": ([ASK, *results("a")], [], 1, 0),
    "before its call": ([ASK, Result("a", "x"), calls("a")], ["x"], 0, 0),
    "empty ids": ([ASK, calls("", ""), *results("", "")], ["r0", "r1"], 0, 0),
    "mangled": ([ASK, calls("functions.f0:0"), *results("functionsf00")], ["r0"], 0, 0),
    "mangled, in parallel": (
        [ASK, calls("functions.f0:0", "functions.f1:1"), *results("functionsf11", "functionsf00")],
        ["r1", "r0"],
        0,
        0,
    ),
    "an exact answer is not taken away": (
        [ASK, calls("read:1x", "read_1x"), *results("read_1x", "read1x")],
        ["r1", "r0"],
        0,
        0,
    ),
    "by place, undefined": ([ASK, calls(OPENAI, OTHER), *results("undefined", "undefined")], ["r0", "r1"], 0, 0),
    "by place, of another kind": ([ASK, calls(OPENAI), *results("msg_0d12")], ["r0"], 0, 0),
    "by place, a number": ([ASK, calls("functions.f0:7"), *results("0")], ["r0"], 0, 0),
    "numbers on both sides": ([ASK, calls("1"), *results("2")], [None], 1, 0),
    "by place, not as many": ([ASK, calls(OPENAI, OTHER), *results("undefined")], [None, None], 1, 0),
    "strangers": ([ASK, calls(OPENAI), *results(OTHER)], [None], 1, 0),
    "the nearest turn wins": (
        [ASK, calls("functions.f0:0"), calls("functions.f0:0"), *results("functionsf00")],
        [None, "r0"],
        0,
        0,
    ),
}


@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
@pytest.mark.parametrize(("turns", "texts", "orphans", "repeats"), CASES.values(), ids=CASES)
def test_pairs(
    turns: list[User | Assistant | Result], texts: list[str | None], orphans: int, repeats: int, api: str
) -> None:
    assert shape(pair(request(*turns, api=api))) == (texts, orphans, repeats)


@pytest.mark.parametrize(
    ("turns", "texts"),
    [
        ([ASK, calls(None), *results(None)], ["r0"]),
        ([ASK, calls("a"), *results(None)], ["r0"]),
        ([ASK, calls("a", "b"), Result("b", "y"), Result(None, "x")], ["x", "y"]),
        ([ASK, *results(None)], []),
    ],
    ids=["none at all", "on the result", "the one that is left", "no call"],
)
def test_results_without_ids_are_never_orphans(turns: list[User | Assistant | Result], texts: list[str]) -> None:
    assert shape(pair(request(*turns))) == (texts, 0, 0)


FREE = {
    "in order": ([ASK, calls(None), *results(None)], ["r0"], 0, 0),
    "an id on one side": ([ASK, calls(None), *results("adk-1")], ["r0"], 0, 0),
    "an id on the other": ([ASK, calls("x1"), *results(None)], ["r0"], 0, 0),
    "no call": ([ASK, *results(None)], [], 1, 0),
    "in the next turn": ([ASK, calls(None), Result(None, "x"), ASK, calls(None), Result(None, "y")], ["x", "y"], 0, 0),
    "one is left": ([ASK, calls(None), ASK, calls(None), Result(None, "y")], [None, "y"], 0, 0),
    "altered": ([ASK, calls("functions.f0:0"), *results("functionsf00")], ["r0"], 0, 0),
}


@pytest.mark.parametrize(("turns", "texts", "orphans", "repeats"), FREE.values(), ids=FREE)
def test_pairs_where_no_ids_are_needed(
    turns: list[User | Assistant | Result], texts: list[str | None], orphans: int, repeats: int
) -> None:
    made = pair(request(*turns, api="google.generate_content"))
    assert shape(made) == (texts, orphans, repeats)


def test_gemini_pairs_by_name_and_place() -> None:
    def functions(*told: tuple[str, str | None, str]) -> list[Any]:
        return [{kind: {"name": name, **({"id": id_} if id_ else {})}} for kind, id_, name in told]

    call, response = "functionCall", "functionResponse"
    for first, second, wanted in (
        # parallel calls, their results in another order
        ([(call, None, "f"), (call, None, "g")], [(response, None, "g"), (response, None, "f")], [1, 0]),
        # other ids, but as many, and of the same functions
        ([(call, "a1", "f"), (call, "b2", "g")], [(response, "x9", "f"), (response, "y8", "g")], [0, 1]),
        # one more than there are calls
        ([(call, None, "f")], [(response, None, "f"), (response, None, "f")], [0]),
        # another function's
        ([(call, "a1", "f")], [(response, "x9", "h")], [None]),
    ):
        contents = [{"role": "model", "parts": functions(*first)}, {"role": "user", "parts": functions(*second)}]
        found = read(exchange("/v1beta/models/acme-1:generateContent", {"contents": contents}, {})).request
        assert found is not None
        places = [
            None if each.answer is None else int(each.answer.result.pointer.split("/")[4]) for each in pair(found).pairs
        ]
        assert places == wanted


def test_the_match_is_told() -> None:
    (only,) = pair(request(ASK, calls("functions.f0:0"), *results("functionsf00"))).pairs
    assert only.answer is not None
    assert only.answer.match is not None
    assert only.answer.match.certainty == "high"
    assert only.ids == ("functions.f0:0", "functionsf00")
    assert only.position < only.answer.position


def test_the_answer_to_a_hosted_call_is_no_orphan() -> None:
    hosted = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "srvtoolu_1", "content": "found"}
    messages = [{"role": "assistant", "content": [hosted]}, {"role": "user", "content": [result]}]
    record = exchange(
        "/v1/messages", {"model": "m", "max_tokens": 9, "messages": messages}, {"type": "message", "content": []}
    )
    found = read(record).request
    assert found is not None
    assert pair(found).orphans == ()


def test_thousands_of_strangers_cost_a_bounded_number_of_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    import wirelint.history.pairing as module

    compared: list[str] = []
    monkeypatch.setattr(module, "match", lambda one, *_: compared.append(one))
    turns: list[User | Assistant | Result] = [
        ASK,
        calls(*(f"call_{n:x}zz" for n in range(2000))),
        *results(*(f"toolu_{n:x}yy" for n in range(2000))),
    ]
    assert len(pair(request(*turns)).orphans) == 2000
    assert len(compared) <= 20_000


USER_ASKS, SAID = User("Go."), Assistant("Well.")
LOST = Result("lost", "a root")
CALL, ANSWER = Assistant(calls=(Call("dig", {}, "a1"),)), Result("a1", "a stone")
GO, WORDS = "go", "words"

ORPHANS_CASES: dict[str, tuple[list[Any], str, str]] = {
    # the history, and what becomes of the results in OpenAI's chat and with Anthropic
    "first": ([LOST, USER_ASKS], "/messages/0", "/messages/0"),
    "first, the assistant next": ([LOST, SAID, USER_ASKS], "/messages/0", "= /messages/0/content"),
    "between answers": ([USER_ASKS, SAID, LOST, SAID, USER_ASKS], "/messages/2", "= /messages/2/content"),
    "behind an answer": ([USER_ASKS, SAID, LOST, USER_ASKS], "/messages/2", "/messages/2"),
    "last": ([USER_ASKS, SAID, LOST], "/messages/2", "= /messages/2/content"),
    "behind the user": ([USER_ASKS, LOST], "/messages/1", "/messages/1"),
    "beside a good one": ([USER_ASKS, CALL, ANSWER, LOST, USER_ASKS], "/messages/3", "/messages/2/content/1"),
    "two of one message": (
        [USER_ASKS, SAID, LOST, LOST, USER_ASKS],
        "/messages/2 /messages/3",
        "/messages/2 /messages/2",
    ),
    "with nothing to say": ([Result("lost", " "), SAID, USER_ASKS], "/messages/0", ""),
    "alone": ([LOST], "", "= /messages/0/content"),
    "redacted": ([Result("[redacted:id]", "x"), USER_ASKS], "", ""),
}


def orphans_request(*turns: Any, api: str) -> Request:
    found = read(Talk(turns).record(api, False)).request
    assert found is not None
    return found


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("history", "openai", "anthropic"), ORPHANS_CASES.values(), ids=ORPHANS_CASES.keys())
def test_removals(history: list[Any], openai: str, anthropic: str, api: str) -> None:
    made = orphans_request(*history, api=api)
    edits = [edit for some in removals(made, orphans(made)).values() for edit in some]
    shown = [f"{'= ' if keeps_words([edit]) else ''}{edit.pointer}" for edit in edits]
    assert " ".join(shown) == (openai if api == "openai.chat" else anthropic)


# What becomes of them where messages are blocks, too, and where results are items of a row.
SHAPES = {
    "openai.responses": ("/input/{0}", "openai"),
    "cohere.chat": ("/messages/{0}", "openai"),
    "bedrock.converse": ("/messages/{0}", "anthropic"),
    "google.generate_content": ("/contents/{0}", "anthropic"),
}


@pytest.mark.parametrize("api", SHAPES)
@pytest.mark.parametrize(("history", "openai", "anthropic"), ORPHANS_CASES.values(), ids=ORPHANS_CASES.keys())
def test_removals_elsewhere(history: list[Any], openai: str, anthropic: str, api: str) -> None:
    made = orphans_request(*history, api=api)
    edits = [edit for some in removals(made, orphans(made)).values() for edit in some]
    shown = " ".join(f"{'= ' if keeps_words([edit]) else ''}{edit.pointer}" for edit in edits)
    place, like = SHAPES[api]
    wanted = openai if like == "openai" else anthropic
    if api == "google.generate_content":
        wanted = wanted.replace("/content", "/parts")
    assert shown == wanted.replace("/messages/", place.format(""))


def test_words_of_results_elsewhere() -> None:
    """What may stand in a user message of Converse stays as it is; JSON becomes text, there and at Gemini."""
    blocks: list[Json] = [
        {"text": "look"},
        {"text": " "},
        {"json": {"n": 1}},
        {"image": {"format": "png", "source": {}}},
    ]
    told = {"toolResult": {"toolUseId": "lost", "content": blocks, "status": "success"}}
    body: dict[str, Any] = {"messages": [{"role": "user", "content": [told]}], "inferenceConfig": {}}
    made = read(exchange("/model/acme-1/converse", body, {})).request
    assert made is not None
    kept: list[Json] = [{"text": "look"}, {"text": '{"n":1}'}, {"image": {"format": "png", "source": {}}}]
    assert list(removals(made, orphans(made)).values()) == [(Edit("replace", "/messages/0/content", kept),)]

    part = {"functionResponse": {"name": "dig", "response": {"root": 3, "stone": None}}}
    body = {"contents": [{"role": "function", "parts": [part]}, {"role": "model", "parts": [{"text": "Well."}]}]}
    made = read(exchange("/v1beta/models/acme-1:generateContent", body, {})).request
    assert made is not None
    wanted = (
        Edit("replace", "/contents/0/parts", [{"text": '{"root":3,"stone":null}'}]),
        Edit("replace", "/contents/0/role", "user"),
    )
    assert list(removals(made, orphans(made)).values()) == [wanted]


def test_an_object_in_the_place_of_a_row_stays() -> None:
    body = {"contents": {"role": "user", "parts": {"functionResponse": {"name": "dig", "response": {}}}}}
    made = read(exchange("/v1beta/models/acme-1:generateContent", body, {})).request
    assert made is not None
    assert len(orphans(made)) == 1
    assert removals(made, orphans(made)) == {}


def test_pictures_stay_with_the_words() -> None:
    picture: Json = {"type": "image", "source": {"type": "url", "url": "https://img.test/a.png"}}
    blocks = [{"type": "text", "text": "look"}, {"type": "text", "text": ""}, picture, {"type": "tool_reference"}]
    messages = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": blocks}]},
        {"role": "assistant", "content": "Well."},
    ]
    body = {"model": "acme-1", "max_tokens": 9, "messages": messages}
    made = read(exchange("/v1/messages", body, {})).request
    assert made is not None
    wanted = Edit("replace", "/messages/0/content", [{"type": "text", "text": "look"}, picture])
    assert list(removals(made, orphans(made)).values()) == [(wanted,)]


RENAMING_OPENAI = "call_9QfXb2LmZt7RkVw3Nc8HsYpD"
RENAMING_CASES: dict[str, tuple[str, str, str, Demand | None, str]] = {
    # the shared id, the function's name, the model, what the target demands, the next id
    "vendor's": (RENAMING_OPENAI, "dig", "gpt-5", None, f"{RENAMING_OPENAI}_2"),
    "vendor's, for kimi": (RENAMING_OPENAI, "dig", "kimi-k2", KimiK2(), f"{RENAMING_OPENAI}_2"),
    "the third": (f"{RENAMING_OPENAI}_2", "dig", "gpt-5", None, f"{RENAMING_OPENAI}_3"),
    "a name": ("dig", "dig", "acme-1", None, "dig_2"),
    "a name, for kimi": ("dig", "dig", "kimi-k2", KimiK2(), "functions.dig:1"),
    "counted": ("dig_4", "dig", "acme-1", None, "dig_5"),
    "a bare number": ("7", "dig", "acme-1", None, "8"),
    "random, and a digit at its end": ("0usa7hl5", "dig", "acme-1", None, "0usa7hl5_2"),
    "kimi's": ("functions.dig:4", "dig", "kimi-k2", KimiK2(), "functions.dig:5"),
    "kimi's, of another function": ("functions.dig:4", "cut", "kimi-k2", KimiK2(), "functions.cut:5"),
    "kimi's, at another vendor": ("functions.dig:4", "dig", "acme-1", None, "functions.dig:5"),
    "kimi's, at claude": ("functions.dig:4", "dig", "claude-5", Anthropic(), "functions_dig_5"),
    "kimi's short form": ("dig:4", "dig", "kimi-k2", KimiK2(), "functions.dig:5"),
    "kimi k3's": ("dig:4", "dig", "kimi-k3", None, "dig:5"),
    "one that is taken": ("t_1", "dig", "acme-1", None, "t_4"),
    "empty": ("", "dig", "acme-1", None, "call_dig_1"),
    "claude's": ("toolu_01Hk3TnBv5QxWz8LrMc2PdYf", "dig", "claude-5", Anthropic(), "toolu_01Hk3TnBv5QxWz8LrMc2PdYf_2"),
}


@pytest.mark.parametrize(
    ("id_", "name", "model", "demand", "wanted"), RENAMING_CASES.values(), ids=RENAMING_CASES.keys()
)
def test_next_id(id_: str, name: str, model: str, demand: Demand | None, wanted: str) -> None:
    taken = {id_, "t_2", "t_3"}
    new = next_id(id_, name, model, demand, taken)
    assert new == wanted
    assert new == next_id(id_, name, model, demand, taken)
    assert restore(new, name) is None or demand is not None


@pytest.mark.parametrize("id_", ["a1B2c3D4e", "365174485", "turn10000"])
def test_mistrals_nine_stay_nine(id_: str) -> None:
    taken = {id_}
    for _ in range(20):
        new = next_id(id_, "dig", "mistral-large", Mistral(), taken)
        assert Mistral().fault(new, "dig") is None
        assert new not in taken
        taken.add(new)


def test_a_long_id_stays_within_the_limit() -> None:
    taken = {"x" * 64}
    new = next_id("x" * 64, "dig", "gpt-5", Limited(64), taken)
    assert len(new) <= 64
    assert new not in taken


WHOLE, HALF = '{"door":1}', '{"door"'


def call(text: str, *later: tuple[str | None, str | None, int], start: bool = False) -> ToolCall:
    pieces = (Piece(0, 0, "a", "paint", 0), *(Piece(n, 0, *rest) for n, rest in enumerate(later, 1)))
    given = Arguments(WHOLE) if start else None
    return ToolCall("a", "paint", Arguments(text), "/x", start_input=given, deltas=text, pieces=pieces)


SUCCESSION_CASES: dict[str, tuple[ToolCall, list[str]]] = {
    "nothing later": (call(WHOLE), []),
    "repeated": (call(WHOLE, ("a", "paint", 3)), ["same"]),
    "nothing said": (call(WHOLE, (None, None, 3), ("", "", 9)), ["same", "same"]),
    "another id in the middle": (call(WHOLE, ("b", None, 7)), ["stray"]),
    "another id and the same name in the middle": (call(WHOLE, ("b", "paint", 7)), ["stray"]),
    "another name in the middle": (call(WHOLE, (None, "sand", 7)), ["same"]),
    "both in the middle": (call(HALF, ("b", "sand", 7)), ["anew"]),
    "another id after the arguments, and text": (call(WHOLE * 2, ("b", None, len(WHOLE))), ["stray"]),
    "another id, the same name and text": (call(WHOLE * 2, ("b", "paint", len(WHOLE))), ["anew"]),
    "another id after the arguments, and no text": (call(WHOLE, ("b", None, len(WHOLE))), ["same"]),
    "another id after the arguments, and a blank": (call(WHOLE + " \n", ("b", None, len(WHOLE))), ["same"]),
    "another id with the same name after the arguments": (call(WHOLE, ("b", "paint", len(WHOLE))), ["anew"]),
    "another name after the arguments": (call(WHOLE + "{}", (None, "sand", len(WHOLE))), ["anew"]),
    "an id for every event": (
        call(WHOLE, ("b", None, 2), ("c", None, 7), ("d", None, len(WHOLE))),
        ["stray", "stray", "stray"],
    ),
    "an id and the name with every event": (
        call(WHOLE, ("b", "paint", 2), ("c", "paint", len(WHOLE))),
        ["stray", "stray"],
    ),
    "an id for every event, and another call": (
        call(WHOLE * 2, ("b", None, 2), ("c", "paint", len(WHOLE)), ("d", None, len(WHOLE) + 3)),
        ["stray", "anew", "stray"],
    ),
    "the second call's own id repeated": (
        call(WHOLE * 2, ("b", "paint", len(WHOLE)), ("b", None, len(WHOLE) + 4)),
        ["anew", "same"],
    ),
    "a blank between": (call(f"{WHOLE} {WHOLE}", ("b", "paint", len(WHOLE) + 1)), ["anew"]),
    "nothing yet": (call(WHOLE, ("b", "paint", 0)), ["stray"]),
    "the rest of a name": (call("{}", (None, "ing", 0)), ["same"]),
    "three calls": (call(WHOLE * 3, ("b", "paint", len(WHOLE)), ("c", "paint", 2 * len(WHOLE))), ["anew", "anew"]),
    "an empty object before": (call("{}" + WHOLE * 2, ("b", "paint", 2 + len(WHOLE))), ["anew"]),
    "a number is no call's arguments": (call("12", ("b", None, 2)), ["stray"]),
    "the input of the start is all": (call("{}", ("b", "paint", 0), start=True), ["anew"]),
    "the first id comes late": (
        ToolCall("a", "x", Arguments(""), "/x", pieces=(Piece(0, 0, "", "x", 0), Piece(1, 0, "a", None, 0))),
        ["same"],
    ),
    "a whole body has none": (ToolCall("a", "x", Arguments("{}"), "/x"), []),
}


@pytest.mark.parametrize(("given", "expected"), SUCCESSION_CASES.values(), ids=SUCCESSION_CASES)
def test_announced(given: ToolCall, expected: list[str]) -> None:
    assert [found.verdict for found in announced(given, "openai.chat")] == expected


@pytest.mark.parametrize(
    ("text", "id_", "name", "expected"),
    [
        (HALF, "b", None, False),
        (WHOLE, "b", None, True),
        (WHOLE, "b", "paint", False),
        (WHOLE, "a", None, False),
        (WHOLE, "b", "sand", False),
    ],
)
def test_what_must_wait(text: str, id_: str, name: str | None, expected: bool) -> None:
    calls = Succession("a", "paint")
    calls.text(text)
    assert calls.undecided(id_, name) is expected


def test_every_cut_of_the_text_gives_the_same() -> None:
    text = '{}\n {"a": "}{", "b": [1, {"c": "\\"}"}]} '
    for cut in range(len(text)):
        calls = Succession("a", "x")
        calls.text(text[:cut])
        calls.text(text[cut:])
        assert calls.complete, cut
