"""Soak test: readers, a writer, kills and verification, mixed for a given time.

One process writes states of a corpus, each in one transaction, deletes, folds and compacts; it is
killed every few seconds, and the index is verified. Two more query all the time, and compare each
answer with numpy's for the same state.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "crash"))

from workers import ask_and_check, whole_state, write_states

from semsearch import Index

READERS = 2
#: The range of a writer's lifetime, in seconds.
LIFE = (0.05, 4.0)


def main() -> int:
    """Run the soak test, and print its counts; exit status 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="scripts/dev/soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="duration (1)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of the kills")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as folder:
        return soak(Path(folder), 60 * arguments.minutes, random.Random(arguments.seed))


def soak(path: Path, seconds: float, chance: random.Random) -> int:
    """Mix readers, writers, kills and verification in an index."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["workers", "faiss", "semsearch.indexing.writer"])
    with Index.create(path, ["hashing"]) as index:
        index.add(whole_state(0))
    running, reached = processes.RawValue("l", 1), processes.RawValue("l", 0)
    queue = processes.Queue()
    readers = [
        processes.Process(target=ask_and_check, args=(path, running, queue)) for _ in range(READERS)
    ]
    for reader in readers:
        reader.start()
    end = time.monotonic() + seconds
    kills = 0
    faults: list[str] = []
    while time.monotonic() < end:
        writer = processes.Process(
            target=write_states, args=(path, reached.value + 1, 10**9, reached)
        )
        writer.start()
        writer.join(chance.uniform(*LIFE))
        if writer.exitcode is not None:
            faults.append(f"a writer exited by itself with status {writer.exitcode}")
        writer.kill()
        writer.join()
        kills += 1
        with Index.open(path) as index, index.writer() as checker:
            found = checker.verify()
        faults += [f"after kill {kills}: {fault.what}" for fault in found]
        if not all(reader.is_alive() for reader in readers):
            faults.append("a reader exited by itself")
            break
    running.value = 0
    seen = [queue.get(timeout=120) for _ in readers]
    for reader in readers:
        reader.join()
    compared, states_of_each, mistakes = zip(*seen, strict=True)
    faults += [mistake for found in mistakes for mistake in found]
    states = set().union(*states_of_each)
    print(f"states written:    {reached.value:,}")
    print(f"kills survived:    {kills:,}")
    print(f"answers compared:  {sum(compared):,}")
    print(f"states they saw:   {len(states):,}")
    print(f"faults:            {len(faults):,}")
    print("\n".join(faults[:20]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
