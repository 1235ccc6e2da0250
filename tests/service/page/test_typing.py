"""Hits while somebody types, with the bundled encoder."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from semsearch.cli import main


@pytest.mark.nightly
def test_hits_follow_the_last_key(browser, package, tmp_path):
    package("playwright")
    from scripts.bench.type_queries import served, type_query

    index = tmp_path / "notes"
    assert CliRunner().invoke(main, ["index", "--sample", "--index", str(index)]).exit_code == 0
    page = browser.new_page()
    with served(index) as address:
        query = "how do I soothe my mouth after spicy food"
        runs = [type_query(page, address, query, delay=150) for _ in range(3)]
    page.close()
    assert min(run.answered for run in runs) > 1  # not only the last key
    # Other tests may take the processor from one run; a slow page takes over ten seconds in each.
    assert min(run.last_key_to_hits for run in runs) < 1000
