"""`semsearch serve` under load, beside txtai's API and Chroma's server.

Clients on the same machine ask for the ten best passages with their texts; each sends its next
query when the previous one is answered. Services have the same corpus and queries and encode with
the same all-MiniLM-L6-v2, with the defaults of their documentation:

ours    `semsearch serve`, in each of the precisions
txtai   `uvicorn txtai.api:app`
chroma  `chroma run` and its Python client, which encodes with sentence-transformers in the
        process of the clients; these share one model

Services take turns; those that wait are idle. All clients are in one other process, whose busy
cores are shown.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripts.bench.peers import PRECISIONS, System, chosen, index_command, overlap
from scripts.shared.corpora import (
    Corpus,
    corpus_of,
    distinct,
    lines_of,
    sts_sentences,
    wordnet_definitions,
)
from scripts.shared.frame import (
    Table,
    data_folder,
    environment,
    in_turn,
    milliseconds,
    new_parser,
    positive,
    report,
    run,
    served,
    some_of,
    spread,
)

OTHERS = {name: System(name) for name in ("txtai", "chroma")}
QUERIES = 4000
START_SECONDS = 300


def main() -> int:
    """Measure, and print a table for each number of clients."""
    arguments = parsed()
    with TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        corpus, queries = texts(arguments, folder)
        (folder / "queries.txt").write_text("\n".join(queries), "utf-8")

        def address_of(system: System) -> str:
            index = folder / str(system).replace(" ", "-")
            return running.enter_context(start(system, corpus, index, max(arguments.clients)))

        services = in_turn("start", chosen(arguments, OTHERS), 1, address_of)

        def load(system: System) -> Any:
            clients = ",".join(map(str, arguments.clients))
            command = [sys.executable, "-m", "scripts.bench.load", system.tool]
            command += [*services[system], folder / "queries.txt", clients, arguments.seconds]
            return json.loads(run(command).output.splitlines()[-1])

        measured = in_turn("load", list(services), arguments.repeats, load)
    tables = [table(place, number, measured) for place, number in enumerate(arguments.clients)]
    report(arguments, tables)
    return 0


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = new_parser("scripts/bench/serve", __doc__)
    known = ["ours", *OTHERS]
    counts = lambda text: [positive(number) for number in text.split(",")]  # noqa: E731
    add = parser.add_argument
    add("--systems", type=some_of(known), default=known, help=f"some of {','.join(known)}")
    add(
        "--precisions",
        type=some_of(PRECISIONS),
        default=["auto", "fp32"],
        help=f"precisions of ours: some of {','.join(PRECISIONS)} (auto,fp32)",
    )
    add("--clients", type=counts, default=[1, 8, 64], help="numbers of concurrent clients (1,8,64)")
    add("--seconds", type=float, default=5.0, metavar="S", help="duration of each load (5)")
    add("--texts", type=positive, default=10_000, metavar="N", help="definitions (10,000)")
    add("--corpus", type=Path, metavar="FILE", help="texts of your own instead, one per line")
    return parser.parse_args()


def texts(arguments: argparse.Namespace, folder: Path) -> tuple[Corpus, list[str]]:
    """The corpus, and the queries, shuffled (seed 0); the texts of --corpus are both."""
    if arguments.corpus:
        found = lines_of(arguments.corpus)
        queries = found[:QUERIES]
    else:
        known = list(distinct(wordnet_definitions(data_folder())))
        count = min(arguments.texts, len(known))
        found = [known[place * len(known) // count] for place in range(count)]
        queries = list(islice(sts_sentences(data_folder()), QUERIES))
    random.Random(0).shuffle(queries)
    return corpus_of("texts", found, folder), queries


@contextmanager
def start(system: System, corpus: Corpus, index: Path, clients: int) -> Iterator[str]:
    """Index the corpus and run a service; yields its address."""
    if system.tool == "ours":
        run(index_command(corpus, index, system.precision))
        with served(index, "--concurrency", str(clients)) as address:
            yield address
        return
    program = Path(__file__).with_name("one_peer.py")
    run(
        [sys.executable, program, system.tool, "index", index.parent / "models", corpus.file, index]
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if system.tool == "txtai":
        command = [sys.executable, "-m", "uvicorn", "txtai.api:app", "--port", str(port)]
    else:
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(index)]
        command += ["--host", "127.0.0.1", "--port", str(port)]
    settings, log = index.with_suffix(".yml"), index.with_suffix(".log")
    settings.write_text(json.dumps({"path": str(index), "embeddings": {}}), "utf-8")
    with (
        log.open("wb") as stream,
        subprocess.Popen(
            command, env=environment(CONFIG=str(settings)), stdout=stream, stderr=stream
        ) as process,
    ):
        try:
            wait_for(port, process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a service accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{log.stem} did not start: {log.read_text('utf-8', 'replace')[-500:]}")
            time.sleep(0.1)


def table(place: int, clients: int, measured: dict[System, list[Any]]) -> Table:
    """The figures of all services under a number of clients."""
    rows: list[dict[str, Any]] = []
    first = next(iter(measured.values()))[0]["found"]
    for system, rounds in measured.items():
        loads = [one["loads"][place] for one in rounds]
        rate = spread([load["rate"] for load in loads])
        ours = rows[0]["queries/s"].median if rows and rows[0]["service"][:4] == "ours" else None
        rows.append(
            {
                "service": str(system),
                "queries/s": rate,
                "ours is, x": ours / rate.median if ours and rate.median else None,
                "p50, ms": milliseconds([load["p50_seconds"] for load in loads]),
                "p99, ms": milliseconds([load["p99_seconds"] for load in loads]),
                "clients' cores": spread([load["client_cores"] for load in loads]).median,
                "failed": sum(load["failed"] for load in loads),
                "same ten, %": 100 * overlap(rounds[0]["found"], first),
            }
        )
    return Table(f"{clients} client{'s' * (clients > 1)}", rows)


if __name__ == "__main__":
    sys.exit(main())
