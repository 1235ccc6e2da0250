"""Mistakes in command lines: each is one line on standard error with its code; nothing is written.

The files in golden/ have the words of the most common ones.
"""

from __future__ import annotations

import json
import shlex

import pytest

from tests.cli.conftest import CORPUS, code_of, invoke

FILES = {
    "corpus.csv": CORPUS,
    "pairs.csv": "sentence1,sentence2,score\na cat,the cat,4.5\na dog,a cat,0\nit rains,a cat,1\n",
    "positives.csv": "anchor,positive\na cat,one cat\na dog,one dog\n",
    "judged.csv": "query,passage,relevance\ncat,the cat sleeps,1\ncat,a dog barks,0\n",
    "notes.jsonl": "".join(
        json.dumps({"id": n, "text": f"The cat {n} is here. A dog {n} is there."}) + "\n"
        for n in range(40)
    ),
}
SIAMESE = "train siamese --base minilm --output m"
RERANKER = "train cross-encoder --base minilm --output m"
JUDGED = "--index corpus --queries judged.csv --qrels judged.csv"

MISTAKES = f"""
invalid-argument      query x -k 0
invalid-filter        query x --where "year ="
unusable-space        query x --space other
invalid-filter        query x --show price
unreadable-corpus      query --queries q.txt
invalid-argument      query x --queries q.txt
invalid-argument      query x --explain --format csv
invalid-argument      query x --show year --format jsonl
invalid-argument      query x --rerank-budget 2s
invalid-argument      configure --stemmer klingon
invalid-argument      configure
invalid-argument      configure --dimension 8 --stemmer german
unusable-space        configure --drop-space hashing
invalid-argument      index - --watch
invalid-argument      index nosuch/x.csv --watch
invalid-argument      pairs corpus.csv -k 0
invalid-argument      pairs corpus.csv --min-score nan
column-not-found      pairs corpus.csv --text-column txet --encoder hashing
model-not-found       pairs corpus.csv --encoder ./no-model
unusable-space        pairs --space other
invalid-argument      pairs corpus.csv --index corpus
invalid-argument      pairs --encoder hashing
invalid-argument      pairs --text-column x
unusable-space        cluster --space other
invalid-filter        cluster --where "yaer = 1"
invalid-argument      cluster -n 2 --min-score 0.5
invalid-argument      cluster --min-size 3
unusable-space        compare x --system hashing --system none
model-not-found       compare x --judge ./none
invalid-argument      compare x -k 0
invalid-argument      compare " "
invalid-argument      compare --sentence x
invalid-argument      compare x --sentence y --sentence z
invalid-argument      compare --sentence y --sentence z -k 3
invalid-argument      compare --sentence y --index .
invalid-argument      inspect a --against " "
unusable-model        inspect a --encoder hashing:1
invalid-argument       inspect a --against b --output heat.jpg
invalid-argument        inspect a --against ! --encoder hashing
model-not-found       inspect a --encoder ./no-model
invalid-argument       inspect a --against b --output no/heat.png
dataset-not-found     eval sts --data nowhere.csv
dataset-not-found     eval sts
unusable-dataset      eval sts --data pairs.csv --split dev
model-not-found       eval sts --data pairs.csv --system ./none
invalid-argument      eval sts --data pairs.csv --system bm25
invalid-argument      eval sts --split dev
invalid-argument      eval sts --score-column 3
invalid-argument       eval sts --data pairs.csv --system hashing --report pairs.csv
dataset-not-found     eval ir --data nowhere
invalid-argument      eval ir --data judged.csv --measure nDGC@10
invalid-argument      eval ir --data judged.csv --system cross-encoder:x
unreadable-corpus     eval ir --data judged.csv --system run:none.run
unreadable-corpus     eval ir --index corpus --queries no.csv --qrels judged.csv
invalid-argument       eval ir --data judged.csv --system bm25 --runs judged.csv/x
invalid-argument      eval ir
invalid-argument      eval ir --data judged.csv --per-query
invalid-argument      eval ir --queries judged.csv
invalid-argument      eval ir --index corpus --data judged.csv
invalid-argument      eval ir --index corpus --whole-documents
column-not-found      {SIAMESE} --data pairs.csv --loss triplet
model-not-found       train cross-encoder --base ./nothing --output m --data pairs.csv
invalid-argument       train cross-encoder --base minilm --output pairs.csv --data pairs.csv
dataset-not-found     {RERANKER} --data stsbenchmark
invalid-argument      {RERANKER} --data pairs.csv --dev pairs.csv
invalid-argument      {RERANKER} --data pairs.csv --batch-size 0
invalid-argument      {RERANKER} --data pairs.csv --epochs 1 --epochs 2
invalid-argument  {RERANKER} --data pairs.csv --queries judged.csv
invalid-argument  {RERANKER} --data pairs.csv --negatives 3
invalid-argument  {RERANKER} --index corpus
invalid-argument  {RERANKER} {JUDGED} --data pairs.csv
invalid-argument      train pretrain notes.jsonl --set steps=-1
invalid-argument       train pretrain notes.jsonl --output notes.jsonl
invalid-argument  train pretrain notes.jsonl --set steps=1 --epochs 1
model-not-found       train contrast notes.jsonl --base ./x
model-not-found       train adapt notes.jsonl --base ./x
invalid-argument  train adapt notes.jsonl --queries judged.csv
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files, and an index of corpus.csv; no mistake changes them."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    index = folder / "indexes" / "corpus"
    invoke("index", folder / "corpus.csv", "--index", index, "--encoder", "hashing")
    return folder


def contents(folder):
    """The names and bytes of all files but SQLite's own beside its databases."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file: file.read_bytes() for file in files if not file.name.endswith(("-shm", "-wal"))}


@pytest.mark.parametrize("mistake", MISTAKES.strip().splitlines(), ids=lambda line: line[22:])
def test_a_mistake(folder, monkeypatch, mistake):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)
    monkeypatch.setenv("SEMSEARCH_DATA", str(folder))
    before = contents(folder)
    code, *words = shlex.split(mistake)
    assert code_of(invoke(*words, code=1)) == code
    assert contents(folder) == before
