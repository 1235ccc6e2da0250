"""The page of two small indexes, in Chromium."""

from __future__ import annotations

import pytest
from birds import running
from browsing import DOCUMENTS

from semsearch import Index


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    from semsearch.explore.map import make_map

    folder = tmp_path_factory.mktemp("indexes")
    for name, documents in (("animals", DOCUMENTS), ("other", DOCUMENTS[:2])):
        with Index.create(folder / name, ["hashing", "hashing:64"]) as index:
            index.add(documents)
            if name == "animals":
                make_map(index).save(index.path)
    return {name: folder / name for name in ("animals", "other")}


@pytest.fixture(scope="module")
def browser(program, package):
    executable = program("chromium")
    playwright = package("playwright.sync_api").sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
    yield browser
    browser.close()
    playwright.stop()


@pytest.fixture(scope="module")
def address(indexes):
    with running(indexes) as (_, port):
        yield f"http://localhost:{port}"


@pytest.fixture
def page(browser, address):
    """A page; script errors and violations of its policy fail the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and page.wrong.append(message.text))
    page.address = address
    yield page
    context.close()
    assert page.wrong == []
