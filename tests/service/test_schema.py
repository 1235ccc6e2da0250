"""The service answers as its schema says, and no request makes it fail (Schemathesis)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
pytest.importorskip("schemathesis", reason="Schemathesis generates the requests")
import schemathesis
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from semsearch.service import Settings, create_app

WRITABLE = Settings(writable=True)
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]
#: What the first tier tries; `--all` tries the rest.
FIRST = ("/search", "/documents")
OPERATIONS = [
    pytest.param(method, path, mode, marks=() if path.endswith(FIRST) else pytest.mark.nightly)
    for path, methods in create_app({}, WRITABLE).openapi()["paths"].items()
    for method in methods
    for mode in GenerationMode
    # Any text is a valid id, so there are no invalid ones.
    if mode is GenerationMode.POSITIVE or method in ("post", "put") or path.endswith("/search")
]


@pytest.mark.parametrize(("method", "place", "mode"), OPERATIONS)
def test_no_request_causes_a_server_error(path, method, place, mode):
    app = create_app({"birds": path}, WRITABLE)
    schema = schemathesis.openapi.from_dict(app.openapi())
    schema.app = app
    operation = schema[place][method]

    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.booleans())
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    def check(case, is_known):
        if is_known and "name" in case.path_parameters:
            case.path_parameters["name"] = "birds"
        response = case.call(base_url="http://localhost")
        assert response.status_code < 500, response.text
        case.validate_response(response, checks=CHECKS)

    check()
