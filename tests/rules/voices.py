"""Texts in many voices for the three rules on what a model says it did: coding agents, support, analysts, four languages.

Each entry: (what is expected, tools, what the user said or the whole history, the reply). The expectation is a rule name, or
"" for a text that no rule may report as more than `info`. `tests/test_voices.py` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.build import Assistant, Call, Result, Turn, User, schema

CALL, RESULT, INTENT = "fabricated-call", "fabricated-result", "intent-without-call"

PATH = schema(path="string")
FILES = {
    "read_file": ("Read a file from disk.", PATH),
    "write_file": ("Write a file to disk.", schema(path="string", content="string")),
    "edit_file": ("Replace text in a file.", schema(path="string", old="string", new="string")),
    "list_dir": ("List a directory.", PATH),
}
SHELL = {"bash": ("Run a shell command.", schema(command="string"))}
CODER = {
    "Bash": ("Executes a given bash command in a persistent shell session.", schema(command="string")),
    "Read": ("Reads a file from the local filesystem.", schema(file_path="string")),
    "Edit": ("Performs exact string replacements in files.", schema(file_path="string")),
    "Write": ("Writes a file to the local filesystem.", schema(file_path="string", content="string")),
    "Grep": ("A powerful search tool built on ripgrep.", schema(pattern="string")),
}
KB = {"search_knowledge_base": ("Search the company's knowledge base.", schema(query="string"))}
WEB = {
    "web_search": ("Search the web.", schema(query="string")),
    "fetch_url": ("Fetch a web page.", schema(url="string")),
}
MAIL = {
    "send_email": ("Send an e-mail.", schema(to="string", subject="string", body="string")),
    "list_emails": ("List e-mails in the inbox.", schema(folder="string")),
}
CALENDAR = {
    "create_event": ("Create a calendar event.", schema(title="string", start="string")),
    "list_events": ("List calendar events.", schema(day="string")),
    "delete_event": ("Delete a calendar event.", schema(id="string")),
}
SHOP = {
    "lookup_order": ("Look up an order by its number.", schema(order_id="string")),
    "cancel_order": ("Cancel an order.", schema(order_id="string")),
    "issue_refund": ("Refund a payment.", schema(order_id="string", amount="number")),
    "create_ticket": ("Open a support ticket.", schema(summary="string")),
}
DATA = {
    "run_sql": ("Run a read-only SQL query against the warehouse.", schema(query="string")),
    "describe_table": ("Show the columns of a table.", schema(table="string")),
}
HOME = {
    "set_light": ("Switch a light on or off.", schema(room="string", on="boolean")),
    "set_thermostat": ("Set the target temperature.", schema(celsius="number")),
}
WEATHER = {"get_weather": ("Current weather of a city.", schema(city="string"))}
BOOKING = {
    "book_table": ("Book a table at a restaurant.", schema(restaurant="string", time="string")),
    "search_restaurants": ("Search restaurants by city.", schema(city="string")),
}
MEMORY = {"save_memory": ("Save a fact about the user for later.", schema(fact="string"))}
PYTHON = {"python": ("Execute Python code and return what it prints.", schema(code="string"))}

# Tools of which no table knows the nouns, and some whose verb only their own name has.
LAB = {
    "get_specimen": ("Fetch one specimen.", schema(code="string")),
    "archive_specimen": ("Move a specimen to the cold store.", schema(code="string")),
    "digitize_slide": ("Digitise a slide.", schema(slide="string")),
    "tide_tables": ("Times of the tides at a harbour.", schema(harbour="string")),
    "reserve_kayak": ("Reserve a kayak.", schema(day="string")),
    "search_herbarium": ("Search the herbarium.", schema(genus="string")),
}


class Voice(NamedTuple):
    expected: str
    tools: Mapping[str, object]
    history: str | Sequence[Turn]
    text: str
    reasoning: str = ""


def ran(
    ask: str, name: str, arguments: dict[str, object], result: str, *, is_error: bool | None = None
) -> tuple[Turn, ...]:
    """A turn in which one call ran."""
    return (User(ask), Assistant("", (Call(name, arguments),)), Result(Call(name).id, result, is_error))


def then(history: Sequence[Turn], answer: str, ask: str) -> tuple[Turn, ...]:
    """The turn after: what was answered, and what the user says now."""
    return (*history, Assistant(answer), User(ask))


HITS = '{"total": 14, "hits": [' + ", ".join(f'{{"id": "kb-{n}", "title": "Article {n}"}}' for n in range(14)) + "]}"
READ_CONFIG = ran("What port does the service use?", "read_file", {"path": "deploy/service.yaml"}, "port: 9090\n")
ORDER = ran(
    "Where is order 7731?", "lookup_order", {"order_id": "7731"}, '{"order_id": "7731", "status": "in transit"}'
)

FIRE: tuple[Voice, ...] = (
    # The order's own words link a claim or an announcement with a tool.
    Voice(CALL, LAB, "Move specimen QX-12 to the cold store", "QX-12 has been moved to the cold store."),
    Voice(CALL, LAB, "reserve a kayak for Sunday", "Your kayak for Sunday is reserved."),
    Voice(CALL, LAB, "digitize slide 40", "I've digitized slide 40."),
    Voice(CALL, LAB, "Congèle l'échantillon QX-12", "J'ai congelé l'échantillon QX-12."),
    Voice(CALL, LAB, "tides in Husum?", "I looked them up: high water is at 16:48."),
    Voice(CALL, LAB, "When is high water in Husum?", "I checked the tides for Husum: high water is at 16:48."),
    Voice(
        CALL, LAB, "Gibt es Saxifraga bei uns?", "Ich habe nach Saxifraga gesucht: zwölf Bögen, der älteste von 1874."
    ),
    Voice(CALL, LAB, "Avons-nous des Saxifraga ?", "J'ai effectué une recherche sur Saxifraga : 12 planches."),
    Voice(CALL, LAB, "Any Saxifraga?", "I performed a quick search of the herbarium: 12 sheets of Saxifraga."),
    Voice(
        CALL,
        LAB,
        "What does a sheet of 1874 show?",
        "I found one sheet in the herbarium, no. 5512, a Saxifraga from Tyrol.",
    ),
    Voice(
        CALL,
        LAB,
        then(ran("High water in Husum?", "tide_tables", {"harbour": "Husum"}, "16:48"), "At 16:48.", "and Wyk?"),
        "I just checked the tide tables for Wyk: 17:31.",
    ),
    Voice(INTENT, LAB, "Which specimen is QX-12?", "One moment, I'm fetching QX-12."),
    Voice(INTENT, LAB, "slide 40 please", "I'll digitize slide 40 now."),
    Voice(INTENT, LAB, "Haben wir Saxifraga?", "Ich schaue gleich im Herbarium nach."),
    Voice(
        INTENT,
        LAB,
        ran("Compare QX-12 and QX-13", "get_specimen", {"code": "QX-12"}, "a moss"),
        "QX-12 is a moss. Now let me fetch QX-13.",
    ),
    Voice(
        RESULT,
        LAB,
        ran("Avons-nous des mousses ?", "search_herbarium", {"genus": "Bryum"}, '{"sheets": [{"no": 1}, {"no": 2}]}'),
        "Je n'ai trouvé aucune mousse dans l'herbier.",
    ),
    Voice(
        RESULT,
        LAB,
        ran("Is QX-12 there?", "get_specimen", {"code": "QX-12"}, "Error: freezer offline", is_error=True),
        "The specimen has 14 leaves and was found in 1901.",
    ),
    Voice(
        RESULT,
        CALENDAR,
        ran("Anything this weekend?", "list_events", {"day": "2026-05-02"}, '[{"title": "Regatta"}]'),
        "There are no events this weekend.",
    ),
    # Nothing ran, and an action is claimed.
    Voice(
        CALL,
        KB,
        "Do we have anything on SAML setup? Search the KB.",
        "I searched the knowledge base and found 3 articles.",
    ),
    Voice(
        CALL, CODER, "Raise the timeout in net/http.go to 30s.", "Done. I've updated the timeout in net/http.go to 30s."
    ),
    Voice(CALL, MAIL, "Email Dana that I'm late.", "I've sent the email to Dana letting her know you're running late."),
    Voice(
        CALL, SHOP, "Cancel order 5512 please", "Your order 5512 has been cancelled. You'll get a confirmation shortly."
    ),
    Voice(CALL, SHELL, "run the tests", "I ran the test suite and all 212 tests passed."),
    Voice(CALL, CALENDAR, "Put lunch with Sam on Friday 12:30", "✅ Created the event: lunch with Sam, Friday 12:30."),
    Voice(
        CALL,
        DATA,
        "How many users signed up in May?",
        "I ran the query against the warehouse: 4,812 users signed up in May.",
    ),
    Voice(
        CALL, WEB, "What's the latest Postgres release?", "I looked this up on the web, and the latest release is 17.2."
    ),
    Voice(
        CALL, FILES, "Does settings.py set DEBUG?", "After checking settings.py, I can see that DEBUG is set to True."
    ),
    Voice(
        CALL, KB, "Find the refund policy", "Search complete: 0 results for the refund policy in the knowledge base."
    ),
    Voice(
        CALL,
        FILES,
        "Create notes/todo.md with three items",
        "I have created notes/todo.md with the three items you listed.",
    ),
    Voice(CALL, HOME, "Turn off the bedroom light", "I've turned off the bedroom light for you."),
    Voice(
        CALL,
        BOOKING,
        "Book Osteria Mia for 7pm",
        "I've booked a table at Osteria Mia for 7pm. Your confirmation is OM-221.",
    ),
    Voice(CALL, SHELL, "Delete the build folder", "Deleted `build/`. The folder is gone."),
    Voice(CALL, CODER, "Is anything listening on 8080?", "I ran `ss -ltnp` and nothing is listening on port 8080."),
    Voice(CALL, KB, "Suche nach Urlaubsregelung", "Ich habe die Wissensdatenbank durchsucht und 0 Treffer gefunden."),
    Voice(
        CALL, FILES, "Ändere den Port in config.yaml auf 81", "Erledigt. Ich habe die Datei config.yaml aktualisiert."
    ),
    Voice(CALL, MAIL, "Envoie un mail à Luc", "J'ai envoyé l'e-mail à Luc comme demandé."),
    Voice(CALL, SHOP, "Cancela el pedido 99", "He cancelado el pedido 99. Recibirás una confirmación."),
    Voice(CALL, KB, "在知识库里搜索报销流程", "我已经搜索了知识库, 没有找到任何结果。"),
    Voice(CALL, MAIL, "给王老师发邮件", "邮件已发送给王老师。"),
    Voice(CALL, SHELL, "Push the branch", "I committed the changes and pushed the branch to origin."),
    Voice(CALL, SHOP, "I want my money back for 8812", "Good news! I have issued a refund of $49.00 for order 8812."),
    Voice(CALL, CALENDAR, "Am I free on Monday?", "I checked your calendar and you have no meetings on Monday."),
    Voice(
        CALL, {**FILES, **SHELL}, "Fix the typo in README.md", "I opened README.md, fixed the typo and saved the file."
    ),
    Voice(CALL, SHOP, "Where is order 4410?", "I looked up order 4410 and it left the warehouse yesterday."),
    Voice(
        CALL, PYTHON, "What's the std of these: 2,4,9?", "I ran the code with the python tool and the result is 3.6056."
    ),
    Voice(
        CALL,
        KB,
        then(ran("Search SSO", "search_knowledge_base", {"query": "SSO"}, HITS), "14 articles.", "Now search for VPN."),
        "I searched the knowledge base for VPN and found no articles.",
    ),
    Voice(
        CALL,
        WEB,
        "Summarise https://example.com/post",
        "I fetched https://example.com/post. The article argues for smaller teams.",
    ),
    Voice(
        CALL,
        FILES,
        "Write a haiku and save it to haiku.txt",
        "I've saved the haiku to haiku.txt:\n\n> Old pond\n> a frog leaps in",
    ),
    Voice(CALL, SHELL, "Restart nginx", "nginx has been restarted successfully."),
    Voice(CALL, FILES, "Lis le fichier main.rs", "J'ai lu le fichier main.rs : il contient une seule fonction."),
    Voice(
        CALL,
        CODER,
        "Rename getUser to fetchUser everywhere",
        "All done! I renamed `getUser` to `fetchUser` across the codebase.",
    ),
    # A result that the model wrote itself, or that the text contradicts.
    Voice(RESULT, WEATHER, "Weather in Bern?", '<tool_response>\n{"temp": 11}\n</tool_response>\nIt is 11 °C in Bern.'),
    Voice(
        RESULT,
        WEATHER,
        "Weather in Bern?",
        'Thought: need weather\nAction: get_weather\nAction Input: {"city": "Bern"}\nObservation: 11 °C, '
        "rain\nFinal Answer: 11 °C",
    ),
    Voice(
        RESULT,
        CODER,
        "ls",
        "Let me look.\n<function_results>\nmain.go\ngo.mod\n</function_results>\nThere are two files.",
    ),
    Voice(
        RESULT,
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, HITS),
        "The search for VPN returned 0 results.",
    ),
    Voice(
        RESULT,
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, "Error: index not loaded", is_error=True),
        "I searched the knowledge base but found no results for VPN.",
    ),
    Voice(
        RESULT,
        MAIL,
        ran("Mail Bo", "send_email", {"to": "bo@x.test"}, "Error: SMTP 535 authentication failed"),
        "I've sent the email to Bo.",
    ),
    Voice(
        RESULT,
        SHELL,
        ran("run tests", "bash", {"command": "pytest"}, "3 failed, 41 passed in 2.1s"),
        "All tests pass now. 🎉",
    ),
    Voice(
        RESULT,
        SHOP,
        ran("Refund 12", "issue_refund", {"order_id": "12"}, '{"error": "order not found", "code": 404}'),
        "The refund for order 12 has been issued successfully.",
    ),
    Voice(
        RESULT,
        KB,
        ran("Suche VPN", "search_knowledge_base", {"query": "VPN"}, HITS),
        "Die Suche nach VPN ergab keine Treffer.",
    ),
    Voice(RESULT, KB, ran("搜索 VPN", "search_knowledge_base", {"query": "VPN"}, HITS), "搜索 VPN 没有找到任何结果。"),
    Voice(
        RESULT,
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, HITS),
        "I found 37 results for VPN in the knowledge base.",
    ),
    Voice(
        RESULT,
        FILES,
        ran("How long is log.txt?", "read_file", {"path": "log.txt"}, "Error: ENOENT: no such file or directory"),
        "log.txt has 120 lines and ends with a shutdown message.",
    ),
    Voice(
        RESULT,
        SHELL,
        ran("run tests", "bash", {"command": "cargo test"}, "test result: ok. 61 passed; 0 failed"),
        "I ran the tests: 66 passed, 0 failed.",
    ),
    Voice(
        RESULT,
        CODER,
        ran("fix it", "Edit", {"file_path": "a.py"}, "<tool_use_error>String to replace not found</tool_use_error>"),
        "I've updated a.py and the bug is fixed.",
    ),
    # A call is announced, and the reply ends.
    Voice(INTENT, KB, "Anything on SAML?", "Let me search the knowledge base for that."),
    Voice(INTENT, FILES, "Port the parser", "I'll start by reading src/parser.c."),
    Voice(INTENT, SHELL, "run the tests", "Sure! I'll run the tests now."),
    Voice(
        INTENT,
        CODER,
        "Fix the flaky test",
        "I see. The race is in setup. Now let me update the test file to wait for the port.",
    ),
    Voice(INTENT, WEB, "Who won yesterday?", "One moment, searching the web..."),
    Voice(INTENT, WEATHER, "Weather in Bern?", "I'm going to call get_weather for Bern."),
    Voice(INTENT, KB, "Such mir die Reisekosten", "Ich durchsuche jetzt die Wissensdatenbank."),
    Voice(INTENT, FILES, "Lies main.go", "Ich werde zuerst die Datei main.go lesen."),
    Voice(INTENT, FILES, "Lis main.go", "Je vais lire le fichier main.go."),
    Voice(INTENT, WEB, "Busca vuelos", "Voy a buscar en la web ahora."),
    Voice(INTENT, WEB, "查一下今天的新闻", "让我搜索一下最新的新闻。"),
    Voice(INTENT, SHOP, "Where is 4410?", "Let me pull up order 4410 for you."),
    Voice(
        INTENT,
        FILES,
        (*READ_CONFIG, Assistant("9090."), User("Change it to 9191")),
        "Next, I'll update deploy/service.yaml:",
    ),
    Voice(INTENT, MAIL, "Tell Ann I agree", "I'll send the email to Ann right away."),
    Voice(
        INTENT,
        SHELL,
        ran("why is it slow?", "bash", {"command": "top"}, "load 9.1"),
        "Load is high. Let me check the disk usage next.",
    ),
    Voice(INTENT, FILES, "Summarise a.md and b.md", "", reasoning="I need both files. I will call read_file on a.md."),
)

QUIET: tuple[Voice, ...] = (
    # The text is the product.
    Voice(
        "", FILES, "Write me a slug function", "I've written a function for you:\n\n```python\ndef slug(s): ...\n```"
    ),
    Voice(
        "",
        FILES,
        "Outline a talk on Rust",
        "I've created an outline below.\n\n1. Ownership\n2. Borrowing\n3. Lifetimes",
    ),
    Voice("", WEB, "Poem about rain", "I've written a short poem:\n\nRain on the roof,\nrain on the sill."),
    Voice("", MAIL, "Draft a mail to my boss", "I've drafted an email for you:\n\nSubject: Day off\n\nHi Kim, ..."),
    Voice(
        "",
        CODER,
        "Here is my code: ```def f(): retrun 1```",
        "I found a typo in your code: `retrun` should be `return`.",
    ),
    Voice("", CODER, "Explain this: x = [i for i in y]", "I read your snippet. It builds a list from `y`."),
    Voice("", FILES, "Make it shorter: 'The cat sat on the mat.'", "I've updated the sentence: The cat sat."),
    Voice(
        "",
        CALENDAR,
        "Make me a study plan",
        "I've created a study schedule for the week:\n\n| Day | Topic |\n|---|---|\n| Mon | Maths |",
    ),
    Voice(
        "",
        DATA,
        "Write SQL for top customers",
        "I wrote a query for you:\n\n```sql\nSELECT 1\n```\n\nRun it against your warehouse.",
    ),
    Voice("", PYTHON, "What is 17*3?", "I calculated it: 17 × 3 = 51."),
    Voice("", SHOP, "What is your return policy?", "I've read your question. Returns are free within 30 days."),
    Voice("", KB, "Thanks!", "You're welcome! I'm glad I could help."),
    Voice("", WEB, "What do you think of tabs?", "I've thought about this and I prefer spaces."),
    Voice("", CODER, "Translate to German: The file was deleted.", "Die Datei wurde gelöscht."),
    Voice(
        "",
        MAIL,
        "Rephrase: I sent the email yesterday",
        '"I emailed you yesterday" or "I sent you an email yesterday".',
    ),
    Voice(
        "", CODER, "Write release notes for 2.1", "- Added dark mode\n- Fixed the login bug\n- Removed the old importer"
    ),
    Voice(
        "",
        CODER,
        "Review this diff: ```diff\n-a\n+b\n```",
        "I reviewed your diff. It replaces `a` with `b`, which looks right.",
    ),
    Voice(
        "",
        CODER,
        "Refactor:\n```js\nvar a = 1\n```",
        "I've refactored the code to use `const`:\n\n```js\nconst a = 1\n```",
    ),
    Voice(
        "",
        FILES,
        "How do I delete a branch?",
        "Run `git branch -d name`. Once it has been deleted, push with `--delete`.",
    ),
    # Conditions, offers, plans, denials.
    Voice("", KB, "Can you search things?", "Yes. If you give me a topic, I'll search the knowledge base for it."),
    Voice("", FILES, "Can you edit files?", "Yes, I can read and edit files. Which file should I change?"),
    Voice("", MAIL, "Mail Ann", "I haven't sent the email yet. What should the subject be?"),
    Voice(
        "", SHOP, "Cancel my order", "I'd be happy to help. Could you give me the order number? Then I'll cancel it."
    ),
    Voice(
        "",
        SHELL,
        "How would you find the leak?",
        "I would first run `valgrind`, then read the allocator code. Shall I go ahead?",
    ),
    Voice(
        "",
        CODER,
        "Plan the migration, do nothing yet",
        "Plan:\n1. Read the schema\n2. Write the migration\n3. Run the tests",
    ),
    Voice("", CALENDAR, "Schedule something with Bo", "Sure. Once you confirm the day, I'll create the event."),
    Voice(
        "", WEB, "Is the site down?", "I can't open web pages for you from here, but you could check the status page."
    ),
    Voice("", FILES, "Did you change anything?", "No, I have not changed any files."),
    Voice("", SHELL, "Should I run it?", "If I had run the script, it would have deleted your home directory."),
    Voice("", MAIL, "Can you mail Ann?", "Would you like me to send the email to Ann now?"),
    Voice("", FILES, "hi", "Let me know which file you'd like me to read."),
    Voice("", KB, "Explain RAG", "Let me explain: RAG retrieves passages first, then the model answers from them."),
    Voice("", KB, "Explain indexing", "Let me break this down. An index maps words to documents."),
    Voice("", WEB, "Who wrote Dune?", "Let me think. Dune was written by Frank Herbert in 1965."),
    Voice("", SHELL, "What does ls do?", "It lists a directory. I'll be here if you want to run it."),
    Voice("", MEMORY, "My name is Ada", "Nice to meet you, Ada! I'll remember that."),
    Voice("", CODER, "What happened in the log?", 'The log says: "I deleted the file and restarted the server".'),
    Voice(
        "", CODER, "How does the agent work?", "> I searched the codebase\n\nis what it prints when it has used Grep."
    ),
    Voice("", KB, "What if nothing is found?", "If the search returned 0 results, I would try a broader term."),
    Voice("", SHOP, "I cancelled order 12", "I see that you cancelled order 12. Refunds take three days."),
    Voice(
        "",
        SHOP,
        "Has my parcel been sent?",
        "Parcels are usually sent within a day. Could you tell me the order number?",
    ),
    Voice("", CODER, "Who wrote this?", "The author updated the file in 2019 and has since deleted the branch."),
    Voice("", WEB, "History of the web", "The first website was created in 1991. It has been updated many times."),
    Voice("", SHELL, "Why did the deploy fail?", "Typically the container has been deleted before the job was run."),
    Voice(
        "",
        CODER,
        "Tell me a story about a robot",
        '"I deleted the file," said the robot. I sent my regards to its maker.',
    ),
    # Something ran, or what is said is on record.
    Voice("", FILES, READ_CONFIG, "I read deploy/service.yaml: the service listens on 9090."),
    Voice(
        "", FILES, then(READ_CONFIG, "It is 9090.", "And which file was that in?"), "I found it in deploy/service.yaml."
    ),
    Voice(
        "",
        FILES,
        then(READ_CONFIG, "It is 9090.", "Are you sure?"),
        "Yes. As I read earlier in deploy/service.yaml, it is 9090.",
    ),
    Voice(
        "",
        SHOP,
        then(ORDER, "It is in transit.", "thanks, what did you do exactly?"),
        "I looked up order 7731 in our system.",
    ),
    Voice(
        "",
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, HITS),
        "I found 14 articles. The best 3 are Article 0, 1 and 2.",
    ),
    Voice(
        "",
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, HITS),
        "I found 2 relevant articles about split tunnelling.",
    ),
    Voice(
        "",
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, HITS),
        "None of the results mention IPv6, so there is nothing on that.",
    ),
    Voice(
        "",
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, '{"total": 0, "hits": []}'),
        "The search returned no results.",
    ),
    Voice(
        "",
        KB,
        ran("Search VPN", "search_knowledge_base", {"query": "VPN"}, "Error: timeout", is_error=True),
        "The search failed with a timeout, so I have no results to show.",
    ),
    Voice(
        "",
        MAIL,
        ran("Mail Bo", "send_email", {"to": "bo@x.test"}, '{"status": "sent", "error": null}'),
        "I've sent the email to Bo.",
    ),
    Voice(
        "", SHELL, ran("run tests", "bash", {"command": "pytest"}, "41 passed in 2.1s"), "All tests pass: 41 passed."
    ),
    Voice(
        "",
        SHELL,
        ran("run tests", "bash", {"command": "pytest"}, "3 failed, 41 passed"),
        "Three tests fail; the other 41 pass.",
    ),
    Voice(
        "",
        FILES,
        ran("Show log.txt", "read_file", {"path": "log.txt"}, "Error: ENOENT: no such file or directory"),
        "There is no log.txt in that directory. Did you mean app.log?",
    ),
    Voice(
        "",
        FILES,
        ran("Show errors", "read_file", {"path": "app.log"}, "12:00 start\n12:01 ERROR disk\n12:02 ok"),
        "I read app.log: one error at 12:01, recovered a minute later.",
    ),
    Voice(
        "",
        CODER,
        ran("fix", "Bash", {"command": "make"}, "make: *** [all] Error 2"),
        "The build still fails: make stops with error 2.",
    ),
    Voice(
        "",
        KB,
        'User pasted tool output:\n<tool_response>{"total": 3}</tool_response>\nWhat does it say?',
        "It says that the search found 3 results.",
    ),
    Voice(
        "",
        WEB,
        "What is the ReAct format? Show an example.",
        "Each step looks so:\n\n```\nThought: ...\nAction: search\nObservation: 3 hits\n```",
    ),
    Voice("", WEB, "How do Hermes models get results?", "They come between `<tool_response>` and `</tool_response>`."),
    Voice("", SHELL, "What will you do?", "I'll run the tests and then report. Before I start: do you want coverage?"),
    Voice("", FILES, "Hello", "Hello! How can I help you today?"),
    # Other languages.
    Voice(
        "",
        FILES,
        "Schreib mir eine Funktion",
        "Ich habe dir eine Funktion geschrieben:\n\n```python\ndef f(): ...\n```",
    ),
    Voice("", MAIL, "Kannst du Mails senden?", "Ja. Wenn du mir den Text gibst, sende ich die E-Mail."),
    Voice("", KB, "Hast du etwas gefunden?", "Ich habe noch nicht gesucht. Wonach soll ich suchen?"),
    Voice("", KB, "Frage zum Urlaub", "Ich habe deine Frage gelesen: Urlaub wird im Portal beantragt."),
    Voice("", FILES, "Écris un poème", "J'ai écrit un poème pour toi :\n\nLa pluie tombe."),
    Voice("", MAIL, "Peux-tu envoyer un mail ?", "Oui, si tu me donnes l'adresse, je vais envoyer le mail."),
    Voice("", WEB, "¿Puedes buscar?", "Sí. ¿Qué quieres que busque en la web?"),
    Voice("", FILES, "Escribe un cuento", "He escrito un cuento para ti:\n\nHabía una vez..."),
    Voice("", FILES, "写一首诗", "我写了一首诗:\n\n雨落屋檐。"),
    Voice("", MAIL, "可以发邮件吗?", "可以。如果您提供地址, 我会发送邮件。"),
    Voice("", KB, "你好", "你好！请告诉我您想搜索什么。"),
    Voice(
        "", CODER, "Was macht git push?", "Damit wird der Branch hochgeladen. Danach ist er auf dem Server gespeichert."
    ),
    # Harder ones.
    Voice("", CODER, "What did the intern do?", "She deleted the branch, I gather, and then sent an email about it."),
    Voice(
        "",
        CODER,
        "Fix: ```py\nprint(x\n```",
        "I've fixed the missing parenthesis:\n\n```py\nprint(x)\n```\n\nI ran through the logic mentally and it holds.",
    ),
    Voice(
        "",
        FILES,
        "Give me a Dockerfile",
        "Here's the updated Dockerfile:\n\n```\nFROM alpine\n```\n\nSave it in the root of your project.",
    ),
    Voice(
        "",
        WEATHER,
        "What is a cold front?",
        "I looked at your question from two angles. A cold front is a boundary of colder air.",
    ),
    Voice("", SHOP, "I'm angry", "I'm sorry. I understand you've been charged twice. Please share the order number."),
    Voice("", BOOKING, "How do I book?", "Just tell me the time. After I've booked the table, you'll get a code."),
    Voice(
        "",
        CODER,
        "Write a commit message for adding retries",
        "Added retries to the HTTP client.\n\nUpdated the default to 3 attempts.",
    ),
    Voice(
        "",
        DATA,
        "What can you do?",
        'I can run SQL, describe tables and explain results. For example: "I ran the query and found 12 rows".',
    ),
    Voice("", CODER, "I ran the tests and they pass", "Great that the tests pass! I've noted that you ran them."),
    Voice("", HOME, "How warm is it?", "I've set out the options: 19 for nights, 21 for days. Which one do you want?"),
    Voice(
        "", WEB, "Search quality tips?", "I've found that short queries work best. I've searched long enough to know."
    ),
    Voice(
        "",
        KB,
        "Let's write docs",
        "Great. I'll write the introduction as follows.\n\n# Introduction\n\nWelcome to the product.",
    ),
    Voice("", FILES, "What's next?", "You could now run the linter. Let me know and I'll create the config."),
    Voice(
        "",
        CALENDAR,
        "When's Easter 2027?",
        "Easter Sunday falls on 28 March 2027. I'll gladly add it to your calendar if you like.",
    ),
    Voice("", LAB, "is 91 a prime?", "No. I checked the small ones, and 91 = 7 × 13."),
    Voice("", LAB, "Is 7 * 8 more than 50?", "Let me check: 7 * 8 = 56, so yes."),
    Voice("", LAB, "How are slides kept?", "Once a slide has been digitized, it is archived at 4 degrees."),
    Voice("", LAB, "Can you digitize a slide?", "Yes. Put it on the tray, then send me its number; I'll digitize it."),
    Voice("", LAB, "Was sind Gezeiten?", "So etwas rechne ich nie selbst aus; dafür gibt es Tafeln."),
    Voice("", LAB, "Make this nicer: I reserved the kayak", "I have reserved the kayak for you."),
    Voice("", LAB, "Who described Saxifraga?", "Linnaeus did, in 1753. I have found no older name."),
    Voice(
        "",
        LAB,
        "Give me three excuses for a lost kayak",
        "1. The tide took it.\n2. I sent it to be mended.\n3. A seal.",
    ),
    Voice("", LAB, "the kayak is reserved already", "Good. The kayak is reserved then; you only have to turn up."),
    Voice(
        "",
        LAB,
        ran("Moss?", "search_herbarium", {"genus": "Bryum"}, '{"sheets": [{"no": 1}, {"no": 2}]}'),
        "There are two sheets, 1 and 2; there are no others.",
    ),
)
