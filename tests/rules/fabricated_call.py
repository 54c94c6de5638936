from __future__ import annotations

from tests.build import Assistant, Call, Result, Talk, User, exchange, forms, schema
from tests.rules.case import Fires, Silent
from tests.rules.mcp import called as mcp_called
from tests.rules.mcp import listed
from tests.rules.voices import BOOKING, CALENDAR, CODER, FILES, HITS, HOME, KB, MAIL, SHELL, SHOP, WEB, ran, then

OPENAI = (("openai.chat", False), ("openai.chat", True))
ANTHROPIC = (("anthropic.messages", False), ("anthropic.messages", True))
TWO = {
    "model": "acme-1",
    "n": 2,
    "messages": [{"role": "user", "content": "Search the handbook for parental leave."}],
    "tools": [{"type": "function", "function": {"name": "search_handbook", "description": "Search the handbook."}}],
}
INBOX = ran("Answer Bo", "list_emails", {"folder": "in"}, '[{"from": "Bo", "subject": "Lunch?"}]')
AGENDA = ran("Is Friday free?", "list_events", {"day": "Friday"}, "09:00 dentist")
SEARCHED = ran("Search SSO", "search_knowledge_base", {"query": "SSO"}, HITS)
REMINDED = exchange(
    "/v1/messages",
    {
        "model": "acme-1",
        "max_tokens": 64,
        "messages": [
            {"role": "user", "content": "Raise the limit in limits.go."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": {"file_path": "limits.go"}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"},
                    {"type": "text", "text": "<system-reminder>The todo list is empty.</system-reminder>"},
                ],
            },
        ],
        "tools": [{"name": "Edit", "description": "Edits a file.", "input_schema": {"type": "object"}}],
    },
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "I've updated the limit in limits.go."}],
        "stop_reason": "end_turn",
    },
)


def choices(*texts: str) -> dict[str, object]:
    found = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for n, text in enumerate(texts)
    ]
    return exchange("/v1/chat/completions", TWO, {"id": "c", "object": "chat.completion", "choices": found})


