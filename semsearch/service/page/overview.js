// The first screen: what the index is about.

import { getJson, indexPath } from "./api.js";
import { byId, element, nameOf } from "./dom.js";

const asked = new Map(); // what was answered, or will be, by index and filter
const FIELDS = 6;
const VALUES = 6;

/**
 * Show the overview of an index, or the first documents that match a filter. `fields` are those of
 * the index; `on` has functions for a query, a similar and an opened document, and a chosen value.
 */
export async function showOverview(index, where, fields, on) {
  const key = JSON.stringify([index, where]);
  const path = where === null ? "overview" : `overview?${new URLSearchParams({ where })}`;
  if (!asked.has(key)) asked.set(key, getJson(indexPath(index, path)));
  const { groups, queries, newest } = await asked.get(key).catch((error) => {
    asked.delete(key);
    throw error;
  });
  const button = (attributes, ...children) => element("button", { type: "button", ...attributes }, ...children);
  const query = (text) => button({ class: "chip", dir: "auto", onclick: () => on.query(text) }, text);
  const card = ({ id, title, name, passages, text }) =>
    button(
      { class: "card", onclick: () => on.similar(id) },
      element("strong", { dir: "auto" }, name, element("span", { class: "count" }, passages.toLocaleString("en"))),
      element("span", { dir: "auto", class: "typical" }, title && !text.startsWith(title) ? `${title}: ${text}` : text),
    );
  const row = (document) =>
    element(
      "li",
      {},
      button({ class: "card", onclick: () => on.open(document) },
        element("strong", { dir: "auto" }, nameOf(document)),
        element("span", { dir: "auto", class: "typical" }, document.text),
      ),
    );
  const value = (name) => ([text, count]) =>
    button(
      { class: "chip", dir: "auto", onclick: () => on.choose(name, text) },
      text,
      element("span", { class: "count" }, count.toLocaleString("en")),
    );
  const valued = where === null ? fields.filter(({ values }) => values.length).slice(0, FIELDS) : [];
  const field = ({ name, values }) => [
    element("dt", { dir: "auto" }, name),
    element("dd", { class: "options" }, ...values.slice(0, VALUES).map(value(name))),
  ];
  const part = (heading, body) => [element("h2", {}, heading), body];
  byId("overview").replaceChildren(
    ...(queries.length ? part("Try", element("div", { class: "options" }, ...queries.map(query))) : []),
    ...(groups.length ? part("Topics", element("div", { class: "cards" }, ...groups.map(card))) : []),
    ...(valued.length ? part("Fields", element("dl", { class: "fields" }, ...valued.flatMap(field))) : []),
    ...(newest.length
      ? part(where === null ? "Newest" : "Documents", element("ul", { class: "cards" }, ...newest.map(row)))
      : []),
  );
}
