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
    "classes.csv": "".join(f"{1 + n % 4},Title {n},What happened {n}\n" for n in range(20)),
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
invalid-argument      query " "
invalid-argument      query x --mmr 2
invalid-argument      query x --mode hybrid --dense-weight -1
invalid-argument      query x --per-document 0
invalid-filter        query x --where "year ="
space-not-found       query x --space other
field-not-found       query x --show price
not-an-index          query x --index corpus.csv
corpus-not-found      query --queries q.txt
document-not-found    query --like x
argument-combination  query x --encoder hashing
argument-combination  query x --queries q.txt
argument-combination  query x --encoding utf-8
argument-combination  query x --explain --format csv
argument-combination  query x --show year --format jsonl
argument-combination  query x --fusion zscores
argument-combination  query x --dense-weight 0.5
argument-combination  query x --rerank-depth 100
argument-combination  query x --rerank-budget 2s
argument-combination  query x --like a --mode bm25
argument-combination  index --language german --dry-run
argument-combination  index --filter-column year --encoder minilm
argument-combination  index --index-type flat --text-column x
argument-combination  index --language german --no-header
argument-combination  index --add-space hashing:64 --language none
argument-combination  index --drop-space hashing --filter-column year
argument-combination  index corpus.csv --add-space hashing:64
unusable-space        index --drop-space hashing
argument-combination  index - --watch
argument-combination  index https://example.org/x.csv --watch
argument-combination  index corpus.csv --dry-run --watch
corpus-not-found      index nosuch/x.csv --watch
invalid-argument      pairs corpus.csv -k 0
invalid-argument      pairs corpus.csv --min-score nan
column-not-found      pairs corpus.csv --text-column txet --encoder hashing
model-not-found       pairs corpus.csv --encoder ./no-model
space-not-found       pairs --space other
argument-combination  pairs corpus.csv --index corpus
argument-combination  pairs --encoder hashing
argument-combination  pairs --text-column x
argument-combination  pairs --skip-bad-rows
invalid-argument      cluster --examples -1
space-not-found       cluster --space other
field-not-found       cluster --where "yaer = 1"
argument-combination  cluster -n 2 --min-score 0.5
argument-combination  cluster --min-size 3
argument-combination  cluster --min-score 0.5 --seed 3
space-not-found       compare x --system hashing --system none
model-not-found       compare x --judge ./none
invalid-argument      compare x -k 0
invalid-argument      compare " "
argument-combination  compare --sentence x
argument-combination  compare x --sentence y --sentence z
argument-combination  compare --sentence y --sentence z -k 3
argument-combination  compare --sentence y --index .
invalid-argument      inspect a --against " "
unusable-model        inspect a --encoder hashing:1
unusable-output       inspect a --against b --output heat.jpg
unusable-query        inspect a --against ! --encoder hashing
model-not-found       inspect a --encoder ./no-model
unusable-output       inspect a --against b --output no/heat.png
dataset-not-found     eval sts --data nowhere.csv
dataset-not-found     eval sts
unusable-dataset      eval sts --data pairs.csv --split dev
unusable-dataset      eval sts --data classes.csv --system no-such-model
model-not-found       eval sts --data pairs.csv --system ./none
argument-combination  eval sts --data pairs.csv --system bm25
argument-combination  eval sts --split dev
argument-combination  eval sts --score-column 3
unusable-output       eval sts --data pairs.csv --system hashing --report pairs.csv
dataset-not-found     eval ir --data nowhere
invalid-argument      eval ir --data judged.csv --measure nDGC@10
argument-combination  eval ir --data judged.csv --system cross-encoder:x
unusable-dataset      eval ir --data judged.csv --system run:none.run
unusable-dataset      eval ir --index corpus --queries no.csv --qrels judged.csv
unusable-output       eval ir --data judged.csv --system bm25 --runs judged.csv/x
argument-combination  eval ir
argument-combination  eval ir --data judged.csv --per-query
argument-combination  eval ir --data judged.csv --whole-documents --system run:x
argument-combination  eval ir --data judged.csv --precision fp32 --system bm25
argument-combination  eval ir --queries judged.csv
argument-combination  eval ir --index corpus --data judged.csv
argument-combination  eval ir --index corpus --whole-documents
argument-combination  eval ir --index corpus --precision fp32
column-not-found      {SIAMESE} --data pairs.csv --loss triplet
argument-combination  {SIAMESE} --data pairs.csv --data positives.csv --margin 2
argument-combination  {SIAMESE} --data pairs.csv --head-learning-rate 0.1
argument-combination  {SIAMESE} --data positives.csv --scale 0 5
model-not-found       train cross-encoder --base ./nothing --output m --data pairs.csv
unusable-output       train cross-encoder --base minilm --output pairs.csv --data pairs.csv
dataset-not-found     {RERANKER} --data stsbenchmark
bad-row               {RERANKER} --data pairs.csv --scale 1 5
unusable-examples     {RERANKER} --data pairs.csv --dev pairs.csv
not-resumable         {RERANKER} --data pairs.csv --resume
invalid-argument      {RERANKER} --data pairs.csv --batch-size 0
invalid-argument      {RERANKER} --data pairs.csv --epochs 1 --epochs 2
argument-combination  {RERANKER} --data pairs.csv --queries judged.csv
argument-combination  {RERANKER} --data pairs.csv --negatives 3
argument-combination  {RERANKER} --data pairs.csv --dev none --patience 2
argument-combination  {RERANKER} --index corpus
argument-combination  {RERANKER} {JUDGED} --data pairs.csv
argument-combination  {RERANKER} {JUDGED} --allow-overlap
invalid-argument      train pretrain notes.jsonl --steps -1
invalid-argument      train pretrain notes.jsonl --minutes -1
model-not-found       train pretrain notes.jsonl --base ./x
not-resumable         train pretrain notes.jsonl --resume
unusable-output       train pretrain notes.jsonl --output notes.jsonl
argument-combination  train pretrain notes.jsonl --steps 0 --base x
argument-combination  train pretrain notes.jsonl --steps 1 --minutes 1
model-not-found       train contrast notes.jsonl --base ./x
invalid-argument      train contrast notes.jsonl --base minilm --epochs 0
model-not-found       train adapt notes.jsonl --base ./x
argument-combination  train adapt notes.jsonl --queries judged.csv
argument-combination  train distill minilm
argument-combination  train distill minilm --static --layers 2
argument-combination  train distill minilm --layers 2
argument-combination  train distill minilm --static --epochs 2
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
