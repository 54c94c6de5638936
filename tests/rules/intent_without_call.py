from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, exchange, forms
from tests.rules.case import Fires, Silent
from tests.rules.voices import CALENDAR, CODER, DATA, FILES, KB, MAIL, SHELL, SHOP, WEATHER, WEB, ran

OPENAI = (("openai.chat", False), ("openai.chat", True))
ANTHROPIC = (("anthropic.messages", False), ("anthropic.messages", True))
MANGLED = (
    User("Read a.md"),
    Assistant("", (Call("read_file", {"path": "a.md"}, "functionsread_file0"),)),
    Result("functionsread_file0", "alpha"),
    User("Now b.md"),
)


def said(text: str, tools: Mapping[str, object] = FILES, ask: str = "Please look into it.", **more: Any) -> Talk:
    return Talk((User(ask),), text, tools=tools, **more)


def thought(text: str, tools: Mapping[str, object] = WEATHER) -> Talk:
    """A reply of nothing but reasoning."""
    return Talk((User("Do I need a coat in Graz?"),), reasoning=text, tools=tools)


REASONED = forms("openai.chat", "anthropic.messages", "openai.responses", "ollama.chat", "mistral.chat")

FIRES = {
    **{
        f"decided in reasoning alone: {text}": Fires(thought(text), says="get_weather", forms=REASONED)
        for text in (
            "The user is in Graz. Decision: call get_weather.",
            'It depends on the weather. So the next step is to call get_weather({"city": "Graz"}).',
            'Next: get_weather(city="Graz")',
            "The user wants to know about coats. We should use the `get_weather` tool with Graz.",
        )
    },
    "elsewhere": Fires(
        Talk((User("What is in main.c?"),), "Let me read the file main.c.", tools=FILES),
        forms=forms("google.generate_content", "ollama.chat", "cohere.chat", "bedrock.converse", "openai.responses"),
    ),
    "a gerund alone": said("Searching the repository for callers of parse.", CODER, "Who calls parse?"),
    "fetching a page": said("Fetching the page now...", WEB, "Does https://b.example/ mention us?"),
    "mending it": said("The sign is wrong in sum(). I'll fix it now.", CODER, "Repair it"),
    "searching before it writes": said("Let me search the web first.", WEB, "Write an article on kelp."),
    "let me": Fires(
        said("Let me search the knowledge base.", KB), says="search_knowledge_base", layer="model", fix="none"
    ),
    "i'll start by": said("I'll start by reading the file main.c."),
    "now i will": said("The cause is clear. Now I will update the file and run the tests.", CODER),
    "colon": said("Next, I'll open docs/index.md:"),
    "names the tool": said("I'm going to use get_weather for this.", WEATHER),
    "gerund": said("Searching the web...", WEB),
    "asks for patience": said("I'll look up your order. One moment please.", SHOP),
    "after a result": Fires(
        Talk(
            ran("Why?", "bash", {"command": "df"}, "full"), "The disk is full. Let me check the logs next.", tools=SHELL
        ),
        severity="warning",
    ),
    "reasoning only": Fires(said("", reasoning="I should read the file. I will call read_file now."), says="read_file"),
    "mangled history": Fires(
        Talk(MANGLED, "I will now read b.md.", tools=FILES), says="functionsread_file0", layer="client", forms=OPENAI
    ),
    "german": said("Ich lese jetzt die Datei main.c."),
    "french": said("Je vais envoyer l'e-mail maintenant.", MAIL),
    "spanish": said("Voy a buscar en la web.", WEB),
    "chinese": said("我来搜索一下知识库。", KB),
    "unknown noun": said("That is odd. Let me open the turnstile first:", CODER),
    "filler and reasoning": said("One moment please.", SHOP, reasoning="I need to call lookup_order with A-4."),
    "nod and reasoning": said("Sure!", KB, reasoning="We should search the knowledge base for badges."),
    "patience with a please": said("One moment please while I check your order.", SHOP),
    "german, verb apart": said("Ich schaue kurz im Kalender nach.", CALENDAR),
    "german, inverted": said("Moment, dann rufe ich die Bestellung auf.", SHOP),
    "german, please wait": said("Einen Moment bitte, ich prüfe die Bestellung.", SHOP),
    "french, at once": said("Un instant, je consulte le calendrier.", CALENDAR),
    "spanish, going on": said("Estoy buscando en la web.", WEB),
    "portuguese": said("Vou verificar o pedido.", SHOP),
    "italian": said("Ora controllo il calendario.", CALENDAR),
    "chinese, wait": said("我马上查询您的订单，请稍候。", SHOP),
    "chinese, table": said("好的，我这就去查一下 rentals 的数据。", DATA),
    "japanese": said("これから予定を確認します。", CALENDAR),
    "japanese, courteous": said("ご注文をお調べします。少々お待ちください。", SHOP),
}

