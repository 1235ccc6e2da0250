// The rankings of several systems side by side, with lines between the same documents.

import { drawing, element } from "./dom.js";

/** Show rankings by system: { name: hits }. */
export function showSystems(section, systems) {
  const columns = Object.entries(systems).map(([name, hits]) =>
    element(
      "div",
      { class: "system" },
      element("h2", {}, name),
      element("ol", { "aria-label": name }, ...hits.map(item)),
    ),
  );
  section.replaceChildren(drawing("svg", { "aria-hidden": true }), ...columns);
  redrawLines(section);
}

function item(hit) {
  return element(
    "li",
    { "data-id": hit.id, tabindex: "0", title: hit.text },
    element("span", { class: "rank" }, String(hit.rank)),
    element("span", { dir: "auto", class: "name" }, hit.title || hit.text),
    element("span", { class: "score" }, hit.score.toFixed(3)),
  );
}

/** Draw the lines, also after the section was resized. */
export function redrawLines(section) {
  const svg = section.querySelector("svg");
  if (!svg) return;
  svg.setAttribute("width", section.scrollWidth);
  svg.setAttribute("height", section.scrollHeight);
  const columns = [...section.querySelectorAll(".system")].map(boxes);
  const origin = section.getBoundingClientRect();
  const [x, y] = [section.scrollLeft - origin.left, section.scrollTop - origin.top];
  const [end, start] =
    getComputedStyle(section).direction === "ltr" ? ["right", "left"] : ["left", "right"];
  const lines = columns.slice(1).flatMap((right, place) =>
    [...columns[place]].flatMap(([id, from]) => {
      const to = right.get(id);
      if (!to) return [];
      const ends = { x1: from[end] + x, y1: middle(from) + y, x2: to[start] + x, y2: middle(to) + y };
      return [drawing("line", ends)];
    }),
  );
  svg.replaceChildren(...lines);
}

const middle = (box) => (box.top + box.bottom) / 2;

/** The places of the documents of a column, by id. */
function boxes(column) {
  const items = [...column.querySelectorAll("li")];
  return new Map(items.map((one) => [one.dataset.id, one.getBoundingClientRect()]));
}
