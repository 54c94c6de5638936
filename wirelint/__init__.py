"""wirelint: a linter for LLM wire traffic, inside mitmproxy and offline."""

__version__ = "0.1.0"
