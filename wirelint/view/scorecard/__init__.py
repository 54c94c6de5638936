"""Scorecards and comparisons as a person or a program wants them: tables, Markdown, JSON, a picture."""

from wirelint.view.scorecard.documents import card_document, comparison_document
from wirelint.view.scorecard.picture import picture
from wirelint.view.scorecard.section import section, title
from wirelint.view.scorecard.tables import comparison_tables, score_tables, write_markdown, write_tables

__all__ = [
    "card_document",
    "comparison_document",
    "comparison_tables",
    "picture",
    "score_tables",
    "section",
    "title",
    "write_markdown",
    "write_tables",
]
