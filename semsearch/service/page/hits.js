// The list of hits.

import { element } from "./dom.js";
import { stringify } from "./json.js";

/** A hit; `actions` are its buttons: [name, key, function]. `explain` requests its explanation. */
export function hitElement(hit, actions, explain) {
  const title = `hit-${hit.rank}`;
  const fields = Object.entries(hit.metadata).filter(([, value]) => value != null && value !== "");
  return element(
    "li",
    { tabindex: "0", "aria-labelledby": title, "data-rank": hit.rank, class: "hit" },
    element(
      "h2",
      { id: title },
      element("span", { class: "rank" }, String(hit.rank)),
      element("span", { dir: "auto" }, hit.title || hit.id),
      element("span", { class: "score", title: "score" }, hit.score.toFixed(3)),
    ),
    element("p", { class: "text", dir: "auto" }, ...marked(hit)),
    fields.length ? list(fields.map(([name, value]) => [name, shown(value)])) : null,
    element(
      "div",
      { class: "actions" },
      explain &&
        element(
          "details",
          { ontoggle: (event) => event.target.open && explain() },
          element("summary", { "aria-keyshortcuts": "e" }, "Explain"),
          reasons(hit),
        ),
      ...actions.map(([name, key, act]) =>
        element("button", { type: "button", "aria-keyshortcuts": key, onclick: () => act(hit) }, name),
      ),
    ),
  );
}

/** The text of a passage, with the sentence nearest to the query marked. */
function marked(hit) {
  const nearest = hit.explanation?.sentence;
  if (!nearest) return [hit.text];
  // Offsets count characters; JavaScript's strings count UTF-16 units.
  const characters = Array.from(hit.text);
  const [start, end] = nearest.map((offset) => offset - hit.start);
  if (start <= 0 && end >= characters.length) return [hit.text];
  const part = (...bounds) => characters.slice(...bounds).join("");
  return [part(0, start), element("mark", {}, part(start, end)), part(end)];
}

/** A metadata value for display. */
function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object") return stringify(value);
  return String(value).replace(/^(\d{4}-\d\d-\d\d)T00:00:00$/, "$1"); // days, as workbooks keep them
}

/** A list of names and texts. */
function list(items) {
  const term = ([name, text]) =>
    element("div", {}, element("dt", { dir: "auto" }, name), element("dd", { dir: "auto" }, text));
  return element("dl", {}, ...items.map(term));
}

/** Update the element of a hit that has its explanation now. */
export function showExplanation(item, hit) {
  item.querySelector(".text").replaceChildren(...marked(hit));
  item.querySelector("details dl").replaceWith(reasons(hit));
}

function reasons(hit) {
  const why = hit.explanation ?? {};
  const by = (rank, score) => [rank && `rank ${rank}`, score?.toFixed(4)].filter(Boolean).join(", ");
  const lines = [
    ["document", hit.id],
    ["by meaning (cosine)", by(why.dense_rank, hit.scores.cosine)],
    ["by words (BM25)", by(why.bm25_rank, hit.scores.bm25)],
    ["words of the query in it", why.words?.join(", ")],
    ["passage", `characters ${hit.start} to ${hit.end}`],
  ];
  return list(lines.filter(([, text]) => text));
}
