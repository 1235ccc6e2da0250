"""The card of a trained model: what was done, in the form that model hubs read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from semsearch.encoders.model_folder import BUNDLED_HUB_NAME
from semsearch.encoders.specs import BUNDLED_SPEC, parse_spec

_BI_ENCODER = (
    "sentence-transformers",
    "sentence-similarity",
    "    semsearch index corpus.csv --encoder ./{name}",
    "    from sentence_transformers import SentenceTransformer\n\n"
    '    SentenceTransformer("./{name}").encode(["a sentence"])',
)
_CROSS_ENCODER = (
    "sentence-transformers",
    "text-ranking",
    '    semsearch query "a question" --rerank ./{name}',
    "    from sentence_transformers import CrossEncoder\n\n"
    '    CrossEncoder("./{name}").predict([("a sentence", "another")])',
)


def model_card(name: str, record: Mapping[str, Any]) -> str:
    """The text of its README.md.

    Args:
        name: that of its folder.
        record: what was planned and what came of it, as JSON values.
    """
    kind = "cross-encoder" if record["trained"] == "cross-encoder" else "bi-encoder"
    library, task, command, code = _CROSS_ENCODER if kind == "cross-encoder" else _BI_ENCODER
    lines = [
        "---",
        f"library_name: {library}",
        f"pipeline_tag: {task}",
        f"base_model: {json.dumps(_hub_name(record['base']))}",
        "tags: [semsearch]",
        "---",
        "",
        f"# {name}",
        "",
        f"A {kind}, trained by semsearch from `{record['base']}`.",
        "",
        command.format(name=name),
        "",
        code.format(name=name),
        "",
        "## How it was trained",
        "",
    ]
    stages = zip(record["stages"], record["results"], strict=True)
    for number, (stage, result) in enumerate(stages, start=1):
        lines += [f"### Stage {number}: {stage['data']['name']}", "", *_table(stage, result), ""]
    lines += ["![loss and score by step](training.png)", ""]
    if record["tests"]:
        lines += ["## Tested", "", "| set | measure | dimensions | score | before |"]
        lines += ["|---|---|---|---|---|"]
        lines += [
            f"| {t['data']} | {t['measure']} | {t['dimension'] or 'all'} | {t['score']:.2f} "
            f"| {_score(t['before'])} |"
            for t in record["tests"]
        ]
        lines.append("")
    return "\n".join(lines)


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _hub_name(base: str) -> str:
    return BUNDLED_HUB_NAME if base == BUNDLED_SPEC else parse_spec(base).name


def _table(stage: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    data, development, recipe = stage["data"], stage["development"], stage["recipe"]
    rows = {
        "data": f"{data['examples']:,} {data['kind']}, SHA-256 {data['sha256'][:16]}…",
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
    told = {key: value for key, value in recipe.items() if value not in (None, [])}
    del told["batch_size"]
    for loss, choice in (("triplet", "margin"), ("softmax", "head_learning_rate")):
        if stage["loss"] != loss:
            del told[choice]
    told["precision"] = result["precision"]
    rows |= {key.replace("_", " "): f"{value}" for key, value in told.items()}
    return ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items())]
