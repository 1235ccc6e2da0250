"""From models of Sentence-Transformers to ones that OpenVINO runs, kept in the user's cache."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.encoders.attention import MASK, write_out_attention
from semsearch.encoders.cache import cached_entry
from semsearch.encoders.kind import why_not_bert_like
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.openvino_library import import_converter, import_openvino
from semsearch.encoders.openvino_runtime import Converted, OpenVINORuntime
from semsearch.encoders.precision import Precision, float_precision
from semsearch.encoders.torch_runtime import quiet_transformers, whole_text_tokenizer
from semsearch.errors import EncoderError, first_line

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

#: Grows with every change of what is written here.
VERSION = 3

INPUTS = ("input_ids", MASK, "token_type_ids")

#: Texts of very different lengths, so that padding and masks show.
PROBE = (
    "A cat.",
    "The committee postponed its decision until the auditors had seen every invoice of the year.",
    "x",
    "Rivers carry sand and gravel from the mountains to the plain. " * 12,
)


class NotConvertibleError(EncoderError):
    """A model is of a kind that only torch can run."""


class ConversionFailedError(NotConvertibleError):
    """A model could not be converted, for a reason that nobody foresaw."""


def cached_conversion(
    kind: str, folder: ModelFolder, fingerprint: str, convert: Callable[[ModelFolder, Path], None]
) -> Converted:
    """A converted model, made now if it has not been before.

    Args:
        kind: what it is converted to.
        folder: the model.
        fingerprint: the model's.
        convert: writes the converted model into a folder, by `save_converted`, and checks it.

    Raises:
        NotConvertibleError: it is not BERT-like, or would say something else.
        ConversionFailedError: anything else went wrong, the model itself being broken included.
    """
    if reason := why_not_bert_like(folder):
        raise NotConvertibleError(reason)
    try:
        return _cached_conversion(kind, folder, fingerprint, convert)
    except NotConvertibleError:
        raise
    except Exception as error:  # of the libraries, the cache, the memory: torch may yet run it
        reason = f"its conversion for OpenVINO failed ({first_line(error)})"
        raise ConversionFailedError(reason) from error


def _cached_conversion(
    kind: str, folder: ModelFolder, fingerprint: str, convert: Callable[[ModelFolder, Path], None]
) -> Converted:
    version = import_openvino().get_version().partition("-")[0]
    name = f"{kind}-{VERSION}-{version}-{fingerprint[:32]}"

    def make(draft: Path) -> None:
        convert(folder, draft)
        for precision in {Precision.FP32, float_precision(Precision.AUTO)}:
            OpenVINORuntime(_converted(draft), precision).keep_compiled()

    return _converted(cached_entry(name, make))


def _converted(folder: Path) -> Converted:
    return Converted(**json.loads((folder / "facts.json").read_text("utf-8")), folder=folder)


def save_converted(
    model: SentenceTransformer | CrossEncoder,
    result: Callable[[dict[str, Any]], Any],
    draft: Path,
    *,
    pairs: bool = False,
    **facts: Any,
) -> Converted:
    """Write a model, its tokenizer and what must be known of it into a folder.

    Args:
        model: with its weights.
        result: what is wanted of what its modules say.
        draft: the folder.
        pairs: whether it reads two texts at once.
        facts: what only its maker knows of `Converted`.
    """
    texts = list(PROBE[:2])
    length = model.max_seq_length
    features = model.tokenizer(
        texts,
        texts if pairs else None,
        padding=True,
        truncation=True,
        max_length=length,
        return_tensors="pt",
    )
    example = {name: features[name] for name in INPUTS if name in features}
    network = _traced(model, example, result)
    import_openvino().save_model(network, str(draft / "model.xml"), compress_to_fp16=False)
    tokenizer = whole_text_tokenizer(model.tokenizer)
    tokenizer.enable_truncation(length)
    tokenizer.save(str(draft / "tokenizer.json"))
    special = model.tokenizer.num_special_tokens_to_add(pair=pairs)
    facts |= {
        "max_tokens": length - special,
        "inputs": list(example),
        "pad_id": model.tokenizer.pad_token_id or 0,
        "modules": [type(module).__name__ for module in model],
    }
    (draft / "facts.json").write_text(json.dumps(facts), "utf-8")
    return Converted(**facts, folder=draft)


def _traced(model: Any, example: dict[str, Any], result: Callable[[dict[str, Any]], Any]) -> Any:
    """OpenVINO's form of all modules of a model, for any number of texts of any length."""
    import torch

    class Whole(torch.nn.Module):
        """From token ids to the result."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            features = dict(zip(example, inputs, strict=True))
            for module in self.model:
                features = module(features)
            found: torch.Tensor = result(features)
            return found

    with torch.no_grad(), quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer's on shapes; the parity check looks at these
        converted = import_converter().convert_model(
            Whole().eval(), example_input=tuple(example.values())
        )
    for port, name in zip(converted.inputs, example, strict=True):
        port.get_tensor().set_names({name})
    converted.reshape({port: [-1, -1] for port in converted.inputs})
    write_out_attention(converted)
    return converted
