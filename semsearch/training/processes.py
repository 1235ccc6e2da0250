"""The processes of one run, as started by `accelerate launch` or torchrun.

Each reads the data and trains its own copy of the model on its share of every batch; gradients are
averaged. The main one prints, evaluates and writes. A single process imports nothing for this.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from semsearch.errors import SemsearchError, TrainingError

T = TypeVar("T")

#: How long other processes wait for the main one, which evaluates alone.
PATIENCE = timedelta(days=1)


def process_count() -> int:
    """The number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def is_main() -> bool:
    """Whether this process prints and writes."""
    return process_count() == 1 or os.environ["RANK"] == "0"


def broadcast(value: T) -> T:
    """The main process's value, in all processes; the others wait for it."""
    if process_count() > 1:
        from accelerate.utils import broadcast_object_list

        _join()
        (value,) = broadcast_object_list([value])
    return value


@contextmanager
def failing_together() -> Iterator[None]:
    """If the block fails in any process, raise the error in the main one and exit the others.

    Raises:
        SemsearchError: the block raised one, in this or another process.
        SystemExit: in the other processes.
    """
    if process_count() > 1:
        _join()
    failure: SemsearchError | None = None
    try:
        yield
    except SemsearchError as error:
        failure = error
    if process_count() > 1:
        from accelerate.utils import gather_object

        message = failure and f"process {os.environ['RANK']}: {failure}"
        messages = list(filter(None, gather_object([message])))
        if messages and failure is None:
            failure = TrainingError(messages[0])
    if failure is not None:
        raise for_main(failure)


def for_main(error: SemsearchError) -> SemsearchError:
    """An error that occurs in all processes, for the main one to raise.

    Raises:
        SystemExit: in the other processes, with status 0: with any other, the launcher would end
            the main process before it has reported the error.
    """
    if is_main():
        return error
    raise SystemExit(0)


def _join() -> None:
    """Connect the processes, and choose each one's device."""
    import torch
    from accelerate import PartialState

    PartialState(cpu=not torch.accelerator.is_available(), timeout=PATIENCE)
