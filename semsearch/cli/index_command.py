"""``semsearch index``: create or update an index."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semsearch.cli.corpus_options import BadRows, corpus_options, opened_corpus
from semsearch.cli.language_fit import sampled_texts, warn_of_poor_fit, warn_of_unknown_words
from semsearch.cli.options import (
    INDEXES,
    allowance,
    complete_file,
    directory_option,
    dry_run_option,
    existing_index,
    precision_option,
    removals_option,
)
from semsearch.cli.preload import preload_for_documents
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, quantity

if TYPE_CHECKING:  # imported while the encoder is loading
    from semsearch.corpus.documents import DocumentReader
    from semsearch.index import Index
    from semsearch.indexing.batch import Summary
    from semsearch.indexing.preview import Preview
    from semsearch.protocols import Encoder

#: The sample corpus by language, with the same notes and ids.
SAMPLES = {"en": "notes.csv", "pt": "notes-pt.csv"}

#: Documents read before an index is created, to detect errors early.
FIRST_DOCUMENTS = 256


@click.command("index")
@click.argument("corpora", metavar="CORPUS...", shell_complete=complete_file, nargs=-1)
@directory_option("The index to create or update.  [default: indexes/NAME-OF-THE-CORPUS]")
@click.option(
    "--sample",
    type=click.Choice(list(SAMPLES)),
    is_flag=False,
    flag_value="en",
    help="Index the sample corpus of semsearch, in English or in Portuguese.",
)
@click.option(
    "--wait",
    is_flag=True,
    callback=lambda ctx, option, is_given: math.inf if is_given else 0,
    help="Wait for another process that is writing the index.",
)
@corpus_options
@click.option("--title-column", metavar="C", help="The column with the titles.")
@click.option(
    "--encoder",
    "encoders",
    metavar="SPEC",
    shell_complete=complete_file,
    multiple=True,
    help="minilm, a Sentence-Transformers model by name or folder, glove:PATH (averaged word "
    "vectors), or hashing; may be repeated for several spaces.  "
    f"[default: the index's own, or {DEFAULT_ENCODER}]",
)
@precision_option
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Encode on a Ray cluster: ray://HOST[:PORT], or auto for that of this machine.  "
    "[needs the extra 'ray']",
)
@click.option("--sync", is_flag=True, help="Also remove documents that are not in the corpus.")
@removals_option
@dry_run_option
@click.option(
    "--watch",
    is_flag=True,
    help="Then index changes to the files, until Ctrl-C.  [needs the extra 'files']",
)
def command(
    corpora: tuple[str, ...],
    directory: Path | None,
    sample: str | None,
    encoders: tuple[str, ...],
    watch: bool,
    **options: Any,
) -> None:
    """Encode a corpus into an index, or update an index.

    CORPUS is a table (CSV, TSV, JSON, Parquet, XLSX; also .gz), a document (text, Markdown, HTML,
    PDF, DOCX, PPTX), a folder of these, the URL of a file, a database with --sql, or - for
    standard input. Only new and changed documents are encoded; an interrupted run
    continues where it stopped. Columns and other options for reading a corpus are remembered.
    `semsearch configure` adds spaces and changes how an index is searched.

    \b
    semsearch index corpus.csv
    semsearch index films.json --text-column extract --index indexes/films
    semsearch index papers.jsonl --text-column title --text-column abstract --skip-bad-rows
    semsearch index ~/Documents --exclude drafts/ --skip-bad-rows --sync --watch
    semsearch index export.xlsx --sheet Answers --text-column comment
    semsearch index postgresql://me@host/shop --sql "SELECT id, name, text FROM products"
    semsearch index https://example.org/faq.json --records data.items
    zcat dump.csv.gz | semsearch index - --index indexes/dump
    semsearch index corpus.csv --encoder ./my-model@192d
    semsearch index big.parquet --ray ray://10.0.0.1
    """
    directory = directory and existing_index(directory)
    if bool(sample) == bool(corpora):
        raise ArgumentError("name a corpus (a file, a folder or -), or use --sample")
    if options["ray"]:  # check the address before a long run
        from semsearch.indexing.ray import pool_on

        pool_on(options["ray"])

    def index_corpus(encoders: tuple[str, ...]) -> None:
        _index_corpus(corpora, directory, sample=sample, encoders=encoders, **options)

    if not watch:
        index_corpus(encoders)
        return
    from semsearch.cli.watching import keep_in_step

    if sample or options["dry_run"] or options["sql"]:
        raise ArgumentError("--watch is for files and folders, without --dry-run")
    index_directory = directory or INDEXES / Corpus(corpora).name
    keep_in_step(corpora, index_directory, index_corpus, encoders)


def _index_corpus(
    corpora: tuple[str, ...],
    directory: Path | None,
    *,
    sample: str | None,
    encoders: tuple[str, ...],
    precision: str | None,
    ray: str | None,
    wait: float,
    sync: bool,
    allow_removals: bool,
    dry_run: bool,
    skip_bad_rows: bool,
    **columns: Any,
) -> None:
    paths = (
        [str(files("semsearch.corpus") / "sample" / SAMPLES[sample])] if sample else list(corpora)
    )
    with IndexingProgress("documents") as progress:
        bad_rows = BadRows(progress, skip=skip_bad_rows)
        corpus = opened_corpus(paths, progress, bad_rows, **columns)
        directory = directory or INDEXES / corpus.name

        def preview() -> Preview:
            from semsearch.indexing.preview import preview_index

            return preview_index(directory, iter(corpus), sync=sync, on_bad_row=bad_rows)

        with bad_rows.listed(preview):
            if dry_run:
                line = _preview_line(directory, preview(), bad_rows.skipped, allow_removals)
                click.echo(visible(line))
                return
            documents = iter(corpus)

            def on_batch(summary: Summary) -> None:
                read = corpus.fraction_read  # ahead of what is written
                fraction = read and read * summary.documents / max(documents.taken, 1)
                progress.update(summary.documents, fraction, _nodes(summary))

            with ExitStack() as stack:
                index = stack.enter_context(
                    _opened(directory, documents, encoders, precision, on_cluster=bool(ray))
                )
                stack.enter_context(_reported_if_interrupted(index, progress))
                writing = index.writer(on_bad_row=bad_rows, on_batch=on_batch, wait=wait, ray=ray)
                writer = stack.enter_context(writing)
                if sync:
                    allowed = allowance(allow_removals, progress)
                    summary = writer.sync(documents, allow_removals=allowed)
                else:
                    summary = writer.upsert(documents)
                info = index.info()
                encoders_used = [(space, index.encoder(space)) for space in info.spaces]
                mostly_added = 2 * summary.added >= info.documents
                texts = sampled_texts(index, info.passages) if mostly_added else []
    click.echo(visible(_summary_line(directory, summary, bad_rows.skipped)))
    if others := info.documents - summary.documents - summary.kept:
        verb = "is" if others == 1 else "are"
        click.echo(f"{quantity(others, 'document')} of earlier runs {verb} also in the index")
    for space, encoder in encoders_used:
        warn_of_unknown_words(space.name, encoder)
        warn_of_poor_fit(space, texts)


@contextmanager
def _opened(
    directory: Path,
    documents: DocumentReader,
    encoders: tuple[str, ...],
    precision: str | None,
    *,
    on_cluster: bool,
) -> Iterator[Index]:
    """The index, which reads a corpus as in earlier runs; a new one is removed if the run fails.

    After Ctrl-C, a new one is kept, and the next run continues.
    """
    from semsearch.storage.address import Address

    if isinstance(directory, Address) or any(directory.glob("*")):
        from semsearch.index import Index
        from semsearch.indexing.files import FileMemory

        with Index.create(directory, encoders or None, precision=precision) as index:
            with index.read() as state:
                documents.readings.earlier = dict(state.settings().corpora)
            documents.files.known = FileMemory(index.path, index.read).known
            yield index
        return
    chosen: list[str | Encoder] = [*encoders] or [DEFAULT_ENCODER]
    if not on_cluster:  # load them in the background while the corpus is opened
        chosen = [preload_for_documents(str(spec), precision or "auto") for spec in chosen]
    documents.files.known = lambda name: None
    documents.look_ahead(FIRST_DOCUMENTS)
    from semsearch.index import Index

    index = Index.create(directory, chosen, precision=precision)
    is_ours = not len(index)  # not made by another process meanwhile
    try:
        with index:
            yield index
    except Exception:
        if is_ours:
            shutil.rmtree(directory, ignore_errors=True)
        raise


@contextmanager
def _reported_if_interrupted(index: Index, progress: IndexingProgress) -> Iterator[None]:
    """On Ctrl-C, report what was saved."""
    try:
        yield
    except KeyboardInterrupt:
        progress.note(
            f"\ninterrupted; {quantity(len(index), 'document')} saved in {index.path}; "
            "run the same command to continue"
        )
        raise


def _nodes(summary: Summary) -> str:
    """The number of cluster nodes that encoded passages; empty if this process did."""
    return f" on {quantity(len(summary.nodes), 'node')}" if summary.nodes else ""


def _summary_line(directory: Path, summary: Summary, skipped: int) -> str:
    counts = {
        "added": summary.added,
        "changed": summary.changed,
        "with new metadata": summary.metadata_changed,
        "unchanged": summary.unchanged,
        "removed": summary.removed,
        "missing from the corpus, kept": summary.kept,
    }
    parts = ", ".join(
        [
            *(f"{count:,} {name}" for name, count in counts.items() if count),
            *([f"{quantity(skipped, 'bad row')} skipped"] if skipped else []),
        ]
    )
    rate = quantity(round(summary.documents / max(summary.seconds, 1e-9)), "document")
    return (
        f"{directory}: {quantity(summary.documents, 'document')} ({parts}), "
        f"{quantity(summary.passages, 'passage')} "
        f"written in {summary.seconds:.1f} s{_nodes(summary)} ({rate}/s)"
    )


def _preview_line(directory: Path, preview: Preview, skipped: int, allowed: bool) -> str:
    from semsearch.indexing.changes import Change

    changes, removal = preview
    counts = {
        "to change": changes[Change.CHANGED],
        "with new metadata": changes[Change.METADATA_CHANGED],
        "unchanged": changes[Change.UNCHANGED],
    }
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    line = (
        f"{directory}: dry run, nothing is written: "
        f"{quantity(changes[Change.ADDED], 'document')} to add, {parts}, "
        f"{quantity(skipped, 'bad row')} to skip"
    )
    if removal is None:
        return line
    if removal.kept:
        return f"{line}; {removal.why_kept()}"
    line += f"; to remove: {removal if removal.documents else 'none'}"
    if removal.needs_allowance(corpus_is_empty=not changes) and not allowed:
        line += ", which needs --allow-removals"
    return line
