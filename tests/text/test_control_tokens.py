from __future__ import annotations

import json

import pytest

from tests.shared import SHARED
from wirelint.text.control_tokens import EDGES, ENDS, OPENS, SURE, TEMPLATES, find, frame, in_name, native, residue

# id: (text, tokens that count, where the framing at the edges ends and begins again, the token it overruns)
FRAMED = {
    "end": ("Two.<|im_end|>", ["<|im_end|>"], (0, 4), None),
    "end, other bars": ("Two.<｜end▁of▁sentence｜>", ["<|end_of_sentence|>"], (0, 4), None),
    "both edges": ("<|start_header_id|>assistant<|end_header_id|>Two.<|eot_id|>",
                   ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], (45, 49), None),
    "role belongs to the header": ("<|im_start|>assistant\nTwo.", ["<|im_start|>"], (21, 26), None),
    "the next speaker": ("Two.<|im_end|>\n<|im_start|>user\nThanks", ["<|im_end|>", "<|im_start|>"], (0, 38), "<|im_end|>"),
    "the user first": ("<|im_user|>user<|im_middle|>Hi", ["<|im_user|>", "<|im_middle|>"], (28, 30), "<|im_user|>"),
    "middle": ("Tw<|fim_hole|>o.", ["<|fim_hole|>"], (0, 16), None),
    "plain end of sequence": ("Two.</s>", ["</s>"], (0, 4), None),
    "a row of plain tokens": ("Two.</s><s>[INST] So? [/INST]", ["<s>", "[INST]"], (0, 29), "[INST]"),
    "grounding": ("<co: 0>Two</co: 0>.", ["<co: 0>", "</co: 0>"], (7, 19), None),
    "reserved": ("<SPECIAL_12>Two.", ["<SPECIAL_12>"], (12, 16), None),
    "minimax": ("]~b]ai\nTwo.[e~[", ["]~b]", "[e~["], (6, 11), None),
    "gemma's one-sided bars": ("Two.<turn|>", ["<turn|>"], (0, 4), None),
    "a tag of kimi, cut": ("Two.<|close|>response", ["<|close|>"], (0, 4), None),
    "a tag of kimi, fused": ("Two.<|close|>toolsmessage<|sep|>", ["<|close|>", "<|sep|>"], (0, 4), None),
    "a recipient": ("<|start|>assistant to=user<|message|>Two.", ["<|start|>", "<|message|>"], (37, 41), None),
    "a list of sources": ("Two<co: 0,1> or</co: 0:[1,2]>.", ["<co: 0,1>", "</co: 0:[1,2]>"], (0, 30), None),
    "a mask": ("<mask:3>Two.", ["<mask:3>"], (8, 12), None),
    "square bars": ("[|assistant|]Two.[|endofturn|]", ["[|assistant|]", "[|endofturn|]"], (13, 17), None),
    "another user": ("Two.<｜hy_User｜>So?", ["<|hy_User|>"], (0, 18), "<|hy_User|>"),
    "markup of other notations": ('<｜DSML｜invoke name="x">', ["<|DSML|"], (7, 23), None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "tokens", "edges", "overrun"), FRAMED.values(), ids=FRAMED)
def test_framing(text: str, tokens: list[str], edges: tuple[int, int], overrun: str | None) -> None:
    framing = frame(text, find(text))
    assert framing is not None
    assert [token.token for token in framing.tokens] == tokens
    assert (framing.leading, framing.trailing) == edges
    assert (framing.overrun.token if framing.overrun else None) == overrun


NO_FRAMING = {
    "strike-through": "An <s>old</s> new",
    "strike-through at both edges": "<s>old</s>",
    "operators": "a <| b |> c <|> d <||> e",
    "unknown in the middle": "Dear <|name|>, hello",
    "unknown after a blank": "Regards, <|name|>",
    "usage": "tool [ARGS] [SUFFIX]",
    "INST alone": "[INST] opens an instruction",
    "end of what?": "the <end>",
    "thinking tokens are not ours": "<|START_THINKING|>So<|END_THINKING|>",
    "nothing": "",
}


@pytest.mark.parametrize("text", NO_FRAMING.values(), ids=NO_FRAMING)
def test_no_framing(text: str) -> None:
    assert frame(text, find(text)) is None


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("f<|channel|>commentary", 1),
        ("f</arg_value>", 1),
        ("f｜>", 1),
        ("functions.f:0", None),
        ("f-g_h", None),
        ("", None),
    ],
)
def test_in_name(name: str, place: int | None) -> None:
    assert in_name(name) == place


@pytest.mark.parametrize(
    ("text", "model", "length"),
    [
        ("assistant\n\nThere are two of them.", "acme-1", 11),
        ("assistantfinalTwo.", "gpt-oss-20b", 14),
        ("model\nTwo.", "gemma-3-27b-it", 6),
        ("model\nTwo.", "acme-1", 0),
        ("assistant\nmanager\n", "acme-1", 0),
        ("ASSISTANT: Two.", "acme-1", 11),
        ("Assistant: Two.", "acme-1", 0),
        ("to=user<|message|>Two.", "muse-spark-1", 18),
        ("to=self<|message|>Two.", "muse-spark-1", 0),
        ("/nothink<|assistant|>Two.", "glm-4.6", 8),
        ("/nothink turns it off", "glm-4.6", 0),
        ("Assistant final report", "acme-1", 0),
    ],
)
def test_residue(text: str, model: str, length: int) -> None:
    assert residue(text, model) == length


@pytest.mark.parametrize(
    ("token", "model", "expected"),
    [
        ("<|eot_id|>", "llama-3.1-8b", True),
        ("<|eot_id|>", "claude-opus-4-5", False),
        ("<|eot_id|>", "acme-1", None),
        ("<|other|>", "claude-opus-4-5", None),
    ],
)
def test_native(token: str, model: str, expected: bool | None) -> None:
    assert native(token, model) is expected


@pytest.mark.skipif(not SHARED.is_dir(), reason="the vectors are not beside this checkout")
def test_vectors() -> None:
    with (SHARED / "vectors.jsonl").open() as lines:
        vectors = [vector for vector in map(json.loads, lines) if vector.get("expect") == "control_token"]
    missed = [vector["case"] for vector in vectors if frame(vector["text"], find(vector["text"])) is None]
    assert vectors
    assert missed == []


def test_every_token_of_the_table_is_found_and_counts() -> None:
    for template in TEMPLATES:
        for token in (*template.opens, *template.ends, *template.others):
            text = f"Two.\n{token}\nThree."
            framing = frame(text, find(text))
            assert framing is not None, token
            assert framing.tokens[0].token == token


def test_a_token_is_sure_or_it_is_not() -> None:
    assert not SURE & EDGES
    assert not OPENS & ENDS
