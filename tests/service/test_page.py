"""The search page in Chromium, driven by Playwright and checked by axe-core."""

from __future__ import annotations

import csv
import io
import re
import threading
import time
from itertools import pairwise

import pytest
from fastapi.testclient import TestClient

from semsearch import Document, Index
from semsearch.maps import make_map

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")

from semsearch.service import Settings, create_app
from semsearch.service.pages import PAGE

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
#: Messages of Embedding Atlas without a GPU, and when it is removed while loading.
ATLAS_MESSAGES = (
    "Could not request WebGPU",
    "Could not get WebGPU",
    "Cleared",
    "Failed to create default charts",
    "Error while generating labels",
)
DOCUMENTS = [
    Document(
        "robin", "A red bird sings. It sits in a tree.", "Robin", {"year": 1999, "kind": "bird"}
    ),
    Document("carp", "A blue fish swims in the pond.", "Carp", {"year": 2005, "kind": "fish"}),
    Document("gull", "A white bird flies over the sea.", None, {"year": 2010, "kind": "bird"}),
    Document("bad/one's", f"A bird with {HOSTILE}", HOSTILE, {"kind": HOSTILE, "wild": True}),
    Document("arabic", "طائر bird يغني", "طائر", {"year": 2015, "day": "2020-05-01"}),
    Document("many", 'A fish, "quoted", says 🐟🐟. A bird answers the fish.', "Two, of them"),
    *(
        Document(f"fish {n}", f"Fish number {n} swims.", None, {"year": 1900 + n})
        for n in range(30)
    ),
]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("indexes")
    for name, documents in (("animals", DOCUMENTS), ("other", DOCUMENTS[:2])):
        with Index.create(folder / name, ["hashing", "hashing:64"]) as index:
            index.add(documents)
            if name == "animals":
                make_map(index).save(index.path)
    return {name: folder / name for name in ("animals", "other")}


def test_page_needs_no_token_but_its_requests_do(indexes):
    app = create_app(indexes, Settings(token="secret"))
    with TestClient(app, base_url="http://localhost") as client:
        page = client.get("/")
        assert page.status_code == 200
        for link in re.findall(r'(?:href|src)="(page/[^"]+)"', page.text):
            assert client.get(link).status_code == 200
        assert client.get("/v1/indexes").status_code == 401
        assert client.get("/page/../app.py").status_code in (401, 404)
        assert client.get("/page/%2e%2e/app.py").status_code == 404


def test_policy_allows_only_the_service(indexes):
    with TestClient(create_app(indexes), base_url="http://localhost") as client:
        policy = client.get("/").headers["content-security-policy"]
    assert "'unsafe-inline'" not in policy
    assert "'unsafe-eval'" not in policy
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "http" not in policy
    for file in PAGE.iterdir():  # no address of another host
        assert not re.search(r"(https?:)?//(?!www\.w3\.org/)\w+\.", file.read_text("utf-8")), file


@pytest.fixture(scope="module")
def browser(program, package):
    executable = program("chromium")
    playwright = package("playwright.sync_api").sync_playwright().start()
    options = ["--no-sandbox", "--enable-unsafe-swiftshader"]
    browser = playwright.chromium.launch(executable_path=executable, args=options)
    yield browser
    browser.close()
    playwright.stop()


@pytest.fixture(scope="module")
def serve(indexes):
    """Serves the indexes and returns the address."""
    import uvicorn

    running = []

    def started(**settings):
        app = create_app(indexes, Settings(**settings))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.02)
        return f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"

    yield started
    for server, thread in running:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def address(serve):
    return serve()


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
    assert [one for one in page.wrong if not one.startswith(ATLAS_MESSAGES)] == []


def show(page, query="", **settings):
    """Open the page and wait for its hits."""
    parameters = "&".join(f"{key}={value}" for key, value in {"query": query, **settings}.items())
    page.goto(f"{page.address}/?{parameters}")
    until(page, "document.getElementById('status').textContent !== ''")


def test_midnight_is_not_shown(page):
    show(page)
    shown = "import(new URL('page/hits.js', location)).then((hits) => hits.shown('{}'))"
    assert page.evaluate(shown.format("2024-09-01T00:00:00")) == "2024-09-01"
    assert page.evaluate(shown.format("2024-09-01T08:30:00")) == "2024-09-01T08:30:00"


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


