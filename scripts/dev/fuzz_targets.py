"""Coverage-guided fuzzing: whatever the input, only semsearch's own errors may be raised.

Each target runs in a process of its own and stops at the first other error, saving the input that
caused it; the same command with that file as --input reproduces the error.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import random
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.errors import MissingExtraError, SemsearchError

if TYPE_CHECKING:
    from semsearch.corpus.formats import CorpusFormat
    from semsearch.corpus.sections import Parts, Section
    from semsearch.corpus.sources import Source

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


def _converted_here(source: Source, kind: CorpusFormat, encoding: str | None) -> Parts:
    """Convert a document in this process, whose coverage counts, instead of a child process."""
    from semsearch.corpus.converters import convert
    from semsearch.corpus.sections import Parts

    sections: list[Section] = []
    with contextlib.suppress(Exception):  # the child process would report them
        sections.extend(convert(source, kind, encoding).sections)
    return Parts("", iter(sections))


def fuzz_corpus(folder: Path) -> Target:
    """Files of every format; the first byte selects the format."""
    from semsearch import Corpus
    from semsearch.corpus import converters

    converters.converted = _converted_here

    def run(data: bytes) -> None:
        suffix = SUFFIXES[data[0] % len(SUFFIXES)] if data else ".csv"
        file = folder / f"corpus{suffix}"
        file.write_bytes(data[1:])
        for _ in Corpus(file, on_bad_row=lambda error: None):
            pass

    return run


def fuzz_documents(folder: Path) -> Target:
    """Valid office documents with bytes of one inner file replaced, as `fuzz_index` does.

    The first byte selects the document, the second the file.
    """
    from semsearch import Corpus
    from semsearch.corpus import converters

    converters.converted = _converted_here
    documents = _office_documents()

    def run(data: bytes) -> None:
        if len(data) < 2:
            return
        suffix = list(documents)[data[0] % len(documents)]
        parts = documents[suffix]
        name = list(parts)[data[1] % len(parts)]
        file = folder / f"document{suffix}"
        file.write_bytes(_zipped(parts | {name: _replaced(parts[name], data[2:])}))
        for _ in Corpus(file, on_bad_row=lambda error: None):
            pass

    return run


def _office_documents() -> dict[str, dict[str, bytes]]:
    """The files inside small office documents, by the suffix of the document."""
    import openpyxl
    import pptx

    book, presentation = openpyxl.Workbook(), pptx.Presentation()
    book.active.append(["id", "text", "day"])
    book.active.append([1, "A text.", 2.5])
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text_frame.text = "A title"
    slide.notes_slide.notes_text_frame.text = "A note"
    found = {}
    for suffix, document in ((".xlsx", book), (".pptx", presentation)):
        stream = io.BytesIO()
        document.save(stream)
        with zipfile.ZipFile(stream) as archive:
            found[suffix] = {name: archive.read(name) for name in archive.namelist()}
    return found | {".docx": DOCX, ".epub": EPUB}


def _zipped(parts: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _replaced(content: bytes, data: bytes) -> bytes:
    """The content with bytes replaced; `data` is pairs of a position and a new byte."""
    changed = bytearray(content)
    for at in range(0, len(data) - 4 if changed else 0, 5):
        changed[int.from_bytes(data[at : at + 4], "little") % len(changed)] = data[at + 4]
    return bytes(changed)


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
DOCX = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>'.encode(),
    "_rels/.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" Type="{_OFFICE}"'
        ' Target="word/document.xml"/></Relationships>'
    ).encode(),
    "word/document.xml": (
        f'<w:document xmlns:w="{_WORD}"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
        "<w:r><w:t>A heading</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>A cell</w:t></w:r>"
        "</w:p></w:tc></w:tr></w:tbl></w:body></w:document>"
    ).encode(),
}
EPUB = {
    "META-INF/container.xml": b'<container><rootfiles><rootfile full-path="b.opf"/></rootfiles>'
    b"</container>",
    "b.opf": b'<package><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
    b'</manifest><spine><itemref idref="c"/></spine></package>',
    "c.xhtml": b"<html><head><title>T</title></head><body><h1>H</h1><p>A <b>text</b></p><table>"
    b"<tr><td>1</td></tr></table><pre>x</pre></body></html>",
}


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


TARGETS = {
    "filters": fuzz_filters,
    "corpus": fuzz_corpus,
    "documents": fuzz_documents,
    "index": fuzz_index,
}


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
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="seconds for each target (60)")
    parser.add_argument("--seed", type=int, help="seed of the inputs; each run prints its own")
    parser.add_argument("--corpus", type=Path, help="a folder that keeps the inputs found")
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
                    print(f"rerun: scripts/dev/fuzz {name} --input {kept}")
        print(f"targets: {len(names)}, failed: {len(failed)} {' '.join(failed)}".rstrip())
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
