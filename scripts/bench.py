"""semsearch and its peers on the same texts, with the same weights.

bulk     indexes a corpus: documents a second of the whole command, the same without its start-up
         (the time for a corpus of one text, of the same round), peak memory.
cold     asks one query: a whole process, from its start to its exit.
warm     asks queries of an index that is open: encoding and search of one.
machine  what the processor can do at best, and how much of it an encoder gets.

The systems take turns, so that a slow minute of the machine hits all of them; every figure is a
median with the lowest and the highest value beside it. Files and models were read once before,
unmeasured; ours was converted by then. All compute on the CPU, with the bundled all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.table import Table

from semsearch.encoders.model_folder import find_model

SCRIPTS = Path(__file__).resolve().parent
SECTIONS = ("bulk", "cold", "warm", "machine")
#: The modules that each peer cannot do without.
PEERS = {
    "script": ("sentence_transformers", "faiss"),
    "txtai": ("txtai",),
    "chroma": ("chromadb", "sentence_transformers"),
    "lancedb": ("lancedb", "sentence_transformers"),
}
OURS = "ours"
#: Cold and warm figures are compared with this peer's; it has no layer that could cost anything.
BASELINE = "script"
PRECISIONS = ("auto", "fp32", "bf16", "int8")
PACKAGES = (
    "semsearch",
    "openvino",
    "torch",
    "sentence-transformers",
    "faiss-cpu",
    "txtai",
    "chromadb",
    "lancedb",
)
FILM_WORDS = 60
QUERIES = 50
#: What is left of a run without its start-up is told from this part of the start-up on; less of
#: it is noise.
LEAST_REST = 0.1

T = TypeVar("T")
messages = Console(stderr=True, soft_wrap=True, highlight=False)


class CommandFailedError(Exception):
    """A command ended with another status than 0; the message is the last it said."""


class Spread(NamedTuple):
    """What was measured in all rounds."""

    median: float
    low: float
    high: float


class Finished(NamedTuple):
    """A command that has run."""

    seconds: float
    peak_mebibytes: float
    output: str


class Corpus(NamedTuple):
    """Texts, and what encoding them takes."""

    name: str
    texts: list[str]
    tokens: int
    flops: float
    file: Path


@dataclass(frozen=True)
class System:
    """A tool, as it is measured.

    Args:
        tool: ours, or the name of a peer.
        precision: in which it computes; an index of ours remembers it for the queries.
    """

    tool: str
    precision: str

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{OURS} {self.precision}" if self.tool == OURS else self.tool

    def index_command(self, corpus: Path, folder: Path) -> list[str]:
        """Makes an index."""
        if self.tool == OURS:
            options = ["--index", str(folder), "--precision", self.precision]
            return [*semsearch(), "index", str(corpus), *options]
        return [*self._program(), "index", str(corpus), str(folder)]

    def query_command(self, folder: Path, text: str) -> list[str]:
        """Asks an index."""
        if self.tool == OURS:
            return [*semsearch(), "query", text, "--index", str(folder)]
        return [*self._program(), "query", str(folder), text]

    def warm_command(self, folder: Path, queries: Path) -> list[str]:
        """Asks an index many times, and prints the median."""
        return [*self._program(), "warm", str(folder), str(queries)]

    def _program(self) -> list[str]:
        return [sys.executable, str(SCRIPTS / "bench_peers.py"), self.tool]


#: The command without work, timed among the cold queries.
HELP = System("semsearch --help", "")


@dataclass
class BulkFigures:
    """How fast a system indexed a corpus.

    The rates are of documents a second; the ratios are to the fastest peer's rate.
    """

    system: str
    corpus: str
    seconds: Spread
    start_seconds: Spread
    rate: Spread
    rate_without_start: Spread | None
    peak_mebibytes: Spread
    ratio: float | None = None
    ratio_without_start: float | None = None
    bound: float | None = None  #: the rate that the processor's products would allow


@dataclass
class QueryFigures:
    """How long a system took for a query.

    Args:
        ratio: how many times as fast as the baseline.
        same_ten: the part of the baseline's ten best that it found too.
    """

    system: str
    seconds: Spread
    ratio: float | None = None
    same_ten: float | None = None


@dataclass
class Results:
    """All that a run found."""

    options: dict[str, Any]
    versions: dict[str, str]
    corpora: list[dict[str, Any]]
    machine: dict[str, Any] | None = None
    bulk: list[BulkFigures] = field(default_factory=list)
    cold: list[QueryFigures] = field(default_factory=list)
    warm: list[QueryFigures] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


class BulkRound(NamedTuple):
    """One measurement of indexing."""

    start: Finished  #: a corpus of one text
    whole: Finished

    def rest(self) -> float | None:
        """The seconds without start-up; None when they drown in it."""
        rest = self.whole.seconds - self.start.seconds
        return rest if rest > LEAST_REST * self.start.seconds else None


def main() -> int:
    """Measure, and tell; exit status 1 when a system failed that had worked before."""
    arguments = parsed()
    systems, left_out = at_hand(arguments)
    with tempfile.TemporaryDirectory() as name:
        corpora = read_corpora(arguments, Path(name))
        bench = Bench(arguments, Path(name), systems, corpora)
        results = Results(
            vars(arguments),
            dict(installed_versions()),
            [told_corpus(corpus) for corpus in corpora],
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
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = (OURS, *PEERS)
    add = parser.add_argument
    add("--systems", type=some_of(known), default=known, help=f"some of {','.join(known)}")
    add("--sections", type=some_of(SECTIONS), default=SECTIONS, help="some of the above")
    add(
        "--precisions",
        type=some_of(PRECISIONS),
        default=("fp32", "bf16"),
        help=f"of ours: some of {','.join(PRECISIONS)} (fp32,bf16)",
    )
    add("--repeats", type=positive, default=3, metavar="N", help="how many rounds (3)")
    add("--texts", type=positive, default=2000, metavar="N", help="news-length texts (2,000)")
    add("--sentences", type=positive, default=10000, metavar="N", help="sentences (10,000)")
    add("--corpus", type=Path, metavar="FILE", help="texts of your own, one a line, instead")
    add("--machine-seconds", type=float, default=20.0, metavar="S", help="for the machine (20)")
    add("--json", type=Path, metavar="FILE", help="where the figures go")
    add("--plot", type=Path, metavar="FILE", help="where bars go (.png or .svg)")
    arguments = parser.parse_args()
    if arguments.corpus is None and "SEMSEARCH_DATA" not in os.environ:
        parser.error("name a --corpus, or the folder of published data sets in SEMSEARCH_DATA")
    if arguments.corpus is not None and not arguments.corpus.is_file():
        parser.error(f"no file {arguments.corpus}")
    if arguments.plot and find_spec("matplotlib") is None:  # said before an hour of measuring
        parser.error("--plot needs matplotlib, which the extra 'bench' brings")
    return arguments


def some_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A reader of names with commas between them."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no {name!r} among {','.join(known)}")
        return names

    return read


def positive(text: str) -> int:
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def at_hand(arguments: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    """The systems that are installed, and why others are left out."""
    systems, left_out = [], {}
    for tool in arguments.systems:
        if tool == OURS:
            systems += [System(tool, precision) for precision in arguments.precisions]
            continue
        missing = [module for module in PEERS[tool] if find_spec(module) is None]
        if missing:
            left_out[tool] = f"{', '.join(missing)} is not installed; the extra 'bench' brings it"
            messages.print(f"{tool} is left out: {left_out[tool]}")
        else:
            systems.append(System(tool, "fp32"))
    return systems, left_out


def semsearch() -> list[str]:
    """The command, of the environment that runs this."""
    return [str(Path(sys.executable).with_name("semsearch"))]


def installed_versions() -> Iterator[tuple[str, str]]:
    """Of the packages that matter here."""
    yield "python", sys.version.partition(" ")[0]
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


# Corpora


def read_corpora(arguments: argparse.Namespace, folder: Path) -> list[Corpus]:
    """The corpora as CSV files; the last one is the one that is queried."""
    if arguments.corpus:
        texts = distinct(arguments.corpus.read_text("utf-8").splitlines())
        return [corpus_of("own", list(texts), folder)]
    data = Path(os.environ["SEMSEARCH_DATA"])
    films = islice(distinct(film_beginnings(data)), arguments.texts)
    sentences = islice(distinct(sts_sentences(data)), arguments.sentences)
    return [
        corpus_of("news-length", list(films), folder),
        corpus_of("sentences", list(sentences), folder),
    ]


def film_beginnings(data: Path) -> Iterator[str]:
    """The first words of what is told of films, oldest films first."""
    for file in sorted((data / "corpora" / "movies").glob("*.json")):
        for film in json.loads(file.read_text("utf-8")):
            yield " ".join((film.get("extract") or "").split()[:FILM_WORDS])


def sts_sentences(data: Path) -> Iterator[str]:
    """The sentences of the STS Benchmark."""
    for split in ("train", "dev", "test"):
        file = data / "sts" / "stsbenchmark" / f"sts-{split}.csv"
        for line in file.read_text("utf-8").split("\n"):
            yield from line.split("\t")[5:7]


def distinct(texts: Iterable[str]) -> Iterator[str]:
    """The texts without blank ones and repetitions."""
    seen = {""}
    for text in texts:
        stripped = text.strip()
        if stripped not in seen:
            seen.add(stripped)
            yield stripped


def corpus_of(name: str, texts: list[str], folder: Path) -> Corpus:
    """A corpus of texts, and its file."""
    file = folder / f"{name}.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate(texts))
    tokens, flops = encoding_cost(texts)
    return Corpus(name, texts, tokens, flops, file)


def encoding_cost(texts: Sequence[str]) -> tuple[int, float]:
    """The tokens of texts, and the floating-point operations that encoding them takes.

    A token goes through four square matrices and two of the feed-forward part in each layer, and
    its attention multiplies it with every token of its text, twice; padding is not counted.
    """
    from tokenizers import Tokenizer

    model = find_model("minilm").path
    config = json.loads((model / "config.json").read_text("utf-8"))
    limit = json.loads((model / "sentence_bert_config.json").read_text("utf-8"))["max_seq_length"]
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    width, inner = config["hidden_size"], config["intermediate_size"]
    lengths = [len(encoded.ids) for encoded in tokenizer.encode_batch_fast(texts)]
    matrices = 2 * (4 * width * width + 2 * width * inner) * sum(lengths)
    attention = 4 * width * sum(length * length for length in lengths)
    return sum(lengths), config["num_hidden_layers"] * float(matrices + attention)


def told_corpus(corpus: Corpus) -> dict[str, Any]:
    """What the results say of a corpus."""
    return {
        "name": corpus.name,
        "documents": len(corpus.texts),
        "tokens": corpus.tokens,
        "megaflops_a_token": corpus.flops / corpus.tokens / 1e6,
    }


# Measuring


class Bench:
    """Runs the commands and keeps what they leave on disk.

    Args:
        arguments: what was asked for.
        folder: for everything that is written.
        systems: what is measured; those that fail are taken out.
        corpora: the last one is the one that is queried.
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
        self._corpora = corpora
        self._one = corpus_of("one-text", corpora[-1].texts[:1], folder)
        self._queried = corpora[-1]
        self._left_out: dict[str, str] = {}

    def measure(self, results: Results) -> None:
        """Do all sections that were asked for."""
        sections = self._arguments.sections
        self._left_out = results.left_out
        self._rounds("first", 1, self.systems, lambda system: self._index(system, self._one))
        self.faults = 0  # what cannot do one text cannot run here at all
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
            done = self._run(
                [sys.executable, str(SCRIPTS / "bench_machine.py"), "--seconds", seconds]
            )
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
        peers = [figure for system, figure in figures.items() if system.tool != OURS]
        fastest = max((peer.rate.median for peer in peers), default=None)
        rests = [peer.rate_without_start.median for peer in peers if peer.rate_without_start]
        for figure in figures.values():
            if fastest:
                figure.ratio = figure.rate.median / fastest
            if rests and figure.rate_without_start:
                figure.ratio_without_start = figure.rate_without_start.median / max(rests)
        return list(figures.values())

    def _cold(self) -> list[QueryFigures]:
        text = self._queried.texts[0]

        def measure(system: System) -> Finished:
            if system is HELP:
                return self._run([*semsearch(), "--help"])
            return self._run(system.query_command(self._index_path(system, self._queried), text))

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
            told: dict[str, Any] = json.loads(
                self._run(system.warm_command(folder, queries)).output.splitlines()[-1]
            )
            return told

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
        """An index to ask, from the bulk section or made now; its files are read once."""
        folder = self._index_path(system, self._queried)
        if not folder.exists():
            self._index(system, self._queried)
        return self._run(system.query_command(folder, self._queried.texts[-1]))

    def _rounds(
        self, title: str, repeats: int, systems: Sequence[System], measure: Callable[[System], T]
    ) -> dict[System, list[T]]:
        """What `measure` gives for each system, which take turns; failed ones are left out."""
        measured: dict[System, list[T]] = {system: [] for system in systems}
        for number in range(repeats):
            # Each round begins with another system: what follows whom evens out, too.
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
        return self._run(system.index_command(corpus.file, folder))

    def _run(self, command: Sequence[str]) -> Finished:
        """Run a command to its end.

        The peak is the kernel's, of the process and those that it waited for. Linux counts what
        this process had when it started the other one, so this one must stay small.

        Raises:
            CommandFailedError: its exit status is not 0.
        """
        output, errors = self._folder / "output", self._folder / "errors"
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        with output.open("wb") as out, errors.open("wb") as err:
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said = errors.read_text("utf-8", "replace").strip().splitlines() or ["nothing said"]
            raise CommandFailedError(f"{said[-1].strip()} (exit status {process.returncode})")
        unit = 1 if sys.platform == "darwin" else 1024
        peak = usage.ru_maxrss * unit / 2**20
        return Finished(seconds, peak, output.read_text("utf-8", "replace"))


