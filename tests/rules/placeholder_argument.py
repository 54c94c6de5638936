"""Cases of placeholder-argument. Those of its policies are in tests/policy."""

from __future__ import annotations

from typing import Any

from tests.build import FORMS, Assistant, Call, Result, Talk, User, schema
from tests.rules import mcp
from tests.rules.case import Fires, Silent

STRING = {"type": "string"}
ALL = (
    *FORMS,
    *(
        (api, streamed)
        for api in (
            "openai.responses",
            "google.generate_content",
            "ollama.chat",
            "mistral.chat",
            "cohere.chat",
            "bedrock.converse",
        )
        for streamed in (False, True)
    ),
)


def talk(name: str, arguments: dict[str, Any], *, asked: str = "Please see to it.", **more: Any) -> Talk:
    """A call of a tool all of whose parameters are text, the first one required."""
    properties = more.pop("properties", {})
    declared = {key: properties.get(key, STRING) for key in arguments}
    tools = {name: schema(tuple(arguments)[:1], **declared)}
    history = more.pop("history", (User(asked),))
    return Talk(history=history, calls=(Call(name, arguments),), tools=tools, **more)


def failed(arguments: dict[str, Any], message: str, how: str = "isError") -> dict[str, Any]:
    """A call to a server of tools that answers with an error."""
    asked = mcp.call("create_note", arguments)
    if how == "rpc":
        return mcp.post(asked, mcp.error(message, 2))
    flagged = mcp.result(mcp.text(message, is_error=True if how == "isError" else None), 2)
    return mcp.post(asked, [flagged] if how == "stream" else flagged, stream=how == "stream")


