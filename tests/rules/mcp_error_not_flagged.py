from __future__ import annotations

import json
from typing import Any

from tests.rules.case import Fires
from tests.rules.mcp import call, called, note, post, result, streamed, text

TRACE = "Traceback (most recent call last):\n  File \"s.py\", line 3, in create\n    x()\nKeyError: 'north'"
NODE = "TypeError: Cannot read properties of undefined\n    at create (/srv/app.js:10:3)\n    at run (/srv/app.js:2:1)"


def gave(answer: str, tool: str = "create_note", **more: Any) -> dict[str, Any]:
    return called(tool, {"workspace": "north"}, text(answer, **more))


SESSION = {"accept": "text/event-stream", "mcp-session-id": "s1"}
OLDER = "http://127.0.0.1:8766"

FIRES = {
    "an error by its first word": Fires(gave("Error: workspace 'north' does not exist"), says="create_note", layer="tool"),
    "something that is not there": gave("Workspace 'north' not found"),
    "what an argument names, of a search": gave("Workspace not found: north", "search_notes"),
    "a database's own words": gave('ERROR:  column "day" does not exist\nLINE 1: select day', "run_query"),
    "behind a sign": gave("❌ Bridge Error: the node is down"),
    "a tool that nobody knows": gave("Unknown tool: create_note"),
    "a tool that nobody knows, of a reader": gave("Tool read_page not found", "read_page"),
    "a Python trace": gave(TRACE),
    "a JavaScript trace": gave(NODE),
    "an object that holds an error alone": gave('{"error": "quota exceeded", "code": 429}'),
    "no success": gave('{"success": false, "message": "no such board"}', "add_card"),
    "a status of HTTP": gave("404 Not Found", "get_order"),
    "failed to": gave("Failed to create the note: disk is full"),
    "a missing permission": gave("Permission denied", "delete_user"),
    "a validation": gave("1 validation error for CreateNote\ntitle\n  Field required"),
    "said to be none": gave("Error executing tool create_note: 'north'", is_error=False),
    "in a stream, behind a notification": streamed(
        note("notifications/progress", progressToken=1, progress=1),
        result(text("Error: no workspace"), 2),
        asked=call("create_note"),
    ),
    "on the stream of the session": [
        post(call("create_note"), status=202, headers=SESSION),
        post("", [result(text("Error: no workspace"), 2)], stream=True, method="GET", headers=SESSION),
    ],
    "on the stream of the older transport": [
        post(call("create_note"), "Accepted", status=202, url=f"{OLDER}/messages?session_id=s1"),
        post(
            "",
            "event: endpoint\ndata: /messages?session_id=s1\n\n"
            f"data: {json.dumps(result(text('Error: no workspace'), 2))}\n\n",
            method="GET",
            url=f"{OLDER}/sse",
            headers={"accept": "text/event-stream"},
            kind="text/event-stream",
        ),
    ],
    "in a stream": streamed(result(text("Error: no workspace"), 2), asked=call("create_note")),
    "an error and no more": gave("Internal error"),
    "an exception with its module": gave("requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded"),
    "a code": gave("Error code E17: door is open", "start_machine"),
    "a limit": gave("GitHub API rate limit exceeded", "star_repo"),
    "a status in words": gave('{"status": "error", "message": "board is locked"}', "add_card"),
    "a status in figures": gave('{"status": 404, "message": "no such board", "data": null}', "get_board"),
    "an object that says so itself": gave('{"isError": true, "message": "no such board"}', "get_board"),
    "a message that was not sent": gave("Error: channel_not_found", "send_message"),
    "a page that was not made": gave("Failed to create page: title is taken", "create_page"),
    "a file that is named": called("read_file", {"path": "/srv/a.txt"}, "Error: ENOENT: no such file, open '/srv/a.txt'"),
    "a page that is named": called("fetch", {"url": "https://a.test/x"}, "Failed to fetch https://a.test/x - status code 404"),
    "in German": gave("Fehler: Arbeitsbereich fehlt"),
    "in German, with the deed": gave("Fehler beim Anlegen der Notiz: Platte voll"),
    "in French, with the deed": gave("Erreur lors de la création : disque plein"),
    "in Portuguese": gave("Erro ao criar a nota: disco cheio"),
    "in Russian": gave("Ошибка при создании заметки: диск заполнен"),
    "in Chinese": gave("创建失败：磁盘已满"),
    "in Japanese": gave("サーバーエラーが発生しました。"),
    "what the tool is called for failed": gave("failed to list issues: GET /repos/a/b/issues: 401 Bad credentials", "list_issues"),
    "what the tool is called for failed, as it went on": gave("Error fetching comments: connection reset", "fetch_comments"),
    "what the tool is called for failed, in camel case": gave("Error: Unable to search messages: not signed in", "searchMessages"),
    "a trace where titles were looked for": gave(TRACE, "search_issues"),
    "an environment that is not set": gave("API key is not configured", "send_text"),
}  # fmt: skip

