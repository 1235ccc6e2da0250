"""``semsearch train``: create or improve models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from semsearch.cli.corpus_options import corpora_argument
from semsearch.cli.options import (
    NAME_OR_FILE,
    directory_option,
    existing_index,
    is_given,
    judged_options,
    repeated_option,
)
from semsearch.cli.training_options import (
    base_option,
    corpus_options,
    file_name,
    pairs_options,
    run_options,
    tests_option,
    train_on_corpus,
    train_on_pairs,
)
from semsearch.errors import ArgumentError
from semsearch.evaluation.datasets import read_questions
from semsearch.index import Index
from semsearch.training import (
    Adaptation,
    Contrast,
    CrossEncoding,
    Distillation,
    Loss,
    Pretraining,
    Reranking,
    Siamese,
    Translation,
)
from semsearch.training.pretrain import VOCABULARY, BertSize
from semsearch.training.stages import per_stage


@click.group("train")
def train_command() -> None:
    """Train a model; needs the extra 'train'."""


@train_command.command("siamese", short_help="Train a bi-encoder on pairs or triplets.")
@click.option(
    "--loss",
    "losses",
    multiple=True,
    type=click.Choice([loss.value for loss in Loss]),
    help="Give once, or once per --data.  [default: by the columns of the data: cosine for scores, "
    "contrastive for yes/no labels, softmax for others, else ranking]",
)
@pairs_options
def siamese(losses: tuple[str, ...], data: tuple[str, ...], **choices: Any) -> None:
    """Train a bi-encoder, for --encoder.

    \b
    --loss       learns from                                       columns of a file
    cosine       pairs with gold scores, by the cosine             sentence1, sentence2, score
    cosent       pairs with gold scores, by their order            sentence1, sentence2, score
    contrastive  pairs labelled yes or no, by the cosine           sentence1, sentence2, label
    softmax      pairs with labels, by u, v and |u - v|            sentence1, sentence2, label
    ranking      positive pairs with in-batch negatives            anchor, positive [, negative]
    triplet      positive nearer than negative by a margin         anchor, positive, negative

    FILE is CSV, TSV, JSON lines, JSON or Parquet. NAME is a published set from
    `semsearch datasets fetch`, with its split: stsbenchmark:train. Pairs that are also in the
    development or test sets, in either order, are reported and left out. The checkpoint that scores
    best on the development set is kept. The gain over MODEL is shown with its 95 % interval; the
    softmax loss trains a classifier, whose accuracy says little about the encoder. Prompts of MODEL
    are not used.

    DIR is written when the model is finished; until then checkpoints are in DIR.training. After
    Ctrl-C or a kill, the same command continues from them.

    \b
    semsearch train siamese --data pairs.csv --output my-encoder
    semsearch train siamese --data stsbenchmark:train --loss cosine --test stsbenchmark \\
        --output my-encoder
    semsearch train siamese --base bert-base-uncased --data nli.csv --loss softmax \\
        --data stsbenchmark:train --loss cosine --output sbert
    """
    named = per_stage(losses or (None,), len(data), "--loss")
    train_on_pairs(Siamese([Loss(loss) if loss else None for loss in named]), data, **choices)


@train_command.command("cross-encoder", short_help="Train a reranker on pairs or queries.")
@pairs_options
@directory_option("Train on judged queries of this index instead of --data.")
@judged_options
@click.option(
    "--negatives",
    default=Reranking.negatives,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="With --index: hard negatives per query, from hits that are not judged relevant.",
)
def cross_encoder(
    data: tuple[str, ...],
    directory: Path | None,
    queries: Path | None,
    qrels: Path | None,
    negatives: int,
    **choices: Any,
) -> None:
    """Train a cross-encoder, for --rerank and --system ENCODER+cross-encoder:DIR.

    With --data, it is trained on pairs with gold scores (columns sentence1, sentence2, score) or
    labels for yes and no (sentence1, sentence2, label), read as by `semsearch train siamese`.

    With --index, it is trained on queries and the documents of an index that are relevant to them,
    as for `semsearch eval ir`. Other passages that the index finds for a query are the negatives.
    On a held-out fifth of the queries, the command measures nDCG@10 before and after reranking, and
    chooses the weight of the first-stage score, which is stored with the model.

    \b
    semsearch train cross-encoder --data stsbenchmark:train --test stsbenchmark --output my-reranker
    semsearch train cross-encoder --index indexes/papers --queries questions.csv \\
        --qrels answers.csv --output my-reranker
    """
    if len({directory is None, queries is None, qrels is None}) > 1:
        raise ArgumentError("--index, --queries and --qrels go together")
    if directory is None or queries is None or qrels is None:
        if is_given("negatives"):
            raise ArgumentError("--negatives needs --index DIR")
        train_on_pairs(CrossEncoding(), data, **choices)
        return
    if data or choices["development"] or choices["tests"]:
        raise ArgumentError("--data, --dev and --test do not apply to --index")
    with Index.open(existing_index(directory)) as index:
        judged = read_questions(queries, qrels, index.__contains__)
        train_on_pairs(Reranking(index, judged, negatives), [judged.name], **choices)


@train_command.command("adapt", short_help="Fit an encoder to a corpus, without labels.")
@corpora_argument("CORPUS...")
@base_option()
@judged_options
@corpus_options("NAME-OF-THE-CORPUS-adapted", "1", "2e-05", 32)
def adapt(
    corpora: tuple[str, ...], queries: Path | None, qrels: Path | None, **choices: Any
) -> None:
    """Fit an encoder to a corpus, without labels.

    CORPUS is read as `semsearch index` reads it, or is the directory of an index. The training
    questions are titles that the text does not repeat, and sentences taken out of their context.
    Old and new weights are averaged.

    The model is written only if nDCG@10 rises beyond chance on your own queries, or, without these,
    on keywords and half sentences of held-out documents, and if the STS Benchmark score, where its
    data are on this machine, does not fall by more than a point. Otherwise the exit status is 1.

    \b
    semsearch train adapt corpus.csv
    semsearch train adapt papers.csv --queries questions.csv --qrels answers.csv
    semsearch train adapt films.json --text-column extract --output models/films
    semsearch index films.json --text-column extract --encoder models/films
    """
    if (queries is None) != (qrels is None):
        raise ArgumentError("--queries and --qrels go together")
    judged = None
    if queries is not None and qrels is not None:
        judged = read_questions(queries, qrels, lambda name: True)
    trained = train_on_corpus(
        lambda documents, name: Adaptation(documents, name, judged),
        corpora,
        "{}-adapted",
        **choices,
    )
    if not trained.is_kept:
        click.get_current_context().exit(1)


@train_command.command("pretrain", short_help="Pre-train a BERT on a corpus.")
@corpora_argument("CORPUS...")
@click.option(
    "--size",
    type=click.Choice([size.name.lower() for size in BertSize]),
    default="small",
    show_default=True,
    help="Layers and width: 2 x 128, 4 x 256, 4 x 512 or 12 x 768.",
)
@click.option(
    "--vocabulary", default=VOCABULARY, show_default=True, metavar="N", help="Most word pieces."
)
@corpus_options("NAME-OF-THE-CORPUS-SIZE", "10000 steps", "by the size", 64)
def pretrain(corpora: tuple[str, ...], size: str, vocabulary: int, **choices: Any) -> None:
    """Pre-train a BERT on a corpus: masked words and next sentences.

    CORPUS is read as `semsearch index` reads it, or is the directory of an index; documents of one
    sentence are not used. The checkpoint with the lowest loss on a held-out twentieth is kept.
    `--epochs 0` writes random weights, which `semsearch train contrast` can start from. The result
    is a plain BERT, for fine-tuning: its vectors are not yet good for search.

    \b
    semsearch train pretrain corpus.csv --size tiny
    semsearch train pretrain films.json --text-column extract --epochs 3 --output models/films
    """
    train_on_corpus(
        lambda documents, name: Pretraining(documents, name, BertSize[size.upper()], vocabulary),
        corpora,
        f"{{}}-{size}",
        base=None,
        **choices,
    )


@train_command.command("contrast", short_help="Train a bi-encoder on a corpus, without labels.")
@corpora_argument("CORPUS...")
@base_option(None, required=True)
@tests_option
@corpus_options("NAME-OF-THE-CORPUS-contrast", "2", "by the width of the model", 256)
def contrast(corpora: tuple[str, ...], **choices: Any) -> None:
    """Train a bi-encoder on a corpus, without labels.

    CORPUS is read as `semsearch index` reads it, or is the directory of an index. MODEL is a BERT,
    such as `semsearch train pretrain` writes, or a sentence encoder. A title and the sentence after
    it, and neighbouring sentences, are positive pairs; the others of a large batch are the
    negatives. The checkpoint that finds most pairs of a held-out twentieth is kept. The result is a
    starting point for `semsearch train siamese` if labels are few.

    \b
    semsearch train pretrain corpus.csv --size tiny --epochs 0 --output bert
    semsearch train contrast corpus.csv --base bert --output encoder
    semsearch train siamese --base encoder --data pairs.csv --output my-encoder
    """
    train_on_corpus(Contrast, corpora, "{}-contrast", **choices)


@train_command.command("translate", short_help="Teach an encoder other languages.")
@base_option()
@repeated_option(
    "--parallel",
    "parallel",
    "NAME|FILE",
    "English sentences with translations; give at least once per language.",
    required=True,
)
@repeated_option(
    "--language",
    "languages",
    "CODE",
    "Such as pt; give once, or once per --parallel.  [default: as named by the file or set]",
)
@tests_option
@run_options("NAME-OF-THE-TEXT-translate", "3", "5e-05", 80)
def translate(
    parallel: tuple[str, ...],
    languages: tuple[str, ...],
    epochs: float | None,
    learning_rate: float | None,
    **choices: Any,
) -> None:
    """Teach an encoder other languages, from sentences in English and their translations.

    Words of the languages are added to its vocabulary, each with the mean vector of its English
    translations (by a dictionary learnt from the sentences); then the model is trained to give a
    translation the vector that it gave to the English sentence. A few thousand sentences help,
    more help more.

    FILE is a table with the columns source and translation (or only two columns), or the
    translation in a pair of line-aligned files: news.pt beside news.en. NAME is
    stsb-multi:LANGUAGE, the training split of STS Benchmark, from `semsearch datasets fetch`. The
    checkpoint whose vectors of held-out sentences are nearest to the teacher's is kept.

    \b
    semsearch train translate --parallel stsb-multi:pt --output minilm-pt
    semsearch train translate --parallel pairs.csv --language fr --parallel news.de \\
        --language de --output minilm-fr-de
    semsearch index corpus.csv --encoder ./minilm-pt
    """
    train_on_pairs(
        Translation(languages or (None,)),
        parallel,
        epochs=() if epochs is None else (epochs,),
        learning_rate=() if learning_rate is None else (learning_rate,),
        **choices,
    )


@train_command.command("distill", short_help="Distil an encoder into a faster student.")
@click.argument("spec", metavar="MODEL", type=NAME_OR_FILE)
@corpora_argument("CORPUS...")
@corpus_options("MODEL-static", "1", "3e-3", 64)
def distill(spec: str, corpora: tuple[str, ...], **choices: Any) -> None:
    """Distil an encoder into averaged word vectors, which are much faster.

    MODEL is minilm, or a Sentence-Transformers model by name or folder. The student averages the
    vectors that the teacher gives to single words, and is trained on its vectors of the documents
    and sentences of CORPUS. The STS Benchmark scores of teacher and student are printed, if it is
    on this machine.

    \b
    semsearch train distill minilm corpus.csv --output models/fast
    semsearch eval sts --system minilm --system models/fast
    """
    train_on_corpus(Distillation, corpora, f"{file_name(spec)}-static", base=spec, **choices)
