"""A whole document on the page."""

from __future__ import annotations

from birds import asking
from browsing import DOCUMENTS, expect_titles, show, until

from semsearch import Document, Index

OPEN = "document.getElementById('document').open"
NOTE = """# Bread

Mix *flour* and water. <script>document.title = 'taken'</script>

![a picture](https://elsewhere.example/picture.png)

```python
bake("# not a heading")
```

| minutes | degrees |
|---|---|
| 40 | 230 |

[more](javascript:alert(1)) [and](https://example.org/)
"""


def test_opens_by_a_key_and_closes_by_escape_and_back(page):
    show(page, "blue fish pond")
    expect_titles(page, "Carp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("o")
    page.locator("#document[open]").wait_for()
    assert page.inner_text("#document-title") == "Carp"
    assert page.inner_text("#document-place") == "carp"
    assert page.inner_text("#document-text") == DOCUMENTS[1].text
    shared = page.url
    page.keyboard.press("Escape")
    until(page, f"!{OPEN} && !location.search.includes('open=')")
    page.goto(shared)
    page.locator("#document[open]").wait_for()
    page.click("#more-like")
    page.locator("#like:not([hidden])").wait_for()
    page.go_back()
    until(page, OPEN)


def test_markdown_becomes_safe_html_with_the_blocks_of_a_passage_marked(tmp_path):
    with Index.create(tmp_path / "notes", "hashing") as index:
        index.add([Document("bread.md", NOTE), Document("bread.txt", NOTE)])

    def html(name, **parameters):
        parameters |= {"id": name, "html": True}
        return client.get("/v1/indexes/notes/documents", params=parameters).json()["html"]

    with asking({"notes": tmp_path / "notes"}) as client:
        bread = html("bread.md")
        for part in ("<h1>Bread</h1>", "<em>flour</em>", "# not a heading", "<td>230</td>"):
            assert part in bread
        for forbidden in ("<script", "<img", 'href="javascript'):
            assert forbidden not in bread
        assert 'href="https://example.org/"' in bread
        assert html("bread.txt") is None
        start = NOTE.index("```python")
        marked = html("bread.md", start=start, end=start + 20)
        assert marked.count("passage") == 1
        assert 'class="passage"' in marked.partition("bake")[0].rpartition("<pre>")[2]
        start = NOTE.index("| 40")
        assert '<tr class="passage">' in html("bread.md", start=start, end=start + 5)
