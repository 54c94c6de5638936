"""Cards and comparisons as JSON: counts, shares between 0 and 1, times in milliseconds; null where nothing is known."""

from __future__ import annotations

from wirelint.model import Json
from wirelint.view.scores import Card, Comparison, Spread


def card_document(card: Card) -> dict[str, Json]:
    return {
        "provider": card.provider,
        "model": card.model,
        "exchanges": card.exchanges,
        "failed": card.failed,
        "streamed": card.streamed,
        "finish_stop": card.finishes["stop"],
        "finish_tool_calls": card.finishes["tool_calls"],
        "finish_others": card.finishes["other"],
        "successful_tool_calls": card.successful,
        "schema_errors": card.schema_errors,
        "schema_accuracy": _rounded(card.schema_accuracy, 4),
        "calls": card.calls,
        "valid_calls": card.valid_calls,
        "output_tokens": card.output_tokens,
        "first_token_ms": _spread(card.first_token),
        "longest_gap_ms": _spread(card.longest_gap),
        "duration_ms": _spread(card.duration),
        "tokens_per_second": _spread(card.speed),
        "findings": [
            {"name": name, "layer": layer, "count": count}
            for (name, layer), count in sorted(card.findings.items(), key=lambda item: (-item[1], item[0]))
        ],
    }


def comparison_document(made: Comparison) -> dict[str, Json]:
    trigger = made.trigger
    return {
        "provider": made.provider,
        "model": made.model,
        "pairs": made.pairs,
        "unmatched": made.unmatched,
        "true_positives": trigger.true_positives,
        "false_positives": trigger.false_positives,
        "false_negatives": trigger.false_negatives,
        "true_negatives": trigger.true_negatives,
        "precision": _rounded(trigger.precision, 4),
        "recall": _rounded(trigger.recall, 4),
        "f1": _rounded(trigger.f1, 4),
        "similarity": _rounded(made.similarity, 4),
        "candidate": card_document(made.card),
        "reference": card_document(made.reference),
    }


def _spread(spread: Spread) -> Json:
    if not spread:
        return None
    return {
        "count": len(spread.values),
        "p50": _rounded(spread.at(0.5)),
        "p95": _rounded(spread.at(0.95)),
        "max": _rounded(spread.at(1.0)),
    }


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)
