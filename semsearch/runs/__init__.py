"""What every training run has: a place where it is made, and a way to be stopped."""

from semsearch.runs.interruption import Interruption
from semsearch.runs.workspace import Workspace

__all__ = ["Interruption", "Workspace"]
