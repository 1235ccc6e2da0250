"""Reads e-books (EPUB), chapter by chapter in reading order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag
from zipfile import ZipFile

from semsearch.corpus.html import blocks_of, decoded, parse_html
from semsearch.corpus.sections import Contents, Section, sections_of
from semsearch.errors import CorpusError, first_line
from semsearch.texts import quantity

if TYPE_CHECKING:
    from lxml import etree

_CONTAINER = "META-INF/container.xml"
_PAGES = ("application/xhtml+xml", "text/html")


def read_epub(path: Path) -> Contents:
    """The sections of a book, each under a heading; each chapter begins a new one.

    Raises:
        CorpusError: it is not an EPUB.
    """
    archive = ZipFile(path)
    title, chapters = _book(archive)
    return Contents(title, _sections(archive, chapters), quantity(len(chapters), "chapter"))


def _sections(archive: ZipFile, chapters: list[str]) -> Iterator[Section]:
    number = 1
    for path in chapters:
        name = posixpath.basename(path)
        try:
            found = list(sections_of(blocks_of(parse_html(decoded(archive.read(path)))), number))
        except Exception as error:  # damaged chapters raise anything
            found = [Section("section", number, "", fault=f"chapter {name}: {first_line(error)}")]
        yield from found
        number += len(found)


def _book(archive: ZipFile) -> tuple[str, list[str]]:
    """The title of a book, and the paths of its chapters in the archive."""
    container = _parsed(archive, _CONTAINER)
    root = container.find(".//{*}rootfile")
    package_path = "" if root is None else root.get("full-path", "")
    if package_path not in archive.namelist():
        raise CorpusError("is not an EPUB: its package document is missing")
    package = _parsed(archive, package_path)
    items = {
        item.get("id"): item
        for item in package.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
    }
    order = [item.get("idref") for item in package.iterfind(".//{*}spine/{*}itemref")]
    folder = posixpath.dirname(package_path)
    paths = [
        posixpath.normpath(posixpath.join(folder, _path(items[name].get("href", ""))))
        for name in order
        if name in items
    ]
    title = package.findtext(".//{http://purl.org/dc/elements/1.1/}title") or ""
    return title, list(dict.fromkeys(paths))  # several items may be parts of one chapter


def _path(link: str) -> str:
    return unquote(urldefrag(link).url)


def _parsed(archive: ZipFile, path: str) -> etree._Element:
    from lxml import etree

    # Entities are not expanded, and nothing is fetched.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(archive.read(path), parser)
