"""Whatever a file contains, reading it succeeds or reports in one line what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch.datasets import load_retrieval_set, load_sts_set
from semsearch.errors import DatasetError

#: Pieces of the formats, so that files are almost valid.
PIECES = [
    *(
        b"\t",
        b",",
        b";",
        b"\n",
        b"\r\n",
        b'"',
        b"/",
        b" ",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\x85",
    ),
    *(b"1", b"0", b"-1", b"2.5", b"nan", b"1e999", b"a", b"text", b"{", b"}", b"[]", b'"_id":'),
    *(b"sentence1,sentence2,score\n", b"query,passage,relevance\n", b'{"_id": "a", "text": "b"}\n'),
    *(
        b"query-id\tcorpus-id\tscore\n",
        b"\n.I 1\n",
        b"\n.T\n",
        b"\n.W\n",
        b"*TEXT 1\n",
        b"Document 1\n",
        b"****************************************\n",
        b" #\n",
        b"*FIND 1\n",
    ),
]
contents = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
fuzzed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(load, path):
    try:
        load(str(path))
    except DatasetError as error:
        assert str(error).isprintable()


@fuzzed
@given(first=contents, second=contents, third=contents)
@pytest.mark.parametrize(
    "names",
    [
        ("STS.input.a.txt", "STS.gs.a.txt", "STS.gs.b.txt"),
        ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"),
        ("x.all", "x.qry", "x.rel"),
        ("LISA0.001", "LISA.QUE", "LISARJ.NUM"),
        ("cran.all.1400", "cran.qry", "cranqrel"),
    ],
)
def test_folders(put, tmp_path, names, first, second, third):
    for name, content in zip(names, (first, second, third), strict=True):
        put(f"folder/{name}", content)
    for load in (load_sts_set, load_retrieval_set):
        read(load, tmp_path / "folder")
