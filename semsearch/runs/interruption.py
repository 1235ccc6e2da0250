"""Ctrl-C ends a training run at the end of its step, with a checkpoint; a second one at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from semsearch.errors import TrainingStoppedError


class Interruption:
    """Notes that the run should end, while it is entered."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # others have no signals
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def stopped(self, step: int) -> TrainingStoppedError:
        """What to raise when the checkpoint of that step is written."""
        return TrainingStoppedError(
            f"stopped after step {step:,}; the same command with --resume goes on"
        )

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
