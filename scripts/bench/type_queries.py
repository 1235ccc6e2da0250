"""A query typed into the page of `semsearch serve`, in Chromium: when hits come.

Each run opens the page and presses the keys of one query with a delay between them. A key is
answered if the hits for the text so far are shown, and superseded if hits for a longer text are
shown instead. Something moves when new hits are shown or an animation runs.
"""

from __future__ import annotations

import shutil
from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

import numpy
from playwright.sync_api import Page, sync_playwright

from scripts.shared.frame import Table, new_parser, positive, report, served

QUERY = "a detective hunts a killer through the city"
SECONDS_TO_ANSWER = 120

#: Records, in milliseconds: keys as [text, time], the time of the first hits for each text, and the
#: times at which something moves.
RECORDER = """
const typed = (window.typed = { keys: [], shown: {}, moves: [] });
let moving = false;
const move = () => typed.moves.push(performance.now());
addEventListener("input", ({ target }) => {
  typed.keys.push([target.value, performance.now()]);
  if (moving) move();
}, true);
for (const kind of ["animation", "transition"]) {
  addEventListener(`${kind}start`, () => { moving = true; move(); }, true);
  for (const end of ["end", "cancel"])
    addEventListener(kind + end, () => { moving = false; }, true);
}
const send = window.fetch;
let answered = null;
window.fetch = async (path, options) => {
  const answer = await send(path, options);
  if (String(path).endsWith("/search")) answered = JSON.parse(options.body).query;
  return answer;
};
addEventListener("DOMContentLoaded", () => {
  const showing = () => {
    if (answered === null) return;
    typed.shown[answered] ??= performance.now();
    move();
  };
  const hits = document.getElementById("hits");
  new MutationObserver(showing).observe(hits, { childList: true });
});
"""


class Run(NamedTuple):
    """What happened while a query was typed; times are in milliseconds.

    Args:
        keys: number of keys.
        answered: number of keys whose hits were shown.
        superseded: number of keys for which hits of a later key were shown.
        last_key_to_hits: the time from the last key to its hits.
        first_key_to_movement: the time from the first key until something moves.
        tenth_key_to_movement: the same for the tenth key, or the last of fewer.
    """

    keys: int
    answered: int
    superseded: int
    last_key_to_hits: float
    first_key_to_movement: float
    tenth_key_to_movement: float


def main() -> None:
    """Measure, and print the table."""
    parser = new_parser("scripts/bench/typing", __doc__, repeats=20)
    add = parser.add_argument
    add("--index", type=Path, required=True, metavar="DIR", help="an index, such as one of films")
    add("--delay", type=positive, default=150, metavar="MS", help="between two keys (150)")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with served(arguments.index) as address:
            runs = []
            for _ in range(arguments.repeats):
                page = browser.new_page()
                runs.append(type_query(page, address, delay=arguments.delay))
                page.close()
        browser.close()
    rows: list[dict[str, object]] = [
        {"run": number, **one._asdict()} for number, one in enumerate(runs, start=1)
    ]
    worst = numpy.percentile([one[3:] for one in runs], 95, axis=0).tolist()
    rows.append({"run": "p95", **dict(zip(Run._fields[3:], worst, strict=True))})
    report(arguments, [Table("times in milliseconds", rows)])


def type_query(page: Page, address: str, query: str = QUERY, *, delay: float) -> Run:
    """Open the page, type a query, and wait for its hits.

    Args:
        page: a new page.
        address: of the service.
        query: the text.
        delay: the time between two keys in milliseconds.
    """
    page.add_init_script(RECORDER)
    page.goto(address)
    page.locator("#status:not(:empty)").wait_for()
    page.focus("#query")
    page.keyboard.type(query, delay=delay)
    for _ in range(20 * SECONDS_TO_ANSWER):
        typed = page.evaluate("window.typed")
        if query in typed["shown"]:
            break
        page.wait_for_timeout(50)
    else:
        raise TimeoutError(f"no hits within {SECONDS_TO_ANSWER} s")
    keys, shown, moves = typed["keys"], typed["shown"], typed["moves"]

    def until_movement(number: int) -> float:
        time: float = keys[number][1]
        return moves[bisect_left(moves, time)] - time

    answered = sum(text in shown for text, _ in keys)
    return Run(
        len(keys),
        answered,
        len(keys) - answered,
        shown[query] - keys[-1][1],
        until_movement(0),
        until_movement(min(9, len(keys) - 1)),
    )


if __name__ == "__main__":
    main()
