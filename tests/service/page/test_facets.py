"""Facets, fields, duplicates and the nearest filter on the page."""

from __future__ import annotations

import pytest
from birds import running
from browsing import show, until

from semsearch import Document, Index

PICTURE = "https://elsewhere.example/1.png"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    from semsearch.explore.map import make_map

    path = tmp_path_factory.mktemp("indexes") / "answers"
    with Index.create(path, "hashing") as index:
        index.add(
            Document(
                f"a{n}",
                "No comment." if n < 13 else f"The canteen in house {n} is loud.",
                metadata={
                    "city": f"City {n % 60}",
                    "score": n % 5,
                    "width": n,
                    "picture": PICTURE,
                    "page": f"https://elsewhere.example/{n}",
                    "kind": "loud" if n > 100 else "quiet",
                },
            )
            for n in range(150)
        )
        make_map(index).save(path)
    with running({"answers": path}) as (_, port):
        yield f"http://localhost:{port}"


def test_a_range_has_a_histogram_and_many_values_are_completed(page):
    show(page)
    page.locator("[data-field=city]").wait_for()
    names = page.locator(".facet").evaluate_all("all => all.map((one) => one.dataset.field)")
    assert set(names) == {"city", "score", "kind", "picture"}
    assert page.locator("[data-field=score] rect.now").count() == 5
    page.get_by_label("city: another value").fill("59")
    until(page, "document.querySelectorAll('datalist option').length === 1")
    options = page.locator("datalist option").evaluate_all("all => all.map((one) => one.value)")
    assert options == ["City 59"]
    page.get_by_label("city: another value").fill("City 59")
    page.keyboard.press("Enter")
    page.get_by_text("2 of 150 documents match").wait_for()
    # Without a query, the documents take the place of the topics.
    until(page, "document.querySelectorAll('#overview .card').length === 2")


def test_values_of_the_first_screen_filter(page):
    show(page)
    page.locator("#overview .fields .chip", has_text="loud").first.click()
    page.locator("#chips .chip").first.wait_for()


def test_documents_with_the_same_text_are_one_hit(page):
    show(page, "no comment")
    same = page.locator(".hit").first.locator(".same summary")
    same.wait_for()
    assert same.inner_text() == "13 ×"
    page.locator(".hit").first.press("d")
    page.locator(".same button").first.click()
    page.locator("#document[open]").wait_for()
    assert page.inner_text("#document-text") == "No comment."


def test_hits_show_chosen_fields_and_load_pictures_only_if_asked_for(page):
    asked = []
    page.route("https://elsewhere.example/**", lambda route: (asked.append(1), route.abort()))
    show(page, "canteen")
    page.locator(".hit").first.wait_for()
    fields = ".hit:first-child > dl dt"
    assert set(page.locator(fields).all_inner_texts()) == {"city", "score", "page", "kind"}
    assert page.locator(".hit dd a").first.get_attribute("href").startswith("https://elsewhere")
    page.click("#choose-fields summary")
    page.locator("#shown-fields").get_by_label("picture", exact=True).check()
    until(page, "document.querySelector('.hit dl').textContent.includes('.png')")
    page.locator("#shown-fields").get_by_label("city").uncheck()
    until(page, "!document.querySelector('.hit dl').textContent.includes('City')")
    assert not asked
    page.click("text=load pictures")
    page.locator(".hit img").first.wait_for(state="attached")
    page.wait_for_timeout(300)
    assert asked
    page.wrong.clear()  # the pictures are not there


def test_a_filter_that_matches_nothing_offers_the_nearest(page):
    show(page, "canteen", where="kind = 'lound'")
    page.locator("#use-nearest").wait_for()
    assert page.inner_text("#use-nearest") == "kind = 'loud'"
    page.click("#use-nearest")
    until(page, "document.querySelectorAll('.hit').length > 0")
    show(page, "canteen", where="score > 7")
    page.locator("#use-nearest", has_text="score >= 4").wait_for()


def test_the_map_is_coloured_by_a_field_and_saved_for_embedding_atlas(page, tmp_path):
    from pyarrow import parquet

    show(page, "canteen", view="map")
    page.locator("#map canvas").wait_for()
    until(page, "document.querySelectorAll('#map option').length > 1")
    page.select_option("#map select", "kind")
    page.locator("#map li", has_text="quiet (101)").wait_for()
    page.select_option("#map select", "")
    page.locator("#map li", has_text="quiet (101)").wait_for(state="detached")
    with page.expect_download() as download:
        page.click("text=Open in Embedding Atlas")
    download.value.save_as(tmp_path / "map.parquet")
    table = parquet.read_table(tmp_path / "map.parquet")
    assert {"id", "text", "x", "y", "group", "kind"} <= set(table.column_names)
    assert table.num_rows == 150