# Figures


def spread(values: Sequence[float]) -> Spread:
    """Of what was measured."""
    return Spread(statistics.median(values), min(values), max(values))


def bulk_figures(
    system: System, corpus: Corpus, rounds: Sequence[BulkRound], peaks: dict[str, float | None]
) -> BulkFigures:
    """What the rounds of a system come to."""
    documents = len(corpus.texts)
    rests = [(documents - 1) / rest for one in rounds if (rest := one.rest()) is not None]
    peak = peaks.get(system.precision)
    return BulkFigures(
        system=system.name,
        corpus=corpus.name,
        seconds=spread([one.whole.seconds for one in rounds]),
        start_seconds=spread([one.start.seconds for one in rounds]),
        rate=spread([documents / one.whole.seconds for one in rounds]),
        rate_without_start=spread(rests) if len(rests) == len(rounds) else None,
        peak_mebibytes=spread([one.whole.peak_mebibytes for one in rounds]),
        bound=documents * peak * 1e9 / corpus.flops if peak else None,
    )


def compared(seconds: dict[str, list[float]]) -> list[QueryFigures]:
    """The figures of queries, beside the baseline's."""
    figures = {name: QueryFigures(name, spread(values)) for name, values in seconds.items()}
    if BASELINE in figures:
        for figure in figures.values():
            if figure.system != HELP.tool:  # no peer has the like
                figure.ratio = figures[BASELINE].seconds.median / figure.seconds.median
    return list(figures.values())


