"""Parallel text: sentences in English, each with its translation."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree  # expat has limited entity expansion since 2.4.0

from semsearch.corpus import open_table
from semsearch.corpus.formats import DOCUMENTS, format_by_name
from semsearch.corpus.roles import shortened
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    ColumnNotFoundError,
    CorpusError,
    DatasetNotFoundError,
)
from semsearch.evaluation.datasets.textlines import numbered_lines
from semsearch.evaluation.datasets.translated import (
    SOURCE_LANGUAGE,
    is_translated,
    languages_of,
    parallel_sentences,
)
from semsearch.training.examples import Examples, Kind, Notify

SOURCE_COLUMNS = ("source", "src", "english", SOURCE_LANGUAGE, "anchor", "sentence1")
TRANSLATION_COLUMNS = ("translation", "target", "tgt", "trg", "positive", "sentence2")

_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
#: The elements of TMX 1.4b that hold codes of another format, such as ``<b>``, not text.
_CODES = {"bpt", "ept", "it", "ph", "ut"}


#: A sentence and its translation.
_Pair = tuple[str, str]


class _Read(NamedTuple):
    """The contents of a file or data set: its language, if known, and its pairs."""

    language: str | None
    pairs: Iterable[_Pair]


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
    read = (
        _published(spec)
        if is_translated(spec)
        else _file(Path(spec).expanduser(), language, notify)
    )
    found, pairs = read
    if language and found and language != found:
        raise ArgumentError(f"{spec} is in '{found}', not in '{language}' (--language)")
    language = language or found
    name = spec if is_translated(spec) else Path(spec).name
    if language is None:
        raise ArgumentError(f"the language of {name} is unknown; give it with --language")
    stripped = [(source.strip(), translation.strip()) for source, translation in pairs]
    distinct = dict.fromkeys(pair for pair in stripped if all(pair))
    empty = sum(not all(pair) for pair in stripped)
    if empty:
        notify(f"{name}: {empty:,} pairs without text on one side are left out")
    if not distinct:
        raise CorpusError(f"{name} holds no translated sentences")
    sources, translations = zip(*distinct, strict=True)
    return Examples(
        name,
        Kind.TRANSLATIONS,
        (list(sources), list(translations)),
        [0] * len(distinct),
        labels=(language,),
    )


def _published(spec: str) -> _Read:
    first, second = languages_of(spec)
    if first not in (second, SOURCE_LANGUAGE) or second == SOURCE_LANGUAGE:
        raise ArgumentError(
            f"{spec} is not a translation from English; name a language: stsb-multi:pt"
        )
    pairs = parallel_sentences(second)
    return _Read(second, pairs)


def _file(path: Path, language: str | None, notify: Notify) -> _Read:
    if not path.is_file():
        raise DatasetNotFoundError(f"no such file: {path} (published sets: stsb-multi:pt)")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".tmx":
        return _translation_memory(path, language)
    kind = format_by_name(path)
    return _moses(path) if kind is None or kind in DOCUMENTS else _table(path, language, notify)


def _table(path: Path, language: str | None, notify: Notify) -> _Read:
    with open_table(path) as table:
        columns = list(table.columns)
        spelled = {column.strip().lower(): column for column in reversed(columns)}
        known = (*TRANSLATION_COLUMNS, *((language,) if language else ()))
        source = next((spelled[name] for name in SOURCE_COLUMNS if name in spelled), None)
        translation = next((spelled[name] for name in known if name in spelled), None)
        others = [column for column in columns if column not in (source, translation)]
        if translation is None and len(columns) == 2:
            source = source or others.pop(0)
            translation = others.pop(0)
        if source is None or translation is None:
            raise ColumnNotFoundError(
                f"{table.name}: columns 'source' and 'translation' are needed, or a table of only "
                f"two columns (columns: {', '.join(columns)})"
            )
        notify(
            f"{path.name}: sources from '{shortened(source)}', "
            f"translations from '{shortened(translation)}'"
        )
        pairs = []
        for row in table.rows:
            if isinstance(row, BadRowError):
                raise row
            source_text, text = (str(row.fields.get(one) or "") for one in (source, translation))
            pairs.append((source_text, text))
    code = translation.strip().lower()
    return _Read(code if len(code) == 2 else None, pairs)


def _moses(path: Path) -> _Read:
    packed = ".gz" if path.name.endswith(".gz") else ""
    stem, _, language = path.name.removesuffix(packed).rpartition(".")
    english = path.with_name(f"{stem}.{SOURCE_LANGUAGE}{packed}")
    if language == SOURCE_LANGUAGE or not stem or not english.is_file():
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
    return _Read(language, ((one.text, two.text) for one, two in pairs))


def _translation_memory(path: Path, language: str | None) -> _Read:
    found: dict[str, list[_Pair]] = {}
    for unit in _units(path):
        source = next((text for code, text in unit.items() if code == SOURCE_LANGUAGE), None)
        if source is not None:
            for code, text in unit.items():
                if code != SOURCE_LANGUAGE:
                    found.setdefault(code, []).append((source, text))
    if language is None and len(found) > 1:
        raise ArgumentError(f"{path.name} holds {', '.join(sorted(found))}; name one: --language")
    wanted = language or next(iter(found), "any language")
    if wanted not in found:
        held = ", ".join(sorted(found)) or "none"
        raise CorpusError(f"{path.name}: no translations from English into {wanted} (held: {held})")
    return _Read(wanted, found[wanted])


def _text(segment: ElementTree.Element) -> str:
    """The text of a segment, without the codes of the format that it was translated in."""
    for code in [one for one in segment.iter() if one.tag in _CODES]:
        tail = code.tail
        code.clear()
        code.tail = tail
    return "".join(segment.itertext())


def _units(path: Path) -> Iterator[dict[str, str]]:
    """The texts of each translation unit by language."""
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as stream:
            for _, element in ElementTree.iterparse(stream):  # noqa: S314 - see the import
                if element.tag == "tu":
                    yield {
                        (one.get(_XML_LANGUAGE) or one.get("lang") or "").split("-")[0].lower(): (
                            _text(segment)
                        )
                        for one in element.iter("tuv")
                        for segment in one.iter("seg")
                    }
                    element.clear()
    except (OSError, EOFError, ElementTree.ParseError) as error:
        raise CorpusError(f"{path} is not a TMX file: {error}") from error
