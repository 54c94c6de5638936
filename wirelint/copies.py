"""Copies of values with other fields, for values of which many are made."""

from __future__ import annotations

from typing import Self


class Copied:
    """Base of frozen dataclasses without slots. Copies keep the values that were computed from fields."""

    def but(self, **fields: object) -> Self:
        """Return a copy with other fields, like `dataclasses.replace` but in a fraction of the time.

        Computed values must not depend on the changed fields.
        """
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.update(fields)
        return made
