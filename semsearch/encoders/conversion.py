"""From a Sentence-Transformers model to one that OpenVINO runs, pooling and normalisation inside.

The converted model is computed once and kept in the user's cache under the model's fingerprint.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.kind import why_not_bert_like
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.openvino_library import import_converter, import_openvino
from semsearch.encoders.openvino_runtime import Converted, OpenVINORuntime
from semsearch.encoders.precision import Precision
from semsearch.encoders.torch_runtime import TorchEncoder, quiet_transformers
from semsearch.errors import EncoderError

__all__ = ["NotConvertibleError", "converted_model"]

#: Grows with every change of what is written here.
VERSION = 1

INPUTS = ("input_ids", "attention_mask", "token_type_ids")

#: Texts of very different lengths, so that padding and masks show.
PROBE = (
    "A cat.",
    "The committee postponed its decision until the auditors had seen every invoice of the year.",
    "x",
    "Rivers carry sand and gravel from the mountains to the plain. " * 12,
)
#: The least cosine between the vectors of the two runtimes, both in fp32.
PARITY = 0.9999


class NotConvertibleError(EncoderError):
    """A model is of a kind that only torch can run."""


def converted_model(folder: ModelFolder, fingerprint: str) -> Converted:
    """The model, converted now if it has not been before.

    Raises:
        NotConvertibleError: it is not BERT-like, or its vectors would be other ones.
        EncoderError: it cannot be loaded, or the cache cannot be written.
    """
    if reason := why_not_bert_like(folder):
        raise NotConvertibleError(reason)
    version = import_openvino().get_version().partition("-")[0]
    name = f"openvino-{VERSION}-{version}-{fingerprint[:32]}"
    entry = cached_entry(name, lambda draft: _convert(folder, draft))
    return Converted(**json.loads((entry / "facts.json").read_text("utf-8")), folder=entry)


def _convert(folder: ModelFolder, draft: Path) -> None:
    """Write the converted model, its tokenizer and what must be known of it into a folder."""
    encoder = TorchEncoder(folder, device="cpu", attention="eager")
    model = encoder.model
    prompts = {name: text for name, text in model.prompts.items() if text}
    if prompts and not all(getattr(module, "include_prompt", True) for module in model):
        raise NotConvertibleError("it leaves its prompts out of the pooling")
    features = model.tokenizer(list(PROBE[:2]), padding=True, return_tensors="pt")
    inputs = [name for name in INPUTS if name in features]
    converted = _traced(model, {name: features[name] for name in inputs})
    import_openvino().save_model(converted, str(draft / "model.xml"), compress_to_fp16=False)
    tokenizer = encoder.whole_text_tokenizer()
    tokenizer.enable_truncation(model.get_max_seq_length())
    tokenizer.save(str(draft / "tokenizer.json"))
    facts = {
        "dimension": encoder.dimension,
        "max_tokens": encoder.max_tokens,
        "inputs": inputs,
        "pad_id": model.tokenizer.pad_token_id or 0,
        "prompts": prompts,
        "modules": encoder.description()["modules"],
    }
    (draft / "facts.json").write_text(json.dumps(facts), "utf-8")
    runtime = OpenVINORuntime(Converted(**facts, folder=draft), Precision.FP32)
    cosines = (runtime.encode(PROBE) * encoder.encode_plainly(PROBE)).sum(axis=1)
    if not cosines.min() >= PARITY:
        raise NotConvertibleError(f"its vectors would change (cosine {cosines.min():.4f})")


def _traced(model: Any, example: dict[str, Any]) -> Any:
    """OpenVINO's form of all modules of a model, for any number of texts of any length."""
    import torch

    class Whole(torch.nn.Module):
        """From token ids to unit vectors."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            features = dict(zip(example, inputs, strict=True))
            for module in self.model:
                features = module(features)
            return torch.nn.functional.normalize(features["sentence_embedding"], dim=1)

    with torch.no_grad(), quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer's on shapes; the parity check looks at these
        converted = import_converter().convert_model(
            Whole().eval(), example_input=tuple(example.values())
        )
    for port, name in zip(converted.inputs, example, strict=True):
        port.get_tensor().set_names({name})
    converted.reshape({port: [-1, -1] for port in converted.inputs})
    return converted
