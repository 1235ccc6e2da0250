"""Coverage-guided fuzzing: whatever the input, only semsearch's own errors come out.

Each target runs in a process of its own and stops at the first other error, with the input that
led there in a file; the same command with that file as --input runs it again.
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

from semsearch.errors import MissingExtraError, SemsearchError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt", ".csv.gz")

Target = Callable[[bytes], None]


def fuzz_filters(folder: Path) -> Target:
    """Expressions, through the parser and through SQLite."""
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
    """Files of every format; the first byte says of which."""
    from semsearch import Corpus

    def run(data: bytes) -> None:
        suffix = SUFFIXES[data[0] % len(SUFFIXES)] if data else ".csv"
        file = folder / f"corpus{suffix}"
        file.write_bytes(data[1:])
        for _ in Corpus(file, on_bad_row=lambda error: None):
            pass

    return run


def fuzz_index(folder: Path) -> Target:
    """A sound database with bytes of it replaced: pairs of a place and what to write there."""
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
        changed = bytearray(content)
        for at in range(0, len(data) - 4, 5):
            place = int.from_bytes(data[at : at + 4], "little") % len(changed)
            changed[place] = data[at + 4]
        (damaged / "index.sqlite").write_bytes(changed)
        with Index.open(damaged, [encoder]) as index:
            index.info()
            for mode in ("semantic", "hybrid"):
                Retriever(index).search("text 7", where="n > 3", mode=mode)
            with index.writer() as writer:
                writer.verify()

    return run


TARGETS = {"filters": fuzz_filters, "corpus": fuzz_corpus, "index": fuzz_index}


def fuzz(name: str, seconds: int, seed: int, folder: Path, corpus: Path) -> None:
    """Run one target for some seconds; ends the process."""
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
    """Fuzz; exit status 1 when something was found."""
    parser = argparse.ArgumentParser(prog="scripts/dev/fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--seed", type=int, help="of what is tried; the last run printed its own")
    parser.add_argument("--corpus", type=Path, help="a folder that keeps what was found")
    parser.add_argument("--input", type=Path, help="run a target on this file alone")
    arguments = parser.parse_args()
    names = arguments.targets or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.input:
            with contextlib.suppress(SemsearchError):
                TARGETS[names[0]](Path(temporary))(arguments.input.read_bytes())
            return 0
        try:
            import atheris  # noqa: F401 - the processes use it
        except ImportError:
            sys.exit(str(MissingExtraError("atheris", "fuzz", "fuzzing")))
        processes = multiprocessing.get_context("spawn")
        seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
        print(f"seed {seed}", flush=True)
        failed = []
        for name in names:
            folder = Path(temporary) / name
            corpus = (arguments.corpus or Path(temporary) / "corpora") / name
            for made in (folder, corpus):
                made.mkdir(parents=True, exist_ok=True)
            print(f"fuzzing {name} for {arguments.seconds} s", flush=True)
            process = processes.Process(
                target=fuzz, args=(name, arguments.seconds, seed, folder, corpus)
            )
            process.start()
            process.join()
            if process.exitcode:
                failed.append(name)
                for crash in corpus.glob("crash-*"):
                    kept = Path(shutil.copy(crash, f"fuzz-{name}-{crash.name}"))
                    print(f"again: scripts/dev/fuzz {name} --input {kept}")
        print(f"targets: {len(names)}, failed: {len(failed)} {' '.join(failed)}".rstrip())
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