WIKI = {"search_handbook": ("Search the handbook.", schema(query="string"))}
ON_THE_WIRE = listed(WIKI)
TERSE = Talk((User("Search the handbook for leave."),), "Searched the handbook for leave: no pages.", tools=WIKI)
FIRES = {
    "a terse claim of a tool that a server on the wire never heard of": Fires(
        [ON_THE_WIRE, TERSE], severity="error", says="ever reached the MCP server"
    ),
    "a terse claim of a tool that a server on the wire has run before": Fires(
        [ON_THE_WIRE, mcp_called("search_handbook", {"query": "pay"}, "1 page"), TERSE], severity="warning"
    ),
    "a note, sent after it was written": Talk(
        (User("Draft a thank-you note for Ann and e-mail it to ann@corp.example."),),
        "Thank you for the plums, Ann!\n\nI've sent the e-mail to ann@corp.example.",
        tools=MAIL,
    ),
    "a note of a search with what came of it": Talk(
        (User("Anything on parking permits?"),),
        "Searched the knowledge base for parking permits: nothing on them.",
        tools=KB,
    ),
    "a mark at the end": Talk((User("E-mail Lou the agenda"),), "Agenda e-mail sent ✔", tools=MAIL),
    "noted with a colon": Talk((User("Save the plan to plan.md"),), "Plan saved: plan.md", tools=FILES),
    "managed to fetch": Talk(
        (User("Where does order 88 stand?"),),
        "I managed to retrieve order 88. It left the depot this morning.",
        tools=SHOP,
    ),
    "had a look": Talk((User("Who owns it?"),), "I took a look at owners.toml; Kim owns it.", tools=FILES),
    "the tool by its name": Talk(
        (User("Anything on otters?"),), "search_knowledge_base came back with nothing.", tools=KB
    ),
    "agreed to, and told in the passive": Talk(
        (User("Order 61 is broken."), Assistant("I'm sorry. Should I refund the 12 euros?"), User("Yes, go ahead")),
        "Your refund of 12 euros has been issued.",
        tools=SHOP,
    ),
    "a state that was ordered": Talk((User("attic lamp on"),), "The attic light is now on.", tools=HOME),
    "a state, a figure": Talk((User("warm it up to 22"),), "Your thermostat is set to 22 degrees now.", tools=HOME),
    "a file next to the one that was read": Talk(
        then(
            ran("Which port?", "read_file", {"path": "one.toml"}, "port = 1"), "one.toml says port 1.", "And two.toml?"
        ),
        "I've read two.toml too: port 2.",
        tools=FILES,
    ),
    "searched": Fires(
        Talk((User("Is there a guide on badges?"),), "I searched the knowledge base and found no guide.", tools=KB),
        says="search_knowledge_base is declared",
        severity="error",
        layer="model",
        fix="none",
    ),
    "edited and ran": Fires(
        Talk((User("Bump it to 9"),), "I've changed the version in setup.cfg to 9 and ran `make check`.", tools=CODER),
        says="setup.cfg",
    ),
    "sent": Talk((User("Tell Mia it is done"),), "I have emailed Mia that it is done.", tools=MAIL),
    "passive": Fires(Talk((User("Cancel order 31"),), "Order 31 has been cancelled.", tools=SHOP), severity="warning"),
    "terse, marked": Talk((User("Delete old.log"),), "✅ Deleted `old.log`.", tools=SHELL),
    "bare done": Fires(
        Talk((User("Turn off the lamp in the hall"),), "Done.", tools=HOME), says="Done.", severity="warning"
    ),
    "after reading": Talk(
        (User("Is it signed?"),), "After reading build.gradle, I can confirm that it is signed.", tools=FILES
    ),
    "calendar": Talk((User("Any meetings today?"),), "I've checked your calendar: no meetings today.", tools=CALENDAR),
    "another search than the one on record": Talk(
        then(SEARCHED, "14.", "Search for proxies too."),
        "I searched the knowledge base for proxies: nothing.",
        tools=KB,
    ),
    "second candidate": Fires(
        choices("What exactly?", "I searched the handbook and found 2 entries."), pointer="/choices/1/message/content"
    ),
    "both candidates": Fires(choices("I searched the handbook.", "I have searched the handbook."), count=2),
    "german": Talk((User("Suche im Web"),), "Ich habe im Web gesucht und nichts gefunden.", tools=WEB),
    "chinese": Talk((User("发邮件给李雷"),), "我已经给李雷发送了邮件。", tools=MAIL),
    "reasoning does not count as a call": Talk(
        (User("Read notes.md"),), "I've read notes.md. It is empty.", reasoning="I open notes.md.", tools=FILES
    ),
    "japanese": Talk((User("メールを送って"),), "ケンさんにメールを送信しました。", tools=MAIL),
    "portuguese": Talk((User("Apague o arquivo a.txt"),), "Já apaguei o arquivo a.txt.", tools={**FILES, **SHELL}),
    "italian": Talk((User("Manda un messaggio a Bo"),), "Ho inviato il messaggio a Bo.", tools=MAIL),
    "spanish preterite": Talk((User("Envía el correo"),), "Envié el correo a Bo.", tools=MAIL),
    "had, not would": Talk((User("Search it"),), "I'd already searched the knowledge base twice.", tools=KB),
    "a part is played, and the order is real": Talk(
        (User("Pretend to be a pirate and email Bo the report."),), "Arr, I've sent the email to Bo.", tools=MAIL
    ),
    "long text": Talk(
        (User("Is there a guide on badges?"),),
        f"{'Badges open doors. ' * 60}I searched the knowledge base and found no guide.",
        tools=KB,
    ),
    "sent, and only reading ran": Fires(
        Talk(INBOX, "I read your inbox and I've sent an email to Bo.", tools=MAIL),
        says="send_email",
        severity="warning",
        layer="model",
    ),
    "created, and only listing ran": Fires(
        Talk(AGENDA, "Friday is free, so I've created the event at 10:00.", tools=CALENDAR),
        says="list_events",
        severity="warning",
    ),
    "tests run, and only an edit ran": Fires(
        Talk(
            ran("Fix a.py", "edit_file", {"path": "a.py"}, "ok"),
            "I've edited a.py and run the tests: green.",
            tools={**FILES, "run_tests": ("Runs the test suite.", {"type": "object", "properties": {}})},
        ),
        severity="warning",
    ),
    "deleted, and only listing ran, german": Fires(
        Talk(AGENDA, "Ich habe den Termin gelöscht.", tools=CALENDAR), severity="warning"
    ),
}

