"""The BERT to pre-train: a new one in one of four sizes, or one loaded from a folder."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.model_folder import transformer_folder
from semsearch.encoders.torch_loading import loading
from semsearch.errors import EncoderError

if TYPE_CHECKING:
    from transformers import BertForPreTraining, BertTokenizerFast

#: BERT's maximum sequence length.
MAX_TOKENS = 512
#: Width of an attention head, the same in all sizes.
HEAD_WIDTH = 64


class BertSize(Enum):
    """Layers and width of the sizes named by Turc et al. 2019 (arXiv 1908.08962, table 1)."""

    TINY = (2, 128)
    MINI = (4, 256)
    SMALL = (4, 512)
    BASE = (12, 768)

    @property
    def layers(self) -> int:
        """The number of transformer layers."""
        return self.value[0]

    @property
    def width(self) -> int:
        """The hidden size."""
        return self.value[1]


class LoadedBert(NamedTuple):
    """A BERT; ``new_heads`` is whether its pre-training heads are newly initialised."""

    model: BertForPreTraining
    tokenizer: BertTokenizerFast
    new_heads: bool


def new_bert(size: BertSize, tokenizer: BertTokenizerFast) -> BertForPreTraining:
    """A BERT in fp32 with random weights from torch's global generator."""
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=size.layers,
        hidden_size=size.width,
        num_attention_heads=size.width // HEAD_WIDTH,
        intermediate_size=4 * size.width,
        max_position_embeddings=MAX_TOKENS,
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForPreTraining(config)


def predict_frequencies(model: BertForPreTraining, token_ids: NDArray[numpy.integer]) -> None:
    """Set the bias of the masked-word head to the logarithm of each token's frequency.

    With a zero bias, the embeddings of rare words, which are tied to the weights of the head, learn
    to encode how rare the words are, and become alike.

    Args:
        model: changed in place.
        token_ids: token ids of the corpus, shape (n,).
    """
    import torch

    counts = numpy.bincount(token_ids, minlength=model.config.vocab_size)
    logs = numpy.log((counts + 0.5) / (len(token_ids) + 0.5 * len(counts)))
    with torch.no_grad():
        model.cls.predictions.bias.copy_(torch.from_numpy(logs))


def load_bert(folder: Path) -> LoadedBert:
    """Load a BERT from a folder in fp32; missing pre-training heads are initialised at random.

    Raises:
        EncoderError: the model is not a BERT, or it cannot be loaded.
    """
    import torch
    from transformers import AutoConfig, BertForPreTraining, BertTokenizerFast

    with loading(str(folder)):
        folder = transformer_folder(folder)
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if config.model_type != "bert":
            raise EncoderError(f"{folder} is a {config.model_type}; use a BERT")
        tokenizer = BertTokenizerFast.from_pretrained(folder, local_files_only=True)
        model, report = BertForPreTraining.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    missing = set(report["missing_keys"])
    if lacking := sorted(key for key in missing if not key.startswith(("cls.", "bert.pooler."))):
        raise EncoderError(f"model {folder} is incomplete: {lacking[0]} is missing")
    return LoadedBert(model, tokenizer, bool(missing))
