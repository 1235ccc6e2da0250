"""Invalid arguments of public functions and classes are rejected in one line."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from decimal import Decimal
from pathlib import Path

import numpy
import pandas
import pytest

from semsearch import Corpus, Document, Index, Retriever, load_encoder, load_reranker
from semsearch.arguments import check_pairs
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    IndexClosedError,
    IndexStoreError,
    SemsearchError,
    SpaceError,
)
from semsearch.protocols import SearchBackend
from semsearch.search.queries import SearchOptions

PETS = [Document("a", "red apple", metadata={"year": 1990}), Document("ab", "blue sky")]


class Constant:
    def score(self, query, passages):
        return numpy.zeros(len(passages))


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add([*PETS, Document("b", "green grass")])
        yield index


def refused(call, message, error=ArgumentError):
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)


class TestEncoders:
    @pytest.mark.parametrize("several", [str, lambda spec: [spec], lambda spec: iter([spec])])
    @pytest.mark.parametrize("as_encoder", [False, True])
    def test_one_or_several_specs_or_encoders(self, tmp_path, several, as_encoder):
        if as_encoder:
            one = load_encoder("hashing:16")
            given = one if several is str else several(one)
        else:
            given = several("hashing:16")
        with Index.create(tmp_path / "x", given) as index:
            assert [space.spec for space in index.info().spaces] == ["hashing:16"]

    @pytest.mark.parametrize(
        ("encoders", "message"),
        [
            (3, "encoders must be a list of specs or encoders, not 3"),
            ({"hashing": 1}, "must be a list of specs or encoders, not {'hashing': 1} (dict)"),
            ([], "at least one encoder"),
            ([None], "not None"),
            ([b"hashing"], "not b'hashing' (bytes)"),
            (Path("hashing"), "not PosixPath('hashing')"),
            (["hashing", "hashing"], "encoder 'hashing' is given twice"),
        ],
    )
    def test_other_values_are_refused(self, tmp_path, encoders, message):
        refused(lambda: Index.create(tmp_path / "x", encoders), message)
        assert not (tmp_path / "x").exists()

    def test_given_encoder_is_used(self, index, hashing):
        for encoders in (hashing, [hashing], iter([hashing])):
            with Index.open(index.path, encoders) as again:
                assert again.encoder(again.space()) is hashing

    @pytest.mark.parametrize("encoders", ["hashing", ["hashing"], None, 3, [None]])
    def test_open_takes_only_encoders(self, index, encoders):
        refused(lambda: Index.open(index.path, encoders), "encoders must")
        refused(lambda: Retriever.open(index.path, None, encoders), "encoders must")


@pytest.mark.parametrize("path", [None, 3, b"x", "", "a\0b", ["x"]])
def test_a_path_is_a_string_or_a_path(path):
    for call in (Index.open, Index.create, Retriever.open):
        refused(lambda call=call: call(path), "path must be a")


@pytest.mark.parametrize("path", ["x" * 300, "x/" * 3_000])
def test_too_long_path_is_refused(path):
    for call in (Index.open, lambda path: Index.create(path, "hashing"), Retriever.open):
        refused(lambda call=call: call(path), "File name too long: x", IndexStoreError)


class TestStoredType:
    def test_different_type_is_refused(self, index):
        for encoders in (None, "hashing"):
            refused(
                lambda encoders=encoders: Index.create(index.path, encoders, dtype="float16"),
                "space 'hashing' stores float32, not float16",
                SpaceError,
            )
        with index.writer() as writer:
            refused(
                lambda: writer.add_space(load_encoder("hashing"), "float16"), "float32", SpaceError
            )
            assert writer.add_space(load_encoder("hashing:16"), "float16").dtype == "float16"

    @pytest.mark.parametrize("dtype", [None, "float32"])
    @pytest.mark.parametrize("encoders", [None, "hashing"])
    def test_same_type_or_none_is_accepted(self, index, encoders, dtype):
        with Index.create(index.path, encoders, dtype=dtype) as again:
            assert again.space().dtype == "float32"

    @pytest.mark.parametrize("dtype", ["float64", 16, "", numpy.float32])
    def test_invalid_type_is_refused(self, index, tmp_path, dtype):
        for path in (index.path, tmp_path / "new"):
            refused(
                lambda path=path: Index.create(path, "hashing", dtype=dtype),
                "dtype must be 'float32' or 'float16', not ",
            )


@pytest.mark.parametrize("precision", ["fp16", 32, "", True])
def test_precision(index, tmp_path, precision):
    for path in (index.path, tmp_path / "new"):
        refused(
            lambda path=path: Index.create(path, "hashing", precision=precision),
            "precision must be one of auto, fp32, bf16, int8, not ",
        )


class TestSearching:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"query": None}, "the query must be a string, not None"),
            ({"query": ["red", 3]}, "the query must be a string, not 3"),
            ({"query": [""]}, "the query is empty"),
            ({"query": b"red"}, "the query must be a string, not b'red' (bytes)"),
            ({"k": "3"}, "k must be a whole number, not '3'"),
            ({"k": None}, "k must be a whole number, not None"),
            ({"k": 3.0}, "k must be a whole number, not 3.0"),
            ({"k": True}, "k must be a whole number, not True"),
            ({"k": numpy.int64(0)}, "k must be at least 1, not 0"),
            ({"where": {}}, "where must be a string, not {} (dict)"),
            ({"where": ["year = 1990"]}, "where must be a string, not ['year = 1990'] (list)"),
            ({"where": 0}, "where must be a string, not 0"),
            ({"mode": "sematic"}, "mode must be one of semantic, bm25, hybrid, not 'sematic'"),
            ({"mode": None}, "mode must be one of semantic, bm25, hybrid, not None"),
            ({"rerank": "a-model"}, "rerank must be a reranker (load_reranker returns one)"),
            ({"rerank": False}, "rerank must be a reranker"),
        ],
    )
    @pytest.mark.parametrize("mode", ["semantic", "bm25"])
    def test_wrong_arguments(self, index, arguments, message, mode):
        retriever = Retriever(index)
        arguments = {"query": "red", "mode": mode} | arguments
        refused(lambda: retriever.search(**arguments), message)
        if not isinstance(arguments["query"], list):
            text = arguments.pop("query")
            refused(lambda: retriever.search_many([text], **arguments), message)

    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    @pytest.mark.parametrize(
        "several",
        [list, tuple, iter, numpy.array, lambda texts: pandas.Series(texts, index=[7, 5])],
    )
    def test_texts_come_in_any_ordered_collection(self, index, mode, several):
        found = Retriever(index).search_many(several(["red apple", "blue sky"]), k=1, mode=mode)
        assert [(hits.query, hits[0].document_id) for hits in found] == [
            ("red apple", "a"),
            ("blue sky", "ab"),
        ]

    @pytest.mark.parametrize(
        "texts",
        [None, 3, {"red": 1}, {"red"}, b"red", pandas.DataFrame({"q": ["red"]}), ["red", None]],
    )
    def test_other_collections_are_refused(self, index, texts):
        refused(lambda: Retriever(index).search_many(texts), "must be a")

    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    @pytest.mark.parametrize(
        "k", [numpy.int64(2), 2**63 - 1, 2**70, 10**400], ids=["numpy", "2^63", "2^70", "10^400"]
    )
    def test_any_whole_number_is_a_k(self, index, k, mode):
        retriever = Retriever(index)
        matching = 1 if mode == "bm25" else 3
        assert len(retriever.search("red", k, mode=mode)) == min(k, matching)
        assert not retriever.search("red", offset=k + 1, mode=mode)

    @pytest.mark.parametrize("option", ["min_score", "mmr", "dense_weight", "rerank_budget"])
    def test_numbers(self, index, option):
        retriever = Retriever(index)
        needed = {"dense_weight": {"mode": "hybrid"}, "rerank_budget": {"rerank": Constant()}}
        assert retriever.search("red", **{option: numpy.float32(0)}, **needed.get(option, {}))
        assert retriever.search("red", **{option: Decimal("0.25")}, **needed.get(option, {}))
        for value in (float("nan"), 10**400, "0", True):
            refused(lambda value=value: retriever.search("red", **{option: value}), "a number")

    @pytest.mark.parametrize("option", ["fold_duplicates", "explain"])
    def test_booleans(self, index, option):
        assert index.search("red", **{option: numpy.True_})
        for value in ("false", 1, None):
            refused(lambda value=value: index.search("red", **{option: value}), "True or False")

    @pytest.mark.parametrize(
        "scores",
        [[1.0], [1.0, float("nan"), 2.0], [[1.0]] * 3, None, ["a", "b", "c"], [[1.0], [], []]],
    )
    def test_invalid_scores_of_a_reranker_are_refused(self, index, scores):
        class Broken:
            spec = "broken"

            def score(self, query, passages):
                return scores

        refused(
            lambda: Retriever(index).search("red", rerank=Broken()),
            "must return 3 numbers, one per",
        )

    @pytest.mark.parametrize("given", [None, "indexes/x", 3])
    def test_a_retriever_takes_an_index(self, given):
        refused(lambda: Retriever(given), "for a path: Retriever.open(path)")

    def test_filters_of_an_index(self, index):
        refused(lambda: index.passages(where={}), "where must be a string, not {} (dict)")
        refused(lambda: index.delete(where={}), "where must be a string, not {} (dict)")
        assert len(index) == 3


class TestWriting:
    @pytest.mark.parametrize(
        "corpus",
        [
            None,
            3,
            "a text",
            PETS[0],
            {"a": "a text"},
            ["a text"],
            [{"id": "a", "text": "b"}],
            [PETS],
            [None],
            pandas.Series(["a text"]),
        ],
    )
    def test_a_corpus_holds_documents(self, index, corpus):
        refused(lambda: index.add(corpus), "ocument")
        with index.writer() as writer:
            refused(lambda: writer.sync(corpus), "ocument")
        assert len(index) == 3

    def test_batches_before_an_invalid_item_stay(self, index):
        documents = [Document(f"n{number}", f"text {number}") for number in range(2_000)]
        refused(lambda: index.add(iter([*documents, "stranger"])), "item 2000 must be a Document")
        assert 3 < len(index) <= 2_003

    def test_error_of_the_generator_is_passed_on(self, index):
        def broken():
            yield Document("z", "zebra")
            raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            index.add(broken())
        assert len(index) == 3  # its batch was incomplete
        index.add([Document("z", "zebra")])
        assert len(index) == 4

    def test_columns_need_a_data_frame(self, index):
        refused(
            lambda: index.add(PETS, text_columns="text"),
            "id_column, title_column and text_columns need a data frame",
        )

    def test_string_is_not_a_list_of_ids(self, index):
        # "ab" used to mean the ids a and b
        refused(lambda: index.delete("ab"), "ids must be a list of strings, not one string: ['ab']")
        assert len(index) == 3

    @pytest.mark.parametrize("ids", [3, [3], [None], [PETS[0]], {"a"}, {"a": 1}, [["a"]]])
    def test_ids_are_strings(self, index, ids):
        refused(lambda: index.delete(ids), "must be a")
        assert len(index) == 3

    @pytest.mark.parametrize(
        "several", [list, tuple, iter, numpy.array, lambda ids: pandas.Series(ids, index=[7, 5])]
    )
    def test_ids_come_in_any_ordered_collection(self, index, several):
        assert index.delete(several(["a", "b"])) == 2

    @pytest.mark.parametrize("name", ["on_bad_row", "on_batch"])
    def test_callbacks_are_functions(self, index, name):
        def write():
            with index.writer(**{name: None}):
                pass

        refused(write, f"{name} must be a function, not None")

    @pytest.mark.parametrize("encoder", ["hashing", None, 3])
    def test_space_is_added_by_an_encoder(self, index, encoder):
        with index.writer() as writer:
            refused(lambda: writer.add_space(encoder), "load_encoder returns one")

    @pytest.mark.parametrize("name", [None, 3])
    def test_a_space_is_dropped_by_its_name(self, index, name):
        # None used to mean the first space
        with index.writer() as writer:
            writer.add_space(load_encoder("hashing:16"))
            refused(lambda: writer.drop_space(name), "the name of a space must be a string")
        assert len(index.info().spaces) == 2

    @pytest.mark.parametrize("value", [float("nan"), object(), {"set"}, "\ud800"])
    def test_metadata_invalid_after_a_change_is_refused(self, index, value):
        # NaN used to be stored, and no filter could read the row
        document = Document("z", "zebra", metadata={"year": 1})
        document.metadata["year"] = value
        refused(lambda: index.add([document]), "metadata of 'z' is no longer JSON", BadRowError)
        skipped = []
        with index.writer(on_bad_row=skipped.append) as writer:
            assert writer.upsert([document, Document("y", "yak")]).added == 1
        assert len(skipped) == 1
        assert [hit.document_id for hit in Retriever(index).search("x", where="year = 1990")] == [
            "a"
        ]

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"text_columns": 3.5}, "text_columns must be a list of columns, not 3.5"),
            ({"text_columns": [None]}, "text_columns[0] must be a string, not None"),
            ({"id_column": b"id"}, "id_column must be a string, not b'id' (bytes)"),
            ({"title_column": True}, "title_column must be a string, not True"),
        ],
    )
    def test_columns_are_named_by_strings(self, index, columns, message):
        frame = pandas.DataFrame({"id": ["x"], "text": ["one"]})
        refused(lambda: index.add(frame, **columns), message)

    def test_columns_named_by_numbers(self, index):
        frame = pandas.DataFrame([["z", "zebra", "striped"]], index=[7])
        assert index.add(frame, id_column=0, text_columns=[1, 2]).added == 1
        assert index.add(frame, id_column=1, text_columns=0).added == 1
        assert Retriever(index).search("zebra striped", 1)[0].document_id == "z"


class TestClosing:
    CALLS = (
        len,
        Index.fields,
        Index.space,
        Index.complete_space,
        Index.passages,
        Index.info,
        lambda index: index.add(PETS),
        lambda index: index.delete(["a"]),
        lambda index: index.read().__enter__(),
        lambda index: index.writer().__enter__(),
        lambda index: index.encoder(None),
        lambda index: index.__enter__(),
        Retriever,
    )

    @pytest.mark.parametrize("call", CALLS)
    def test_closed_index_is_reported(self, index, call):
        index.close()
        index.close()
        assert index.closed
        refused(lambda: call(index), f"the index {index.path} is closed", IndexClosedError)

    @pytest.mark.parametrize("texts", [[], ["red"]])
    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    @pytest.mark.parametrize("how", ["retriever", "index", "opened"])
    def test_closed_retriever_is_reported(self, index, texts, mode, how):
        retriever = Retriever.open(index.path) if how == "opened" else Retriever(index)
        retriever.search("red", mode=mode)
        (index if how == "index" else retriever).close()
        assert retriever.closed
        for call in (
            lambda: retriever.search_many(texts, mode=mode),
            lambda: retriever.search("red", mode=mode),
            retriever.__enter__,
        ):
            refused(call, f"the retriever of {index.path} is closed", IndexClosedError)

    def test_retriever_closes_only_an_index_that_it_opened(self, index):
        with Retriever(index) as retriever:
            pass
        assert retriever.closed
        assert len(index) == 3
        with Retriever.open(index.path) as retriever:
            opened = retriever.index
        assert opened.closed

    def test_a_writer_ends_with_its_block(self, index):
        with index.writer() as writer:
            pass
        for call in (
            lambda: writer.upsert(PETS),
            lambda: writer.sync(PETS),
            lambda: writer.delete(["a"]),
            lambda: writer.add_space(load_encoder("hashing:16")),
            lambda: writer.drop_space("hashing"),
            writer.compact,
            writer.verify,
            writer.repair,
        ):
            refused(call, "is closed: its `with` block has ended", IndexClosedError)


class TestLoading:
    @pytest.mark.parametrize("load", [load_encoder, load_reranker])
    @pytest.mark.parametrize("spec", [None, 3, b"minilm", ["minilm"], load_encoder("hashing")])
    def test_a_model_is_named_by_a_string_or_a_path(self, load, spec):
        refused(lambda: load(spec), "the name of a model must be a string or a Path, not ")

    @pytest.mark.parametrize("load", [load_encoder, load_reranker])
    @pytest.mark.parametrize("spec", ["", " "])
    def test_empty_name_is_refused(self, load, spec):
        refused(lambda: load(spec), "the name of the model is empty")

    def test_a_path(self):
        assert load_encoder(Path("hashing:16")).dimension == 16

    @pytest.mark.parametrize("load", [load_encoder, load_reranker])
    @pytest.mark.parametrize("precision", ["fp16", None, 32])
    def test_precision(self, load, precision):
        refused(lambda: load("hashing", precision=precision), "precision must be one of auto, ")


@pytest.fixture(scope="module", params=["hashing", "words", "openvino", "torch"])
def encoder(request, write_bert, tmp_path_factory):
    if request.param == "hashing":
        return load_encoder("hashing")
    if request.param == "words":
        file = tmp_path_factory.mktemp("words") / "vectors.txt"
        file.write_text("red 1 0\napple 0 1\n")
        return load_encoder(f"glove:{file}")
    folder = write_bert(["red", "apple"])
    return load_encoder(f"{folder}@mean", device="cpu" if request.param == "torch" else None)


class TestEncoding:
    @pytest.mark.parametrize(
        ("texts", "message"),
        [
            ("red", "texts must be a list of strings, not one string: ['red']"),
            (None, "texts must be a list of strings, not None"),
            ({"red"}, "texts must be a list of strings, not {'red'} (set)"),
            (["red", None], "texts[1] must be a string, not None"),
            ([["red"]], "texts[0] must be a string, not ['red'] (list)"),
            ([b"red"], "texts[0] must be a string, not b'red' (bytes)"),
            (["\ud800"], "texts[0] contains an unpaired surrogate (U+D800)"),
        ],
    )
    def test_wrong_texts(self, encoder, texts, message):
        refused(lambda: encoder.encode_queries(texts), message)
        refused(lambda: encoder.encode_documents(texts), message)

    @pytest.mark.parametrize(
        "several", [tuple, iter, numpy.array, lambda texts: pandas.Series(texts, index=[7, 5])]
    )
    def test_texts_come_in_any_ordered_collection(self, encoder, several):
        texts = ["red", "apple red"]
        expected = encoder.encode_documents(texts)
        numpy.testing.assert_allclose(encoder.encode_documents(several(texts)), expected, atol=1e-6)
        assert encoder.encode_queries([]).shape == (0, encoder.dimension)

    @pytest.mark.parametrize("text", [None, 3, ["red"]])
    def test_token_spans_take_a_string(self, encoder, text):
        refused(lambda: encoder.token_spans(text), "text must be a string, not ")


class TestCorpus:
    @pytest.mark.parametrize("paths", [None, 3, b"c.csv", [b"c.csv"], [None], [["c.csv"]], ""])
    def test_paths(self, paths):
        refused(lambda: Corpus(paths), "paths must be a")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"id_column": 3}, "id_column must be a string, not 3"),
            ({"text_columns": 3}, "text_columns must be a list of strings, not 3"),
            ({"text_columns": None}, "text_columns must be a list of strings, not None"),
            ({"encoding": 3}, "encoding must be a string, not 3"),
            ({"format": 3}, "unknown format: 3"),
            ({"on_bad_row": None}, "on_bad_row must be a function, not None"),
            ({"notify": None}, "notify must be a function, not None"),
        ],
    )
    def test_wrong_arguments(self, arguments, message):
        refused(lambda: Corpus("c.csv", **arguments), message)


class TestObjects:
    def test_two_objects_on_one_directory(self, index):
        with Index.open(index.path) as other, Retriever.open(index.path) as retriever:
            retriever.search("red")
            index.add([Document("z", "zebra")])
            assert len(other) == 4
            assert retriever.search("zebra", 1)[0].document_id == "z"
            with index.writer():
                with pytest.raises(SemsearchError, match="is being written by this thread"):
                    other.delete(["z"])

    def test_repr_names_the_index(self, index):
        retriever = Retriever(index)
        assert repr(index) == f"<Index '{index.path}'>"
        assert repr(retriever) == f"<Retriever '{index.path}', space 'hashing'>"
        index.close()
        assert repr(index) == f"<Index '{index.path}', closed>"
        assert repr(retriever) == f"<Retriever '{index.path}', space 'hashing', closed>"

    @pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_copies_are_refused(self, index, duplicate):
        refused(lambda: duplicate(index), "open it where it is needed: Index.open(")
        refused(lambda: duplicate(Retriever(index)), "Retriever.open(")


def test_retriever_takes_the_protocols_arguments():
    asked = inspect.signature(SearchBackend.search_many).parameters
    given = inspect.signature(Retriever.search_many)
    by_name = {name: None for name, one in asked.items() if one.kind is one.KEYWORD_ONLY}
    assert by_name.keys() <= SearchOptions.__annotations__.keys()
    given.bind(*(name for name in asked if name not in by_name), **by_name)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["ab"], "pairs[0] must be a list of strings, not one string: ['ab']"),
        ([("a", "b", "c")], "pairs[0] must be a pair of strings, not ('a', 'b', 'c') (tuple)"),
        ([("a", "b"), ("a", None)], "pairs[1][1] must be a string, not None"),
        ({"a": "b"}, "pairs must be a list of pairs of strings, not {'a': 'b'} (dict)"),
    ],
)
def test_wrong_pairs_of_texts(pairs, message):
    refused(lambda: check_pairs("pairs", pairs), message)
