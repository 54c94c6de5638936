"""Cases of missing-generation-prompt: raw prompts as templates make them, with and without the assistant's header."""

from __future__ import annotations

from typing import Any

from tests.build import Talk, User, exchange
from tests.rules.case import Fires, Silent


def completions(prompt: Any, model: str = "acme-1", **more: Any) -> dict[str, Any]:
    body = {"model": model, "prompt": prompt, "max_tokens": 64, **more}
    choices = [{"index": 0, "text": "A pear.", "finish_reason": "stop"}]
    return exchange("/v1/completions", body, {"object": "text_completion", "choices": choices})


def deepinfra(prompt: str) -> dict[str, Any]:
    return exchange("/v1/inference/acme/one", {"input": prompt}, {"results": [{"generated_text": "A pear."}]})


def ollama(prompt: str, **more: Any) -> dict[str, Any]:
    body = {"model": "acme-1", "prompt": prompt, "stream": False, **more}
    return exchange(
        "/api/generate", body, {"model": "acme-1", "response": "A pear.", "done": True, "done_reason": "stop"}
    )


def fires(prompt: str, header: str, model: str = "acme-1") -> Fires:
    return Fires(
        completions(prompt, model), says=header, severity="warning", layer="client", fix="unsafe", pointer="/prompt"
    )


CHATML = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nName a fruit.<|im_end|>\n"
KIMI = "<|im_system|>system<|im_middle|>Be brief.<|im_end|><|im_user|>user<|im_middle|>Name a fruit.<|im_end|>"
LLAMA3 = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nName a fruit.<|eot_id|>"
)
LLAMA4 = "<|begin_of_text|><|header_start|>user<|header_end|>\n\nName a fruit.<|eot|>"
GEMMA = "<bos><start_of_turn>user\nName a fruit.<end_of_turn>\n"
GEMMA4 = "<bos><|turn>user\nName a fruit.<turn|>\n"
DEEPSEEK = "<｜begin▁of▁sentence｜>Be brief.<｜User｜>Name a fruit."
GLM = "[gMASK]<sop><|system|>\nBe brief.<|user|>\nName a fruit."
PHI3 = "<|system|>\nBe brief.<|end|>\n<|user|>\nName a fruit.<|end|>\n"
PHI4 = "<|im_start|>system<|im_sep|>Be brief.<|im_end|><|im_start|>user<|im_sep|>Name a fruit.<|im_end|>"
PHI4_MINI = "<|system|>Be brief.<|end|><|user|>Name a fruit.<|end|>"
COHERE = "<BOS_TOKEN><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Name a fruit.<|END_OF_TURN_TOKEN|>"
HARMONY = "<|start|>system<|message|>Be brief.<|end|><|start|>user<|message|>Name a fruit.<|end|>"
GRANITE = "<|start_of_role|>user<|end_of_role|>Name a fruit.<|end_of_text|>\n"
MINIMAX = "]~!b[]~b]system\nBe brief.[e~[\n]~b]user\nName a fruit.[e~[\n"
APERTUS = "<s><|system_start|>Be brief.<|system_end|><|user_start|>Name a fruit.<|user_end|>"
ZEPHYR = "<|system|>\nBe brief.</s>\n<|user|>\nName a fruit.</s>\n"
TULU = "<|user|>\nName a fruit.\n"

