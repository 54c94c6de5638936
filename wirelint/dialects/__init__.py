"""Parser of native tool-call markup in text, whole or still arriving.

Each model family writes tool calls in its own notation; a server that fails to parse a call passes it on as text. A
dialect is a table in one of the TOML files of this package. The module beside the file reads it, with a grammar that
many dialects share (`json_blocks`, `tagged`, `invoke`, `python_calls`, `call_tokens`, `messages`) or with a separate
function. To add a dialect, add a table to the file of its grammar; see `tables`.
"""
