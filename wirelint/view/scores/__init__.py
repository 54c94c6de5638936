"""How well providers and models do, counted from plain traffic: the scorecard of one, and one held against another."""

from wirelint.view.scores.card import Card, Cards, Outcome, Sighting, Spread, outcome_of, provider_of, sight
from wirelint.view.scores.comparison import Comparison, Trigger, asked_by, compare

__all__ = [
    "Card",
    "Cards",
    "Comparison",
    "Outcome",
    "Sighting",
    "Spread",
    "Trigger",
    "asked_by",
    "compare",
    "outcome_of",
    "provider_of",
    "sight",
]
