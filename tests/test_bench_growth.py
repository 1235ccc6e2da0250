"""scripts/bench/codes and projection: ranks, depths, and the numbers in docs/scale.md."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from scripts.bench import codes
from scripts.bench.projection import Projection, amount, duration, parsed, significant

ROOT = Path(__file__).parent.parent


@pytest.fixture
def small_folder(tmp_path, monkeypatch):
    """400 vectors of 16 dimensions, 200 queries, and two codes."""
    random = numpy.random.default_rng(0)
    for name, count in {"definitions": 400, "queries": 200}.items():
        rows = random.standard_normal((count, 16), numpy.float32)
        numpy.save(tmp_path / f"{name}.npy", rows / numpy.linalg.norm(rows, axis=1, keepdims=True))
    monkeypatch.setattr(codes, "CODES", ("SQ8", "PQ8x4fs"))
    monkeypatch.setattr(codes, "made", lambda folder, count, data: iter([_rows(folder)[:count]]))
    return tmp_path


def _rows(folder):
    return numpy.load(folder / "definitions.npy")


def test_blockwise_ranks_equal_those_of_one_search(small_folder):
    """The nearest neighbours' ranks among all scores of the code, computed by numpy."""
    found = codes.measured(small_folder, [100, 400], small_folder)
    size, by_count = found["SQ8"]
    assert (size, list(by_count)) == (16, [100, 400])
    rows, queries = _rows(small_folder), numpy.load(small_folder / "queries.npy")
    index = codes._learnt("SQ8", rows)
    index.add(rows)
    coded = numpy.argsort(-(queries @ index.reconstruct_n(0, 400).T), axis=1, kind="stable")
    nearest = numpy.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, : codes.K]
    places = numpy.argsort(coded, axis=1)
    expected = numpy.take_along_axis(places, nearest, axis=1)
    assert (by_count[400] == expected).mean() > 0.99  # except for rounding
    assert codes.depth(found["PQ8x4fs"][1][400]) > codes.depth(by_count[400]) >= codes.K


def test_depth():
    """980 of 1,000 ranks must be reached."""
    ranks = numpy.arange(1000).reshape(100, 10)
    assert codes.depth(ranks) == 980
    assert codes.depth(numpy.full((100, 10), codes.DEEPEST)) == codes.DEEPEST


def test_depths_are_extrapolated_along_a_line(monkeypatch):
    """The depth doubles with each tenfold size: 20, 40, then 160 at 100 million."""
    by_count = {10**5: numpy.full((200, 10), 19), 10**6: numpy.full((200, 10), 39)}
    found = codes.ahead(by_count)
    assert found[10**8] == pytest.approx((160, 160, 160))
    assert found[10**9] == pytest.approx((320, 320, 320))


def test_tables_of_the_page_match_the_measurements():
    page = (ROOT / "docs" / "scale.md").read_text("utf-8")
    measured = json.loads((ROOT / "docs" / "scale.json").read_text("utf-8"))
    for name, table in Projection(measured, parsed([])).tables().items():
        assert f"<!-- {name} begin" in page
        assert table.strip() in page, name


def test_text_of_the_page_matches_the_measurements():
    page = " ".join((ROOT / "docs" / "scale.md").read_text("utf-8").split())
    measured = json.loads((ROOT / "docs" / "scale.json").read_text("utf-8"))
    projection = Projection(measured, parsed([]))
    scale, rates = measured["scale"], measured["texts per second"]
    in_24, in_64 = (projection.most_loaded(gib) / 1e6 for gib in (24, 64))
    times = [scale[count]["p50 ms"] for count in ("1000000", "100000")]
    tail = scale["1000000"]["p50 tail ms"]
    written = 1e9 / rates["push into Milvus 2.3.5, 2 busy cores"]
    cores = 32 * rates["semsearch, 2 cores"]
    short, long = (rates[f"word pieces, {tokens} tokens, 1 core"] for tokens in (60, 128))
    for sentence in (
        f"24 GiB end at {in_24:.0f} million passages, 64 GiB at {in_64:.0f} million",
        f"one among 100,000 ({times[0]:.1f} and {times[1]:.1f} ms)",
        f"with 95,000 of them beside a million, a query takes {tail:.0f} ms",
        f"64 cores send {cores * 4 * 384 / 1e6:.0f} MB of vectors a second",
        f"64 cores encode {cores:,}",
        f"{significant(written / 3600)} hours for a billion, at",
        f"wrote {rates['push into Milvus 2.3.5, 2 busy cores']:,} passages a second",
        f"one cuts {short:,} texts of 60 tokens a second ({long:,} of 128",
        f"{1000 * scale['1000000']['load s'] / 3600:.0f} hours for a billion",
        f"{scale['1000000']['SQLite MB'] / 1000:.1f} KB a passage",
    ):
        assert sentence in page


def test_numbers_by_hand():
    assert (significant(0.164), significant(1234), significant(16.4)) == ("0.16", "1,200", "16")
    assert (duration(0.5), duration(11.3), duration(113)) == ("30 min", "11 h", "4.7 days")
    assert (amount(5.6e8), amount(6.4e10), amount(1.8e12)) == ("560 MB", "64 GB", "1.8 TB")
    # 100 million texts at 245 a second: 408,163 s; 10 million at 14,400: 694 s, and at 8 times that
    # 87 s.
    rates = {"semsearch, 2 cores": 245, "sentence-transformers, 2 cores": 91}
    rates |= {"semsearch, 1 H200": 14_400, "sentence-transformers, 1 H200": 3600}
    one = Projection({"scale": {}, "codes": {}, "texts per second": rates}, parsed([]))
    assert "| 4.7 days |" in one.encoding()
    assert "(14,400/s, measured) | 12 min |" in one.encoding()
    assert "(115,200/s, 8 times that) | 1.4 min |" in one.encoding()
