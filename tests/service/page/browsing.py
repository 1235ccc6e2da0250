"""The documents that the page shows, and what a person does on it."""

from __future__ import annotations

from semsearch import Document

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
ODD = {"kind": HOSTILE, "wild": True, "constructor": "Ferrari", "__proto__": "of an object"}
TREE = "A red bird sings. It sits in a tree."
DOCUMENTS = [
    Document("robin", TREE, "Robin", {"year": 1999, "kind": "bird"}),
    Document("carp", "A blue fish swims in the pond.", "Carp", {"year": 2005, "kind": "fish"}),
    Document("gull", "A white bird flies over the sea.", None, {"year": 2010, "kind": "bird"}),
    Document("bad/one's", f"A bird with {HOSTILE}", HOSTILE, ODD),
    Document("arabic", "طائر bird يغني", "طائر", {"year": 2015, "day": "2020-05-01"}),
    Document(
        "many",
        'A fish, "quoted", says 🐟🐟. A bird answers the fish.',
        "Two, of them",
        # 2 ** 53 + 1 is the smallest integer that a Number of JavaScript rounds.
        {"post": 2**53 + 1, "replies": [-(2**53) - 1]},
    ),
    *(
        Document(f"fish {n}", f"Fish number {n} swims.", None, {"year": 1900 + n})
        for n in range(30)
    ),
]


def show(page, query="", **settings):
    """Open the page and wait for its hits."""
    parameters = "&".join(f"{key}={value}" for key, value in {"query": query, **settings}.items())
    page.goto(f"{page.address}/?{parameters}")
    until(page, "document.getElementById('status').textContent !== ''")


def until(page, expression, again=None):
    """Wait for a condition on the page, whose policy refuses Playwright's own way to wait.

    Args:
        page: the page.
        expression: JavaScript that becomes true.
        again: called every two seconds until then.
    """
    for place in range(1200):
        if again is not None and place % 40 == 0:
            again()
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def titles(page):
    return page.locator("#hits h2 span:nth-child(2)").all_inner_texts()


def expect_titles(page, *expected):
    first = page.locator("#hits h2 span:nth-child(2)")
    for place, title in enumerate(expected):
        first.nth(place).get_by_text(title, exact=True).wait_for()
