"""RESULTS.md: minilm extended to other languages by `semsearch train translate`."""

from __future__ import annotations

import csv
import json
from importlib.resources import files

import numpy

from scripts.reproduce.page import table
from scripts.reproduce.work import Work
from semsearch.encoders import load_encoder
from semsearch.protocols import Encoder

#: The word banco in its two meanings: a bank (which lends) and a bench (a seat).
LENDS = [
    "O gerente do banco explicou os juros.",
    "Abri uma conta no banco ontem.",
    "O banco recusou o meu empréstimo.",
    "Ela trabalha num banco como caixa.",
    "O banco cobra uma taxa por transferência.",
    "Depositei o meu salário no banco.",
]
SEATS = [
    "Ele dormiu no banco do parque.",
    "Sentámo-nos num banco de madeira à sombra.",
    "O banco do jardim foi pintado de verde.",
    "A velhinha descansa no banco da praça.",
    "As crianças subiram para o banco.",
    "O banco partiu-se quando ele se sentou.",
]
FIRST = 10


def translation(work: Work) -> str:
    """Portuguese alone, then Portuguese and German together."""
    parts = ["### An encoder taught other languages"]
    for languages in (["pt"], ["pt", "de"]):
        recipe = [word for one in languages for word in ("--parallel", f"stsb-multi:{one}")]
        folder = work.once("-".join(["minilm", *languages]), "translate", *recipe)
        record = json.loads((folder / "training.json").read_text("utf-8"))
        seconds = sum(result["seconds"] for result in record["results"])
        rows = [
            [test["data"], test["measure"], f"{test['before']:.2f}", f"{test['score']:.2f}"]
            for test in record["tests"]
        ]
        if languages == ["pt"]:
            before, after = (_of_portuguese(load_encoder(spec)) for spec in ("minilm", str(folder)))
            rows += [
                [name, measure, f"{before[name, measure]:.2f}", f"{value:.2f}"]
                for (name, measure), value in after.items()
            ]
        parts += [
            f"`semsearch train translate {' '.join(recipe)}`, {seconds / 60:.1f} minutes of "
            "training (seed 1):",
            table(["", "measure", "`minilm`", "taught"], rows),
        ]
    return "\n\n".join(parts)


def _of_portuguese(encoder: Encoder) -> dict[tuple[str, str], float]:
    """Measures without a data set: the notes of the sample corpus, and a word with two meanings."""
    english, portuguese = _notes("notes.csv"), _notes("notes-pt.csv")
    notes = encoder.encode_documents([note["text"] for note in portuguese])
    sources = encoder.encode_queries([note["text"] for note in english])
    titles = encoder.encode_queries([note["title"] for note in portuguese])
    banks = encoder.encode_documents(LENDS + SEATS)
    alike = banks @ banks.T
    numpy.fill_diagonal(alike, -1)
    is_seat = numpy.arange(len(banks)) >= len(LENDS)
    return {
        (f"an English note finds the Portuguese one of {len(notes)}", "%"): _found(
            sources @ notes.T, 1
        ),
        ("a Portuguese title finds its note", f"%, first {FIRST}"): _found(titles @ notes.T, FIRST),
        (f"a sentence with *banco* is nearest to one of its meaning, of {len(banks)}", "%"): float(
            100 * (is_seat == is_seat[alike.argmax(axis=1)]).mean()
        ),
    }


def _notes(name: str) -> list[dict[str, str]]:
    with (files("semsearch") / "sample" / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _found(scores: numpy.ndarray, first: int) -> float:
    """The percentage of rows whose own column is among the first `first`."""
    own = scores.diagonal()[:, None]
    return float(100 * ((scores > own).sum(axis=1) < first).mean())
