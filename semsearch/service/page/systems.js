// The rankings of several systems side by side, with lines between the same documents.

import { element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

/** Show rankings by system: { name: hits }. */
export function showSystems(section, systems) {
  const columns = Object.entries(systems).map(([name, hits]) =>
    element(
      "div",
      { class: "system" },
      element("h2", {}, name),
      element(
        "ol",
        { "aria-label": name },
        ...hits.map((hit) =>
          element(
            "li",
            { "data-id": hit.id, tabindex: "0", title: hit.text },
            element("span", { class: "rank" }, String(hit.rank)),
            element("span", { dir: "auto", class: "name" }, hit.title || hit.text),
            element("span", { class: "score" }, hit.score.toFixed(3)),
          ),
        ),
      ),
    ),
  );
  const lines = document.createElementNS(SVG, "svg");
  lines.setAttribute("aria-hidden", "true");
  section.replaceChildren(lines, ...columns);
  connect(section, lines, columns);
}

/** Redraw the lines after the section was resized. */
export function redrawLines(section) {
  const lines = section.querySelector("svg");
  if (lines) connect(section, lines, [...section.querySelectorAll(".system")]);
}

function connect(section, lines, columns) {
  lines.replaceChildren();
  const origin = section.getBoundingClientRect();
  lines.setAttribute("width", section.scrollWidth);
  lines.setAttribute("height", section.scrollHeight);
  const toRight = getComputedStyle(section).direction === "ltr";
  for (let i = 1; i < columns.length; i++) {
    const left = boxes(columns[i - 1]);
    const right = boxes(columns[i]);
    for (const [id, from] of left) {
      const to = right.get(id);
      if (!to) continue;
      const line = document.createElementNS(SVG, "line");
      const x = section.scrollLeft - origin.left;
      const y = section.scrollTop - origin.top;
      line.setAttribute("x1", (toRight ? from.right : from.left) + x);
      line.setAttribute("x2", (toRight ? to.left : to.right) + x);
      line.setAttribute("y1", (from.top + from.bottom) / 2 + y);
      line.setAttribute("y2", (to.top + to.bottom) / 2 + y);
      lines.append(line);
    }
  }
}

function boxes(column) {
  return new Map(
    [...column.querySelectorAll("li")].map((item) => [
      item.dataset.id,
      item.getBoundingClientRect(),
    ]),
  );
}
