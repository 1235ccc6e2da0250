"""Compares semsearch with its peers on the same texts, with the same weights.

bulk     indexes a corpus: texts a second of the whole command, the same without its start-up
         (the time for a corpus of one text in the same round), peak memory.
cold     runs one query in a whole process, from its start to its exit.
warm     runs queries on an open index: encoding and search of one query.

Files and models are read once beforehand, unmeasured, when ours is also converted. All compute on
the CPU, with the bundled all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from scripts.shared.corpora import Corpus, corpus_of, film_beginnings, lines_of, sts_sentences
from scripts.shared.frame import (
    SEMSEARCH,
    Finished,
    Table,
    data_folder,
    in_turn,
    milliseconds,
    new_parser,
    positive,
    report,
    run,
    some_of,
    spread,
)

ROOT = Path(__file__).resolve().parents[2]
#: The second environment of scripts/bench/peers: optimum-intel needs another transformers.
OTHER_ENVIRONMENT = ROOT / ".venv-bench" / "bin" / "python"
PRECISIONS = ("auto", "fp32", "bf16", "int8")
QUERIES = 50
#: The time of a run without its start-up is reported from this fraction of the start-up on; less
#: is noise.
MIN_REST = 0.1


class System(NamedTuple):
    """A tool, the precision it computes in where the processor has that, and its interpreter."""

    tool: str
    precision: str = "fp32"
    python: Path = Path(sys.executable)

    def __str__(self) -> str:
        return f"ours {self.precision}" if self.tool == "ours" else self.tool


PEERS = {
    one.tool: one
    for one in (
        System("script"),
        System("script-bf16", "bf16"),
        System("openvino", "bf16", OTHER_ENVIRONMENT),
        System("openvino-int8", "int8", OTHER_ENVIRONMENT),
        System("fastembed", "fp32", OTHER_ENVIRONMENT),
        System("txtai"),
        System("chroma"),
        System("lancedb"),
    )
}


def main() -> int:
    """Measure, and print the results."""
    arguments = parsed()
    with TemporaryDirectory() as name:
        bench = Bench(arguments, Path(name))
        tables = bench.measured()
    report(arguments, tables)
    return 0 if bench.systems else 1


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = new_parser("scripts/bench/peers", __doc__)
    known = ["ours", *PEERS]
    add = parser.add_argument
    add("--systems", type=some_of(known), default=known, help=f"some of {','.join(known)}")
    add(
        "--precisions",
        type=some_of(PRECISIONS),
        default=["fp32", "bf16"],
        help=f"precisions of ours: some of {','.join(PRECISIONS)} (fp32,bf16)",
    )
    add("--texts", type=positive, default=2000, metavar="N", help="news-length texts (2,000)")
    add("--sentences", type=positive, default=10000, metavar="N", help="sentences (10,000)")
    add("--corpus", type=Path, metavar="FILE", help="texts of your own instead, one per line")
    return parser.parse_args()


def chosen(arguments: argparse.Namespace, others: Mapping[str, System]) -> list[System]:
    """The systems that the options name; ours in each of the precisions."""
    ours = [System("ours", precision) for precision in arguments.precisions]
    names = arguments.systems
    return [one for name in names for one in (ours if name == "ours" else [others[name]])]


class Bench:
    """Runs the commands and keeps what they leave on disk.

    Attributes:
        corpora: those to index; the last one is queried.
        systems: those to measure; those that fail are removed.
    """

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self._arguments = arguments
        self._folder = folder
        if arguments.corpus:
            self.corpora = [corpus_of("own", lines_of(arguments.corpus), folder)]
        else:
            data = data_folder()
            films = islice(film_beginnings(data), arguments.texts)
            sentences = islice(sts_sentences(data), arguments.sentences)
            self.corpora = [
                corpus_of("news-length", films, folder),
                corpus_of("sentences", sentences, folder),
            ]
        self._queried = self.corpora[-1]
        self._one = corpus_of("one-text", self._queried.texts[:1], folder)
        self.systems = chosen(arguments, PEERS)

    def measured(self) -> list[Table]:
        """The tables of all sections."""
        self._prepare("model", lambda system: self._program(system, "prepare"))
        self._prepare("first", lambda system: self._index(system, self._one))
        tables = [self._bulk(corpus) for corpus in self.corpora]
        self._prepare("open", lambda system: self._query(system, self._queried.texts[-1]))
        return [*tables, self._cold(), self._warm()]

    def _prepare(self, title: str, step: Any) -> None:
        """Run a step once; the systems that fail are left out from now on."""
        self.systems = list(in_turn(title, self.systems, 1, step))

    def _bulk(self, corpus: Corpus) -> Table:
        """How fast each system indexes a corpus."""

        def both(system: System) -> tuple[Finished, Finished]:
            return self._index(system, self._one), self._index(system, corpus)

        count = len(corpus.texts)
        rows = []
        repeats = self._arguments.repeats
        for system, rounds in in_turn(corpus.name, self.systems, repeats, both).items():
            rests = [(whole.seconds - start.seconds) / start.seconds for start, whole in rounds]
            without = [(count - 1) / (whole.seconds - start.seconds) for start, whole in rounds]
            rows.append(
                {
                    "system": str(system),
                    "texts/s": spread([count / whole.seconds for _, whole in rounds]),
                    "without start-up": spread(without) if min(rests) > MIN_REST else None,
                    "peak MiB": spread([whole.peak_mebibytes for _, whole in rounds]),
                }
            )
        return Table(f"bulk: {corpus.name}, {count:,} texts", rows)

    def _cold(self) -> Table:
        """The time of one query in a whole process."""
        ask = lambda system: self._query(system, self._queried.texts[0]).seconds  # noqa: E731
        measured = in_turn("cold", self.systems, self._arguments.repeats, ask)
        rows = [{"system": str(one), "ms": milliseconds(taken)} for one, taken in measured.items()]
        return Table("cold: one query, a whole process", rows)

    def _warm(self) -> Table:
        """The time of one query on an open index, and how many hits are those of the script."""
        texts = self._queried.texts
        queries = self._folder / "queries.txt"
        queries.write_text("\n".join(texts[:: -(-len(texts) // QUERIES)]), "utf-8")

        def ask(system: System) -> Any:
            folder = self._index_path(system, self._queried)
            return json.loads(self._program(system, "warm", folder, queries).output)

        measured = in_turn("warm", self.systems, self._arguments.repeats, ask)
        expected = next((found for one, found in measured.items() if one.tool == "script"), None)
        rows = []
        for system, rounds in measured.items():
            seconds = [done["median_seconds"] for done in rounds]
            rows.append({"system": str(system), "ms": milliseconds(seconds)})
            if expected:
                same = overlap(rounds[0]["found"], expected[0]["found"])
                rows[-1]["same ten as script, %"] = 100 * same
        return Table("warm: one query, the index is open", rows)

    def _query(self, system: System, text: str) -> Finished:
        folder = self._index_path(system, self._queried)
        if system.tool == "ours":
            return run([*SEMSEARCH, "query", text, "--index", folder])
        return self._program(system, "query", folder, text)

    def _index(self, system: System, corpus: Corpus) -> Finished:
        folder = self._index_path(system, corpus)
        shutil.rmtree(folder, ignore_errors=True)
        if system.tool == "ours":
            return run(index_command(corpus, folder, system.precision))
        return self._program(system, "index", corpus.file, folder)

    def _index_path(self, system: System, corpus: Corpus) -> Path:
        return self._folder / f"{system}-{corpus.name}".replace(" ", "-")

    def _program(self, system: System, action: str, *words: object) -> Finished:
        program = Path(__file__).with_name("one_peer.py")
        model = self._folder / "models" / system.tool
        return run([system.python, program, system.tool, action, model, *words])


def index_command(corpus: Corpus, folder: Path, precision: str) -> list[object]:
    """Our command that builds an index, whose queries then have the same precision."""
    return [*SEMSEARCH, "index", corpus.file, "--index", folder, "--precision", precision]


def overlap(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """The fraction of the expected hits that were found."""
    shared = sum(len(set(some) & set(others)) for some, others in zip(found, expected, strict=True))
    return shared / sum(map(len, expected))


if __name__ == "__main__":
    sys.exit(main())
