"""Compares semsearch with its peers on the same texts, with the same weights.

bulk     indexes a corpus: documents a second of the whole command, the same without its start-up
         (the time for a corpus of one text in the same round), peak memory.
cold     runs one query in a whole process, from its start to its exit.
warm     runs queries on an open index: encoding and search of one query.
machine  measures the processor's peak rates, and how much of them an encoder reaches.

The systems take turns, so that a slow minute of the machine affects all of them; every figure is a
median with the lowest and the highest value. Files and models are read once beforehand, unmeasured,
when ours is also converted. All compute on the CPU, with the bundled all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from scripts.bench.report import plot, show
from scripts.bench.results import (
    BASELINE,
    BulkFigures,
    BulkRound,
    Finished,
    QueryFigures,
    Results,
    as_json,
    bulk_figures,
    compared,
    overlap,
)
from scripts.bench.systems import HELP, OURS, PEERS, System, at_hand, installed_versions, messages
from scripts.shared.corpora import Corpus, corpus_of, corpus_record, read_corpora

SECTIONS = ("bulk", "cold", "warm", "machine")

PRECISIONS = ("auto", "fp32", "bf16", "int8")

QUERIES = 50

T = TypeVar("T")


class CommandFailedError(Exception):
    """A command exited with a non-zero status; the message is its last on stderr."""


def main() -> int:
    """Measure, and print the results; exit status 1 if a system failed that had worked before."""
    arguments = parsed()
    systems, left_out = at_hand(arguments)
    with tempfile.TemporaryDirectory() as name:
        corpora = read_corpora(arguments, Path(name))
        bench = Bench(arguments, Path(name), systems, corpora)
        results = Results(
            vars(arguments),
            installed_versions(),
            [corpus_record(corpus) for corpus in corpora],
            left_out=left_out,
        )
        bench.measure(results)
    show(results, Console() if sys.stdout.isatty() else Console(width=120))
    if arguments.json:
        arguments.json.write_text(
            json.dumps(as_json(results), indent=2, default=str) + "\n", "utf-8"
        )
    if arguments.plot:
        plot(results, arguments.plot)
    return 1 if bench.faults or not bench.systems else 0


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench/peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = (OURS, *PEERS)
    add = parser.add_argument
    add("--systems", type=some_of(known), default=known, help=f"some of {','.join(known)}")
    add("--sections", type=some_of(SECTIONS), default=SECTIONS, help="some of the above (all)")
    add(
        "--precisions",
        type=some_of(PRECISIONS),
        default=("fp32", "bf16"),
        help=f"precisions of ours: some of {','.join(PRECISIONS)} (fp32,bf16)",
    )
    add("--repeats", type=positive, default=3, metavar="N", help="number of rounds (3)")
    add("--texts", type=positive, default=2000, metavar="N", help="news-length texts (2,000)")
    add("--sentences", type=positive, default=10000, metavar="N", help="sentences (10,000)")
    add("--corpus", type=Path, metavar="FILE", help="texts of your own instead, one per line")
    add("--machine-seconds", type=float, default=20.0, metavar="S", help="for the machine (20)")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    add("--plot", type=Path, metavar="FILE", help="draw bars into this file (.png or .svg)")
    arguments = parser.parse_args()
    if arguments.corpus is None and "SEMSEARCH_DATA" not in os.environ:
        parser.error("pass --corpus, or set SEMSEARCH_DATA to a folder of published data sets")
    if arguments.corpus is not None and not arguments.corpus.is_file():
        parser.error(f"no file {arguments.corpus}")
    if arguments.plot and find_spec("matplotlib") is None:  # fail before an hour of measuring
        parser.error("--plot needs matplotlib; install the extra 'bench'")
    return arguments


def some_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of comma-separated names."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no {name!r} among {','.join(known)}")
        return names

    return read


def positive(text: str) -> int:
    """Parse a positive integer."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


