"""The messages of a request: tool-call ids, pairs of calls and results, turns and roles."""
