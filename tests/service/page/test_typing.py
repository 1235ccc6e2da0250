"""Hits while somebody types, with the bundled encoder."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from semsearch.cli import main


@pytest.mark.slow
def test_hits_follow_the_last_key(browser, package, tmp_path):
    package("playwright")
    from scripts.bench.type_queries import served, type_query

    index = tmp_path / "notes"
    assert CliRunner().invoke(main, ["index", "--sample", "--index", str(index)]).exit_code == 0
    page = browser.new_page()
    with served(index) as address:
        run = type_query(page, address, "how do I soothe my mouth after spicy food", delay=150)
    page.close()
    assert run.answered > 1  # not only the last key
    assert run.last_key_to_hits < 1000
