"""Mistakes in command lines: each is one line on standard error with its code; nothing is written.

The files in golden/ have the most common ones, with their words.
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

#: What commands refuse, and a few errors of what they call.
MISTAKES = f"""
invalid-argument      query x --queries q.txt
invalid-argument      query x -k 0
invalid-argument      query x --explain --format csv
invalid-argument      query x --show year --format jsonl
invalid-argument      query x --rerank-budget 2
invalid-filter        query x --show price
invalid-filter        query x --where "year ="
unreadable-corpus     query --queries q.txt
unusable-space        query x --space other
invalid-argument      configure
invalid-argument      configure --precision int8 --stemmer german
unusable-space        configure --drop-space hashing
invalid-argument      index corpus.csv --sample
invalid-argument      index - --watch
invalid-argument      index corpus.csv --watch --dry-run
invalid-argument      index nosuch/x.csv --watch
invalid-argument      pairs corpus.csv -k 0
invalid-argument      pairs corpus.csv --index corpus
invalid-argument      pairs --encoder hashing
invalid-argument      pairs --text-column x
column-not-found      pairs corpus.csv --text-column txet --encoder hashing
invalid-argument      cluster -n 2 --min-score 0.5
invalid-argument      compare x --sentence y --sentence z
invalid-argument      compare --sentence y --sentence z -k 3
invalid-argument      compare --sentence y --sentence z --index .
invalid-argument      inspect a --against " "
model-not-found       inspect a --encoder ./no-model
dataset-not-found     eval sts
unusable-dataset      eval sts --data pairs.csv --split dev
invalid-argument      eval sts --data pairs.csv --system hashing --report pairs.csv
invalid-argument      eval ir --data judged.csv --measure nDGC@10
invalid-argument      eval ir --data judged.csv --system bm25 --runs judged.csv/x
invalid-argument      eval ir
invalid-argument      eval ir --data judged.csv --per-query
invalid-argument      eval ir --queries judged.csv
invalid-argument      eval ir --data judged.csv --qrels judged.csv
invalid-argument      eval ir {JUDGED} --data judged.csv
invalid-argument      eval ir {JUDGED} --whole-documents
invalid-argument      eval ir {JUDGED} --split dev
unreadable-corpus     eval ir --index corpus --queries no.csv --qrels judged.csv
invalid-argument      {SIAMESE}
invalid-argument      {SIAMESE} --data pairs.csv --loss cosine --loss cosent
invalid-argument      {RERANKER} --data pairs.csv --batch-size 0
invalid-argument      {RERANKER} --data pairs.csv --epochs 1 --epochs 2
invalid-argument      {RERANKER} --data pairs.csv --queries judged.csv
invalid-argument      {RERANKER} --data pairs.csv --negatives 3
invalid-argument      {RERANKER} --index corpus
invalid-argument      {RERANKER} {JUDGED} --data pairs.csv
invalid-argument      {RERANKER} {JUDGED} --test pairs.csv
invalid-argument      train pretrain notes.jsonl --output notes.jsonl
model-not-found       train contrast notes.jsonl --base ./x
invalid-argument      train adapt notes.jsonl --queries judged.csv
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
    monkeypatch.setenv("SEMSEARCH_DATA", str(folder))
    before = contents(folder)
    code, *words = shlex.split(mistake)
    assert code_of(invoke(*words, code=1)) == code
    assert contents(folder) == before
