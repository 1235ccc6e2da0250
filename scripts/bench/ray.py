"""The overhead of `semsearch index --on ray` on one machine, and the gain of a second actor.

Indexes the beginnings of film descriptions, in turn, in this process alone and on a Ray cluster of
one node with all cores, of one node with half of the cores, and of two nodes with half of the cores
each. The process that reads and writes is not pinned to cores. Ray starts before a measurement.

A rate counts what is written after the first batch until the last one, which excludes loading
models and starting actors; the seconds until the first batch are shown beside it. The overhead
compares the first two settings, the efficiency of two actors the last two.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from scripts.shared.corpora import distinct, film_beginnings
from semsearch import Document, Index, load_encoder

START_SECONDS = 60.0


class Measured(NamedTuple):
    """One run.

    Args:
        first_seconds: seconds until the first batch was written.
        rate: documents a second after that.
    """

    first_seconds: float
    rate: float


def main() -> int:
    """Measure, and print the table."""
    arguments = parsed()
    if arguments.measure:
        print(json.dumps(measured(arguments)))
        return 0
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("at least two cores are needed")
    half = len(cores) // 2
    nodes: dict[str, list[list[int]]] = {
        "this process": [],
        "1 actor, all cores": [cores],
        "1 actor, half of the cores": [cores[:half]],
        "2 actors, half of the cores each": [cores[:half], cores[half : 2 * half]],
    }
    runs: dict[str, list[Measured]] = {name: [] for name in nodes}
    for _ in range(arguments.repeats):
        for name, parts in nodes.items():
            with ray_nodes(parts) as environment:
                runs[name].append(measured_apart(arguments, environment))
            Console(stderr=True).print(f"{name}: {runs[name][-1].rate:.1f} documents/s")
    rates = [statistics.median(run.rate for run in found) for found in runs.values()]
    overhead, efficiency = rates[0] / rates[1] - 1, rates[3] / (2 * rates[2])
    Console().print(table(runs, arguments))
    print(f"overhead {overhead:.1%}, efficiency of 2 actors {efficiency:.1%}")
    if arguments.json:
        figures = {
            "texts": arguments.texts,
            "encoder": arguments.encoder,
            "runs": {name: [run._asdict() for run in found] for name, found in runs.items()},
            "overhead": overhead,
            "efficiency": efficiency,
        }
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    return 0


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=int, default=20_000, help="number of texts (20,000)")
    parser.add_argument("--repeats", type=int, default=3, help="number of rounds (3)")
    parser.add_argument("--encoder", default="minilm", help="spec of the encoder (minilm)")
    parser.add_argument(
        "--store", help="milvus://HOST:PORT, which keeps the indexes (a temporary directory)"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--measure", choices=["here", "ray"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if "SEMSEARCH_DATA" not in os.environ:
        parser.error("SEMSEARCH_DATA must name a folder of published data sets")
    return arguments


@contextmanager
def ray_nodes(parts: Sequence[Sequence[int]]) -> Iterator[dict[str, str] | None]:
    """Ray nodes on this machine, each pinned to some of its cores.

    Yields:
        An environment that connects to them; None without nodes.
    """
    if not parts:
        yield None
        return
    port, clients = free_ports(2)
    address = f"127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        environment = {
            **os.environ,
            "RAY_ADDRESS": address,
            "RAY_AUTH_MODE": "disabled",
            "RAY_TMPDIR": folder,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        head = ["--head", f"--port={port}", f"--ray-client-server-port={clients}"]
        head += [f"--temp-dir={folder}", "--include-dashboard=false"]
        started = []
        try:
            for number, part in enumerate(parts):
                command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
                command += [f"--address={address}"] if number else head
                command += ["--node-ip-address=127.0.0.1", f"--num-cpus={len(part)}"]
                command += ["--object-store-memory=200000000", "--disable-usage-stats"]
                started.append(
                    subprocess.Popen(
                        command,
                        preexec_fn=partial(os.sched_setaffinity, 0, part),
                        env=environment,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                )
                wait_for_nodes(number + 1, environment)
            yield environment
        finally:
            for process in started:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for_nodes(count: int, environment: dict[str, str]) -> None:
    """Wait until a cluster has `count` nodes."""
    code = "import ray; ray.init('auto', logging_level=40); "
    code += "print(sum(node['Alive'] for node in ray.nodes()))"
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stdout.split()[-1:] == [str(count)]:
            return
        time.sleep(1)
    sys.exit(f"Ray did not start: {done.stderr.strip()}")


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens."""
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in listening]
    for each in listening:
        each.close()
    return ports


def measured_apart(arguments: argparse.Namespace, environment: dict[str, str] | None) -> Measured:
    """One run, in a process of its own."""
    command = [sys.executable, "-m", "scripts.bench.ray", "--texts", str(arguments.texts)]
    command += ["--encoder", arguments.encoder, "--measure", "ray" if environment else "here"]
    command += ["--store", arguments.store] if arguments.store else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"a run failed: {done.stderr.strip().splitlines()[-1]}")
    return Measured(*json.loads(done.stdout))


def measured(arguments: argparse.Namespace) -> Measured:
    """Index the texts into a new index."""
    beginnings = distinct(film_beginnings(Path(os.environ["SEMSEARCH_DATA"])))
    texts = list(islice(beginnings, arguments.texts))
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    commits: list[tuple[float, int]] = []

    def on_batch(summary: Any) -> None:
        commits.append((summary.seconds, summary.documents))

    on = "ray" if arguments.measure == "ray" else None
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        Index.create(
            f"{arguments.store}/bench_{uuid4().hex}" if arguments.store else f"{folder}/index",
            load_encoder(arguments.encoder),
        ) as index,
        index.writer(on_batch=on_batch, on=on) as writer,
    ):
        writer.upsert(documents)
    (first, before), (last, after) = commits[0], commits[-1]
    if after == before:
        sys.exit("all texts are in one batch; increase --texts")
    return Measured(first, (after - before) / (last - first))


def table(runs: dict[str, list[Measured]], arguments: argparse.Namespace) -> Table:
    """Medians, with the lowest and the highest value."""
    medians = Table(
        title=f"{arguments.texts:,} texts of up to 60 words, {arguments.encoder}",
        title_justify="left",
    )
    for heading in ("", "documents/s", "s until the first batch"):
        medians.add_column(heading, justify="right" if heading else "left")
    for name, found in runs.items():
        columns = [[run.rate for run in found], [run.first_seconds for run in found]]
        medians.add_row(
            name,
            *(
                f"{statistics.median(values):.1f} ({min(values):.1f}..{max(values):.1f})"
                for values in columns
            ),
        )
    return medians


if __name__ == "__main__":
    sys.exit(main())