@pytest.mark.slow
class TestSearch:
    def test_searches_while_typing(self, page):
        show(page)
        assert page.inner_text("#status") == "36 documents, 36 passages"
        page.keyboard.type("blue fish pond")  # the query has the focus
        expect_titles(page, "Carp")
        assert "query=blue+fish+pond" in page.url
        assert page.title() == "blue fish pond – semsearch"

    def test_the_last_query_wins(self, page):
        held = []

        def slow(route):
            if "slow" in route.request.post_data:
                held.append(route)  # its answer comes after that of the next query
            else:
                route.continue_()

        page.route("**/search", slow)
        show(page)
        page.fill("#query", "slow white sea")
        page.wait_for_timeout(300)
        page.fill("#query", "blue fish pond")
        expect_titles(page, "Carp")
        (late,) = held
        late.continue_()
        page.wait_for_timeout(300)
        assert titles(page)[0] == "Carp"

    def test_hits_of_an_earlier_query_are_marked(self, page):
        held = []
        show(page, "red bird sings")
        page.route("**/search", lambda route: held.append(route))
        page.fill("#query", "blue fish pond")
        page.locator("#hits[aria-busy='true']").wait_for()
        until(page, "getComputedStyle(document.getElementById('hits')).opacity < 1")
        assert titles(page)[0] == "Robin"
        while not held:
            page.wait_for_timeout(50)
        held[0].continue_()
        page.locator("#hits[aria-busy='false']").wait_for()
        assert titles(page)[0] == "Carp"

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
        page.go_back()
        until(page, "document.querySelectorAll('.hit').length === 10")

    def test_enter_keeps_each_query_in_the_history(self, page):
        show(page, index="animals")
        for query, title in (("blue fish pond", "Carp"), ("red bird sings", "Robin")):
            page.fill("#query", query)
            page.keyboard.press("Enter")
            expect_titles(page, title)
        page.go_back()  # with the focus in the query
        expect_titles(page, "Carp")
        assert page.input_value("#query") == "blue fish pond"

    def test_an_index_whose_fields_come_late_or_never(self, page):
        held, problem = [], {"detail": "too many requests"}
        page.route("**/animals/fields", lambda route: held.append(route))
        show(page, "fish", index="other")
        page.select_option("#index", "animals")
        until(page, "new Promise((done) => setTimeout(() => done(true), 300))")
        page.select_option("#index", "other")
        until(page, "location.search.includes('index=other')")
        held[0].continue_()
        page.wait_for_timeout(300)
        assert "index=other" in page.url
        assert page.locator("#fields :text('wild')").count() == 0
        page.unroute("**/animals/fields")
        page.route("**/animals/fields", lambda route: route.fulfill(status=429, json=problem))
        page.select_option("#index", "animals")
        page.get_by_text("too many requests").wait_for()
        page.wrong.clear()  # the browser logs the status 429

    def test_buttons_beside_compared_systems(self, page):
        show(page, index="animals", view="systems")
        assert page.is_disabled("#export")
        page.fill("#query", "fish")
        until(page, "!document.getElementById('systems').hidden")
        until(page, "!document.getElementById('export').disabled")
        assert page.is_visible("#more")

    def test_more_hits(self, page):
        show(page, "fish")
        assert page.locator(".hit").count() == 10
        page.click("#more")
        until(page, "document.querySelectorAll('.hit').length === 20")

    def test_errors_are_shown(self, page):
        show(page, "fish")
        page.click("#toggle-filters")
        page.fill("#where", "yeer = 3")
        page.keyboard.press("Enter")
        page.locator("#error:not([hidden])").wait_for()
        assert "yeer" in page.inner_text("#error")
        page.click("#clear-filters")
        page.locator("#error").wait_for(state="hidden")
        page.wrong.clear()  # the browser logs the status 422

    def test_a_token_is_asked_for_once(self, browser, serve):
        address = serve(token="secret")
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}/?query=robin")
        page.locator("#sign-in[open]").wait_for()
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
        page.locator("#sign-in[open]").wait_for()
        page.fill("#token", "secret")
        page.keyboard.press("Enter")
        page.locator(".hit").first.wait_for()
        page.reload()
        page.locator(".hit").first.wait_for()
        assert not page.locator("#sign-in[open]").count()
        context.close()


@pytest.mark.slow
class TestFilters:
    def test_fields_have_controls(self, page):
        show(page, "bird")
        page.click("#toggle-filters")
        page.get_by_label("year from").fill("2000")
        page.get_by_label("year to").fill("2010")
        page.keyboard.press("Tab")
        until(page, "document.querySelectorAll('.hit').length === 2")
        assert sorted(titles(page)) == ["Carp", "gull"]
        page.get_by_label("kind", exact=True).fill("bird")
        page.keyboard.press("Tab")
        until(page, "document.querySelectorAll('.hit').length === 1")
        # The URL shows the same to others.
        shared = page.context.new_page()
        shared.goto(page.url)
        shared.locator(".hit").first.wait_for()
        assert titles(shared) == ["gull"]
        assert shared.locator("#filters").is_visible()

    def test_values_with_quotes_booleans_and_days(self, page):
        show(page, "bird")
        page.click("#toggle-filters")
        page.get_by_label("kind", exact=True).fill(HOSTILE)
        page.keyboard.press("Tab")
        expect_titles(page, HOSTILE)
        page.click("#clear-filters")
        page.get_by_label("wild").select_option("true")
        until(page, "document.querySelectorAll('.hit').length === 1")
        page.click("#clear-filters")
        page.get_by_label("day from").fill("2020-05-01")
        page.get_by_label("day to").fill("2020-05-01")
        page.keyboard.press("Tab")
        expect_titles(page, "طائر")


