"""Encoders turn texts into vectors. `load_encoder` finds the one that a spec names."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

from semsearch.encoders.base import EncodesSentences
from semsearch.encoders.model_folder import (
    ModelFolder,
    NotConvertibleError,
    check_bi_encoder,
    check_cross_encoder,
    find_model,
)
from semsearch.encoders.specs import BUNDLED_SPEC, CROSS_ENCODER_PREFIX, Precision
from semsearch.errors import ArgumentError, EncoderError, shown
from semsearch.protocols import Encoder, Reranker, find_plugin

__all__ = [
    "CROSS_ENCODER_PREFIX",
    "DEFAULT_ENCODER",
    "EncodesSentences",
    "current_fingerprint",
    "load_encoder",
    "load_reranker",
]

logger = logging.getLogger(__name__)


DEFAULT_ENCODER = "minilm"

#: The modules that run transformers, by name, in order of preference, with their classes of
#: encoders and rerankers. These are called with a ModelFolder, a device and a Precision, and raise
#: `NotConvertibleError` if the next module may run the model.
RUNTIMES = {
    "openvino": ("semsearch.encoders.openvino.models", "OpenVINOEncoder", "OpenVINOReranker"),
    "torch": ("semsearch.encoders.torch_models", "TorchEncoder", "TorchReranker"),
}
#: Those on a machine with a GPU; the first one uses both of the others.
GPU_RUNTIMES = {
    "gpu": ("semsearch.encoders.gpu_models", "GPUEncoder", "TorchReranker"),
    "torch": RUNTIMES["torch"],
}


def load_encoder(
    spec: str | os.PathLike[str],
    device: str | None = None,
    precision: Precision | str = Precision.AUTO,
    *,
    local_files_only: bool = False,
) -> Encoder:
    """Load the encoder that `spec` names.

    >>> from semsearch import load_encoder
    >>> encoder = load_encoder("hashing:64")
    >>> encoder.encode_documents(["a cat", "a dog"]).shape
    (2, 64)

    A transformer is converted for OpenVINO (once, into the user's cache) and then runs without
    torch on the CPU. If there is a GPU, torch encodes documents there, except the first 1,000,
    which take no longer on the CPU than a GPU takes to start. A model that OpenVINO cannot run, or
    whose vectors would change, runs on torch, with a warning.

    Args:
        spec: ``minilm`` (all-MiniLM-L6-v2), a folder that Sentence-Transformers wrote, a name on
            the hub (``NAME@REVISION`` for a branch, a tag or a commit), each also with ``@mean``,
            ``@cls``, ``@max`` or ``@pooler`` (a plain BERT with that pooling) and with ``@192d``
            (its leading 192 dimensions), ``glove:PATH`` (averaged word vectors;
            ``glove:PATH@sif`` weights the words),
            ``hashing[:DIMENSION]`` (no model), or the name of a plugin (``NAME[:…]``).
        device: a torch device (``cpu``, ``cuda``), which selects torch, also for queries; None uses
            a GPU for documents if there is one.
        precision: ``auto``, ``fp32``, ``bf16`` or ``int8`` (always on the CPU).
        local_files_only: make no request to the hub and use only its cache, for specs that were
            not entered by a user.

    Raises:
        ArgumentError: `spec` is not a string or path, or the precision is invalid.
        ModelNotFoundError: its files are not on this machine and cannot be downloaded.
        UnsafeModelError: its files could run code.
        EncoderError: the processor or the model does not support that precision, or the model is a
            cross-encoder.
    """
    spec, precision = _checked_spec(spec), Precision(precision)
    if spec.partition(":")[0].partition("@")[0] == "hashing":
        from semsearch.encoders.hashing import HashingEncoder

        return HashingEncoder(spec)
    if spec.partition(":")[0] == "glove":
        from semsearch.encoders.words.encoder import WordVectorEncoder  # seldom needed

        return WordVectorEncoder(spec)
    if (plugin := _plugin_encoder(spec)) is not None:
        return plugin
    folder = find_model(spec, local_files_only=local_files_only)
    check_bi_encoder(folder)
    encoder: Encoder = _on_first(1, folder, device, precision)
    return encoder


def current_fingerprint(spec: str) -> str:
    """The present fingerprint of the encoder that a spec names, without loading the model.

    Raises:
        EncoderError: its files are missing or can no longer be used.
    """
    if spec.partition(":")[0] in ("hashing", "glove"):
        return load_encoder(spec).fingerprint
    return find_model(spec, local_files_only=True).fingerprint


def load_reranker(
    spec: str | os.PathLike[str],
    device: str | None = None,
    precision: Precision | str = Precision.AUTO,
) -> Reranker:
    """Load the cross-encoder that `spec` names.

    Args:
        spec: a folder that Sentence-Transformers or transformers wrote, or a name on the hub, with
            an optional prefix ``cross-encoder:``.
        device: a torch device, which selects torch, in fp32; None uses a GPU if there is one.
        precision: of OpenVINO: ``auto``, ``fp32`` or ``bf16``.

    Raises:
        ArgumentError: `spec` is not a string or path, or the precision is invalid.
        ModelNotFoundError: its files are not on this machine and cannot be downloaded.
        UnsafeModelError: its files could run code.
        EncoderError: it is not a cross-encoder, or returns several scores per pair.
    """
    spec, precision = _checked_spec(spec), Precision(precision)
    if precision is Precision.INT8:
        raise EncoderError("cross-encoders do not support int8; use fp32 or bf16")
    folder = find_model(spec.removeprefix(CROSS_ENCODER_PREFIX))
    folder.check_whole()
    if folder.pooling:
        raise EncoderError(f"'{spec}': a cross-encoder has no pooling; remove the suffix")
    check_cross_encoder(folder)
    reranker: Reranker = _on_first(2, folder, device, precision)
    return reranker


def _on_first(place: int, folder: ModelFolder, device: str | None, precision: Precision) -> Any:
    """Load a model on the first runtime that can run it; log a warning if it is not the first.

    Args:
        place: of the class in a row of `RUNTIMES`.
        folder: the model.
        device: a torch device, which selects torch.
        precision: its precision; int8 selects OpenVINO.

    Raises:
        EncoderError: no runtime can run it.
    """
    runtimes = RUNTIMES
    if device is not None:
        runtimes = {"torch": RUNTIMES["torch"]}
    elif precision is Precision.INT8:
        runtimes = {"openvino": RUNTIMES["openvino"]}
    elif has_gpu():
        runtimes = GPU_RUNTIMES
    reason: NotConvertibleError | None = None
    for name, row in runtimes.items():
        try:
            model = getattr(import_module(row[0]), row[place])(folder, device, precision)
        except NotConvertibleError as error:
            reason = error
            continue
        if reason is not None:
            getattr(model, "model", None)  # load it now: a broken model fails here, too
            logger.warning("model '%s' runs on %s: %s", model.spec, name, reason)
        return model
    raise EncoderError(f"model '{folder.spec}' cannot run on {', '.join(runtimes)}: {reason}")


def _checked_spec(spec: object) -> str:
    path = os.fspath(spec) if isinstance(spec, os.PathLike) else spec
    if not isinstance(path, str):
        raise ArgumentError(f"the name of a model must be a string or a Path, not {shown(spec)}")
    if not path.strip():
        raise ArgumentError("the name of the model is empty")
    return path


def has_gpu() -> bool:
    """Whether torch could use a GPU of NVIDIA, checked without importing it."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    failed = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    return not failed and count.value > 0 and _is_for_cuda("torch")


def _is_for_cuda(torch: str) -> bool:
    """Whether the installed torch is a build for CUDA; on Windows, PyPI has only one for CPUs."""
    found = find_spec(torch)
    if found is None or found.origin is None:
        return False
    return run_path(str(Path(found.origin).with_name("version.py"))).get("cuda") is not None


#: Entry points of plugins; each names a function from a spec to an encoder.
PLUGIN_GROUP = "semsearch.encoders"


def _plugin_encoder(spec: str) -> Encoder | None:
    """The encoder of the plugin that a spec names (``NAME`` or ``NAME:…``).

    None if there is no such plugin, or a folder has this name.

    Raises:
        EncoderError: the plugin does not return an encoder with this name.
    """
    name = spec.partition(":")[0]
    if name == BUNDLED_SPEC or not re.fullmatch(r"[\w-]+", name) or Path(spec).is_dir():
        return None
    load = find_plugin(PLUGIN_GROUP, name)
    if load is None:
        return None
    encoder: Encoder = load(spec)
    if not isinstance(encoder, Encoder) or encoder.spec.partition(":")[0] != name:
        raise EncoderError(
            f"the plugin '{name}' did not return an encoder whose spec begins with '{name}'"
        )
    return encoder
