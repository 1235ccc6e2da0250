"""From the name of an encoder to the encoder, on the runtime that serves it best."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from typing import TypeVar

from semsearch.arguments import check_choice, shown
from semsearch.encoders.conversion import ConversionFailedError, NotConvertibleError
from semsearch.encoders.cross_encoder import CROSS_ENCODER_PREFIX, TorchReranker, check_head
from semsearch.encoders.encoder_conversion import converted_encoder
from semsearch.encoders.hashing import HashingEncoder
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino_encoder import OpenVINOEncoder
from semsearch.encoders.precision import Precision
from semsearch.encoders.torch_runtime import TorchEncoder
from semsearch.errors import ArgumentError, EncoderError
from semsearch.protocols import Encoder, Reranker

logger = logging.getLogger(__name__)

DEFAULT_ENCODER = "minilm"


def load_encoder(
    spec: str | os.PathLike[str],
    device: str | None = None,
    precision: Precision | str = Precision.AUTO,
    *,
    local_files_only: bool = False,
) -> Encoder:
    """The encoder that `spec` names.

    >>> from semsearch import load_encoder
    >>> encoder = load_encoder("hashing:64")
    >>> encoder.encode_documents(["a cat", "a dog"]).shape
    (2, 64)

    Where there is no GPU, a BERT-like model is converted for OpenVINO (once, into the user's
    cache) and then run without torch; other models run on torch, with a warning.

    Args:
        spec: ``minilm`` (all-MiniLM-L6-v2), a folder that Sentence-Transformers wrote, a name on
            the hub (``NAME@REVISION`` for a branch, a tag or a commit), each also with ``@mean``,
            ``@cls``, ``@max`` or ``@pooler`` (a plain BERT with that pooling), ``glove:PATH``
            (averaged word vectors; ``glove:PATH@sif`` weighs the words), or
            ``hashing[:DIMENSION]`` (no model at all).
        device: a device of torch's (``cpu``, ``cuda``), on which torch then runs; None uses a
            GPU if there is one.
        precision: in which numbers it computes: ``auto``, ``fp32``, ``bf16`` or ``int8``.
        local_files_only: make no request to the hub, but take what its cache has: for a spec that
            no user has typed.

    Raises:
        ArgumentError: `spec` is no string or path, or there is no such precision.
        ModelNotFoundError: its files are not on this machine and cannot be fetched.
        UnsafeModelError: its files would have to be trusted with running code.
        EncoderError: the processor or the model is not fit for that precision.
    """
    spec, precision = _checked_spec(spec), check_choice("precision", Precision, precision)
    if spec.partition(":")[0] == "hashing":
        return HashingEncoder(spec)
    if spec.partition(":")[0] == "glove":
        from semsearch.encoders.words.encoder import WordVectorEncoder  # seldom needed

        return WordVectorEncoder(spec)
    folder = find_model(spec, local_files_only=local_files_only)
    if device is None and not has_gpu():
        fingerprint = folder.fingerprint()
        try:
            converted = converted_encoder(folder, fingerprint)
        except NotConvertibleError as error:
            if precision is Precision.INT8:
                raise EncoderError(f"model '{spec}' has no int8 here: {error}") from error
            return _on_torch(TorchEncoder(folder, precision=precision), error)
        return OpenVINOEncoder(folder.spec, fingerprint, converted, precision, commit=folder.commit)
    return TorchEncoder(folder, device=device, precision=precision)


def load_reranker(
    spec: str | os.PathLike[str],
    device: str | None = None,
    precision: Precision | str = Precision.AUTO,
) -> Reranker:
    """The cross-encoder that `spec` names, on the runtime that serves it best.

    Args:
        spec: a folder that Sentence-Transformers or transformers wrote, or a name on the hub;
            ``cross-encoder:`` may stand before it.
        device: a device of torch's, on which torch then runs, in fp32; None uses a GPU if
            there is one.
        precision: in which numbers OpenVINO computes: ``auto``, ``fp32`` or ``bf16``.

    Raises:
        ArgumentError: `spec` is no string or path, or there is no such precision.
        ModelNotFoundError: its files are not on this machine and cannot be fetched.
        UnsafeModelError: its files would have to be trusted with running code.
        EncoderError: it is no cross-encoder, or gives several scores a pair.
    """
    spec, precision = _checked_spec(spec), check_choice("precision", Precision, precision)
    folder = find_model(spec.removeprefix(CROSS_ENCODER_PREFIX))
    check_head(folder)
    if device is None and not has_gpu():
        from semsearch.encoders.openvino_reranker import OpenVINOReranker, converted_reranker

        try:
            converted = converted_reranker(folder)
        except NotConvertibleError as error:
            return _on_torch(TorchReranker(folder), error)
        return OpenVINOReranker(folder, converted, precision)
    return TorchReranker(folder, device)


OnTorch = TypeVar("OnTorch", TorchEncoder, TorchReranker)


def _on_torch(model: OnTorch, error: NotConvertibleError) -> OnTorch:
    """The model, after a warning that OpenVINO does not run it.

    Raises:
        EncoderError: torch cannot load it either.
    """
    if isinstance(error, ConversionFailedError):
        model.model  # noqa: B018  # loaded now: were the model broken, that would be the reason
    logger.warning("model '%s' runs on torch: %s", model.spec, error)
    return model


def _checked_spec(spec: object) -> str:
    path = os.fspath(spec) if isinstance(spec, os.PathLike) else spec
    if not isinstance(path, str):
        raise ArgumentError(f"a model is named by a string or a Path, not by {shown(spec)}")
    if not path.strip():
        raise ArgumentError("the name of the model is empty")
    return path


def has_gpu() -> bool:
    """Whether torch could run on a GPU, found out without importing it."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    failed = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    return not failed and count.value > 0
