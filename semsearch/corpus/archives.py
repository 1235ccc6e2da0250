"""Checks ZIP archives before a library unpacks them."""

from __future__ import annotations

import zipfile
from typing import IO

from semsearch.errors import CorpusError
from semsearch.limits import MAX_ARCHIVE_FILES, MAX_PART_BYTES, MAX_UNPACKED_BYTES, size_shown

_ENCRYPTED = 0x1
_PARSED_WHOLE = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")


def check_archive(file: IO[bytes], *, has_trees: bool) -> None:
    """Reject an archive that is encrypted or too large for memory.

    Sizes are those declared in the archive; Python's zipfile reads no more than these.

    Args:
        file: the archive; it is rewound afterwards.
        has_trees: whether the library parses whole markup files into memory.

    Raises:
        CorpusError: the archive is rejected.
        zipfile.BadZipFile: the file is not an archive.
    """
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
    file.seek(0)
    if len(parts) > MAX_ARCHIVE_FILES:
        raise CorpusError(f"holds more than {MAX_ARCHIVE_FILES:,} files")
    if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
        raise CorpusError(f"unpacks to more than {size_shown(MAX_UNPACKED_BYTES)}")
    for part in parts:
        if part.flag_bits & _ENCRYPTED:
            raise CorpusError("is encrypted")
        is_tree = has_trees and part.filename.lower().endswith(_PARSED_WHOLE)
        if is_tree and part.file_size > MAX_PART_BYTES:
            limit = size_shown(MAX_PART_BYTES)
            raise CorpusError(f"its part {part.filename!r} is longer than {limit}")