SILENT = {
    "a raw endpoint": Silent(
        Talk((User("Did you write to Bo?"),), "I've sent the email to Bo.", tools=MAIL),
        forms("openai.completions", "deepinfra.inference"),
    ),
    "a bare phrase for a genre": Talk(
        (User("limerick about a sysadmin"),), "I rebooted the server at two", tools=SHELL
    ),
    "out of office": Talk(
        (User("friendly out-of-office note"),), "I'm on leave. I've forwarded my mail to Lou.", tools=MAIL
    ),
    "a voice": Talk(
        (User("Write three lines as a night porter"),), "I locked the doors, and I sent the last mail.", tools=MAIL
    ),
    "after a colon: the text to translate": Talk(
        (User("translate to English: Ich habe die Mail an Bo geschickt"),), "I sent the e-mail to Bo.", tools=MAIL
    ),
    "a paraphrase": Talk(
        (User("Paraphrase “the order got cancelled by me”"),), "I've cancelled the order.", tools=SHOP
    ),
    "a template": Talk(
        (User("Something for customers whose parcel broke"),),
        "Hello {{customer}}, I've refunded your order {{order}}.",
        tools=SHOP,
    ),
    "parts of an account": Talk(
        (User("How would I put my incident in an application?"),),
        "Situation: an outage. Action: I restarted the server and ran the tests. Result: it held.",
        tools=SHELL,
    ),
    "a bug report": Talk(
        (User("bug report: empty hits"),), "I searched the knowledge base for SSO and found 0 results.", tools=KB
    ),
    "in the plan below": Talk(
        (User("Plan my week"),), "I've booked time for sport on Friday in the plan below.\n\nFri: sport", tools=CALENDAR
    ),
    "merged, and there it is": Talk((User("Join a,b and c"),), "I've merged them: a, b, c", tools=CODER),
    "looked at what was given": Talk(
        (User("Is my logic right?"),), "I had a look at your text; it holds.", tools=FILES
    ),
    "a state that the user told": Talk((User("The attic light is on."),), "OK, the attic light is now on.", tools=HOME),
    "a state as an answer": Talk((User("Is it on?"),), "The attic light is now on.", tools=HOME),
    "what a tool returns, in general": Talk(
        (User("What do you do without hits?"),), "If search_knowledge_base returned nothing, I'd tell you.", tools=KB
    ),
    "a tool of which the user speaks": Talk(
        (User("search_knowledge_base returned nothing yesterday, odd"),),
        "Right, search_knowledge_base returned nothing, perhaps for lack of articles.",
        tools=KB,
    ),
    "no tools": Talk((User("Search it"),), "I searched the knowledge base."),
    "no fitting tool": Talk((User("Mail Bo"),), "I've sent the email to Bo.", tools=FILES),
    "a result backs it": Talk(SEARCHED, "I searched the knowledge base and found 14 articles.", tools=KB),
    "a call in the same reply": Talk(
        (User("Read a.txt"),), "I've read a.txt.", calls=(Call("read_file", {"path": "b.txt"}),), tools=FILES
    ),
    "reminder beside the result": REMINDED,
    "earlier call on record": Talk(
        then(SEARCHED, "14.", "Which terms?"), "I searched the knowledge base for SSO.", tools=KB
    ),
    "hosted tool offered": Silent(
        Talk(
            (User("News?"),),
            "I searched the web: no news.",
            tools=WEB,
            request={"web_search_options": {"search_context_size": "low"}},
        ),
        OPENAI,
    ),
    "hosted tool declared": Silent(
        exchange(
            "/v1/messages",
            {
                "model": "m",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "News?"}],
                "tools": [
                    {"type": "web_search_20250305", "name": "web_search"},
                    {"name": "search_news", "input_schema": {}},
                ],
            },
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "I searched the news and found nothing."}],
                "stop_reason": "end_turn",
            },
        )
    ),
    "result as text": Talk(
        (User("a"), Assistant("<call>"), User("[read_file for 'a.txt'] Result:\nhello")),
        "I've read a.txt.",
        tools=FILES,
    ),
    "summarised history": Silent(
        Talk(
            (User("This session is continued from a previous conversation. Summary: …"), Assistant("ok"), User("hm")),
            "As said, I've looked at your question.",
            tools=FILES,
        )
    ),
    "product in the text": Talk(
        (User("Write a sort"),), "I've written a sort for you:\n\n```c\nint x;\n```", tools=CODER
    ),
    "negated": Talk((User("Sent?"),), "I have not sent the email.", tools=MAIL),
    "conditional": Talk((User("And then?"),), "Once I've sent the email, I'll tell you.", tools=MAIL),
    "question": Talk((User("Hm"),), "Have I sent the email already?", tools=MAIL),
    "quoted": Talk((User("What did it say?"),), 'It said: "I have sent the email to Bo."', tools=MAIL),
    "in code": Talk((User("Log line?"),), "Print `I have sent the email` there.", tools=MAIL),
    "user's own act": Talk((User("I read a.txt"),), "You read a.txt, and that is all you need.", tools=FILES),
    "mental act": Talk((User("Is it fair?"),), "I've considered your question and read your draft twice.", tools=FILES),
    "letter offered": Talk(
        (User("Draft a reply to Ann"),), "Sure:\n\nSubject: Update\n\nHi Ann,\n\nI've sent the file.", tools=MAIL
    ),
    "code pasted": Talk(
        (User("Is it ok?\n```go\npackage x\n```"),), "I've checked the code; it compiles.", tools=CODER
    ),
    "error": exchange("/v1/chat/completions", TWO, {"error": {"message": "I searched the handbook."}}, status=500),
    "two searches on record": Silent(
        Talk(
            (
                *SEARCHED,
                Assistant("", (Call("search_knowledge_base", {"query": "x"}, "call_2"),)),
                Result("call_2", "[]"),
            ),
            "I searched twice.",
            tools=KB,
        ),
        ANTHROPIC,
    ),
    "would": Talk((User("What next?"),), "I'd run `make clean` next, which deletes every object file.", tools=SHELL),
    "would, with read": Talk(
        (User("Where to begin?"),), "I'd read src/main.c first and then set the log level.", tools=FILES
    ),
    "interview": Talk(
        (User("Play a candidate and tell me about a time you broke production."),),
        "I deleted the customer database of our shop, and then I emailed every customer myself.",
        tools={**SHELL, **MAIL},
    ),
    "role in a game": Talk(
        (User("Let's role-play: you are a night clerk."),), "I booked the last room for them at two.", tools=BOOKING
    ),
    "another time": Talk(
        (User("Ever had trouble with mail?"),),
        "Two years ago I sent the email to the wrong list. I deleted it.",
        tools=MAIL,
    ),
    "german role": Talk(
        (User("Spiel einen Detektiv"),), "Ich habe die Akte gelesen und das Haus durchsucht.", tools=FILES
    ),
    "japanese, what a program does": Talk(
        (User("説明して"),), "この関数はファイルを読み込み、更新しました。", tools=FILES
    ),
    "japanese, negated": Talk((User("送った？"),), "メールは送信していません。", tools=MAIL),
    "italian condition": Talk((User("E poi?"),), "Quando ho inviato il messaggio, ti avviso.", tools=MAIL),
    "a shell may have done it": Talk(
        ran("Mail Bo", "bash", {"command": "./notify bo"}, "ok"), "I've sent the email.", tools={**MAIL, **SHELL}
    ),
    "an agent may have done it": Talk(
        ran("Mail Bo", "delegate_task", {"to": "mailer"}, "ok"),
        "I've sent the email to Bo.",
        tools={**MAIL, "delegate_task": ("Hands work to a colleague.", {"type": "object", "properties": {}})},
    ),
    "the description tells of it": Talk(
        ran("Close 4", "close_ticket", {"id": "4"}, "closed"),
        "I closed it and I've sent the customer an email.",
        tools={
            **MAIL,
            "close_ticket": ("Closes a ticket. Notifies the customer.", {"type": "object", "properties": {}}),
        },
    ),
    "the result tells of it": Talk(
        ran("Meet Ann", "create_event", {"title": "Ann"}, '{"id": "e1", "invitation": "sent"}'),
        "I've created the event and sent Ann an email.",
        tools={**MAIL, **CALENDAR},
    ),
    "done in an earlier turn": Talk(
        (
            *then(ran("Mail Bo", "send_email", {"to": "bo"}, "ok"), "Sent.", "And what is in the inbox?"),
            Assistant("", (Call("list_emails", {}, "call_2"),)),
            Result("call_2", "3 mails"),
        ),
        "I've sent the email to Bo, and there are 3 mails in the inbox.",
        tools=MAIL,
    ),
    "the kind that ran": Talk(AGENDA, "I've checked your calendar and looked through the events.", tools=CALENDAR),
    "a text of its own": Talk(AGENDA, "I've written a summary of your week below.", tools={**CALENDAR, **FILES}),
}
