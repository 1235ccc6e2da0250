"""Parallel text: sentences in English, each with its translation."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree  # expat has limited entity expansion since 2.4.0

from semsearch.corpus import good_rows, open_table
from semsearch.corpus.formats import DOCUMENTS, format_by_name
from semsearch.corpus.roles import find_column, shortened
from semsearch.errors import (
    ArgumentError,
    ColumnNotFoundError,
    CorpusError,
    DatasetNotFoundError,
)
from semsearch.evaluation.datasets.sts import (
    SOURCE_LANGUAGE,
    is_translated,
    languages_of,
    parallel_sentences,
)
from semsearch.evaluation.datasets.textlines import numbered_lines
from semsearch.training.examples import Examples, Kind, Notify

SOURCE_COLUMNS = ("source", "src", "english", SOURCE_LANGUAGE, "anchor", "sentence1")
TRANSLATION_COLUMNS = ("translation", "target", "tgt", "trg", "positive", "sentence2")

_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
#: The elements of TMX 1.4b that hold codes of another format, such as ``<b>``, not text.
_CODES = {"bpt", "ept", "it", "ph", "ut"}

#: Sentences and their translations, and the language of the latter, if known.
_Read = tuple[str | None, Iterable[tuple[str, str]]]


def read_parallel(spec: str, language: str | None, notify: Notify) -> Examples:
    """Translated sentences, each pair once, with their language as the only label.

    Args:
        spec: ``stsb-multi:pt``, the training split of STS Benchmark in English and Portuguese; a
            table (CSV, TSV …) of sources and translations; a TMX file; or the translation in a pair
            of line-aligned files (Moses): ``news.pt`` beside ``news.en``. Files may be gzipped.
        language: a code such as ``pt``; None takes the one that the set or file names.
        notify: called with the columns of a table, and the number of pairs left out.

    Raises:
        ArgumentError: the spec is not valid, or the language is unknown or contradicts the file's.
        BadRowError: a row of a table cannot be read.
        CorpusError: the file cannot be read, or holds no translations.
        DatasetNotFoundError: there is no such file, or the set is not on this machine.
    """
    if is_translated(spec):
        name = spec
        found, pairs = _published(spec)
    else:
        path = Path(spec).expanduser()
        name = path.name
        found, pairs = _file(path, language, notify)
    if language and found and language != found:
        raise ArgumentError(f"{spec} is in '{found}', not in '{language}' (--language)")
    language = language or found
    if language is None:
        raise ArgumentError(f"the language of {name} is unknown; give it with --language")
    stripped = [(source.strip(), translation.strip()) for source, translation in pairs]
    distinct = dict.fromkeys(pair for pair in stripped if all(pair))
    if empty := sum(not all(pair) for pair in stripped):
        notify(f"{name}: {empty:,} pairs without text on one side are left out")
    if not distinct:
        raise CorpusError(f"{name} holds no translated sentences")
    sources, translations = zip(*distinct, strict=True)
    texts = list(sources), list(translations)
    return Examples(name, Kind.TRANSLATIONS, texts, [0] * len(distinct), (language,))


def _published(spec: str) -> _Read:
    first, second = languages_of(spec)
    if first not in (second, SOURCE_LANGUAGE) or second == SOURCE_LANGUAGE:
        raise ArgumentError(
            f"{spec} is not a translation from English; name a language: stsb-multi:pt"
        )
    return second, parallel_sentences(second)


def _file(path: Path, language: str | None, notify: Notify) -> _Read:
    if not path.is_file():
        raise DatasetNotFoundError(f"no such file: {path} (published sets: stsb-multi:pt)")
    if path.name.lower().removesuffix(".gz").endswith(".tmx"):
        return _translation_memory(path, language)
    kind = format_by_name(path)
    return _moses(path) if kind is None or kind in DOCUMENTS else _table(path, language, notify)


def _table(path: Path, language: str | None, notify: Notify) -> _Read:
    with open_table(path) as table:
        columns = list(table.columns)
        source = find_column(columns, SOURCE_COLUMNS)
        known = (*TRANSLATION_COLUMNS, language) if language else TRANSLATION_COLUMNS
        translation = find_column(columns, known)
        if translation is None and len(columns) == 2:
            source = source or columns[0]
            translation = next(column for column in columns if column != source)
        if source is None or translation is None:
            raise ColumnNotFoundError(
                f"{table.name}: columns 'source' and 'translation' are needed, or a table of only "
                f"two columns (columns: {', '.join(columns)})"
            )
        notify(
            f"{path.name}: sources from '{shortened(source)}', "
            f"translations from '{shortened(translation)}'"
        )
        pairs = [
            (str(row.fields.get(source) or ""), str(row.fields.get(translation) or ""))
            for row in good_rows(table)
        ]
    code = translation.strip().lower()
    return code if len(code) == 2 else None, pairs


def _moses(path: Path) -> _Read:
    packed = ".gz" if path.name.endswith(".gz") else ""
    stem, _, language = path.name.removesuffix(packed).rpartition(".")
    english = path.with_name(f"{stem}.{SOURCE_LANGUAGE}{packed}")
    if language == SOURCE_LANGUAGE or not english.is_file():
        raise ArgumentError(
            f"{path}: give a table (CSV, TSV), a TMX file, or the translation in a pair of "
            f"line-aligned files, such as news.pt beside news.{SOURCE_LANGUAGE}"
        )
    sources, translations = list(numbered_lines(english)), list(numbered_lines(path))
    if len(sources) != len(translations):
        raise CorpusError(
            f"{english.name} has {len(sources):,} lines and {path.name} {len(translations):,}; "
            "each line must translate the same line of the other file"
        )
    pairs = zip(sources, translations, strict=True)
    return language, [(one.text, two.text) for one, two in pairs]


def _translation_memory(path: Path, language: str | None) -> _Read:
    found: dict[str, list[tuple[str, str]]] = {}
    for unit in _units(path):
        source = unit.pop(SOURCE_LANGUAGE, None)
        if source is not None:
            for code, text in unit.items():
                found.setdefault(code, []).append((source, text))
    held = ", ".join(sorted(found))
    if language is None and len(found) > 1:
        raise ArgumentError(f"{path.name} holds {held}; name one: --language")
    wanted = language or held
    if wanted not in found:
        raise CorpusError(
            f"{path.name}: no translations from English into {wanted or 'any language'}"
            f" (held: {held or 'none'})"
        )
    return wanted, found[wanted]


def _units(path: Path) -> Iterator[dict[str, str]]:
    """The texts of each translation unit by language."""
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as stream:
            for _, element in ElementTree.iterparse(stream):  # noqa: S314 - see the import
                if element.tag == "tu":
                    yield dict(_segment(version) for version in element.iter("tuv"))
                    element.clear()
    except (OSError, EOFError, ElementTree.ParseError) as error:
        raise CorpusError(f"{path} is not a TMX file: {error}") from error


def _segment(version: ElementTree.Element) -> tuple[str, str]:
    """The language and the text of a version, without codes of the format it was written in."""
    language = version.get(_XML_LANGUAGE) or version.get("lang") or ""
    for code in [one for one in version.iter() if one.tag in _CODES]:
        tail = code.tail
        code.clear()
        code.tail = tail
    text = "".join(part for segment in version.iter("seg") for part in segment.itertext())
    return language.split("-")[0].lower(), text
