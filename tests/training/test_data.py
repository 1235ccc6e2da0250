"""Training data: how files are interpreted, and what is rejected before training."""

from __future__ import annotations

import pytest

from semsearch.errors import ArgumentError, CorpusError, DatasetError
from semsearch.training.data import held_out, load_examples
from semsearch.training.examples import Examples, Kind, without_overlap

ALL = tuple(Kind)


@pytest.fixture
def load(tmp_path):
    """Load a file with the given content; messages are in `load.messages`."""
    messages = []

    def call(content, wanted=ALL, name="d.csv", **options):
        (tmp_path / name).write_text(content)
        return load_examples(str(tmp_path / name), wanted, notify=messages.append, **options)

    call.messages = messages
    return call


def pairs(*texts, name="pairs"):
    left, right = [list(column) for column in zip(*texts, strict=True)]
    return Examples(name, Kind.POSITIVE, (left, right), [])


class TestColumns:
    def test_scored(self, load):
        found = load("Sentence 1,sentence_2,Score\na b,c,5\nd,e,0\n")
        assert (found.kind, found.texts) == (Kind.SCORED, (["a b", "d"], ["c", "e"]))
        assert found.targets == [1.0, 0.0]

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            ("query,sentence1,sentence2,x", ("b", "c")),
            ("sentence1,sentence2,positive,x", ("a", "b")),
            ("sentence1,sentence2,query,answer", ("c", "d")),
            ("premise,query,x,right", ("b", "d")),
        ],
    )
    def test_texts_that_belong_together_are_preferred(self, load, header, expected):
        left, right = load(f"{header}\na,b,c,d\n", (Kind.POSITIVE,)).texts
        assert (left, right) == ([expected[0]], [expected[1]])

    def test_labelled(self, load):
        found = load("premise\thypothesis\tlabel\na\tb\tyes\nc\td\tno\n", name="d.tsv")
        assert (found.kind, found.labels, found.targets) == (Kind.LABELLED, ("no", "yes"), [1, 0])
        found = load("sentence1,sentence2,gold_label\na,b,x\nc,d,-\ne,f,y\ng,h,\n")
        assert found.texts[0] == ["a", "e"]  # the others have no gold label
        found = load("left,right,label\na,b,1\nc,d,0\ne,f,1\n", (Kind.POSITIVE,))
        assert found.texts == (["a", "e"], ["b", "f"])

    def test_triplets(self, load):
        line = '{"anchor": "a", "positive": "b", "negative": "c"}\n'
        found = load(line, name="d.jsonl")
        assert (found.kind, found.texts) == (Kind.TRIPLETS, (["a"], ["b"], ["c"]))

    @pytest.mark.parametrize(
        ("content", "wanted", "place"),
        [
            ("x,y\n1,2\n", (Kind.POSITIVE,), "d.csv"),
            ("anchor,positive\n1,2\n", (Kind.TRIPLETS,), "'negative'"),
            ("left,right,score\na,b,1\n", (Kind.POSITIVE,), "d.csv"),  # not all are positive
            ("left,right,score\na,b,1\nc,,1\n", ALL, "d.csv:3: .*'right'"),
            ("left,right,score\na,b,1\nc,d,x\n", ALL, "d.csv:3: .*'score'"),
            ("left,right,score\na,b,1\nc,d,nan\n", ALL, "d.csv:3: .*'score'"),
            ("left,right,score\na,b,1\nc,d\n", ALL, "d.csv:3: 2 cells"),
            ("query,passage,relevance\na,b,1\nc,d,0.87\n", ALL, "d.csv:3: 0.87"),
            ("left,right,label\na,b,3.8\n", ALL, "'score'"),
            ("", ALL, "d.csv"),
            ("left,right,score\n", ALL, "d.csv"),
        ],
    )
    def test_mistakes(self, load, content, wanted, place):
        with pytest.raises((CorpusError, ArgumentError), match=place):
            load(content, wanted)


@pytest.mark.parametrize(
    ("scores", "targets"),
    [
        ((0.2, 1), [0.2, 1]),
        ((1, 4), [0.2, 0.8]),
        ((5, 6), [0.5, 0.6]),
        ((50, 0), [0.5, 0]),
        ((-1, 1), None),
        ((0, 101), None),
    ],
)
def test_scale_is_inferred_and_reported(load, scores, targets):
    content = "left,right,score\na,b,{}\nc,d,{}\n".format(*scores)
    if targets is None:
        with pytest.raises(ArgumentError):
            load(content)
        return
    assert load(content).targets == pytest.approx(targets)
    assert len(load.messages) == 1


class TestOverlap:
    TRAINING = pairs(("a b", "c"), ("d", "e"), ("f", "g"), name="train")

    def test_order_case_and_white_space_are_ignored(self):
        held = [pairs(("C", " a  b"), name="dev"), pairs(("f", "g"), ("x", "y"), name="test")]
        rest = without_overlap(self.TRAINING, held, print)
        assert rest.texts == (["d"], ["e"])

    def test_training_data_that_are_also_test_data_are_rejected(self):
        with pytest.raises(ArgumentError):
            without_overlap(self.TRAINING, [self.TRAINING], print)

    @pytest.mark.parametrize(
        ("column", "values"), [("label", "xx"), ("score", "33"), ("label", "--")]
    )
    def test_untrainable_data_are_rejected(self, load, column, values):
        rows = "".join(f"{n},b,{value}\n" for n, value in enumerate(values))
        with pytest.raises(ArgumentError):
            without_overlap(load(f"left,right,{column}\n{rows}"), [], print)


def test_held_out():
    examples = pairs(*((f"a{n}", f"b{n}") for n in range(200)))
    rest, held = held_out(examples, seed=3)
    assert (len(rest), len(held)) == (180, 20)
    assert {*rest.texts[0], *held.texts[0]} == set(examples.texts[0])
    assert held_out(examples, seed=3) == (rest, held)
    assert held_out(examples, seed=4)[1] != held
    assert held_out(rest.take(range(99)), seed=3)[1] is None


def test_stsbenchmark(data, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_DATA", str(data))
    found = load_examples("stsbenchmark:dev", ALL, notify=print)
    assert (len(found), min(found.targets), max(found.targets)) == (1500, 0, 1)
    with pytest.raises(DatasetError):
        load_examples("stsbenchmark:tset", ALL, notify=print)
    with pytest.raises(ArgumentError):
        load_examples("stsbenchmark", (Kind.TRIPLETS,), notify=print)


@pytest.mark.parametrize(
    "order",
    ["no duplicate", "neutral entailment", "no yes", "east west"]
    + ["not_equivalent equivalent", "unrelated Related"],
)
def test_of_two_classes_the_positive_one_is_second(load, order):
    """A cross-encoder's single output is high for it."""
    order = tuple(order.split())
    first, second = sorted(order)
    found = load(f"sentence1,sentence2,label\na,b,{first}\nc,d,{second}\n", (Kind.LABELLED,))
    assert found.labels == order
    assert [found.labels[target] for target in found.targets] == [first, second]
    assert found.with_labels(order[::-1]).targets == [1 - target for target in found.targets]
