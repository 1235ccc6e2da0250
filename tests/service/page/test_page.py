"""The search page in Chromium, driven by Playwright and checked by axe-core."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise

import pytest
from birds import asking, running
from browsing import DOCUMENTS, HOSTILE, expect_titles, show, titles, until

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")

from semsearch.service import Settings
from semsearch.service.pages import PAGE


def test_page_needs_no_token_but_its_requests_do_and_its_policy_allows_only_the_service(indexes):
    with asking(indexes, Settings(token="secret")) as client:
        page = client.get("/")
        assert page.status_code == 200
        for link in re.findall(r'(?:href|src)="(page/[^"]+)"', page.text):
            assert client.get(link).status_code == 200
        assert client.get("/v1/indexes").status_code == 401
        assert client.get("/page/../app.py").status_code in (401, 404)
        assert client.get("/page/%2e%2e/app.py").status_code == 404
    policy = page.headers["content-security-policy"]
    assert not re.search("'unsafe-inline'|'unsafe-eval'|http", policy)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for file in PAGE.iterdir():  # no address of another host
        assert not re.search(r"(https?:)?//(?!www\.w3\.org/)\w+\.", file.read_text("utf-8")), file


class TestSearch:
    def test_the_first_screen_offers_queries_topics_and_newest_documents(self, page):
        show(page)
        page.locator("#overview .card").first.wait_for()
        page.locator("#overview .chip").first.click()
        page.locator(".hit").first.wait_for()
        assert page.locator("#overview").is_hidden()
        page.go_back()
        page.locator("#overview .card").first.click()
        page.locator("#like:not([hidden])").wait_for()

    def test_searches_while_typing_and_the_last_query_wins(self, page):
        held = []

        def slow(route):
            if "slow" in route.request.post_data:
                held.append(route)  # its answer comes after that of the next query
            else:
                route.continue_()

        page.route("**/search", slow)
        show(page)
        assert page.inner_text("#status") == "36 documents, 36 passages"
        page.keyboard.type("slow white sea")  # the query has the focus
        while not held:
            page.wait_for_timeout(50)
        page.fill("#query", "blue fish pond")
        expect_titles(page, "Carp")
        assert "query=blue+fish+pond" in page.url
        assert page.title() == "blue fish pond – semsearch"
        for late in held:
            late.continue_()
        page.wait_for_timeout(300)
        assert titles(page)[0] == "Carp"
        # Explanations may be requested while the page closes.
        page.unroute_all(behavior="ignoreErrors")

    def test_modes_spaces_and_indexes(self, page):
        show(page, "bird sings", index="animals")
        page.select_option("#mode", "bm25")
        page.get_by_text("hits,").wait_for()
        expect_titles(page, "Robin")
        page.select_option("#mode", "hybrid")
        page.select_option("#space", index=1)
        until(page, "location.search.includes('space=')")
        page.select_option("#index", "other")
        until(page, "document.querySelectorAll('.hit').length === 2")
        assert "index=other" in page.url
        page.focus("#index")
        page.go_back()
        until(page, "document.querySelectorAll('.hit').length === 10")
        assert page.input_value("#index") == "animals"

    def test_errors_replace_hits(self, page):
        show(page, "fish")
        page.click("text=Advanced")
        page.locator("#where-example", has_text="for example").wait_for()  # of large numbers, too
        page.fill("#where", "yeer = 3")
        page.keyboard.press("Enter")
        page.locator("#error:not([hidden])").wait_for()
        assert "yeer" in page.inner_text("#error")
        assert (titles(page), page.inner_text("#status")) == ([], "")
        assert page.is_disabled("#export")
        page.fill("#where", "year >")
        page.keyboard.press("Enter")
        page.get_by_text("column 7").wait_for()
        page.click("#clear-filters")
        page.locator("#error").wait_for(state="hidden")
        assert len(titles(page)) == 10
        page.route("**/search", lambda route: route.abort())
        page.fill("#query", "bird")
        page.get_by_text("the service cannot be reached").wait_for()
        page.wrong.clear()  # the browser logs the status 422, and the second error

    def test_a_token_is_asked_for_once(self, browser, indexes):
        with running(indexes, Settings(token="pässwort")) as (_, port):
            page = browser.new_page()
            page.goto(f"http://localhost:{port}/?query=robin")
            for token in ("wrong\u200b", "pässwort"):
                page.locator("#sign-in[open]").wait_for()
                page.fill("#token", token)
                page.keyboard.press("Enter")
            page.locator(".hit").first.wait_for()
            page.reload()
            page.locator(".hit").first.wait_for()
            assert not page.locator("#sign-in[open]").count()
            page.close()


class TestFilters:
    def test_facets_count_and_restrict(self, page):
        show(page, "bird")
        kinds = page.locator(".facet[data-field=kind]")
        kinds.locator(".choice").first.wait_for()
        assert kinds.locator(".choice").first.inner_text().split() == ["bird", "2"]
        kinds.get_by_label("fish").check()
        kinds.get_by_label("bird").check()
        page.get_by_text("3 of 36 documents match").wait_for()
        until(page, "document.querySelectorAll('.hit').length === 3")
        assert sorted(titles(page)) == ["Carp", "Robin", "gull"]
        assert page.evaluate("document.activeElement.value") == "bird"
        page.get_by_label("year from").fill("2000")
        page.get_by_label("year to").fill("2010")
        page.keyboard.press("Tab")
        page.get_by_text("2 of 36 documents match").wait_for()
        # The URL shows the same to others.
        shared = page.context.new_page()
        shared.goto(page.url)
        until(shared, "document.querySelectorAll('.hit').length === 2")
        assert sorted(titles(shared)) == ["Carp", "gull"]
        page.get_by_label("Remove kind: fish").click()
        until(page, "document.querySelectorAll('.hit').length === 1")
        assert titles(page) == ["gull"]
        # Values with quotes, booleans and days.
        page.click("#clear-filters")
        page.get_by_role("checkbox", name=HOSTILE).check()
        until(page, "document.querySelectorAll('.hit').length === 1")
        expect_titles(page, HOSTILE)
        page.click("#clear-filters")
        page.locator(".facet[data-field=wild]").get_by_label("true").check()
        until(page, "document.querySelectorAll('.hit').length === 1")
        page.click("#clear-filters")
        page.get_by_text("2020-05-01 to 2020-05-01").wait_for()
        page.get_by_label("day from").fill("2020-05-01")
        page.get_by_label("day to").fill("2020-05-01")
        page.keyboard.press("Tab")
        expect_titles(page, "طائر")


class TestHits:
    def test_texts_are_escaped(self, page):
        show(page, "taken onerror")
        expect_titles(page, HOSTILE)
        assert HOSTILE in page.locator(".hit .text").first.inner_text()
        page.click("#toggle-systems")
        page.locator(".system li").first.wait_for()
        assert page.locator("main img, main script").count() == 0
        show(page, "taken onerror", open="bad/one's", at="0-5")
        until(page, "document.querySelector('.passage')?.textContent === 'A bir'")
        assert HOSTILE in page.inner_text("#document-text")
        assert page.locator("#document img, #document script").count() == 0
        assert page.title() != "taken"
        show(page, "طائر")
        text = page.locator(".hit").first.locator(".text")
        assert text.evaluate("one => getComputedStyle(one).direction") == "rtl"

    def test_keyboard_shortcuts_and_explanations(self, page):
        show(page, "tree bird", mode="hybrid")
        page.locator(".hit mark").first.wait_for()
        first = page.locator(".hit").first
        assert sorted(first.locator("u").all_inner_texts()) == ["bird", "tree"]
        for rank in ("1", "2"):
            page.keyboard.press("ArrowDown")
            assert page.evaluate("document.activeElement.dataset.rank") == rank
            page.keyboard.press("e")
        assert page.locator(".hit details[open]").count() == 2
        bars = first.locator("meter")
        assert [bar.get_attribute("aria-label") for bar in bars.all()] == ["by meaning", "by words"]
        assert bars.nth(0).get_attribute("value").startswith("0.")
        assert bars.nth(1).get_attribute("value") == bars.nth(1).get_attribute("max")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        assert page.evaluate("document.activeElement.id") == "query"
        page.keyboard.press("?")  # in the query, it is a letter
        assert page.input_value("#query").endswith("?")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("?")
        page.locator("#help[open]").wait_for()
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "query"

    def test_export(self, page):
        show(page, "quoted", k=40)
        with page.expect_download() as download:
            page.click("#export")
        assert download.value.suggested_filename == "animals.csv"
        # Large integers are not rounded on the page either.
        assert "-9007199254740993" in page.locator(".hit > dl dd").all_inner_texts()
        text = download.value.path().read_text("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(rows) == 36
        by_id = {row["id"]: row for row in rows}
        for document in DOCUMENTS:
            row = by_id[document.id]
            assert (row["text"], row["title"]) == (document.text, document.title or "")
            for name, value in document.metadata.items():
                assert row[name] == (str(value) if value is not True else "true")
        assert by_id["robin"]["constructor"] == ""


def test_systems_side_by_side_with_lines_between_the_same_documents(page):
    show(page, "bird sings", view="systems")
    page.locator("#systems line").first.wait_for()
    assert page.locator(".system h2").all_inner_texts()[2:] == ["by words", "by both"]
    lists = [column.locator("li").all() for column in page.locator(".system").all()]
    ids = [[item.get_attribute("data-id") for item in items] for items in lists]
    shared = sum(len(set(a) & set(b)) for a, b in pairwise(ids))
    assert page.locator("#systems line").count() == shared
    page.locator("#toggle-systems").click()
    page.locator(".hit").first.press("s")
    page.locator("#like:not([hidden])").wait_for()
    page.locator("#toggle-systems").click()
    page.locator("#like").wait_for(state="hidden")
    page.locator("#systems line").first.wait_for()


#: Colour scheme, width, query, further settings of the address, and what they show.
STATES = [
    ("light", 360, "bird sings", {}, ".hit"),
    ("dark", 1200, "bird sings", {}, ".hit"),
    ("light", 360, "bird sings", {"view": "systems"}, ".system li"),
    ("light", 1200, "bird sings", {"view": "map"}, "#map canvas"),
    ("light", 1200, "", {}, "#overview .card"),
    ("light", 1200, "fish", {"open": "carp", "at": "0-5"}, "#document[open]"),
]


@pytest.mark.parametrize(
    ("scheme", "width", "query", "settings", "shown"),
    [STATES[0], *(pytest.param(*state, marks=pytest.mark.nightly) for state in STATES[1:])],
)
def test_axe_finds_no_violation(page, package, scheme, width, query, settings, shown):
    axe = package("axe_playwright_python.sync_playwright").Axe()
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    show(page, query, index="animals", **settings)
    page.locator(shown).first.wait_for()
    if not settings and page.locator("#filters").is_hidden():
        page.click("#toggle-filters")
    if shown == ".hit":
        page.locator("summary").first.click()
    found = axe.run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    assert found.violations_count == 0, found.generate_report()
    # Nothing is wider than the screen.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
