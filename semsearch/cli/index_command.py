"""``semsearch index``: create or update an index."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semsearch.cli.corpus_options import BadRows, corpora_argument, corpus_options
from semsearch.cli.language_fit import warn_of_poor_fit, warn_of_unknown_words
from semsearch.cli.options import (
    INDEXES,
    allowance,
    directory_option,
    dry_run_option,
    encoder_precision_option,
    existing_index,
    removals_option,
    repeated_option,
)
from semsearch.cli.preload import preload_for_documents
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import say
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, quantity

if TYPE_CHECKING:  # imported while the encoder is loading
    from semsearch.corpus.documents import DocumentReader
    from semsearch.index import Index
    from semsearch.indexing.batch import Summary
    from semsearch.protocols import Encoder

#: The sample corpus by language, with the same notes and ids.
SAMPLES = {"en": "notes.csv", "pt": "notes-pt.csv"}

#: Documents read before an index is created, to detect errors early.
FIRST_DOCUMENTS = 256


@click.command("index")
@corpora_argument("CORPUS...", required=False)
@directory_option("The index to create or update.  [default: indexes/NAME-OF-THE-CORPUS]")
@click.option(
    "--sample",
    type=click.Choice(list(SAMPLES)),
    is_flag=False,
    flag_value="en",
    help="Index the sample corpus of semsearch, in English or in Portuguese.",
)
@corpus_options
@repeated_option(
    "--encoder",
    "encoders",
    "SPEC",
    "minilm, a Sentence-Transformers model by name or folder, glove:PATH (averaged word "
    "vectors), openai:MODEL@URL (a server), or hashing; may be repeated for several spaces.  "
    f"[default: the index's own, or {DEFAULT_ENCODER}]",
)
@encoder_precision_option
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
def index_command(
    corpora: tuple[str, ...],
    directory: Path | None,
    sample: str | None,
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
    if sample:
        corpora = (str(files("semsearch.corpus") / "sample" / SAMPLES[sample]),)

    def index_corpus() -> None:
        _index_corpus(corpora, directory, **options)

    if not watch:
        index_corpus()
        return
    from semsearch.cli.watching import keep_in_step

    if sample or options["dry_run"] or options["sql"]:
        raise ArgumentError("--watch is for files and folders, without --dry-run")
    keep_in_step(corpora, directory or INDEXES / Corpus(corpora).name, index_corpus)


def _index_corpus(
    corpora: tuple[str, ...],
    directory: Path | None,
    *,
    encoders: tuple[str, ...],
    precision: str | None,
    ray: str | None,
    sync: bool,
    allow_removals: bool,
    dry_run: bool,
    skip_bad_rows: bool,
    **columns: Any,
) -> None:
    with IndexingProgress("documents") as progress:
        bad_rows = BadRows(progress.note, skip=skip_bad_rows)
        corpus = Corpus(corpora, notify=progress.note, on_bad_row=bad_rows, **columns)
        directory = directory or INDEXES / corpus.name
        if dry_run:
            preview = _preview(directory, corpus, bad_rows, sync, allow_removals)
            say(f"{directory}: dry run, nothing is written: {preview}")
            return
        documents = iter(corpus)

        def on_batch(summary: Summary) -> None:
            read = corpus.fraction_read  # ahead of what is written
            fraction = read and read * summary.documents / max(documents.taken, 1)
            progress.update(summary.documents, fraction, _nodes(summary))

        index, is_new = opened_index(directory, documents, encoders, precision, preload=not ray)
        with index:
            try:
                with index.writer(on_bad_row=bad_rows, on_batch=on_batch, ray=ray) as writer:
                    if sync:
                        allowed = allowance(allow_removals, progress)
                        summary = writer.sync(documents, allow_removals=allowed)
                    else:
                        summary = writer.upsert(documents)
            except KeyboardInterrupt:
                saved = f"{quantity(len(index), 'document')} saved in {index.path}"
                progress.note(f"interrupted; {saved}; run the same command to continue")
                raise
            except Exception:
                if is_new:
                    index.close()
                    shutil.rmtree(directory, ignore_errors=True)
                raise
            progress.stop()
            info = index.info()
            say(f"{directory}: {_described(summary, bad_rows.skipped)}")
            if others := info.documents - summary.documents - summary.kept:
                verb = "is" if others == 1 else "are"
                say(f"{quantity(others, 'document')} of earlier runs {verb} also in the index")
            for space in info.spaces:
                warn_of_unknown_words(space.name, index.encoder(space))
                if 2 * summary.added >= info.documents:
                    warn_of_poor_fit(index, space)


def opened_index(
    directory: Path,
    documents: DocumentReader,
    encoders: tuple[str, ...],
    precision: str | None,
    *,
    preload: bool,
) -> tuple[Index, bool]:
    """The index, and whether it is new: its encoders are then loaded while the corpus is opened."""
    from semsearch.storage.address import Address

    chosen: list[str | Encoder] = [*encoders]
    is_new = not isinstance(directory, Address) and not any(directory.glob("*"))
    if is_new:
        chosen = chosen or [DEFAULT_ENCODER]
        if preload:
            chosen = [preload_for_documents(str(spec), precision or "auto") for spec in chosen]
        documents.files.known = lambda name: None
        documents.look_ahead(FIRST_DOCUMENTS)
    from semsearch.index import Index

    index = Index.create(directory, chosen or None, precision=precision)
    return index, is_new and not len(index)  # another process may have made it meanwhile


def _nodes(summary: Summary) -> str:
    """The number of cluster nodes that encoded passages; empty if this process did."""
    return f" on {quantity(len(summary.nodes), 'node')}" if summary.nodes else ""


def _described(summary: Summary, skipped: int) -> str:
    counts = {
        "added": summary.added,
        "changed": summary.changed,
        "with new metadata": summary.metadata_changed,
        "unchanged": summary.unchanged,
        "removed": summary.removed,
        "missing from the corpus, kept": summary.kept,
    }
    parts = [f"{count:,} {name}" for name, count in counts.items() if count]
    if skipped:
        parts.append(f"{quantity(skipped, 'bad row')} skipped")
    rate = quantity(round(summary.documents / max(summary.seconds, 1e-9)), "document")
    return (
        f"{quantity(summary.documents, 'document')} ({', '.join(parts)}), "
        f"{quantity(summary.passages, 'passage')} "
        f"written in {summary.seconds:.1f} s{_nodes(summary)} ({rate}/s)"
    )


def _preview(directory: Path, corpus: Corpus, bad_rows: BadRows, sync: bool, allowed: bool) -> str:
    """What indexing a corpus would change."""
    from semsearch.indexing.changes import Change
    from semsearch.indexing.preview import preview_index

    changes, removal = preview_index(directory, iter(corpus), sync=sync, on_bad_row=bad_rows)
    line = (
        f"{quantity(changes[Change.ADDED], 'document')} to add, "
        f"{changes[Change.CHANGED]:,} to change, "
        f"{changes[Change.METADATA_CHANGED]:,} with new metadata, "
        f"{changes[Change.UNCHANGED]:,} unchanged, {quantity(bad_rows.skipped, 'bad row')} to skip"
    )
    if removal is None:
        return line
    if removal.kept:
        return f"{line}; {removal.why_kept()}"
    line += f"; to remove: {removal if removal.documents else 'none'}"
    if removal.needs_allowance(corpus_is_empty=not changes) and not allowed:
        line += ", which needs --allow-removals"
    return line