def overlap(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """The mean part of the expected documents that were found."""
    return statistics.fmean(
        len(set(some) & set(others)) / len(others)
        for some, others in zip(found, expected, strict=True)
    )


def as_json(results: Results) -> dict[str, Any]:
    """The results as JSON has them: a spread becomes an object with names."""
    return {key: _plain(value) for key, value in vars(results).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Spread):
        return value._asdict()
    if isinstance(value, BulkFigures | QueryFigures):
        return {key: _plain(item) for key, item in vars(value).items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


# Telling


def show(results: Results, console: Console) -> None:
    """Print all tables."""
    for told in results.corpora:
        console.print(
            f"{told['name']}: {told['documents']:,} texts, {told['tokens']:,} tokens, "
            f"{told['megaflops_a_token']:.1f} MFLOP a token",
            highlight=False,
        )
    for told in results.corpora:
        figures = [figure for figure in results.bulk if figure.corpus == told["name"]]
        if figures:
            console.print(bulk_table(told["name"], figures))
    if results.cold:
        console.print(query_table("cold: one query, a whole process", results.cold))
    if results.warm:
        console.print(query_table("warm: one query, the index is open", results.warm))
    if results.machine:
        machine = results.machine
        flags = " ".join(machine["flags"]) or "no flags that matter"
        console.print(f"machine: {machine['cpu']}, {machine['cores']} cores, {flags}")
        console.print(machine_table(machine))


def bulk_table(corpus: str, figures: Sequence[BulkFigures]) -> Table:
    """How fast a corpus was indexed."""
    table = plain_table(
        f"bulk: {corpus}",
        "system",
        "texts/s",
        "x fastest peer",
        "texts/s without start-up",
        "x fastest peer",
        "bound, texts/s",
        "of the bound",
        "peak MiB",
    )
    for figure in figures:
        without = figure.rate_without_start
        table.add_row(
            figure.system,
            spread_text(figure.rate),
            ratio_text(figure.ratio),
            spread_text(without),
            ratio_text(figure.ratio_without_start),
            number_text(figure.bound) if figure.bound else "-",
            f"{without.median / figure.bound:.0%}" if figure.bound and without else "-",
            spread_text(figure.peak_mebibytes),
        )
    return table


def query_table(title: str, figures: Sequence[QueryFigures]) -> Table:
    """How long queries took."""
    same = any(figure.same_ten is not None for figure in figures)
    headings = ["system", "milliseconds", f"x {BASELINE}"]
    table = plain_table(title, *headings, *([f"same ten as {BASELINE}"] if same else []))
    for figure in figures:
        cells = [
            figure.system,
            spread_text(Spread(*(1000 * value for value in figure.seconds))),
            ratio_text(figure.ratio),
        ]
        if same:
            cells.append("-" if figure.same_ten is None else f"{figure.same_ten:.1%}")
        table.add_row(*cells)
    return table


def machine_table(machine: dict[str, Any]) -> Table:
    """What the processor can do at best."""
    table = plain_table("machine, at best", "", "")
    for precision, rate in machine["gflops"].items():
        table.add_row(f"{precision} products", f"{rate:,.0f} GFLOP/s" if rate else "-")
    table.add_row("memory, read and write", f"{machine['memory_gigabytes_per_second']:.1f} GB/s")
    return table


def plain_table(title: str, first: str, *others: str) -> Table:
    """A table whose columns but the first hold figures."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def spread_text(values: Spread | None) -> str:
    """The median, and the lowest and highest value."""
    if values is None:
        return "-"
    if values.low == values.high:
        return number_text(values.median)
    return f"{number_text(values.median)} ({number_text(values.low)}..{number_text(values.high)})"


def number_text(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def ratio_text(ratio: float | None) -> str:
    """How many times as fast."""
    return "-" if ratio is None else f"{ratio:.2f}x"


class Panel(NamedTuple):
    """Bars of one kind."""

    title: str
    bars: list[tuple[str, Spread]]


def plot(results: Results, file: Path) -> None:
    """Draw the medians as bars, with lines from the lowest to the highest value."""
    from matplotlib.figure import Figure

    drawn = list(panels(results))
    if not drawn:
        messages.print(f"no {file}: nothing of bulk, cold or warm was measured")
        return
    heights = [len(panel.bars) + 1 for panel in drawn]
    figure = Figure(figsize=(8, 0.4 * sum(heights) + 0.8), layout="constrained")
    axes = figure.subplots(len(drawn), squeeze=False, height_ratios=heights)[:, 0]
    for axis, panel in zip(axes, drawn, strict=True):
        names = [name for name, _ in panel.bars]
        spreads = [values for _, values in panel.bars]
        errors = [
            [values.median - values.low for values in spreads],
            [values.high - values.median for values in spreads],
        ]
        colours = ["tab:blue" if OURS in name.split() else "tab:gray" for name in names]
        drawing = axis.barh(
            names, [values.median for values in spreads], xerr=errors, color=colours, ecolor="black"
        )
        labels = [number_text(values.median) for values in spreads]
        axis.bar_label(drawing, labels, padding=4)
        axis.margins(x=0.12)
        axis.invert_yaxis()  # in the order of the tables
        axis.set_title(panel.title, loc="left", fontsize="medium")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def panels(results: Results) -> Iterator[Panel]:
    """What is drawn."""
    for told in results.corpora:
        bars = [(one.system, one.rate) for one in results.bulk if one.corpus == told["name"]]
        if bars:
            title = f"{told['name']}: texts per second, the whole command (more is better)"
            yield Panel(title, bars)
    for title, figures in (
        ("cold: milliseconds for a query, the whole process (less is better)", results.cold),
        ("warm: milliseconds for a query, the index is open (less is better)", results.warm),
    ):
        if figures:
            yield Panel(
                title,
                [
                    (one.system, Spread(*(1000 * value for value in one.seconds)))
                    for one in figures
                    if one.system != HELP.tool
                ],
            )


if __name__ == "__main__":
    sys.exit(main())
