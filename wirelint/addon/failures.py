"""Failures of our own: each is logged once, and stands on the exchange that it happened to."""

from __future__ import annotations

from collections.abc import Iterable

from wirelint.addon.log import log_failure, log_fault
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.rule import Finding


class Failures:
    """What was told already, by its culprit."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def fail(self, visit: ExchangeRecorder, culprit: str, error: Exception) -> None:
        """A failure after which the reading of the exchange cannot go on."""
        visit.fail(culprit, error)
        self.tell(culprit, error)

    def add(self, visit: ExchangeRecorder, culprit: str, error: Exception) -> None:
        """A failure that leaves the exchange readable."""
        visit.add_fault(culprit, error)
        self.tell(culprit, error)

    def rule(self, name: str, error: Exception) -> None:
        self.tell(f"rule {name}", error)

    def tell(self, culprit: str, error: BaseException) -> None:
        """Logs a failure."""
        if culprit in self._told:
            return
        self._told.add(culprit)
        try:
            log_failure(culprit, error)
        except Exception:  # fail open: nothing is left that could be told
            return

    def dealt_with(self, faults: Iterable[Finding]) -> None:
        """Logs failures that were dealt with where they happened, and are findings already."""
        for fault in faults:
            culprit = fault.message.partition(" failed: ")[0]
            if culprit not in self._told:
                self._told.add(culprit)
                log_fault(fault)