FIRES: dict[str, Any] = {
    "ChatML": fires(CHATML, "the ChatML prompt ends after the user turn"),
    "ChatML without the last line feed": fires(CHATML.rstrip(), "<|im_start|>assistant"),
    "Kimi": fires(KIMI, "<|im_assistant|>assistant<|im_middle|> does not follow", "moonshotai/Kimi-K2-Instruct"),
    "Kimi and a line feed": fires(KIMI + "\n", "the Kimi prompt"),
    "Llama 3": fires(LLAMA3, "<|start_header_id|>assistant<|end_header_id|>"),
    "Llama 3 after what a tool gave": fires(
        LLAMA3
        + "<|start_header_id|>assistant<|end_header_id|>\n\n<|python_tag|>fruits()<|eom_id|>"
        + "<|start_header_id|>ipython<|end_header_id|>\n\npear<|eot_id|>",
        "after the ipython turn",
    ),
    "Llama 4": fires(LLAMA4, "<|header_start|>assistant<|header_end|>"),
    "Gemma": fires(GEMMA, "<start_of_turn>model"),
    "Gemma 4": fires(GEMMA4, "<|turn>model"),
    "DeepSeek": fires(DEEPSEEK, "<｜Assistant｜>"),
    "DeepSeek without its beginning": fires("Be brief.\n\n<｜User｜>Name a fruit.", "<｜Assistant｜>"),
    "GLM": fires(GLM, "<|assistant|>"),
    "GLM after what a tool gave": fires(
        GLM + "<|assistant|>\n<tool_call>fruits\n</tool_call><|observation|>\n<tool_response>\npear\n</tool_response>",
        "after the observation turn",
    ),
    "Phi 3": fires(PHI3, "<|assistant|>", "microsoft/Phi-3-mini-4k-instruct"),
    "Phi 4": fires(PHI4, "<|im_start|>assistant<|im_sep|>", "microsoft/phi-4"),
    "Phi 4 mini": fires(PHI4_MINI, "the Phi 4 mini prompt", "microsoft/Phi-4-mini-instruct"),
    "Cohere": fires(COHERE, "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"),
    "Cohere with instructions behind the user": fires(
        COHERE + "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Write an action.<|END_OF_TURN_TOKEN|>", "after the SYSTEM turn"
    ),
    "harmony": fires(HARMONY, "<|start|>assistant"),
    "harmony after what a tool gave": fires(
        HARMONY
        + "<|start|>assistant<|channel|>commentary to=functions.fruits <|constrain|>json<|message|>{}<|call|>"
        + "<|start|>functions.fruits to=assistant<|channel|>commentary<|message|>pear<|end|>",
        "after the functions.fruits turn",
    ),
    "Granite": fires(GRANITE, "<|start_of_role|>assistant<|end_of_role|>"),
    "MiniMax": fires(MINIMAX, "]~b]ai"),
    "Apertus": fires(APERTUS, "<|assistant_start|>"),
    "Zephyr": fires(ZEPHYR, "<|assistant|>"),
    "Tulu": fires(TULU, "<|assistant|>"),
    "a second user turn": fires(
        CHATML + "<|im_start|>assistant\nA pear.<|im_end|>\n<|im_start|>user\nAnother.<|im_end|>\n", "user turn"
    ),
    "what a tool gave": fires(
        CHATML
        + "<|im_start|>assistant\n<tool_call>\n{}\n</tool_call><|im_end|>\n"
        + "<|im_start|>user\n<tool_response>\npear\n</tool_response><|im_end|>\n",
        "user turn",
    ),
    "one of several prompts": Fires(completions([CHATML, CHATML + "<|im_start|>assistant\n"]), pointer="/prompt/0"),
    "several prompts": Fires(completions([CHATML, KIMI]), count=2),
    "DeepInfra": Fires(deepinfra(LLAMA3), pointer="/input", fix="unsafe"),
    "Ollama, raw": Fires(ollama(CHATML, raw=True), pointer="/prompt", fix="unsafe"),
    "streamed": Fires(completions(CHATML, stream=True)),
    "an upstream that fails": Fires({**completions(KIMI), "response": {"status": 500, "headers": {}, "body": "{}"}}),
}

