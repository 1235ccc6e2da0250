"""The card of a trained model, in the format of model hubs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from semsearch.encoders.model_folder import BUNDLED_HUB_NAME
from semsearch.encoders.specs import BUNDLED_SPEC, parse_spec
from semsearch.errors import quoted

#: The loss of cross-encoders with a single output.
BINARY = "binary cross-entropy"

_BI_ENCODER = (
    "sentence-transformers",
    "sentence-similarity",
    "    semsearch index corpus.csv --encoder {path}",
    "    from sentence_transformers import SentenceTransformer\n\n"
    '    SentenceTransformer({path}).encode(["a sentence"])',
)
_BERT = (
    "transformers",
    "fill-mask",
    "    semsearch train contrast corpus.csv --base {path} --output encoder",
    "    from transformers import AutoModel\n\n    AutoModel.from_pretrained({path})",
)
_CROSS_ENCODER = (
    "sentence-transformers",
    "text-ranking",
    '    semsearch query "a question" --rerank {path}',
    "    from sentence_transformers import CrossEncoder\n\n"
    '    CrossEncoder({path}).predict([("a sentence", "another")])',
)


#: How models other than bi-encoders are used, by task name.
_OTHERS = {"cross-encoder": _CROSS_ENCODER, "pretrain": _BERT}


def model_card(name: str, description: str, record: Mapping[str, Any]) -> str:
    """The text of a trained model's README.md.

    Args:
        name: the name of the model's folder.
        description: what the model is; ``{base}`` stands for the base model.
        record: settings and results of the training, as JSON values.
    """
    library, task, command, code = _OTHERS.get(record["trained"], _BI_ENCODER)
    labels = record["stages"][-1]["data"]["labels"]
    command = command.format(path=quoted(f"./{name}"))
    code = code.format(path=json.dumps(f"./{name}", ensure_ascii=False))
    if task == "text-ranking" and len(labels) > 2:
        task = "text-classification"
        command = f"It has one output for each of: {_cell(', '.join(labels))}."
    base = record["base"]
    lines = [
        "---",
        f"library_name: {library}",
        f"pipeline_tag: {task}",
        *([f"base_model: {json.dumps(_hub_name(base))}"] if base else []),
        "tags: [semsearch]",
        "---",
        "",
        f"# {_cell(name)}",
        "",
        description.format(base=base),
        "",
        command,
        "",
        code,
        "",
        "## Training",
        "",
    ]
    stages = zip(record["stages"], record["results"], strict=True)
    for number, (stage, result) in enumerate(stages, start=1):
        chosen = {key: value for key, value in record["choices"].items() if value is not None}
        if record["processes"] > 1:
            chosen["processes"] = f"{record['processes']}, each with batches of its own"
        rows = chosen | _rows(stage, result)
        lines += [f"### Stage {number}: {stage['data']['name']}", "", "| | |", "|---|---|"]
        lines += [*(f"| {_cell(key)} | {_cell(value)} |" for key, value in rows.items()), ""]
    if any(result["history"] for result in record["results"]):
        lines += ["![loss and score by step](training.png)", ""]
    if record["tests"]:
        lines += ["## Evaluation", "", "| set | measure | dimensions | score | base model |"]
        lines += ["|---|---|---|---|---|"]
        lines += [
            f"| {_cell(t['data'])} | {t['measure']} | {t['dimension'] or 'all'} | {t['score']:.2f} "
            f"| {_score(t['before'])} |"
            for t in record["tests"]
        ]
        lines.append("")
    return "\n".join(lines)


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _hub_name(base: str) -> str:
    return BUNDLED_HUB_NAME if base == BUNDLED_SPEC else parse_spec(base).name


def _rows(stage: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, str]:
    data, development, recipe = stage["data"], stage["development"], stage["recipe"]
    rows = {
        "data": f"{data['examples']:,} {data['kind']}, SHA-256 {data['sha256'][:16]}…",
        **({"labels": _labels(data["labels"], stage["loss"])} if data["labels"] else {}),
        "loss": stage["loss"],
        "steps": f"{result['steps']:,} of {recipe['batch_size']} examples",
    }
    scores = [(one["score"], one["step"]) for one in result["history"] if "score" in one]
    if development and len(scores) > 1:
        best, step = max(scores[1:], key=lambda one: (one[0], -one[1]))
        rows["development set"] = f"{development['name']}, {development['examples']:,} examples"
        rows["development score"] = (
            f"{scores[0][0]:.2f} before, {best:.2f} at best (step {step:,}, which was kept)"
        )
    shown = {key: value for key, value in recipe.items() if value not in (None, [])}
    for name in ("batch_size", "steps"):
        shown.pop(name, None)
    for loss, choice in (("triplet", "margin"), ("softmax", "head_learning_rate")):
        if stage["loss"] != loss:
            del shown[choice]
    shown["precision"] = result["precision"]
    shown["seconds"] = round(result["seconds"])
    return rows | {key.replace("_", " "): f"{value}" for key, value in shown.items()}


def _labels(labels: Sequence[str], loss: str) -> str:
    """The labels; of two, a single output scores the second one high."""
    return ", ".join(labels) + (" (scores high)" if loss == BINARY else "")


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
