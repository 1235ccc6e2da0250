// The list of hits.

import { element } from "./dom.js";
import { stringify } from "./json.js";

/** A hit; `actions` are its buttons: [name, key, function]. `explain` requests its explanation. */
export function hitElement(hit, actions, explain) {
  const title = `hit-${hit.rank}`;
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
    metadata(hit),
    element(
      "div",
      { class: "actions" },
      explain && explanation(hit, explain),
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

function metadata(hit) {
  const fields = Object.entries(hit.metadata).filter(([, value]) => value != null && value !== "");
  if (!fields.length) return null;
  return element(
    "dl",
    {},
    ...fields.map(([name, value]) =>
      element(
        "div",
        {},
        element("dt", { dir: "auto" }, name),
        element("dd", { dir: "auto" }, shown(value)),
      ),
    ),
  );
}

/** A metadata value for display. */
export function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object" && value !== null) return stringify(value);
  return String(value).replace(/^(\d{4}-\d\d-\d\d)T00:00:00$/, "$1"); // days, as workbooks keep them
}

/** Details of a hit, which are complete when it has its explanation. */
function explanation(hit, explain) {
  return element(
    "details",
    { ontoggle: (event) => event.target.open && explain() },
    element("summary", { "aria-keyshortcuts": "e" }, "Explain"),
    reasons(hit),
  );
}

/** Update the element of a hit that has its explanation now. */
export function showExplanation(item, hit) {
  item.querySelector(".text").replaceChildren(...marked(hit));
  item.querySelector("details dl").replaceWith(reasons(hit));
}

function reasons(hit) {
  const why = hit.explanation ?? {};
  const lines = [["document", hit.id]];
  const by = (rank, score) => [rank && `rank ${rank}`, score?.toFixed(4)].filter(Boolean).join(", ");
  if (why.dense_rank || hit.scores.cosine != null)
    lines.push(["by meaning (cosine)", by(why.dense_rank, hit.scores.cosine)]);
  if (why.bm25_rank || hit.scores.bm25 != null)
    lines.push(["by words (BM25)", by(why.bm25_rank, hit.scores.bm25)]);
  if (why.words?.length) lines.push(["words of the query in it", why.words.join(", ")]);
  lines.push(["passage", `characters ${hit.start} to ${hit.end}`]);
  return element(
    "dl",
    {},
    ...lines.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", { dir: "auto" }, value)),
    ),
  );
}
