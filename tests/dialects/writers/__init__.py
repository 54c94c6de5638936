"""Per family, how its dialects are written: what the harness reads back, and what must not make reading slow.

A module may have `JSON_WRITERS` (dialect and writer, for any JSON object), `TEXT_WRITERS` (for values that are text without
`<`) and `SOUP` (units that are repeated without end).
"""
