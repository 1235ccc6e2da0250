"""Queries with any characters and of any length, in every mode."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from semsearch import Document, Index, Retriever
from semsearch.analysis import MAX_QUERY_WORDS
from semsearch.cli import main
from semsearch.errors import ArgumentError

pytestmark = pytest.mark.slow

deterministic = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

PIECES = st.sampled_from(
    [
        *('"', "'", "*", "^", "(", ")", ":", "+", "-", ",", "{", "}", "AND", "OR", "NOT", "NEAR"),
        *("NEAR(cat, 2)", "text:", "chunks_fts", "rowid", "rank", "\0", "\x1b", "cat", "naps", "_"),
        *(
            "%",
            "\\",
            ";",
            "--",
            "\ufeff",
            "\u0301",
            "½",
            "Ⅷ",
            "٣",
            "猫",
            "ǅ",
            "\U0001f408",
            "\ud800",
        ),
    ]
)
QUERY = (
    st.text(min_size=1, max_size=40)
    | st.lists(PIECES | st.text(max_size=2), min_size=1, max_size=12).map(" ".join)
    | st.lists(PIECES, min_size=1, max_size=12).map("".join)
)


@pytest.fixture(scope="module")
def retriever(tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "index"
    with Index.create(path, ["hashing"]) as index:
        index.add(
            [
                Document("1", 'The cat naps: "NEAR" the *dog*, OR not_at_all (half ½).'),
                Document("2", "猫 NEAR AND \0 OR"),
                Document("3", "Nothing of the kind."),
            ]
        )
        yield Retriever(index)


@settings(deterministic, max_examples=300)
@given(QUERY, st.sampled_from(["bm25", "hybrid"]))
@example("NEAR", "bm25")
@example("_", "bm25")
def test_any_text(retriever, text, mode):
    if not text.strip() or any("\ud800" <= letter <= "\udfff" for letter in text):
        with pytest.raises(ArgumentError):
            retriever.search(text, mode=mode)
        return
    scores = [hit.score for hit in retriever.search(text, k=2, mode=mode)]
    assert len(scores) <= 2
    assert scores == sorted(scores, reverse=True)


@settings(deterministic, max_examples=50)
@given(st.lists(PIECES, max_size=5))
def test_a_word_is_found_among_any_characters(retriever, noise):
    text = " ".join(["naps", *noise]).replace("\ud800", "")
    assert "1" in {hit.document_id for hit in retriever.search(text, k=3, mode="bm25")}


@pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
@pytest.mark.parametrize("text", ["caf\udce9", "\ud800", "cat \udfff"])
def test_unpaired_surrogates_are_rejected(retriever, text, mode):
    with pytest.raises(
        ArgumentError, match="the query contains a byte that is not UTF-8, or an unpaired"
    ):
        retriever.search(text, mode=mode)


@pytest.mark.parametrize("mode", ["bm25", "hybrid"])
def test_the_number_of_words_is_limited(retriever, mode):
    assert retriever.search("cat " * MAX_QUERY_WORDS, mode=mode)[0].document_id == "1"
    with pytest.raises(ArgumentError, match="the query has 10,001 words; bm25 and hybrid accept"):
        retriever.search("cat " * (MAX_QUERY_WORDS + 1), mode=mode)


def test_a_long_query_line_is_not_split(retriever, tmp_path):
    (tmp_path / "queries.txt").write_text("cat\n" + "x" * ((1 << 20) + 1) + "\n")
    place = ["--index", str(retriever.index.path), "--queries", str(tmp_path / "queries.txt")]
    result = CliRunner().invoke(main, ["query", *place])
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "queries.txt:2: the line is longer than 1 MiB [corpus-too-large]\n"
    )
    (tmp_path / "queries.txt").write_text("cat\n" + "x" * ((1 << 20) - 1) + "\n")
    result = CliRunner().invoke(main, ["query", *place, "--format", "jsonl"])
    assert (result.exit_code, result.stdout.count("\n")) == (0, 2)