FIRES: dict[str, Any] = {
    **{
        f"refused by the server, {how}: {message}": Fires(
            failed({"workspace": "default", "text": "Buy milk."}, message, how),
            says="the server refuses workspace 'default'",
            severity="warning",
            pointer="/params/arguments/workspace",
            fix="none",
        )
        for how in ("isError", "rpc", "stream")
        for message in (
            "Unknown workspace: 'default'",
            "Error: workspace 'default' does not exist",
            'Invalid argument "workspace": not a workspace id',
        )
    },
    "a value that may be real, refused by the server": Fires(
        failed({"subWorkspace": "Quadim"}, "Error: no such workspace: Quadim"), severity="info", fix="none"
    ),
    "a login of the documentation": talk("open_store", {"dsn": "redis://user:password@cache:6379/0"}),
    "a workspace called default": Fires(
        talk(
            "kb_lookup",
            {"query": "late invoices", "workspace": "default"},
            properties={"workspace": {"type": "string", "description": "Directory that is searched"}},
            asked="Which of our letters are about late invoices?",
        ),
        says='workspace "default" is no path',
        severity="warning",
        layer="model",
        fix="none",
        forms=ALL,
    ),
    "the word for nothing in an argument that need not be there": Fires(
        talk("run_shell", {"cmdline": "ls", "cwd": "null"}, asked="What is in this folder?"),
        says='cwd "null" is the word for nothing',
        fix="unsafe",
        forms=ALL,
    ),
    "the word for nothing where the schema takes null": Fires(
        talk(
            "list_tickets",
            {"board": "ops", "assignee_id": "undefined"},
            properties={"assignee_id": {"type": ["string", "null"]}},
        ),
        fix="unsafe",
        forms=ALL,
    ),
    "the word for nothing in an argument that must be there": Fires(
        talk("open_session", {"region": "null"}), says='region "null"', fix="none"
    ),
    "the word for nothing first, in the middle and last": Fires(
        Talk(
            history=(User("Show the log."),),
            tools={"log": schema(("repo_path",), since="string", repo_path="string", branch="string", author="string")},
            calls=(Call("log", {"since": "null", "repo_path": "/srv/app", "branch": "null", "author": "Null"}),),
        ),
        count=3,
        fix="unsafe",
        forms=ALL,
    ),
    "the form of a date": Fires(
        talk(
            "sales_report",
            {"store": "Lund", "from": "YYYY-MM-DD", "until_date": "JJJJ-MM-TT"},
            properties={"from": {"type": "string", "description": "First day, YYYY-MM-DD"}},
            asked="How did Lund sell this quarter?",
        ),
        says="the form of a date",
        count=2,
        fix="none",
    ),
    "an unknown in brackets": talk("get_order", {"order_id": "<UNKNOWN>"}, asked="Where is my parcel?"),
    "the id of nothing": talk("get_balance", {"account_id": "00000000-0000-0000-0000-000000000000"}),
    "the form of a time that the prompt describes": talk(
        "remind", {"what": "stand-up", "at": "YYYY-MM-DDTHH:MM:SS"}, system="Dates are written YYYY-MM-DDTHH:MM:SS."
    ),
    "the word for nothing that the user complains of": talk(
        "list_notes", {"query": "a", "workspace": "null"}, asked="Why was the workspace null? Look for a again."
    ),
    "the word for nothing, lower-case beside a name": talk(
        "find_person", {"first": "Ida", "family": "null"}, asked="Is Ida Nullmeyer in?"
    ),
    "a path of the documentation": Fires(
        talk("read_text_file", {"file": "/path/to/settings.toml"}, asked="What do my settings say?"),
        says='file "/path/to/settings.toml" is what documentation writes for a path',
        fix="none",
        forms=ALL,
    ),
    "a path of the documentation, as Windows has it": talk(
        "open_document", {"document_path": "C:\\path\\to\\report.docx"}
    ),
    "somebody's home": talk("list_dir", {"directory": "/home/username/projects"}),
    "a path of the documentation in a list": talk(
        "stage", {"files": ["src/a.c", "path/to/b.c"]}, properties={"files": {"type": "array", "items": STRING}}
    ),
    "a path of the documentation in a command": talk("terminal", {"command": "cat /path/to/your/file.txt"}),
    "a key to be filled in": Fires(
        talk("weather", {"city": "Oslo", "api_key": "YOUR_API_KEY_HERE"}),
        says="a blank to be filled in",
        severity="warning",
    ),
    "a key to be filled in, in small letters": talk("weather", {"city": "Oslo", "api_key": "your_api_key"}),
    "a project to be filled in": talk("deploy", {"project": "your-project-id"}),
    "a blank in angle brackets": talk("fetch_issue", {"repository": "<owner>/<repo>", "token": "<your token>"}),
    "a slot of a template": talk("get_user", {"user": "<user_id>"}),
    "a slot in brackets": talk("book", {"date": "[insert date]"}),
    "an address reserved for examples": Fires(
        talk("send_mail", {"to": "colleague@example.com", "subject": "Minutes"}, asked="Mail the minutes to Bob."),
        says="reserved for examples",
        forms=ALL,
    ),
    "a site reserved for examples": talk("open_page", {"url": "https://api.example.com/v1/orders"}),
    "what is not known": talk("find_account", {"account_id": "unknown"}),
    "not applicable": talk("ship", {"email": "N/A", "street": "12 Quay Row"}),
    "the name of its type": talk("set_colour", {"colour": "string"}),
    "the name of its parameter": talk("analyse", {"file_path": "file_path"}),
    "an id such as examples have": Fires(
        talk("get_order", {"order_id": "12345"}, asked="Where is my parcel?"), severity="info", fix="none"
    ),
    "a number such as examples have": Fires(
        talk("get_order", {"order_id": 123456}, properties={"order_id": {"type": "integer"}}), severity="info"
    ),
    "an id out of the documentation of UUIDs": talk(
        "get_device", {"device_uuid": "123e4567-e89b-12d3-a456-426614174000"}
    ),
    "a name such as examples have": Fires(
        talk("invite", {"full_name": "John Doe"}, asked="Invite our new colleague."), severity="info"
    ),
    "a place that only the query names": Fires(
        talk(
            "grep_notes",
            {"query": "harbour tariffs", "subfolder": "harbour"},
            asked="Look for harbour tariffs in the notes.",
        ),
        severity="info",
        says="a word of the query",
    ),
    "inside an object": talk(
        "call_service",
        {"options": {"auth": {"token": "<token>"}}},
        properties={"options": {"type": "object", "properties": {"auth": {"type": "object"}}}},
    ),
    "in the second of two calls": Fires(
        Talk(
            history=(User("Read both."),),
            tools={"read": schema(("path",), path="string", encoding="string")},
            calls=(
                Call("read", {"path": "a.txt", "encoding": "utf-8"}, "call_a1b2c3d4e5f6"),
                Call("read", {"path": "b.txt", "encoding": "null"}, "call_f6e5d4c3b2a1"),
            ),
        ),
        fix="unsafe",
        forms=ALL,
    ),
    "a word that the system only uses": talk(
        "kb_lookup",
        {"query": "tides", "workspace": "default"},
        system="By default you answer in one sentence. Null results are fine.",
    ),
    "a path whose beginning the description has as an example": talk(
        "read_it",
        {"path": "/path/to/notes.md"},
        properties={"path": {"type": "string", "description": "For instance /path/to/file.txt"}},
    ),
}


