"""Scorecards and comparisons."""
