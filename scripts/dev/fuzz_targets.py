"""Coverage-guided fuzzing: whatever the input, only semsearch's own errors may be raised.

Each target runs in a process of its own and stops at the first other error, saving the input that
caused it; the same command with that file as --input reproduces the error.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semsearch.errors import SemsearchError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt", ".csv.gz")
SUFFIXES += (".md", ".html", ".pdf", ".xlsx", ".docx", ".pptx", ".epub", ".arrow")

Target = Callable[[bytes], None]


def fuzz_filters(folder: Path) -> Target:
    """Filter expressions, through the parser and SQLite."""
    from semsearch import Document, Index
    from semsearch.stores.filtering import read_filter
    from semsearch.stores.protocol import Selection

    index = Index.create(folder / "index", ["hashing:8"])
    index.add([Document("a", "a text", metadata={"year": 1990, "genres": ["Drama"], "b": True})])

    def run(data: bytes) -> None:
        with index.read() as state:
            condition, _ = read_filter(state, data.decode("utf-8", "replace"))
            state.ids(Selection(condition=condition))

    return run


def fuzz_corpus(folder: Path) -> Target:
    """Files of every format; the first byte selects the format."""
    from semsearch import Corpus
    from semsearch.corpus import converters
    from semsearch.corpus.sections import Parts

    def converted(*arguments: Any) -> Parts:
        sections: list[Any] = []
        with contextlib.suppress(Exception):  # a child process would report them
            sections.extend(converters.convert(*arguments).sections)
        return Parts("", iter(sections))

    converters.converted = converted  # in this process, whose coverage counts

    def run(data: bytes) -> None:
        suffix = SUFFIXES[data[0] % len(SUFFIXES)] if data else ".csv"
        file = folder / f"corpus{suffix}"
        file.write_bytes(data[1:])
        for _ in Corpus(file, on_bad_row=lambda error: None):
            pass

    return run


def _replaced(content: bytes, data: bytes) -> bytes:
    """The content with bytes replaced; `data` is pairs of a position and a new byte."""
    changed = bytearray(content)
    for at in range(0, len(data) - 4 if changed else 0, 5):
        changed[int.from_bytes(data[at : at + 4], "little") % len(changed)] = data[at + 4]
    return bytes(changed)


def fuzz_index(folder: Path) -> Target:
    """A valid database with bytes replaced, given as pairs of a position and a new byte."""
    from semsearch import Document, Index, Retriever
    from semsearch.encoders import load_encoder

    encoder = load_encoder("hashing:8")
    sound, damaged = folder / "sound", folder / "damaged"
    with Index.create(sound, [encoder]) as index:
        index.add(Document(str(n), f"text {n}", "title", {"n": n}) for n in range(20))
    content = (sound / "index.sqlite").read_bytes()

    def run(data: bytes) -> None:
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(sound, damaged)
        (damaged / "index.sqlite").write_bytes(_replaced(content, data))
        with Index.open(damaged, [encoder]) as index:
            index.info()
            for mode in ("semantic", "hybrid"):
                Retriever(index).search("text 7", where="n > 3", mode=mode)
            with index.writer() as writer:
                writer.verify()

    return run


TARGETS = {"filters": fuzz_filters, "corpus": fuzz_corpus, "index": fuzz_index}


def fuzz(name: str, seconds: int, seed: int, folder: Path, corpus: Path) -> None:
    """Run one target for some seconds, then end the process."""
    import atheris

    with atheris.instrument_imports(include=["semsearch"]):
        target = TARGETS[name](folder)

    def run(data: bytes) -> None:
        with contextlib.suppress(SemsearchError):
            target(data)

    # libFuzzer draws a seed of its own for 0.
    options = [f"-max_total_time={seconds}", f"-seed={seed % 2**32 or 1}"]
    options += ["-max_len=4096", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={corpus}/crash-", str(corpus)], run)
    atheris.Fuzz()


def main() -> int:
    """Fuzz; exit status 1 if a target failed."""
    parser = argparse.ArgumentParser(prog="scripts/dev/fuzz", description=__doc__)
    add = parser.add_argument
    add("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (all)")
    add("--seconds", type=int, default=60, help="seconds for each target (60)")
    add("--seed", type=int, default=random.randrange(2**32), help="seed of the inputs (random)")
    add("--corpus", type=Path, help="a folder that keeps the inputs found")
    add("--input", type=Path, help="run a target on this file alone")
    arguments = parser.parse_args()
    names = arguments.targets or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}")
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.input:
            with contextlib.suppress(SemsearchError):
                TARGETS[names[0]](Path(temporary))(arguments.input.read_bytes())
            return 0
        print(f"seed {arguments.seed}", flush=True)
        for name in names:
            folder = Path(temporary) / name
            corpus = (arguments.corpus or Path(temporary) / "corpora") / name
            for made in (folder, corpus):
                made.mkdir(parents=True, exist_ok=True)
            print(f"fuzzing {name} for {arguments.seconds} s", flush=True)
            process = multiprocessing.get_context("spawn").Process(
                target=fuzz, args=(name, arguments.seconds, arguments.seed, folder, corpus)
            )
            process.start()
            process.join()
            if process.exitcode:
                failed.append(name)
                for crash in corpus.glob("crash-*"):
                    kept = Path(shutil.copy(crash, f"fuzz-{name}-{crash.name}"))
                    print(f"rerun: scripts/dev/fuzz {name} --input {kept}")
    print(f"targets: {len(names)}, failed: {len(failed)} {' '.join(failed)}".rstrip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
