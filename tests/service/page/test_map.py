"""The map on the page: selections, hits, late answers."""

from __future__ import annotations

import pytest
from browsing import expect_titles, show, until

pytest.importorskip("embedding_atlas", reason="a map needs the extra 'map'")

LIT = """() => {
    const box = document.querySelector(".embedding-atlas-widget-container > div");
    return box?.shadowRoot.querySelectorAll("circle[fill='#d61f1f']").length === 10;
}"""


def select_on_map(page):
    """Select the documents in a large rectangle."""
    box = page.locator("#map canvas").first.bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 10, box["y"] + box["height"] - 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 10, box["y"] + box["height"] * 0.25, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")


@pytest.mark.slow
class TestMap:
    def test_hits_are_highlighted_and_a_selection_is_searched(self, page):
        show(page, "bird sings", view="map")
        until(page, LIT)
        select_on_map(page)
        page.locator("#selection:not([hidden])").wait_for()
        # While the rectangle grows, few or none are selected.
        until(page, "/ ([1-9]|[12]\\d|3[0-5]) /.test(document.body.innerText)")
        page.click("#leave-selection")
        page.locator("#selection").wait_for(state="hidden")
        until(page, LIT)

        # A key shows a hit on the map; the list may be redrawn at that moment.
        def press():
            page.locator(".hit").nth(1).focus()
            page.keyboard.press("p")

        until(
            page,
            """() => {
                const root = document.querySelector(
                    ".embedding-atlas-widget-container > div")?.shadowRoot;
                const canvas = root?.querySelector("canvas");
                const text = [...(root?.querySelectorAll("text[font-size='11']") ?? [])]
                    .find((one) => one.textContent === "2");
                if (!text || !canvas) return false;
                const off = Math.abs(text.getAttribute("x") - canvas.clientWidth / 2);
                return off < 2;
            }""",
            press,
        )

    def test_marks_follow_the_size_of_the_canvas(self, page):
        """Its size changes later than that of the section, and when a panel is shown."""
        show(page, "bird sings", view="map")
        until(page, LIT)
        root = "document.querySelector('.embedding-atlas-widget-container > div').shadowRoot"
        page.evaluate(
            f"{root}.querySelector('canvas').style.setProperty('max-width', '200px', 'important')"
        )
        svg = f"{root}.querySelector('circle[fill=\"#d61f1f\"]').ownerSVGElement"
        until(page, f"{svg}.getAttribute('width') === '200'")

    def test_errors_of_its_queries_are_shown(self, page):
        problem = {"detail": "the map is gone"}
        show(page, "bird sings", view="map")
        until(page, LIT)
        page.route("**/map/query", lambda route: route.fulfill(status=404, json=problem))
        page.fill("#query", "fish")
        page.get_by_text("the map is gone").wait_for()
        until(page, f"!({LIT})()")
        page.wrong.clear()  # the browser logs the status 404

    def test_another_version_is_opened(self, page):
        """After a restart of the service, for example; a selection ends."""
        show(page, "bird sings", view="map")
        until(page, LIT)
        select_on_map(page)
        page.locator("#selection:not([hidden])").wait_for()
        problem = {"detail": "the map has changed; open it again"}
        refuse = lambda route: route.fulfill(status=409, json=problem)  # noqa: E731
        page.route("**/map/query", refuse, times=1)
        with page.expect_response("**/map"):
            page.fill("#query", "fish")
        page.locator("#selection").wait_for(state="hidden")
        until(page, LIT)
        assert page.locator("#error").is_hidden()
        assert page.locator(".embedding-atlas-widget-container").count() == 1
        page.wrong.clear()  # the browser logs the status 409

    def test_similar_documents_among_many_selected(self, page):
        """Their ids do not fit in a URL, and longer ones not in a filter."""
        ids = ["robin", "gull", *(f"{number:040}" for number in range(1998))]

        def answer(route):
            if "SELECT DISTINCT id" in route.request.post_data_json["sql"]:
                route.fulfill(json=[{"id": id_} for id_ in ids])
            else:
                route.continue_()

        page.route("**/map/query", answer)
        show(page, "bird sings", view="map")
        until(page, LIT)
        select_on_map(page)
        page.get_by_text("Searching 2,000 selected documents").wait_for()
        until(page, "document.querySelectorAll('.hit').length === 2")
        page.locator(".hit", has_text="Robin").press("s")
        until(page, "document.querySelectorAll('.hit').length === 1")
        expect_titles(page, "gull")
        page.click("#leave-like")
        page.click("#leave-selection")
        ids[2:] = [id_ + "x" * 20 for id_ in ids[2:]]
        until(page, LIT)
        select_on_map(page)
        page.get_by_text("Too many documents selected").wait_for()
        until(page, "document.querySelectorAll('.hit').length === 10")

    def test_an_answer_that_was_overtaken_is_not_shown(self, page):
        """The positions of the first search's hits arrive after those of the second."""
        show(page, "bird sings", view="map")
        until(page, LIT)
        held = {}

        def hold(route):
            sql = route.request.post_data_json["sql"]
            if "__start AS" in sql:
                held[sql] = route
            else:
                route.continue_()

        def held_for(text):
            """The request for the positions of the hits for `text`, listed by rank."""

            def is_answer(response):
                sent = response.request.post_data_json
                return response.url.endswith("/search") and sent["query"] == text

            with page.expect_response(is_answer) as answer:
                page.fill("#query", text)
            hits = answer.value.json()["hits"]
            ids = [hit["id"].replace("'", "''") for hit in hits]
            keys = ", ".join(
                f"('{id_}', {hit['start']})" for id_, hit in zip(ids, hits, strict=True)
            )
            for _ in range(200):
                for sql, route in held.items():
                    if keys in sql:
                        return route
                page.wait_for_timeout(50)
            raise AssertionError(f"{keys} not requested, but {list(held)}")

        # The ranks of the marks from left to right, as the canvas may change its width.
        marks = """() => [...document.querySelector(".embedding-atlas-widget-container > div")
            .shadowRoot.querySelectorAll("circle[fill='#d61f1f']")]
            .map((one, rank) => [Number(one.getAttribute("cx")), rank])
            .sort(([one], [other]) => one - other).map(([, rank]) => rank).join(" ")"""
        first = page.evaluate(marks)
        page.route("**/map/query", hold)
        overtaken, last = held_for("fish"), held_for("red")
        last.continue_()
        until(page, f"() => ({marks})() !== {first!r}")
        second = page.evaluate(marks)
        with page.expect_response(lambda response: response.request == overtaken.request):
            overtaken.continue_()
        page.wait_for_timeout(300)
        assert page.evaluate(marks) == second

    def test_answers_for_a_closed_map_are_not_shown(self, page):
        """The positions of its hits arrive when another map is open."""
        show(page, "bird sings", index="animals", view="map")
        until(page, LIT)
        held = []

        def hold(route):
            if len(held) < 2 and "__start AS" in route.request.post_data_json["sql"]:
                held.append(route)
            else:
                route.continue_()

        def until_held(count):
            while len(held) < count:
                page.wait_for_timeout(50)

        page.route("**/map/query", hold)
        page.fill("#query", "fish")
        until_held(1)
        page.locator(".hit").first.press("p")
        until_held(2)
        page.select_option("#index", "other")
        page.get_by_text("semsearch map").wait_for()
        page.select_option("#index", "animals")
        until(page, LIT)
        map_of_now = "document.querySelector('.embedding-atlas-widget-container > div')"
        page.evaluate(f"{map_of_now}.dataset.seen = 'yes'")
        for route in held:
            with page.expect_response("**/map/query"):
                route.continue_()
            page.wait_for_timeout(500)
            assert page.evaluate(LIT)
        assert page.evaluate(f"{map_of_now}.dataset.seen") == "yes"
        page.wrong.clear()  # the browser logs the status 404 of the index without a map

    def test_typing_while_it_loads_opens_it_once(self, page):
        asked = []
        page.route("**/map", lambda route: asked.append(route))
        show(page, "bird sings", view="map")
        page.fill("#query", "fish")
        until(page, "document.getElementById('query').value === 'fish'")
        page.wait_for_timeout(400)
        page.click("#toggle-map")
        page.click("#toggle-map")
        page.wait_for_timeout(200)
        for route in asked:
            route.continue_()
        until(page, LIT)
        assert len(asked) == 1
        assert page.locator(".embedding-atlas-widget-container").count() == 1

    def test_without_a_map_it_says_how_to_make_one(self, page):
        show(page, "bird", index="other", view="map")
        page.get_by_text("semsearch map").wait_for()
        page.wrong.clear()  # the browser logs the status 404


@pytest.mark.slow
def test_axe_finds_no_violation_around_the_map(page, package):
    axe = package("axe_playwright_python.sync_playwright").Axe()
    show(page, "bird sings", view="map")
    page.locator("#map canvas").first.wait_for()
    context = {"exclude": [["#map"]]}
    found = axe.run(page, context=context, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()