SILENT = {
    "what was looked for is not there": gave("north not found", "search_notes"),
    "an argument, and what is in it": gave("Workspace north: 3 notes", "search_notes"),
    "flagged": gave("Error: workspace 'north' does not exist", is_error=True),
    "a log": gave("12:00 ERROR disk full\n12:01 Error: retry\n12:02 recovered", "tail_log"),
    "no error, in German": gave("Fehlerfrei gespeichert: 3 Notizen"),
    "errors are the subject, in German": gave("Fehler im Protokoll gesucht, keine gefunden", "scan_notes"),
    "a failure that is told, in Chinese": gave("上次失败的任务已重新执行。"),
    "what errors are called": gave("Error codes in use: E1, E2", "get_machine"),
    "a count of them": gave("Error counts by day: Mon 3, Tue 0", "get_machine"),
    "a title that was found": gave("Failed to search issues when signed out (#88)", "search_issues"),
    "titles that were found": gave("Failed to list issues: 401\nError listing forks", "list_issues"),
    "a title that speaks of something else": gave("Failed to save issues: 500", "list_issues"),
    "what a test says": gave("Failed to run tests: 3 of 9", "run_tests"),
    "a trace in what somebody wrote": gave(TRACE, "get_comment"),
    "a trace among errors that were looked for": gave(TRACE, "search_errors"),
    "a line of a log": gave("Error: disk full", "get_logs"),
    "a figure that is called an error": gave("Mean absolute error: 3.2", "get_forecast"),
    "no error": gave("No error: the note was there already."),
    "an error that was put right": gave("Fixed the error in a.py - done", "apply_patch"),
    "a rule": gave("Smoking is not allowed", "get_policy"),
    "a list whose first line begins so": gave("Failed to print - Bob\nCannot log in - Ann", "list_tickets"),
    "a state of a thing": gave('{"status": "failed"}', "get_job"),
    "a file that begins so, and goes on": called(
        "read_file", {"path": "notes.txt"}, "Error: see notes.txt\nSecond line"
    ),
    "a status of a good answer": gave('{"status": 200, "message": "ok"}', "get_board"),
    "a file": gave("Error: this is the first line of a file", "read_file"),
    "counts of errors": gave("0 errors, 2 warnings", "lint"),
    "an error count first": gave("Errors found: 0", "scan_project"),
    "a search that found nothing": gave("User 'ann' not found", "find_user"),
    "nothing found": gave("No results found.", "search_notes"),
    "a document about errors": gave("Error handling in Go is explicit. " * 30, "get_article"),
    "a page about 404": gave("404 errors mean that a page is gone.", "wiki_intro"),
    "a test run": gave("FAILED tests/a.py - AssertionError: 1 != 2", "run_tests"),
    "a shell": gave("cat: x: No such file or directory", "bash"),
    "an object with a member for errors": gave('{"id": 7, "state": "done", "error": null}', "get_job"),
    "a record of a failed job": gave('{"id": 7, "state": "failed", "error": "exit 1", "host": "a"}', "get_job"),
    "a success": gave("Created note 7."),
    "a success that speaks of an error": gave("Removed the error banner.", "update_page_style"),
    "an issue": gave("Error: cannot log in\n\nSteps: open the page", "get_issue"),
    "nothing": gave(""),
    "a JSON-RPC error": post(
        call("create_note"), {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "Error: x"}}
    ),
    "mail": gave("Error: your invoice could not be paid", "read_mail"),
    "what may fail": gave("The import can fail for large files; then split them.", "get_hint"),
}
