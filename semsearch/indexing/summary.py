"""What a run has committed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True)
class Summary:
    """The work that a run has committed."""

    added: int = 0
    changed: int = 0
    metadata_changed: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: int = 0  #: documents missing from the corpus that a skipped row may hold
    passages: int = 0  #: passages written
    encoded: int = 0  #: texts encoded
    seconds: float = 0.0
    nodes: Counter[str] = field(default_factory=Counter)  #: texts encoded by each cluster node

    @property
    def documents(self) -> int:
        """The number of documents of the corpus that are in the index."""
        return self.added + self.changed + self.metadata_changed + self.unchanged

    def __add__(self, other: Summary) -> Summary:
        names = [field.name for field in fields(self)]
        return Summary(**{name: getattr(self, name) + getattr(other, name) for name in names})