def declared(**described: Any) -> dict[str, Any]:
    return {"type": "string", **described}


SILENT: dict[str, Any] = {
    "a server's error about something else": failed({"workspace": "north"}, "Error: the disk is full"),
    "a server's error that names no argument": failed({"workspace": "north", "limit": "10"}, "Error: invalid session"),
    "a server's result that names an argument": mcp.called("create_note", {"workspace": "north"}, "Note in 'north'."),
    "a server's error about another value": failed({"workspace": "north"}, "Error: template 'daily' not found"),
    "a path that was there before": talk(
        "read_text_file",
        {"file": "/path/to/notes.txt"},
        history=(
            User("Show the notes"),
            Assistant("", (Call("list_files", {"folder": "/path/to"}, "c1"),)),
            Result("c1", "notes.txt"),
        ),
    ),
    "a real path": Silent(talk("read_text_file", {"file": "/etc/hosts"}), forms=ALL),
    "the schema's default": talk(
        "kb_lookup", {"query": "tides", "workspace": "default"}, properties={"workspace": declared(default="default")}
    ),
    "one of an enumeration": talk(
        "kb_lookup",
        {"query": "tides", "workspace": "default"},
        properties={"workspace": {"type": "string", "enum": ["default", "archive"]}},
    ),
    "in the description": talk(
        "kb_lookup",
        {"query": "tides", "workspace": "default"},
        properties={"workspace": declared(description="Path of the workspace, or default for the one that is open")},
    ),
    "one of the examples": talk(
        "open_page", {"url": "https://example.com"}, properties={"url": declared(examples=["https://example.com"])}
    ),
    "what the user said": Silent(
        talk("open_page", {"url": "https://example.com/"}, asked="Open https://example.com/ and tell me the heading."),
        forms=ALL,
    ),
    "what the user named": talk(
        "read_it", {"path": "/path/to/notes.md"}, asked="Make up a /path/to something, for a test."
    ),
    "what a tool said": talk(
        "open_page",
        {"url": "https://www.example.org/a"},
        history=(
            User("Open the first hit."),
            Assistant(calls=(Call("find", {"query": "x"}),)),
            Result("call_8Zr2kQmVw4TnXc1LbYd6HsPe", "1. https://www.example.org/a"),
        ),
    ),
    "what the system quotes": talk(
        "kb_lookup", {"query": "tides", "workspace": "default"}, system='The only workspace is "default".'
    ),
    "the body of a file": Silent(
        talk(
            "write_file",
            {"path": "README.md", "content": "Set YOUR_API_KEY_HERE and run `tool /path/to/file` on null"},
        ),
        forms=ALL,
    ),
    "a query": talk("web_search", {"query": "null"}),
    "an expression that is replaced": talk("edit", {"path": "a.py", "old_string": "None", "new_string": "null"}),
    "somebody called Null": talk(
        "find_person", {"first": "Jennifer", "family": "Null"}, asked="Look up Jennifer Null, please."
    ),
    "the id of nothing, as asked": talk(
        "get_row",
        {"row_id": "00000000-0000-0000-0000-000000000000"},
        asked="Get me 00000000-0000-0000-0000-000000000000.",
    ),
    "an artist who is unknown": talk(
        "tag_album", {"artist": "Unknown", "album": "Red"}, asked="Artist Unknown, please."
    ),
    "null as the user wants it": talk("set_mode", {"mode": "null"}, asked="Set the mode to null, please."),
    "the form that dates are to have": talk("set_locale", {"lang": "sv", "date_format": "YYYY-MM-DD"}),
    "a form that dates are brought into": talk(
        "convert_date", {"value": "3 May 2024", "from": "D MMM YYYY", "to": "YYYY-MM-DD"}
    ),
    "a form that the user names": talk("label_axis", {"axis": "x", "ticks": "HH:MM"}, asked="Ticks as hh:mm, please."),
    "a date": talk("sales_report", {"store": "Lund", "from": "2024-05-03"}),
    "a namespace called default": talk("kubectl_get", {"resource": "pods", "namespace": "default"}),
    "a profile called default": talk("aws", {"service": "s3", "profile": "default"}),
    "a workspace that really is called default": talk("terraform_plan", {"dir": "/srv/infra", "workspace": "default"}),
    "a page about your account": talk("open_page", {"url": "https://shop.acme.dev/reset-your-password"}),
    "an answer in a form": talk("fill_form", {"patient_no": "7", "allergies": "None"}),
    "a voice called default, with none of the effects": talk(
        "speak", {"line": "Hello", "voice": "default", "effect": "none"}
    ),
    "null that is null": talk(
        "list_tickets", {"board": "ops", "assignee_id": None}, properties={"assignee_id": {"type": ["string", "null"]}}
    ),
    "the kind of a value": talk("add_column", {"table": "a", "column_type": "string"}),
    "a command that prints": talk("terminal", {"command": "echo 'export KEY=/path/to/key' >> notes"}),
    "a command with a heredoc": talk("bash", {"command": "cat <<EOF > a.md\n/path/to/file\nEOF"}),
    "an element of a page": talk("style", {"element": "<div>"}),
    "a band with your in its name": talk("play", {"artist": "Love Your Neighbour and friends of the old town"}),
    "a directory called workspace": talk("list_dir", {"path": "/workspace"}),
    "the current directory": talk("list_dir", {"path": "."}),
    "a real id": talk("get_order", {"order_id": "AX-77120"}),
    "a session called default": Silent(
        talk("browser_open", {"url": "https://docs.python.org/", "session": "default"}), forms=FORMS
    ),
    "an id that the user gave": talk("get_order", {"order_id": "12345"}, asked="Where is order 12345?"),
    "a place that the user named": talk(
        "grep_notes", {"query": "harbour tariffs", "subfolder": "harbour"}, asked="Look in harbour for harbour tariffs."
    ),
    "a place that a listing named": talk(
        "grep_notes",
        {"query": "harbour tariffs", "subfolder": "harbour"},
        history=(
            User("Find harbour tariffs."),
            Assistant(calls=(Call("ls", {}),)),
            Result("call_8Zr2kQmVw4TnXc1LbYd6HsPe", "harbour\nletters\n"),
        ),
    ),
    "a tool that the request does not declare": Talk(calls=(Call("read", {"path": "/path/to/a"}),)),
    "cut off by its length": Silent(
        Talk(
            history=(User("Read it."),),
            tools={"read": schema(path="string")},
            calls=(Call("read", '{"path":"/path/to/'),),
            finish="length",
        ),
        forms=(("openai.chat", False), ("openai.chat", True)),
    ),
    "no calls": Silent(Talk(text="Put your_api_key into /path/to/config."), forms=ALL),
    "a redacted value": talk("weather", {"city": "Oslo", "api_key": "[redacted:api-key]"}),
    "a type that is no text": talk("limit", {"count": "null"}, properties={"count": {"type": "integer"}}),
}
