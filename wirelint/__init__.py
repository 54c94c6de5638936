"""wirelint: a linter for LLM wire traffic, inside mitmproxy and offline."""

__version__ = "0.2.0"

REPOSITORY = "https://github.com/wirelint/wirelint"
DOCUMENTATION = "https://wirelint.readthedocs.io/en/latest/"
"""Addresses of the project. `[project.urls]` in pyproject.toml has the same ones."""