SILENT = {
    **{
        f"no decision in reasoning: {text}": Silent(thought(text), REASONED)
        for text in (
            "I could call get_weather, but it is July.",
            "There is no need to call get_weather.",
            "I called get_weather before; it said 30 degrees.",
            "Should I call get_weather?",
            "Call get_weather only if the user names a day. No.",
        )
    },
    "decided in reasoning, and answered": Silent(
        Talk((User("A coat?"),), "Take a coat.", reasoning="Decision: call get_weather.", tools=WEATHER), REASONED
    ),
    "a raw endpoint": Silent(
        Talk((User("What is in main.c?"),), "Let me read the file main.c.", tools=FILES),
        forms("openai.completions", "deepinfra.inference"),
    ),
    "a gerund that answers": said("Searching the repository for callers.", CODER, "What takes most of the time?"),
    "let me know, german": said("Lasst uns bitte wissen, ob ich die Datei lesen soll.", FILES, "ok"),
    "stand-up": said("Yesterday I wrote docs. Today I will run the tests.", SHELL, "stand-up notes, docs done"),
    "translated": said("I'm going to read the file now.", FILES, "Translate: Je vais lire le fichier"),
    "a mail that promises": said("Hi Bo, I'll check the logs now.", SHELL, "Write a short reply to Bo"),
    "call follows": said("Let me read the file main.c.", calls=(Call("read_file", {"path": "main.c"}),)),
    "asks": said("I'll read the file. Which one is it?"),
    "asks first": said("Shall I read main.c? I'll do it at once then: reading the file is quick."),
    "condition": said("I'll search the knowledge base if you tell me the topic.", KB),
    "waits": said("Once you have confirmed, I'll send the email.", MAIL),
    "offer": said("I'd be happy to read the file for you."),
    "plan asked for": said("First I'll read the file main.c.", ask="How would you do it? Do not run anything."),
    "bullets": said("Plan:\n\n1. I'll read the file main.c\n2. I'll edit the file"),
    "explains": said("Let me explain how files are read."),
    "answer follows": said(
        "Let me check the file format. A CSV file holds one record a line, fields parted by commas."
    ),
    "product follows": said("I'll write the file as shown:\n\n```\nhello\n```"),
    "no tools": said("Let me search the web.", {}),
    "no fitting tool": said("Let me search the web.", MAIL),
    "cut by length": said("Let me read the file", finish="length"),
    "filtered": said("Let me read the file", finish="filter"),
    "paused": Silent(said("Let me search the web.", WEB, finish="pause_turn"), ANTHROPIC),
    "tool choice none": Silent(said("Let me read the file main.c.", tool_choice="none"), OPENAI),
    "leaked markup": said("Let me read it.\n<tool_call>\n{}\n</tool_call>\nReading the file main.c..."),
    "hosted tools": Silent(
        said("Let me search the web.", WEB, request={"web_search_options": {}, "plugins": ["web"]}), OPENAI
    ),
    "negated": said("I will not read the file, since it is not needed."),
    "later": said("I'll read the file tomorrow."),
    "greeting": said("Let me know what you need."),
    "finished": said("That is all there is to it."),
    "http error": exchange(
        "/v1/messages",
        {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]},
        {"type": "error"},
        status=500,
    ),
    "japanese, what a program does": said("この関数はファイルを確認します。"),
    "japanese, asks": said("注文を確認しますか？", SHOP),
    "japanese, when told": said("番号をいただければ、注文を確認します。", SHOP),
    "german, condition": said("Ich sehe im Kalender nach, sobald Sie mir den Tag nennen.", CALENDAR),
    "german, general": said("So etwas rufe ich nie auf.", SHOP),
    "chinese, asks": said("需要我查询订单吗？", SHOP),
    "thinking of numbers": said("Let me check the calculation first:", CODER),
    "unknown noun, no such tool": said("Let me open the turnstile first:", WEATHER),
    "answer beside reasoning": said("It ships on Monday.", SHOP, reasoning="I need to call lookup_order."),
    "filler, idle reasoning": said("One moment please.", SHOP, reasoning="The user is greeting me."),
    "portuguese, condition": said("Se quiser, vou verificar o pedido.", SHOP),
    "italian, asks": said("Controllo il calendario?", CALENDAR),
}