SILENT: dict[str, Any] = {
    "ChatML": completions(CHATML + "<|im_start|>assistant\n"),
    "ChatML that is to think": completions(CHATML + "<|im_start|>assistant\n<think>\n"),
    "ChatML that is not to think": completions(CHATML + "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
    "ChatML whose header lacks its line feed": completions(CHATML + "<|im_start|>assistant"),
    "ChatML with an answer begun": completions(CHATML + "<|im_start|>assistant\nOf all fruits, the"),
    "ChatML with a call begun": completions(CHATML + '<|im_start|>assistant\n<tool_call>\n{"name": "'),
    "ChatML that ends with the assistant": completions(CHATML + "<|im_start|>assistant\nA pear.<|im_end|>\n"),
    "ChatML whose user is to go on": completions("<|im_start|>user\nThe fruit that I like"),
    "ChatML whose user is to begin": completions(CHATML + "<|im_start|>user\n"),
    "ChatML with a turn of a name": completions(CHATML + "<|im_start|>assistant name=bob\n"),
    "only a system turn": completions("<|im_start|>system\nYou write poems.<|im_end|>\n"),
    "Kimi": completions(KIMI + "<|im_assistant|>assistant<|im_middle|>"),
    "Llama 3": completions(LLAMA3 + "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    "Llama 4": completions(LLAMA4 + "<|header_start|>assistant<|header_end|>\n\n"),
    "Gemma": completions(GEMMA + "<start_of_turn>model\n"),
    "DeepSeek": completions(DEEPSEEK + "<｜Assistant｜>"),
    "DeepSeek that is to think": completions(DEEPSEEK + "<｜Assistant｜><think>\n"),
    "DeepSeek after what a tool gave": completions(
        DEEPSEEK
        + "<｜Assistant｜><｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>pear<｜tool▁output▁end｜><｜tool▁outputs▁end｜>"
    ),
    "GLM": completions(GLM + "<|assistant|>\n"),
    "GLM that is not to think": completions(GLM + "/nothink<|assistant|>\n<think></think>"),
    "Phi 3": completions(PHI3 + "<|assistant|>\n"),
    "Cohere": completions(COHERE + "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>"),
    "harmony": completions(HARMONY + "<|start|>assistant"),
    "harmony with its channel": completions(HARMONY + "<|start|>assistant<|channel|>final<|message|>"),
    "Granite": completions(GRANITE + "<|start_of_role|>assistant<|end_of_role|>"),
    "MiniMax": completions(MINIMAX + "]~b]ai\n<think>\n"),
    "Apertus": completions(APERTUS + "<|assistant_start|>"),
    "Tulu": completions(TULU + "<|assistant|>\n"),
    "Mistral": completions("<s>[INST] Name a fruit. [/INST]"),
    "Mistral with its system prompt": completions(
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Name a fruit.[/INST]"
    ),
    "Mistral after what a tool gave": completions(
        "<s>[INST]a[/INST][TOOL_CALLS][]</s>[TOOL_RESULTS]pear[/TOOL_RESULTS]"
    ),
    "Llama 2": completions("<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nName a fruit. [/INST]"),
    "plain text": completions("Fruits: apple, pear,"),
    "plain turns": completions("User: Name a fruit.\nAssistant:"),
    "Alpaca": completions("### Instruction:\nName a fruit.\n\n### Response:\n"),
    "text about templates": completions("In ChatML a turn is written as <|im_start|>user\nHello<|im_end|>\n"),
    "filling in the middle": completions("<|fim_prefix|>def a():<|fim_suffix|>\n<|fim_middle|>"),
    "filling in the middle of a conversation": completions(
        "<|im_start|>user\n<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|><|im_end|>\n"
    ),
    "a suffix": completions(CHATML, suffix="\nThe end."),
    "text that is scored": completions(CHATML, max_tokens=0, echo=True, logprobs=1),
    "one token": completions(CHATML, max_tokens=1, logprobs=5),
    "token numbers": completions([151644, 872, 198]),
    "a prompt that was redacted": completions("<|im_start|>user\n[redacted:text]<|im_end|>\n"),
    "an empty prompt": completions(""),
    "DeepInfra": deepinfra(LLAMA3 + "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    "Ollama, raw": ollama(CHATML + "<|im_start|>assistant\n", raw=True),
    "Ollama, whose template comes on top": ollama(CHATML),
    "Ollama, scoring": ollama(CHATML, raw=True, options={"num_predict": 1}),
    "a chat about templates": Silent(Talk(history=(User(CHATML),), text="That is ChatML.")),
}
