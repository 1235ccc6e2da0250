// The first screen: what the index is about.

import { getJson, indexPath } from "./api.js";
import { byId, element, plural } from "./dom.js";

const loaded = new Map(); // by index

/** Show the overview of an index; `on` has functions for a query, a similar and an opened document. */
export async function showOverview(index, on) {
  if (!loaded.has(index)) loaded.set(index, await getJson(indexPath(index, "overview")));
  const { groups, queries, newest } = loaded.get(index);
  const button = (attributes, ...children) => element("button", { type: "button", ...attributes }, ...children);
  const query = (text) => button({ class: "chip", dir: "auto", onclick: () => on.query(text) }, text);
  const card = ({ id, title, name, passages, text }) =>
    button(
      { class: "card", onclick: () => on.similar(id) },
      element("strong", { dir: "auto" }, title || name),
      element("span", { class: "count" }, `${name} · ${plural(passages, "passage")}`),
      element("span", { dir: "auto" }, text),
    );
  const row = (document) =>
    element(
      "li",
      {},
      button({ class: "card", onclick: () => on.open(document) },
        element("strong", { dir: "auto" }, document.title || document.id),
        element("span", { dir: "auto" }, document.text),
      ),
    );
  const part = (heading, body) => [element("h2", {}, heading), body];
  byId("overview").replaceChildren(
    ...(queries.length ? part("Try", element("div", { class: "options" }, ...queries.map(query))) : []),
    ...(groups.length ? part("Topics", element("div", { class: "cards" }, ...groups.map(card))) : []),
    ...(newest.length ? part("Newest", element("ul", { class: "cards" }, ...newest.map(row))) : []),
  );
}
