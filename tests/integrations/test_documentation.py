"""The examples of docs/integrations.md run."""

from __future__ import annotations

import io
import random
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.dev.examples import blocks, run
from semsearch import Document, Index, export_index
from semsearch.datasets.records import ScoredPair, StsSet
from semsearch.evaluation import CosineScorer, evaluate_sts

DOCUMENT = Path(__file__).parents[2] / "docs" / "integrations.md"
EXPORT = DOCUMENT.read_text("utf-8").split("\n## ")[1]
SECTIONS = {
    section.partition("\n")[0]: re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    for section in DOCUMENT.read_text("utf-8").split("\n## ")
}


@pytest.mark.parametrize(
    ("section", "package"), [("LangChain", "langchain_core"), ("Haystack", "haystack")]
)
def test_examples(section, package, tmp_path, monkeypatch):
    if find_spec(package) is None:  # CI has it: the adapter's own tests require it
        pytest.skip(f"{package} is not installed (scripts/integration installs it)")
    monkeypatch.chdir(tmp_path)
    Index.create("indexes/notes", "hashing").close()  # without a model
    [code] = SECTIONS[section]
    names = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    store = names["store"]
    assert [document.text for document in store.index] == ["The cat dozed on the radiator."]
    store.index.close()


def test_example_of_pandas():
    [code] = SECTIONS["pandas"]
    names = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    assert len(names["found"]) == 1


def test_commands_of_export(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create("indexes/films", "hashing") as index:
        index.add([Document("a", "a heist goes wrong", metadata={"year": 2001})])
    Path("questions.txt").write_text("a heist\n")
    [commands] = [block for block in blocks(EXPORT) if block.language == "bash"]
    run(f"```bash\n{commands.body.replace('minilm', 'hashing')}```")
    made = ["films", "films.csv", "films.faiss", "films.faiss.jsonl", "films.jsonl", "films.npy"]
    made += ["films.parquet", "hits.parquet", "passages.parquet"]
    assert set(made) <= {path.name for path in tmp_path.iterdir()}


def test_example_of_a_reader():
    [code] = [code for code in SECTIONS["Plugins"] if "read_bib" in code]
    names = {"parse": lambda stream: [{"id": "a", "title": "", "text": stream.read()}]}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    table = names["read_bib"](SimpleNamespace(name="x.bib", stream=io.StringIO("a bird")))
    [(place, cells)] = table.rows
    assert (place, cells["text"]) == ("x.bib, entry 1", "a bird")


def test_example_of_faiss(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Index.create("index", "hashing") as index:
        index.add([Document("a", "a heist goes wrong"), Document("b", "a bird")])
        export_index(index, "films.faiss")
    [code] = [code for code in SECTIONS["Export"] if "faiss" in code]
    exec(compile(code.replace("minilm", "hashing"), DOCUMENT.name, "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == "['a', 'b']\n"


def test_example_of_datasets(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    with Index.create("index", "hashing") as index:
        index.add([Document("a", "a heist goes wrong"), Document("b", "a bird")])
        export_index(index, "films", format="datasets")
    [code] = [code for code in SECTIONS["Export"] if "load_dataset" in code]
    names = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    assert names["films"]["id"][:] == ["a", "b"]


def test_example_of_sentence_transformers():
    [code] = SECTIONS["sentence-transformers"]
    names = {}
    exec(compile(code.replace("minilm", "hashing"), DOCUMENT.name, "exec"), names)  # noqa: S102
    assert sorted(names["pairs"][0][1:]) == [0, 1]


@pytest.mark.nightly
def test_example_of_mteb(monkeypatch):
    """With a few pairs instead of the benchmark's, which MTEB would fetch; the rest is MTEB's."""
    if find_spec("mteb") is None:  # as above
        pytest.skip("mteb is not installed (scripts/integration installs it)")
    import mteb
    from datasets import Dataset, DatasetDict

    words = [f"word{number}" for number in range(50)]
    drawn = random.Random(7)
    texts = [" ".join(drawn.choices(words, k=30)) for _ in range(40)]  # no two equal cosines
    pairs = [ScoredPair(*texts[n : n + 2], n % 6) for n in range(0, 40, 2)]
    rows = [dict(zip(("sentence1", "sentence2", "score"), pair, strict=True)) for pair in pairs]
    [task] = mteb.get_tasks(tasks=["STSBenchmark.v2"])
    monkeypatch.setattr(
        f"{task.load_data.__module__}.load_dataset",
        lambda *arguments, **options: DatasetDict(
            dict.fromkeys(task.eval_splits, Dataset.from_list(rows))
        ),
    )
    monkeypatch.setitem(mteb.evaluate.__kwdefaults__, "cache", None)
    [code] = SECTIONS["MTEB"]
    names = {}
    exec(compile(code.replace("minilm", "hashing:32"), DOCUMENT.name, "exec"), names)  # noqa: S102
    model = names["SemsearchEncoder"]("hashing:32").model
    ours = evaluate_sts(StsSet("pairs", "test", {"all": pairs}, 0), [CosineScorer(model)])
    score = names["results"].task_results[0].get_score() * 100
    assert score == pytest.approx(ours.results[0].spearman.value, abs=1e-6)
