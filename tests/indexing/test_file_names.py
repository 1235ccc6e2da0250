"""Names of files, which can be any bytes."""

from __future__ import annotations

import sys

import pytest

from semsearch import Index
from semsearch.corpus import Corpus


@pytest.mark.skipif(sys.platform != "linux", reason="file names can be any bytes on Linux only")
def test_undecodable_file_names(tmp_path):
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    (folder / "b\udcff.txt").write_text("One.")
    (folder / "c\udcff.csv").write_text("id,text\nc,Two.\n")
    (folder / "d\udcff.jsonl").write_text('{"id": "d", "text": "Three."}\n{"id": "d", "text": ""}')
    bad = []
    with Index.create(tmp_path / "pets", ["hashing"]) as index:
        for name in ("", "b\udcff.txt", "c\udcff.csv", "d\udcff.jsonl"):
            index.add(Corpus(folder / name, on_bad_row=bad.append))
        ids = {hit.document_id for hit in index.search("x")}
    place = str(tmp_path / "caf\\udce9")
    rows = {"c\\udcff.csv#id=c", "d\\udcff.jsonl#id=d"}  # from the folder's tables
    assert ids == {"b\\udcff.txt", f"{place}/b\\udcff.txt", "c", "d"} | rows
    assert [error.source for error in bad] == [f"{place}/d\\udcff.jsonl:2"] * 2  # folder, file
