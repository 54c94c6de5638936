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


@rows(TABLES["appended"])
def test_what_is_appended(name: str, cut: str, model: str, text: str) -> None:
    """`cut`: what the prompt of that name is without."""
    prompt = PROMPTS[name].removeprefix(cut).removesuffix(cut)
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
