"""`semsearch serve` under load, beside txtai's API and Chroma's server.

Clients on the same machine ask for the ten best passages with their texts; each sends its next
query when the previous one is answered. Services have the same corpus and queries and encode with
the same all-MiniLM-L6-v2, with the defaults of their documentation:

ours            `semsearch serve`, in each of the precisions
txtai           `uvicorn txtai.api:app`
chroma          `chroma run` and its Python client, which encodes with sentence-transformers in the
                process of the clients; these share one model
chroma-vectors  `chroma run` with query vectors that are encoded beforehand: search alone

Services take turns; those that wait are idle. All clients are in one other process, whose busy
cores are shown. Figures are medians of the rounds, with the lowest and highest value.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

from scripts.bench.peers import PRECISIONS, positive, some_of
from scripts.bench.report import number_text, plain_table, ratio_text, spread_text
from scripts.bench.results import Spread, as_plain, overlap, spread
from scripts.bench.systems import (
    OURS,
    Peer,
    System,
    installed_versions,
    messages,
    missing_modules,
    semsearch,
)
from scripts.shared.corpora import (
    Corpus,
    corpus_of,
    corpus_record,
    distinct,
    sts_sentences,
    wordnet_definitions,
)
from scripts.shared.machine import cpu_description

#: The modules that each of the other services needs.
OTHERS = {
    "txtai": Peer(("txtai", "fastapi_mcp", "uvicorn")),
    "chroma": Peer(("chromadb", "sentence_transformers")),
    "chroma-vectors": Peer(("chromadb",)),
}

QUERIES = 4000
START_SECONDS = 300


@dataclass(frozen=True)
class Asked:
    """A service, and how it is queried.

    Args:
        kind: the kind of client, as `scripts.bench.load` calls it.
        system: the system that indexes and serves the corpus.
    """

    kind: str
    system: System

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.system.name if self.kind == OURS else self.kind


@dataclass
class Figures:
    """The figures of a service under a number of clients.

    The rate is in answers a second; the ratio is the rate of the first of ours divided by it.
    """

    system: str
    clients: int
    rate: Spread
    p50_seconds: Spread
    p99_seconds: Spread
    client_cores: Spread
    failed: int
    same_ten: float
    ratio: float | None = None


def main() -> int:
    """Measure, and print the results; exit status 1 if a service failed."""
    arguments = parsed()
    asked, left_out = at_hand(arguments)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        corpus, queries = texts(arguments, Path(name))
        bench = Bench(Path(name), corpus, queries, arguments)
        addresses = {
            system: running.enter_context(bench.served(system))
            for system in dict.fromkeys(one.system for one in asked)
        }
        figures = bench.measured(asked, addresses)
    results = {
        "options": vars(arguments),
        "versions": installed_versions()["main"],
        "machine": cpu_description(),
        "corpus": corpus_record(corpus),
        "queries": len(queries),
        "left_out": left_out,
        "loads": as_plain(figures),
    }
    show(results, figures, Console() if sys.stdout.isatty() else Console(width=120))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2, default=str) + "\n", "utf-8")
    return 0


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench/serve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = (OURS, *OTHERS)
    add = parser.add_argument
    add("--systems", type=some_of(known), default=known, help=f"some of {','.join(known)}")
    add(
        "--precisions",
        type=some_of(PRECISIONS),
        default=("auto", "fp32"),
        help=f"precisions of ours: some of {','.join(PRECISIONS)} (auto,fp32)",
    )
    add("--clients", type=counts, default=[1, 8, 64], help="numbers of concurrent clients (1,8,64)")
    add("--seconds", type=float, default=5.0, metavar="S", help="duration of each load (5)")
    add("--repeats", type=positive, default=3, metavar="N", help="number of rounds (3)")
    add("--texts", type=positive, default=10_000, metavar="N", help="definitions (10,000)")
    add("--corpus", type=Path, metavar="FILE", help="texts of your own instead, one per line")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    arguments = parser.parse_args()
    if arguments.corpus is None and "SEMSEARCH_DATA" not in os.environ:
        parser.error("pass --corpus, or set SEMSEARCH_DATA to a folder of published data sets")
    if arguments.corpus is not None and not arguments.corpus.is_file():
        parser.error(f"no file {arguments.corpus}")
    return arguments


def counts(text: str) -> list[int]:
    """Parse comma-separated numbers."""
    return [positive(number) for number in text.split(",")]


def at_hand(arguments: argparse.Namespace) -> tuple[list[Asked], dict[str, str]]:
    """The services that are installed, and why others are left out."""
    asked, left_out = [], {}
    for kind in arguments.systems:
        if kind == OURS:
            asked += [Asked(kind, System(OURS, precision)) for precision in arguments.precisions]
        elif missing := missing_modules(OTHERS[kind]):
            left_out[kind] = f"{', '.join(missing)} is not installed; run scripts/bench/serve"
            messages.print(f"{kind} is left out: {left_out[kind]}")
        else:
            asked.append(Asked(kind, System(kind.partition("-")[0], "fp32")))
    return asked, left_out


def texts(arguments: argparse.Namespace, folder: Path) -> tuple[Corpus, list[str]]:
    """The corpus, and the queries, shuffled (seed 0); the texts of --corpus are both."""
    if arguments.corpus:
        found = list(distinct(arguments.corpus.read_text("utf-8").splitlines()))
        queries = found[:QUERIES]
    else:
        data = Path(os.environ["SEMSEARCH_DATA"])
        known = list(distinct(wordnet_definitions(data)))
        count = min(arguments.texts, len(known))
        found = [known[place * len(known) // count] for place in range(count)]
        queries = list(islice(distinct(sts_sentences(data)), QUERIES))
    random.Random(0).shuffle(queries)
    return corpus_of("texts", found, folder), queries


class Bench:
    """Services of one corpus, and the clients that query them.

    Args:
        folder: where everything is written.
        corpus: the texts to search.
        queries: the texts to search for.
        arguments: the parsed options.
    """

    def __init__(
        self,
        folder: Path,
        corpus: Corpus,
        queries: Sequence[str],
        arguments: argparse.Namespace,
    ) -> None:
        self._folder = folder
        self._corpus = corpus
        self._queries = folder / "queries.txt"
        self._queries.write_text("\n".join(queries), "utf-8")
        self._arguments = arguments

    @contextmanager
    def served(self, system: System) -> Iterator[str]:
        """Index the corpus and run a service; yields its address."""
        index = self._folder / system.name.replace(" ", "-")
        began = time.perf_counter()
        self._run(system.index_command(self._folder, self._corpus.file, index))
        messages.print(f"{system.name}: indexed in {time.perf_counter() - began:.1f} s")
        port = free_port()
        log = index.with_suffix(".log")
        with log.open("wb") as stream:
            process = subprocess.Popen(
                self._command(system, index, port),
                env=environment(CONFIG=str(self._txtai_settings(index))),
                stdout=stream,
                stderr=stream,
            )
            try:
                wait_for(port, process, log)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()
                process.wait()

    def measured(self, asked: Sequence[Asked], addresses: Mapping[System, str]) -> list[Figures]:
        """The figures of all services, by number of clients."""
        found: dict[Asked, Any] = {}
        loads: dict[tuple[int, Asked], list[dict[str, float]]] = defaultdict(list)
        for number in range(self._arguments.repeats):
            # Each round begins with another one, so that effects of the order even out, too.
            start = number % len(asked)
            for one in [*asked[start:], *asked[:start]]:
                messages.print(f"{number + 1}/{self._arguments.repeats}: {one.name}")
                report = json.loads(self._run(self._load_command(one, addresses[one.system])))
                found[one] = report["found"]
                for load in report["loads"]:
                    loads[load["clients"], one].append(load)
        figures = [
            Figures(
                one.name,
                clients,
                *(
                    spread([load[name] for load in loads[clients, one]])
                    for name in ("rate", "p50_seconds", "p99_seconds", "client_cores")
                ),
                failed=round(sum(load["failed"] for load in loads[clients, one])),
                same_ten=overlap(found[one], found[asked[0]]),
            )
            for clients in self._arguments.clients
            for one in asked
        ]
        ours = {one.clients: one.rate.median for one in reversed(figures) if OURS in one.system}
        for one in figures:
            if one.clients in ours and one.rate.median:
                one.ratio = ours[one.clients] / one.rate.median
        return figures

    def _command(self, system: System, index: Path, port: int) -> list[str]:
        if system.tool == OURS:
            most = str(max(self._arguments.clients))
            options = ["--index", str(index), "--port", str(port), "--concurrency", most]
            return [*semsearch(), "serve", *options]
        if system.tool == "txtai":
            return [sys.executable, "-m", "uvicorn", "txtai.api:app", "--port", str(port)]
        program = str(Path(sys.executable).with_name("chroma"))
        return [program, "run", "--path", str(index), "--host", "127.0.0.1", "--port", str(port)]

    def _txtai_settings(self, index: Path) -> Path:
        file = index.with_suffix(".yml")
        file.write_text(json.dumps({"path": str(index), "embeddings": {}}), "utf-8")
        return file

    def _load_command(self, asked: Asked, address: str) -> list[str]:
        clients = ",".join(map(str, self._arguments.clients))
        options = ["--clients", clients, "--seconds", str(self._arguments.seconds)]
        program = [sys.executable, "-m", "scripts.bench.load"]
        return [*program, asked.kind, address, str(self._queries), *options]

    def _run(self, command: Sequence[str]) -> str:
        """The last line that a command prints."""
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no message"]
            sys.exit(f"{' '.join(command[:5])} … failed: {said[-1]}")
        return done.stdout.strip().rpartition("\n")[2]


def environment(**more: str) -> dict[str, str]:
    """The environment of all processes: no network, no GPU."""
    none = {"HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return {**os.environ, **none, "CUDA_VISIBLE_DEVICES": "", **more}


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


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


def show(results: Mapping[str, Any], figures: Sequence[Figures], console: Console) -> None:
    """Print a table for each number of clients."""
    corpus, machine = results["corpus"], results["machine"]
    console.print(
        f"{corpus['documents']:,} texts, {results['queries']:,} queries; "
        f"{machine['cpu']}, {machine['cores']} cores",
        highlight=False,
    )
    for clients in dict.fromkeys(one.clients for one in figures):
        table = plain_table(
            f"{clients} {'client' if clients == 1 else 'clients'}",
            "service",
            "queries/s",
            "ours is",
            "p50, ms",
            "p99, ms",
            "clients' cores",
            "failed",
            f"same ten as {figures[0].system}",
        )
        for one in figures:
            if one.clients == clients:
                table.add_row(
                    one.system,
                    spread_text(one.rate),
                    ratio_text(one.ratio),
                    *(
                        spread_text(Spread(*(1000 * value for value in seconds)))
                        for seconds in (one.p50_seconds, one.p99_seconds)
                    ),
                    number_text(one.client_cores.median),
                    f"{one.failed:,}",
                    f"{one.same_ten:.1%}",
                )
        console.print(table)


if __name__ == "__main__":
    sys.exit(main())
