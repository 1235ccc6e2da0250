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
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from scripts.shared.corpora import (
    Corpus,
    corpus_of,
    film_beginnings,
    lines_of,
    sts_sentences,
)
from scripts.shared.frame import (
    SEMSEARCH,
    Finished,
    Table,
    data_folder,
    in_turn,
    messages,
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
SECTIONS = ("bulk", "cold", "warm")
PRECISIONS = ("auto", "fp32", "bf16", "int8")
QUERIES = 50
#: The time of a run without its start-up is reported from this fraction of the start-up on; less
#: is noise.
MIN_REST = 0.1


class System(NamedTuple):
    """A tool that computes in one precision, where the processor has it.

    Attributes:
        modules: the modules that it needs.
        python: the interpreter of the environment that it is installed in.
    """

    tool: str
    precision: str = "fp32"
    modules: tuple[str, ...] = ()
    python: Path = Path(sys.executable)

    def __str__(self) -> str:
        return f"ours {self.precision}" if self.tool == "ours" else self.tool

    def missing(self) -> list[str]:
        """The modules that its environment lacks."""
        if not self.python.exists():
            return list(self.modules)
        command = [str(self.python), "-c", MISSING, *self.modules]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.split()


MISSING = """
import sys
from importlib.util import find_spec
for name in sys.argv[1:]:
    try:
        found = find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None:
        print(name)
"""

PEERS = {
    one.tool: one
    for one in (
        System("script", modules=("sentence_transformers", "faiss")),
        System("script-bf16", "bf16", ("sentence_transformers", "faiss")),
        System("openvino", "bf16", ("optimum.intel", "faiss"), OTHER_ENVIRONMENT),
        System("openvino-int8", "int8", ("optimum.intel", "nncf", "faiss"), OTHER_ENVIRONMENT),
        System("fastembed", "fp32", ("fastembed", "faiss"), OTHER_ENVIRONMENT),
        System("txtai", modules=("txtai",)),
        System("chroma", modules=("chromadb", "sentence_transformers")),
        System("lancedb", modules=("lancedb", "sentence_transformers")),
    )
}
#: The command without any work, timed with the cold queries.
HELP = System("semsearch --help")


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
    add("--sections", type=some_of(SECTIONS), default=SECTIONS, help="some of the above (all)")
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


def installed(systems: Sequence[System]) -> list[System]:
    """The systems whose modules are installed."""
    found = []
    for system in systems:
        if missing := system.missing():
            messages.print(f"{system} is left out: {', '.join(missing)} is not installed")
        else:
            found.append(system)
    return found


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
        ours = [System("ours", precision) for precision in arguments.precisions]
        self.systems = installed(
            [
                system
                for name in arguments.systems
                for system in (ours if name == "ours" else [PEERS[name]])
            ]
        )

    def measured(self) -> list[Table]:
        """The tables of all requested sections."""
        sections = self._arguments.sections
        self._prepare("model", lambda system: self._program(system, "prepare"))
        self._prepare("first", lambda system: self._index(system, self._one))
        tables = []
        if "bulk" in sections:
            tables += [self._bulk(corpus) for corpus in self.corpora]
        if {"cold", "warm"} & set(sections):
            self._prepare("open", self._open)
        if "cold" in sections:
            tables.append(self._cold())
        if "warm" in sections:
            tables.append(self._warm())
        return tables

    def _prepare(self, title: str, step: Any) -> None:
        """Run a step once; the systems that fail are left out from now on."""
        self.systems = list(in_turn(title, self.systems, 1, step))

    def _bulk(self, corpus: Corpus) -> Table:
        """How fast each system indexes a corpus."""

        def both(system: System) -> tuple[Finished, Finished]:
            return self._index(system, self._one), self._index(system, corpus)

        count = len(corpus.texts)
        rows = {}
        for system, rounds in in_turn(
            corpus.name, self.systems, self._arguments.repeats, both
        ).items():
            rests = [(whole.seconds - start.seconds) / start.seconds for start, whole in rounds]
            without = [(count - 1) / (whole.seconds - start.seconds) for start, whole in rounds]
            rows[system] = {
                "system": str(system),
                "texts/s": spread([count / whole.seconds for _, whole in rounds]),
                "x fastest peer": None,
                "without start-up": spread(without) if min(rests) > MIN_REST else None,
                "x fastest peer so": None,
                "peak MiB": spread([whole.peak_mebibytes for _, whole in rounds]),
            }
        for heading, ratio in (
            ("texts/s", "x fastest peer"),
            ("without start-up", "x fastest peer so"),
        ):
            for system, row in rows.items():
                alike = [
                    other[heading].median
                    for peer, other in rows.items()
                    if peer.tool != "ours" and peer.precision == system.precision and other[heading]
                ]
                if alike and row[heading]:
                    row[ratio] = row[heading].median / max(alike)
        return Table(f"bulk: {corpus.name}, {count:,} texts", list(rows.values()), "texts/s")

    def _cold(self) -> Table:
        """The time of one query in a whole process."""
        text = self._queried.texts[0]

        def query(system: System) -> Finished:
            if system is HELP:
                return run([*SEMSEARCH, "--help"])
            return self._query(system, text)

        measured = in_turn("cold", [*self.systems, HELP], self._arguments.repeats, query)
        seconds = {str(one): [done.seconds for done in rounds] for one, rounds in measured.items()}
        return Table("cold: one query, a whole process", query_rows(seconds), "ms")

    def _warm(self) -> Table:
        """The time of one query on an open index, and how many hits are those of the script."""
        texts = self._queried.texts
        queries = self._folder / "queries.txt"
        queries.write_text("\n".join(texts[:: -(-len(texts) // QUERIES)]), "utf-8")

        def ask(system: System) -> Any:
            folder = self._index_path(system, self._queried)
            return json.loads(self._program(system, "warm", folder, queries).output)

        measured = in_turn("warm", self.systems, self._arguments.repeats, ask)
        seconds = {
            str(one): [done["median_seconds"] for done in rounds]
            for one, rounds in measured.items()
        }
        rows = query_rows(seconds)
        expected = next((found for one, found in measured.items() if one.tool == "script"), None)
        if expected:
            for row, rounds in zip(rows, measured.values(), strict=True):
                row["same ten, %"] = 100 * overlap(rounds[0]["found"], expected[0]["found"])
        return Table("warm: one query, the index is open", rows, "ms")

    def _open(self, system: System) -> Finished:
        """Make an index to query, unless the bulk section has, and read its files once."""
        if not self._index_path(system, self._queried).exists():
            self._index(system, self._queried)
        return self._query(system, self._queried.texts[-1])

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


def query_rows(seconds: dict[str, list[float]]) -> list[dict[str, Any]]:
    """The rows of a table of queries, with their ratio to the script, which has no layer at all."""
    rows: list[dict[str, Any]] = [
        {"system": name, "ms": milliseconds(values)} for name, values in seconds.items()
    ]
    script = next((row["ms"].median for row in rows if row["system"] == "script"), None)
    for row in rows:
        row["x script"] = script / row["ms"].median if script else None
    return rows


def overlap(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """The fraction of the expected hits that were found."""
    shared = sum(len(set(some) & set(others)) for some, others in zip(found, expected, strict=True))
    return shared / sum(map(len, expected))


if __name__ == "__main__":
    sys.exit(main())
