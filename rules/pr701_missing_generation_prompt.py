from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import RAW_APIS
from wirelint.jsonvalues import mapping
from wirelint.model import Exchange, Request, Text
from wirelint.rule import REDACTED, Confidence, Edit, Fix, Fixable, FixPolicy, RequestRule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.families import family, missing_header

_SHOWN = 48


class MissingGenerationPrompt(RequestRule):
    """A raw prompt of a known chat template lacks the header of the assistant's turn.

    ## What it does
    Looks at prompts of raw endpoints (`/v1/completions`, DeepInfra's `/v1/inference`, Ollama's `generate` with `raw:
    true`) in the form of a chat template: Kimi, ChatML (Qwen and many more), Llama, Gemma, DeepSeek, GLM, Phi, Cohere,
    harmony and others. After a closed turn of a user or a tool, the header of the assistant's turn must follow.

    ## Why is this bad?
    The model continues the conversation instead of answering, often as the user. It calls no tool and stops early. The
    cause is a template applied without `add_generation_prompt`.

    ## Example
    `<|im_start|>user\\nName a fruit<|im_end|>\\n`, where `<|im_start|>assistant\\n` should follow.

    ## False positives
    Silent on plain prompts, on prompts that end with the header or the beginning of an answer, on templates where the
    end of the user's turn is the cue (Mistral's `[/INST]`), on open turns, on prompts that end with the assistant's
    turn, on infilling, on scoring (`max_tokens` of 0 or 1), and on prompts of token numbers.

    ## Fix safety
    Unsafe: the header of the family is appended, which changes the reply.

    ## References
    - Hugging Face Transformers: chat templates, `add_generation_prompt`
    - The chat templates that the families publish with their tokenizers
    """

    severity = "warning"
    layer = "client"
    request_apis = RAW_APIS
    request_safety = "unsafe"

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        if exchange.api not in RAW_APIS or _is_scored(request):
            return
        if request.api == "ollama.generate" and request.body.get("raw") is not True:
            return  # Ollama applies its template
        for part in [part for message in request.messages if message.role == "user" for part in message.parts]:
            if not isinstance(part, Text) or REDACTED in part.text[-_SHOWN:]:
                continue
            missing = missing_header(part.text, family(exchange.model))
            if missing is None:
                continue
            header, end = excerpt(missing.template.header), excerpt(part.text[-_SHOWN:])
            ends = f"the {missing.template.family} prompt ends after the {missing.role} turn ({end})"
            message, fix = f"{ends}; {header} does not follow", Fix("unsafe", f"append {header}")
            span = (len(part.text.rstrip()), len(part.text))
            sure: Confidence = "high" if missing.sure else "medium"
            title, edit = f"appended {header} to the prompt", Edit("replace", part.pointer, part.text + missing.text)
            record = self.repair("request", "unsafe", title, part.pointer, after=missing.text)
            finding = self.finding("request", message, part.pointer, span=span, confidence=sure, fix=fix)
            yield finding, ((edit,), record)


def _is_scored(request: Request) -> bool:
    """Return True if the request wants no answer: it scores a text, or gives the text after the prompt."""
    places = (request.body, mapping(request.body.get("options")))
    most = [place.get(name) for place in places for name in ("max_tokens", "max_new_tokens", "num_predict")]
    if any(isinstance(one, int) and 0 <= one <= 1 for one in most):
        return True
    return bool(request.body.get("suffix")) or request.body.get("prompt_logprobs") is not None