class Bench:
    """Runs the commands and keeps what they leave on disk.

    Args:
        arguments: the parsed options.
        folder: where everything is written.
        systems: those to measure; those that fail are removed.
        corpora: those to index; the last one is queried.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        folder: Path,
        systems: list[System],
        corpora: list[Corpus],
    ) -> None:
        self.systems = systems
        self.faults = 0
        self._arguments = arguments
        self._folder = folder
        self._models = folder / "models"
        self._corpora = corpora
        self._one = corpus_of("one-text", corpora[-1].texts[:1], folder)
        self._queried = corpora[-1]
        self._left_out: dict[str, str] = {}

    def measure(self, results: Results) -> None:
        """Run all requested sections."""
        sections = self._arguments.sections
        self._left_out = results.left_out
        prepare = lambda system: self._run(system.prepare_command(self._models))  # noqa: E731
        self._rounds("model", 1, self.systems, prepare)
        self._rounds("first", 1, self.systems, lambda system: self._index(system, self._one))
        self.faults = 0  # a system that fails on one text cannot run here at all
        if "machine" in sections:
            results.machine = self._machine()
        if "bulk" in sections:
            for corpus in self._corpora:
                results.bulk += self._bulk(corpus, results.machine)
        if "cold" in sections or "warm" in sections:
            self._rounds("open", 1, self.systems, self._prepare)
        if "cold" in sections:
            results.cold = self._cold()
        if "warm" in sections:
            results.warm = self._warm()

    def _machine(self) -> dict[str, Any]:
        seconds = str(self._arguments.machine_seconds)
        try:
            done = self._run([sys.executable, "-m", "scripts.shared.machine", "--seconds", seconds])
        except CommandFailedError as error:
            messages.print(f"machine: {error}")
            self.faults += 1
            return {}
        messages.print(f"machine: {done.seconds:.1f} s")
        machine: dict[str, Any] = json.loads(done.output)
        return machine

    def _bulk(self, corpus: Corpus, machine: dict[str, Any] | None) -> list[BulkFigures]:
        def measure(system: System) -> BulkRound:
            return BulkRound(self._index(system, self._one), self._index(system, corpus))

        measured = self._rounds(corpus.name, self._arguments.repeats, self.systems, measure)
        peaks = (machine or {}).get("gflops", {})
        figures = {
            system: bulk_figures(system, corpus, rounds, peaks)
            for system, rounds in measured.items()
        }
        for system, figure in figures.items():
            alike = [
                figures[peer]
                for peer in figures
                if peer.tool != OURS and peer.precision == system.precision
            ]
            fastest = max((peer.rate.median for peer in alike), default=None)
            rests = [peer.rate_without_start.median for peer in alike if peer.rate_without_start]
            if fastest:
                figure.ratio = figure.rate.median / fastest
            if rests and figure.rate_without_start:
                figure.ratio_without_start = figure.rate_without_start.median / max(rests)
        return list(figures.values())

    def _cold(self) -> list[QueryFigures]:
        text = self._queried.texts[0]

        def measure(system: System) -> Finished:
            if system is HELP:
                return self._run(HELP.help_command())
            return self._query(system, text)

        asked = [*self.systems]
        if any(system.tool == OURS for system in asked):
            asked.append(HELP)
        measured = self._rounds("cold", self._arguments.repeats, asked, measure)
        return compared(
            {system.name: [one.seconds for one in rounds] for system, rounds in measured.items()}
        )

    def _warm(self) -> list[QueryFigures]:
        texts = self._queried.texts
        queries = self._folder / "queries.txt"
        queries.write_text("\n".join(texts[:: -(-len(texts) // QUERIES)]), "utf-8")

        def measure(system: System) -> dict[str, Any]:
            folder = self._index_path(system, self._queried)
            timed: dict[str, Any] = json.loads(
                self._run(system.warm_command(self._models, folder, queries)).output.splitlines()[
                    -1
                ]
            )
            return timed

        measured = self._rounds("warm", self._arguments.repeats, self.systems, measure)
        seconds, found = {}, {}
        for system, rounds in measured.items():
            seconds[system.name] = [one["median_seconds"] for one in rounds]
            found[system.name] = rounds[0]["found"]
        figures = compared(seconds)
        if BASELINE in found:
            for figure in figures:
                figure.same_ten = overlap(found[figure.system], found[BASELINE])
        return figures

    def _prepare(self, system: System) -> Finished:
        """Make an index to query, unless the bulk section has, and read its files once."""
        folder = self._index_path(system, self._queried)
        if not folder.exists():
            self._index(system, self._queried)
        return self._query(system, self._queried.texts[-1])

    def _query(self, system: System, text: str) -> Finished:
        folder = self._index_path(system, self._queried)
        return self._run(system.query_command(self._models, folder, text))

    def _rounds(
        self, title: str, repeats: int, systems: Sequence[System], measure: Callable[[System], T]
    ) -> dict[System, list[T]]:
        """The results of `measure` for each system, which take turns; failed ones are left out."""
        measured: dict[System, list[T]] = {system: [] for system in systems}
        for number in range(repeats):
            # Each round begins with another system, so that effects of the order even out, too.
            start = number % max(len(systems), 1)
            for system in [*systems[start:], *systems[:start]]:
                if system not in measured:
                    continue
                began = time.perf_counter()
                try:
                    measured[system].append(measure(system))
                except CommandFailedError as error:
                    del measured[system]
                    self._drop(system, str(error))
                else:
                    seconds = time.perf_counter() - began
                    messages.print(f"{title} {number + 1}/{repeats}: {system.name} {seconds:.1f} s")
        return measured

    def _drop(self, system: System, reason: str) -> None:
        messages.print(f"{system.name} failed and is left out: {reason}", markup=False)
        self._left_out[system.name] = reason
        self.faults += 1
        if system in self.systems:
            self.systems.remove(system)

    def _index_path(self, system: System, corpus: Corpus) -> Path:
        return self._folder / f"{system.name.replace(' ', '-')}-{corpus.name}"

    def _index(self, system: System, corpus: Corpus) -> Finished:
        folder = self._index_path(system, corpus)
        shutil.rmtree(folder, ignore_errors=True)
        return self._run(system.index_command(self._models, corpus.file, folder))

    def _run(self, command: Sequence[str]) -> Finished:
        """Run a command to completion.

        The kernel reports the peak memory, of the process and of those that it waited for. Linux
        includes the memory of this process when it started the command, so it must stay small.

        Raises:
            CommandFailedError: its exit status is not 0.
        """
        output, errors = self._folder / "output", self._folder / "errors"
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        # Code that runs from its sources, not installed, must cache bytecode in its first run, too.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with output.open("wb") as out, errors.open("wb") as err:
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said = errors.read_text("utf-8", "replace").strip().splitlines() or ["no message"]
            raise CommandFailedError(f"{said[-1].strip()} (exit status {process.returncode})")
        unit = 1 if sys.platform == "darwin" else 1024
        peak = usage.ru_maxrss * unit / 2**20
        return Finished(seconds, peak, output.read_text("utf-8", "replace"))


if __name__ == "__main__":
    sys.exit(main())
