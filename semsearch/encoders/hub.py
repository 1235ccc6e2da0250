"""Models on the hub, and the copies of them in its cache on this machine."""

from __future__ import annotations

from pathlib import Path

from semsearch.encoders.model_files import UNREAD
from semsearch.encoders.specs import ModelSpec
from semsearch.errors import ModelNotFoundError, first_line

#: Other forms of a model, and what its training left, in folders of their own.
UNREAD_FOLDERS = ("checkpoint*/*", "coreml/*", "eval/*", "onnx/*", "openvino/*", "runs/*")


def hub_folder(wanted: ModelSpec, spec: str, *, local_files_only: bool = False) -> Path:
    """The folder of a model in the hub's cache, named by its commit; fetched if need be.

    Args:
        wanted: its name on the hub, and a revision.
        spec: what fetches it when a user names it.
        local_files_only: take what the cache has, without a request to the hub.

    Raises:
        ModelNotFoundError: it is neither in the cache nor to be had.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RevisionNotFoundError,
    )

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
    except RevisionNotFoundError:
        raise ModelNotFoundError(
            f"no model {name}: the hub has '{wanted.name}', but no such revision of it"
        ) from None
    except (HFValidationError, HfHubHTTPError) as error:
        raise ModelNotFoundError(
            f"no model {name}: neither a folder here nor a model on the hub ({first_line(error)})"
        ) from None
    except (LocalEntryNotFoundError, OSError) as error:
        if local_files_only:
            raise ModelNotFoundError(
                f"the index was made with model {name}, which is not in the hub's cache; it is "
                f"fetched only when you name it: semsearch inspect TEXT --encoder {spec}"
            ) from None
        raise ModelNotFoundError(
            f"no model {name}: it is no folder here and not in the hub's cache, "
            f"and the hub cannot be reached ({first_line(error)})"
        ) from None
