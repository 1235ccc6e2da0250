"""``semsearch index``: create or update an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semsearch.addresses import Address
from semsearch.cli.command import Command
from semsearch.cli.corpus_options import BadRows, corpus_options, opened_corpus
from semsearch.cli.encoding_options import (
    check_pool,
    exit_if_interrupted,
    nodes,
    ray_option,
    space_options,
)
from semsearch.cli.language_fit import sampled_texts, warn_of_poor_fit, warn_of_unknown_words
from semsearch.cli.options import (
    INDEXES,
    complete_file,
    directory_option,
    existing_index,
    title_column_option,
    wait_option,
)
from semsearch.cli.preload import preload_for_documents
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.removals import allowance, dry_run_option, removals_option
from semsearch.cli.render import visible
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import with_dimension
from semsearch.errors import ArgumentError, IndexNotFoundError, quoted
from semsearch.texts import quantity

if TYPE_CHECKING:  # imported while the encoder is loading
    from semsearch.corpus.files import FileState
    from semsearch.index import Index
    from semsearch.indexing.preview import Preview
    from semsearch.indexing.summary import Summary
    from semsearch.protocols import Encoder

#: The sample corpus by language, with the same notes and ids.
SAMPLES = {"en": "notes.csv", "pt": "notes-pt.csv"}

#: Documents read before an index is created, to detect errors early.
FIRST_DOCUMENTS = 256


@click.command(
    "index",
    cls=Command,
    sections={"--id-column": "Columns and formats", "--encoder": "Encoding", "--sync": "Updating"},
)
@click.argument("corpora", metavar="CORPUS...", shell_complete=complete_file, nargs=-1)
@directory_option("The index to create or update.  [default: indexes/NAME-OF-THE-CORPUS]")
@click.option(
    "--sample",
    type=click.Choice(list(SAMPLES)),
    is_flag=False,
    flag_value="en",
    help="Index the sample corpus of semsearch, in English or in Portuguese.",
)
@wait_option
@corpus_options
@title_column_option
@click.option(
    "--encoder",
    "encoders",
    metavar="SPEC",
    shell_complete=complete_file,
    multiple=True,
    help="minilm, a Sentence-Transformers model by name or folder, glove:PATH (averaged word "
    "vectors; the suffix @sif weights the words), or hashing; may be repeated for several spaces.  "
    f"[default: the index's own, or {DEFAULT_ENCODER}]",
)
@space_options
@ray_option
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
    dimension: int | None,
    watch: bool,
    **options: Any,
) -> None:
    """Encode a corpus into an index, or update an index.

    CORPUS is a table (CSV, TSV, JSON, Parquet, Arrow, XLSX; also .gz), a document (text,
    Markdown, HTML, PDF, DOCX, PPTX, EPUB), a folder of these, the URL of a file, a database with
    --sql, or - for standard input. Only new and changed documents are encoded; an interrupted run
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
    semsearch index corpus.csv --encoder ./my-model --dimension 192
    semsearch index big.parquet --ray ray://10.0.0.1
    """
    directory = directory and existing_index(directory)
    if bool(sample) == bool(corpora):
        raise ArgumentError("name a corpus (a file, a folder or -), or use --sample")
    check_pool(options["ray"])
    if dimension is not None:
        named = encoders or (DEFAULT_ENCODER,)
        encoders = tuple(with_dimension(spec, dimension) for spec in named)

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
    stored_type: str | None,
    precision: str | None,
    ray: str | None,
    wait: float,
    sync: bool,
    allow_removals: bool,
    dry_run: bool,
    skip_bad_rows: bool,
    **columns: Any,
) -> None:
    with ExitStack() as outer:
        paths = outer.enter_context(_sources(corpora, sample))
        progress = outer.enter_context(IndexingProgress("documents"))
        bad_rows = BadRows(progress, skip=skip_bad_rows)
        corpus = opened_corpus(paths, progress, bad_rows, **columns)
        directory = directory or INDEXES / corpus.name

        def preview() -> Preview:
            from semsearch.indexing.preview import preview_index

            return preview_index(directory, iter(corpus), sync=sync, on_bad_row=bad_rows)

        outer.enter_context(bad_rows.listed(preview))
        if dry_run:
            line = _preview_line(directory, preview(), bad_rows.skipped, allow_removals)
            click.echo(visible(line))
            return
        loading = [] if ray else _loading(directory, encoders, precision)
        documents = iter(corpus)

        def on_batch(summary: Summary) -> None:
            read = corpus.fraction_read  # ahead of what is written
            fraction = read and read * summary.documents / max(documents.taken, 1)
            progress.update(summary.documents, fraction, nodes(summary))

        documents.readings.earlier = _corpora(directory)
        documents.readings.index = quoted(str(directory))
        is_new = _is_new(directory)
        has_folder = is_new and directory.is_dir()
        with ExitStack() as created, ExitStack() as stack:  # an index is removed after it is closed
            if not isinstance(directory, Address) and not is_new:
                index = stack.enter_context(_opened(directory, encoders, stored_type, precision))
                documents.files.known = _known_files(index)
                documents.look_ahead(FIRST_DOCUMENTS)
            else:  # leave no directory if the beginning of the corpus cannot be read
                documents.files.known = lambda name: None
                documents.look_ahead(FIRST_DOCUMENTS)
                index = stack.enter_context(
                    _opened(directory, loading or encoders, stored_type, precision)
                )
            stack.enter_context(exit_if_interrupted(index, progress))
            writing = index.writer(on_bad_row=bad_rows, on_batch=on_batch, wait=wait, ray=ray)
            writer = stack.enter_context(writing)
            if is_new and not len(index):  # and not made by another process meanwhile
                created.enter_context(_removed_on_error(directory, keep_folder=has_folder))
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
        earlier = quantity(others, "document")
        verb = "is" if others == 1 else "are"
        click.echo(f"{earlier} of earlier runs {verb} also in the index")
    for space, encoder in encoders_used:
        warn_of_unknown_words(space.name, encoder)
        warn_of_poor_fit(space, texts)


@contextmanager
def _sources(corpora: tuple[str, ...], sample: str | None) -> Iterator[list[str]]:
    """The given corpora, or the sample."""
    if sample:
        with as_file(files("semsearch") / "sample" / SAMPLES[sample]) as file:
            yield [str(file)]
    else:
        yield list(corpora)


def _is_new(directory: Path) -> bool:
    """Whether there is nothing in a directory; False for addresses, of which that is not known."""
    return not isinstance(directory, Address) and not any(directory.glob("*"))


def _corpora(directory: Path) -> dict[str, dict[str, Any]]:
    """How an index has read its corpora; nothing if there is no index yet."""
    from semsearch.index import Index

    with suppress(IndexNotFoundError), Index.open(directory) as index, index.read() as state:
        return dict(state.settings().corpora)
    return {}


@contextmanager
def _removed_on_error(directory: Path, *, keep_folder: bool) -> Iterator[None]:
    """Remove a new index if the run fails; after Ctrl-C, the next run continues."""
    try:
        yield
    except click.exceptions.Exit:
        raise
    except Exception:
        with suppress(OSError):
            for file in directory.iterdir():
                file.unlink()
            if not keep_folder:
                directory.rmdir()
        raise


def _loading(directory: Path, encoders: Sequence[str], precision: str | None) -> list[Encoder]:
    """The encoders of a new index, which load in the background; none if the index may exist."""
    if not _is_new(directory):
        return []
    named = encoders or (DEFAULT_ENCODER,)
    return [preload_for_documents(spec, precision or "auto") for spec in named]


def _opened(
    directory: Path,
    encoders: Sequence[str | Encoder],
    stored_type: str | None,
    precision: str | None,
) -> Index:
    """Open or create the index, and check it against the given encoders."""
    from semsearch.index import Index

    return Index.create(directory, encoders or None, dtype=stored_type, precision=precision)


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
        f"written in {summary.seconds:.1f} s{nodes(summary)} ({rate}/s)"
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


def _known_files(index: Index) -> Callable[[str], FileState | None]:
    """The function that returns the state of a folder's file when the index read it."""
    from semsearch.indexing.files import FileMemory

    return FileMemory(index.path, index.read).known
