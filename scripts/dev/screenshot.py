"""Takes a screenshot of the page: the sample corpus, a query, the map."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from scripts.shared.frame import SEMSEARCH, run, served

PICTURE = Path(__file__).parents[2] / "docs" / "page.png"
SHOWN = {"query": "how do I soothe my mouth after eating something too spicy", "view": "map"}


def main() -> None:
    with TemporaryDirectory() as folder:
        index = Path(folder) / "notes"
        run([*SEMSEARCH, "index", "--sample", "--index", index])
        run([*SEMSEARCH, "map", "--index", index])
        with served(index) as address:
            draw(f"{address}/?{urlencode(SHOWN)}")
    print(PICTURE)


def draw(address: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--enable-unsafe-swiftshader"],
        )
        page = browser.new_page(viewport={"width": 1400, "height": 860})
        page.goto(address, wait_until="domcontentloaded")
        page.locator("#map canvas").first.wait_for()
        page.locator("#map circle[fill='#d61f1f']").first.wait_for()
        page.wait_for_timeout(3_000)  # until the charts have been drawn
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
