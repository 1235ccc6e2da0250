"""The import of OpenVINO."""

from __future__ import annotations

import sys

import pytest

from semsearch.encoders.openvino_runtime import CONVERTER, import_openvino


@pytest.mark.parametrize(
    ("cause", "raised"), [("KeyboardInterrupt", KeyboardInterrupt), ("OSError", ImportError)]
)
def test_an_interrupted_import_is_an_interruption(tmp_path, monkeypatch, cause, raised):
    """The extension module of OpenVINO raises an ImportError from it."""
    code = f"raise ImportError('initialization failed') from {cause}()\n"
    (tmp_path / "openvino.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "openvino", raising=False)
    monkeypatch.setitem(sys.modules, CONVERTER, None)  # restored afterwards
    monkeypatch.setitem(sys.modules, "openvino_telemetry", None)
    with pytest.raises(raised):
        import_openvino()
