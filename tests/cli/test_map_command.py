"""`semsearch map`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import main
from semsearch.maps import open_map

pytest.importorskip("umap", reason="a map needs the extra 'map'")
pytest.importorskip("embedding_atlas", reason="a map needs the extra 'map'")


def test_a_space_is_mapped_and_the_next_command_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create("two words", ["hashing", "hashing:16"]) as index:
        index.add([Document("a", "a red bird sings"), Document("b", "a blue fish swims")])
        result = CliRunner().invoke(main, ["map", "--index", "two words", "--space", "hashing-16"])
        assert result.exit_code == 0, result.output
        assert 'semsearch serve --index "two words"\n' in result.stdout
        assert open_map(index).space == "hashing-16"
