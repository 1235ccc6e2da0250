"""The map on the page: hits, selections, keys."""

from __future__ import annotations

from browsing import show, until

#: Whether a canvas has pixels of the marks of hits.
LIT = """() => {
    const canvas = document.querySelector("#map canvas");
    if (!canvas?.width) return false;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4)
        if (data[i] === 200 && data[i + 1] === 30 && data[i + 2] === 30) return true;
    return false;
}"""


def test_hits_are_marked_and_a_lasso_a_group_or_a_point_selects(page):
    show(page, "bird sings", view="map")
    until(page, LIT)
    box = page.locator("#map canvas").bounding_box()
    left, right = box["x"] + 3, box["x"] + box["width"] - 3
    top, bottom = box["y"] + 3, box["y"] + box["height"] - 3
    page.click("text=Lasso")
    page.mouse.move(left, top)
    page.mouse.down()
    for place in ((right, top), (right, bottom), (left, bottom)):
        page.mouse.move(*place)
    page.mouse.up()
    # All but the outermost points are in view.
    until(page, "/ (3[0-6]) selected/.test(document.getElementById('selection-size').textContent)")
    page.click("#leave-selection")
    page.locator("#selection").wait_for(state="hidden")
    group = page.locator("#map li button").first
    count = group.inner_text().rpartition("(")[2].rstrip(")")
    group.focus()
    page.keyboard.press("Enter")
    until(page, f"document.body.innerText.includes('Searching {count} selected document')")
    page.click("#leave-selection")
    page.locator(".hit").nth(1).focus()
    page.keyboard.press("p")  # moves the hit to the middle
    until(page, LIT)
    canvas = page.locator("#map canvas")
    canvas.scroll_into_view_if_needed()
    for _ in range(20):
        page.click("text=Zoom in")
    page.wait_for_timeout(100)
    canvas.click()
    page.get_by_text("Searching 1 selected document").wait_for()
    until(page, "document.querySelectorAll('.hit').length === 1")


def test_keys_move_the_map_and_hovering_shows_the_text(page):
    show(page, "bird sings", view="map")
    until(page, LIT)
    canvas = page.locator("#map canvas")
    canvas.focus()
    before = canvas.screenshot()
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(200)
    moved = canvas.screenshot()
    assert moved != before
    page.locator(".hit").first.focus()
    page.keyboard.press("p")
    page.wait_for_timeout(200)
    canvas.hover()
    page.locator("#map .tip", has_text="A red bird sings. It sits in a tree.").wait_for()
