"""The map on the page: selections, hits, late answers."""

from __future__ import annotations

import pytest
from browsing import show, until

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

    @pytest.mark.nightly
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


@pytest.mark.nightly
def test_axe_finds_no_violation_around_the_map(page, package):
    axe = package("axe_playwright_python.sync_playwright").Axe()
    show(page, "bird sings", view="map")
    page.locator("#map canvas").first.wait_for()
    context = {"exclude": [["#map"]]}
    found = axe.run(page, context=context, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()