@pytest.mark.slow
class TestHits:
    def test_texts_are_escaped(self, page):
        show(page, "taken onerror")
        expect_titles(page, HOSTILE)
        assert HOSTILE in page.locator(".hit .text").first.inner_text()
        assert page.locator("#hits img, #hits script").count() == 0
        page.click("#toggle-systems")
        page.locator(".system li").first.wait_for()
        assert page.locator("#systems img, #systems script").count() == 0
        assert page.title() != "taken"

    def test_the_nearest_sentence_is_marked(self, page):
        show(page, "answers")
        marked = page.locator(".hit", has_text="quoted").locator("mark")
        assert marked.inner_text().strip() == "A bird answers the fish."

    def test_keyboard_shortcuts(self, page):
        show(page, "bird sings")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.rank") == "1"
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.rank") == "2"
        page.keyboard.press("e")
        assert page.locator(".hit details[open]").count() == 1
        assert "cosine" in page.locator(".hit details[open]").inner_text()
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

    def test_similar_documents_by_one_key_and_back(self, page):
        show(page, "taken onerror")  # the first one's id has a slash and a quote
        page.keyboard.press("ArrowDown")
        page.keyboard.press("s")
        page.locator("#like:not([hidden])").wait_for()
        assert page.inner_text("#like-id") == "bad/one's"
        page.locator("#hits[aria-busy='false']").wait_for()
        assert len(titles(page)) == 10
        assert HOSTILE not in titles(page)
        page.go_back()
        expect_titles(page, HOSTILE)

    def test_export(self, page):
        show(page, "quoted", k=40)
        with page.expect_download() as download:
            page.click("#export")
        assert download.value.suggested_filename == "animals.csv"
        text = download.value.path().read_text("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(rows) == 36
        by_id = {row["id"]: row for row in rows}
        for document in DOCUMENTS:
            row = by_id[document.id]
            assert (row["text"], row["title"]) == (document.text, document.title or "")
            for name, value in document.metadata.items():
                assert row[name] == (str(value) if value is not True else "true")


@pytest.mark.slow
def test_systems_side_by_side_with_lines_between_the_same_documents(page):
    show(page, "bird sings", view="systems")
    page.locator("#systems line").first.wait_for()
    systems = {
        column.locator("h2").inner_text(): [
            item.get_attribute("data-id") for item in column.locator("li").all()
        ]
        for column in page.locator(".system").all()
    }
    assert list(systems)[-1] == "bm25"
    assert len(systems) == 3
    ids = list(systems.values())
    shared = sum(len(set(a) & set(b)) for a, b in pairwise(ids))
    assert page.locator("#systems line").count() == shared
    page.locator("#toggle-systems").click()
    page.locator(".hit").first.wait_for()


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
@pytest.mark.parametrize(
    ("scheme", "width", "view"),
    [
        ("light", 1200, ""),
        ("dark", 1200, ""),
        ("light", 360, ""),
        ("dark", 1200, "systems"),
        ("light", 360, "systems"),
    ],
)
def test_axe_finds_no_violation(page, package, scheme, width, view):
    axe = package("axe_playwright_python.sync_playwright").Axe()
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    show(page, "bird sings", view=view, index="animals")
    page.click("#toggle-filters")
    if not view:
        page.locator("summary").first.click()
    found = axe.run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    assert found.violations_count == 0, found.generate_report()
    # Nothing is wider than the screen.
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_axe_finds_no_violation_around_the_map(page, package):
    axe = package("axe_playwright_python.sync_playwright").Axe()
    show(page, "bird sings", view="map")
    page.locator("#map canvas").first.wait_for()
    context = {"exclude": [["#map"]]}
    found = axe.run(page, context=context, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.slow
def test_right_to_left_scripts(page):
    show(page, "طائر")
    expect_titles(page, "طائر")
    hit = page.locator(".hit").first
    assert hit.locator(".text").evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert page.locator("#query").evaluate("one => getComputedStyle(one).direction") == "rtl"
