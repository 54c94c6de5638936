"""Families of models, and the header that is appended to a prompt, to the byte."""

from __future__ import annotations

from tests.build import REGISTRY, some
from tests.rules.case import cases
from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.text.families import TEMPLATES, family, missing_header, template_of, thinks

TABLES = tables(__file__)


@rows(TABLES["a_model_belongs_to_its_family"])
def test_a_model_belongs_to_its_family(model: str, known: str | None, thinker: bool) -> None:
    assert family(model) == known
    assert thinks(model) is thinker


PROMPTS = cases(REGISTRY.get("missing-generation-prompt"))["shared"]
APPENDED: dict[str, tuple[str, str, str]] = {
    # prompt, model, what is appended
    "ChatML": (PROMPTS["chatml"], "Qwen/Qwen3-8B", "<|im_start|>assistant\n"),
    "ChatML, no line feed": (PROMPTS["chatml"].rstrip(), "Qwen/Qwen3-8B", "\n<|im_start|>assistant\n"),
    "Kimi": (PROMPTS["kimi"], "kimi-k2", "<|im_assistant|>assistant<|im_middle|>"),
    "Llama 3": (PROMPTS["llama3"], "", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    "Llama 4": (PROMPTS["llama4"], "", "<|header_start|>assistant<|header_end|>\n\n"),
    "Gemma": (PROMPTS["gemma"], "", "<start_of_turn>model\n"),
    "Gemma, no line feed": (PROMPTS["gemma"].rstrip(), "", "\n<start_of_turn>model\n"),
    "Gemma 4": (PROMPTS["gemma4"], "", "<|turn>model\n"),
    "DeepSeek": (PROMPTS["deepseek"], "", "<｜Assistant｜>"),
    "GLM": (PROMPTS["glm"], "", "<|assistant|>"),
    "GLM by its model": (PROMPTS["glm"].removeprefix("[gMASK]<sop>"), "zai-org/GLM-4.5", "<|assistant|>"),
    "Phi 3": (PROMPTS["phi3"], "microsoft/Phi-3-mini", "<|assistant|>\n"),
    "Phi 4": (PROMPTS["phi4"], "microsoft/phi-4", "<|im_start|>assistant<|im_sep|>"),
    "Phi 4 mini": (PROMPTS["phi4 mini"], "microsoft/Phi-4-mini-instruct", "<|assistant|>"),
    "Cohere": (PROMPTS["cohere"], "", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"),
    "harmony": (PROMPTS["harmony"], "", "<|start|>assistant"),
    "Granite": (PROMPTS["granite"], "", "<|start_of_role|>assistant<|end_of_role|>"),
    "MiniMax": (PROMPTS["minimax"], "", "]~b]ai\n"),
    "Apertus": (PROMPTS["apertus"], "", "<|assistant_start|>"),
    "Zephyr": (PROMPTS["zephyr"], "", "<|assistant|>\n"),
    "Tulu": (PROMPTS["tulu"], "", "<|assistant|>\n"),
    "Tulu, no line feed": (PROMPTS["tulu"].rstrip(), "", "\n<|assistant|>\n"),
}


@in_batches("name", APPENDED, ids=APPENDED)
def test_what_is_appended(name: str) -> None:
    prompt, model, text = APPENDED[name]
    missing = some(missing_header(prompt, family(model)))
    assert missing.text == text
    assert missing_header(prompt + text, family(model)) is None


@in_batches("template", TEMPLATES, ids=lambda template: template.family)
def test_the_header_of_a_template_is_a_turn_of_its_assistant(template) -> None:  # type: ignore[no-untyped-def]
    """Or becomes one with what the model writes first."""
    begun = next(turn for rest in ("", "<|message|>") if (turn := template.turn.match(template.header + rest)))
    assert begun["role"] in template.assistant


def test_plain_text_has_no_template() -> None:
    assert template_of("Fruits: apple, pear,") is None
    assert template_of("") is None
