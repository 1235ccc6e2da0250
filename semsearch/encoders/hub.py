"""Models on the hub: downloaded once, without files that are never read."""

from __future__ import annotations

from pathlib import Path

from semsearch.encoders.specs import ModelSpec
from semsearch.errors import ModelNotFoundError, first_line

#: Weights that are pickled; torch would load them.
PICKLED = ("*.bin", "*.ckpt", "*.pickle", "*.pkl", "*.pt", "*.pth")
#: Files in models' folders that are never read: pickles, weights for other runtimes, code, cards,
#: and files of training. All other files may determine the vectors.
UNREAD = (
    *PICKLED,
    *("*.gguf", "*.h5", "*.mlmodel", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.tflite"),
    *("*.csv", "*.gif", "*.jpeg", "*.jpg", "*.md", "*.pdf", "*.png", "*.py", "*.svg", "*.webp"),
    *(".*", "LICENSE*", "NOTICE*", "data_config.json", "trainer_state.json", "training.json"),
)
#: Subfolders with other forms of a model and with files of its training.
UNREAD_FOLDERS = ("checkpoint*/*", "coreml/*", "eval/*", "onnx/*", "openvino/*", "runs/*")


def hub_folder(wanted: ModelSpec, spec: str, *, local_files_only: bool = False) -> Path:
    """The folder of a model in the hub's cache, named by its commit; downloaded if necessary.

    Args:
        wanted: its name on the hub, and a revision.
        spec: the spec that downloads it, for messages.
        local_files_only: use only the cache, without a request to the hub.

    Raises:
        ModelNotFoundError: it is not in the cache and cannot be downloaded.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    name = f"'{wanted.name}@{wanted.revision}'" if wanted.revision else f"'{wanted.name}'"
    try:
        return Path(
            snapshot_download(
                wanted.name,
                revision=wanted.revision,
                ignore_patterns=[*UNREAD, *UNREAD_FOLDERS],
                local_files_only=local_files_only,
            )
        )
    except (OSError, HfHubHTTPError, HFValidationError) as error:
        if local_files_only:
            raise ModelNotFoundError(
                f"the index was made with model {name}, which is not in the hub's cache; download "
                f"it by naming it: semsearch inspect TEXT --encoder {spec}"
            ) from None
        raise ModelNotFoundError(
            f"no model {name}: neither a folder here nor a model on the hub ({first_line(error)})"
        ) from None
