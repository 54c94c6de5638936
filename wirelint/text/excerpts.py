"""Evidence for one-line messages."""

from __future__ import annotations


def excerpt(text: str, limit: int = 60) -> str:
    """White space folded, the middle left out when it is long."""
    folded = " ".join(text.split())
    if len(folded) <= limit:
        return folded
    head = (limit - 1) * 2 // 3
    return f"{folded[:head]}…{folded[len(folded) - (limit - 1 - head) :]}"
