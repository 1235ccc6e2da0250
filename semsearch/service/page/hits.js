// The list of hits.

import { element, joined, nameOf } from "./dom.js";
import { stringify } from "./json.js";

/**
 * A hit; `actions` are its buttons: [name, key, function]. `explain` requests its explanation, whose
 * bars are full for the `best` BM25 score; `isShown` is asked for the name and value of each field.
 */
export function hitElement(hit, actions, explain, best, isShown) {
  const title = `hit-${hit.rank}`;
  return element(
    "li",
    { tabindex: "0", "aria-labelledby": title, "data-rank": hit.rank, class: "hit" },
    element(
      "h2",
      { id: title, onclick: () => actions[0][2](hit) },
      element("span", { class: "rank" }, String(hit.rank)),
      element("span", { dir: "auto" }, nameOf(hit)),
      element("span", { class: "score", title: "score" }, hit.score.toFixed(3)),
    ),
    element("p", { class: "text", dir: "auto" }, ...marked(hit)),
    fieldList(hit.metadata, isShown),
    element(
      "div",
      { class: "actions" },
      hit.duplicates && sameTexts(hit, actions[0][2]),
      explain &&
        element(
          "details",
          { ontoggle: (event) => event.target.open && explain() },
          element("summary", { "aria-keyshortcuts": "e" }, "Explain"),
          reasons(hit, best),
        ),
      ...actions.map(([name, key, act]) =>
        element("button", { type: "button", "aria-keyshortcuts": key, onclick: () => act(hit) }, name),
      ),
    ),
  );
}

/** The text of a passage: the sentence nearest to the query marked, the query's words underlined. */
function marked(hit) {
  const { sentence, words = [] } = hit.explanation ?? {};
  // Offsets count characters; JavaScript's strings count UTF-16 units.
  const characters = Array.from(joined(hit.text));
  const [start, end] = sentence?.map((offset) => offset - hit.start) ?? [0, 0];
  const part = (...bounds) => underlined(characters.slice(...bounds).join(""), words);
  if (!sentence || (start <= 0 && end >= characters.length)) return part();
  return [...part(0, start), element("mark", {}, ...part(start, end)), ...part(end)];
}

/** A text with the words that begin with one of some stems underlined. */
function underlined(text, stems) {
  const pieces = text.split(/([\p{L}\p{M}\p{N}]+)/u); // words have odd places
  const isHit = (word) => stems.some((stem) => word.toLowerCase().startsWith(stem));
  return pieces.map((piece, place) => (place % 2 && isHit(piece) ? element("u", {}, piece) : piece));
}

/** A metadata value for display. */
function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object") return stringify(value);
  return String(value).replace(/^(\d{4}-\d\d-\d\d)T00:00:00$/, "$1"); // days, as workbooks keep them
}

/** The documents with the same text, or nearly so, as buttons that open them. */
function sameTexts(hit, open) {
  const others = hit.duplicates.map((id) => ({ id, start: 0, end: 0 }));
  const button = (other, place) =>
    element("button", { type: "button", onclick: () => open(other) }, nameOf(other) || `document ${place + 2}`);
  const summary = element("summary", { "aria-keyshortcuts": "d" }, `${others.length + 1} ×`);
  const note = element("span", { class: "faint" }, "the same text, or nearly so, also in ");
  return element("details", { class: "same" }, summary, note, ...others.map(button));
}

/** The metadata fields of a document that have values and are shown. */
export function fieldList(metadata, isShown = () => true) {
  const fields = Object.entries(metadata).filter(([, value]) => value != null && value !== "");
  const chosen = fields.filter(([name, value]) => isShown(name, value));
  return chosen.length ? list(chosen.map(([name, value]) => [name, link(shown(value))])) : null;
}

const ADDRESS = /^https?:\/\/\S+$/;
const PICTURE = /\.(avif|gif|jpe?g|png|svg|webp)([?#]|$)/i;

/** Whether a field is shown only if asked for: the address of a picture, or its size. */
export function isDetail(name, value) {
  return (ADDRESS.test(value) && PICTURE.test(value)) || /(^|_)(width|height)$/i.test(name);
}

/** An address as a link, or as a picture where the page may load it; other texts unchanged. */
function link(text) {
  if (!ADDRESS.test(text)) return text;
  const isPicture = PICTURE.test(text) && new URLSearchParams(location.search).has("pictures");
  const content = isPicture ? element("img", { src: text, alt: "", loading: "lazy" }) : text;
  return element("a", { href: text, rel: "noreferrer", target: "_blank" }, content);
}

/** A list of names and texts. */
function list(items) {
  const term = ([name, text]) =>
    element("div", {}, element("dt", { dir: "auto" }, name), element("dd", { dir: "auto" }, text));
  return element("dl", {}, ...items.map(term));
}

/** Update the element of a hit that has its explanation now. */
export function showExplanation(item, hit, best) {
  item.querySelector(".text").replaceChildren(...marked(hit));
  item.querySelector("details dl").replaceWith(reasons(hit, best));
}

/** Bars of the scores; `best` is the BM25 score of a full bar. */
function reasons(hit, best) {
  const { dense_rank: byMeaning, bm25_rank: byWords, words = [] } = hit.explanation ?? {};
  const { cosine, bm25 } = hit.scores;
  const bar = (name, score, full, rank) =>
    score == null
      ? null
      : element(
          "div",
          { class: "bar" },
          element("dt", {}, name),
          element("dd", {}, element("meter", { "aria-label": name, max: full, value: score }), ` ${score.toFixed(2)}`),
          element("dd", { class: "faint" }, rank ? `rank ${rank}` : ""),
        );
  return element(
    "dl",
    { class: "bars" },
    bar("by meaning", cosine, 1, byMeaning),
    bar("by words", bm25, best, byWords),
    element("div", {}, element("dt", {}, "words"), element("dd", {}, words.join(", ") || "none of the query")),
  );
}
