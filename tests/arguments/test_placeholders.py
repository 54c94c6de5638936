"""Signs of placeholders in a value, with the name of its parameter."""

from __future__ import annotations

import pytest

from wirelint.arguments.placeholders import purpose, sign

PURPOSES = {
    "path": "path file_path filePath subWorkspace fileName file_names repositoryName",
    "prose": "content file_content old_string searchQuery query_language",
    "command": "command",
    "secret": "api_key apiKey accessToken",
    "id": "user_id userID ids",
    "host": "url webhookUrl",
    "address": "to email",
    "person": "name full_name",
    "kind": "content_type",
    "other": "key partition_key namespace city 路径",
}


@pytest.mark.parametrize("what", PURPOSES)
def test_purposes(what: str) -> None:
    assert {purpose(name) for name in PURPOSES[what].split()} == {what}


PLACEHOLDERS: dict[str, list[str]] = {
    "path": [
        "default", "null", "None", "none", "/path/to/file.txt", "path/to/repo", "./path/to/x",
        "C:\\path\\to\\x", "/path/to",
        "/full/path/to/x", "<path>", "<path-to-file>", "/home/username/x", "/Users/yourname/x",
        "/home/your_username/x",
        "your-repo", "/your/project", "/srv/your-app/x", "YOUR_PATH_HERE", "{your_file}", "[insert path]",
        "N/A", "unknown", "...",
        "placeholder", "CHANGEME",
        "file:///path/to/a", "<absolute path of the file>", "string",
    ],
    "api_key": [
        "YOUR_API_KEY", "your_api_key", "your-api-key-here", "<API_KEY>", "sk-xxxxxxxx",
        "api_key", "test_token", "dummy",
        "INSERT_YOUR_KEY", "REPLACE_ME", "null", "<your-key>", "{{api_key}}",
    ],
    "url": [
        "https://example.com", "http://api.example.org/v1?a=b", "https://your-domain.com/x", "https://github.com/your-username/repo",
        "https://api.acme.dev/v1?key=YOUR_KEY", "https://acme.dev/your_tenant/x", "https://your_token@acme.dev/",
        "example.net", "<url>",
    ],
    "to": [
        "user@example.com", "jane@mail.example.org", "test@test.com", "your_email@gmail.com",
        "555-0100", "+1234567890",
    ],
    "user_id": [
        "12345", "user_123", "abc123", "<user_id>", "your-user-id",
        "123e4567-e89b-12d3-a456-426614174000", "default",
    ],
    "city": ["<city>", "null", "undefined", "N/A", "string", "[your city]", "not specified"],
    "full_name": ["John Doe", "Jane Smith", "<name>"],
    "command": ["cat /path/to/file", "cd /path/to/project && ls", "python /home/username/a.py"],
}  # fmt: skip
REAL: dict[str, list[str]] = {
    "path": [
        "/etc/hosts", "src/main.py", ".", "/", "/workspace", "/home/ann/notes", "default.conf",
        "src/default/a.c", "nullable.go",
        "docs/paths/today.md", "/opt/pathtools", "tests/example/a.py", "examples",
        "your.log.2024", "a[0].txt", "{a,b}.c", "~",
        "none.txt", "/var/lib/none", "unknown.bin", "string.h",
    ],
    "api_key": ["sk-proj-8fKq2", "ghp_Zk29s"],
    "url": [
        "https://docs.python.org/3/", "https://example-shop.de", "https://exampled.com",
        "http://localhost:8080/path",
    ],
    "to": ["ann@kolibri.dev", "+47 22 85 50 50"],
    "user_id": ["u-77120", "9981", "me", "0"],
    "city": ["Nulle", "Oslo", "Defaultville", "Noneburg", "Unknown Lake"],
    "page": ["https://shop.de/reset-your-password", "https://shop.de/your-account",
        "docs/connect-your-account.md"],
    "site": ["https://wishyouwerehere.org/", "https://yourls.org/"],
    "project": ["build-your-own-x", "wish-you-were-here", "image-placeholder", "love-your-home"],
    "allergies": ["None", "none", "nil"],
    "namespace": ["default", "none"],
    "theme": ["default"],
    "content": ["null", "/path/to/file", "YOUR_API_KEY_HERE", "string"],
    "query": ["default", "null", "<div>", "path to success"],
    "element": ["<div>", "<br/>", "<a>"],
    "artist": ["Your Love", "Yours Truly"],
    "command": ["echo /path/to/x", "ls /srv", "grep -r '/path/to' .", "git log -- path"],
    "type": ["string", "null"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in PLACEHOLDERS.items() for value in values]
)
def test_placeholders(name: str, value: str) -> None:
    assert sign(value, name) is not None


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REAL.items() for value in values])
def test_real(name: str, value: str) -> None:
    assert sign(value, name) is None


def test_long_values_are_no_placeholders() -> None:
    assert sign("/path/to/" * 100, "path") is None
    assert sign("<" + "path " * 59 + "?", "path") is None
