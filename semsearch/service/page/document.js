// A whole document, in a dialog.

import { getJson, indexPath } from "./api.js";
import { byId, element, joined, nameOf } from "./dom.js";
import { fieldList } from "./hits.js";

/** Show a document, with the characters [start, end) marked and in view. */
export async function showDocument(index, id, [start, end]) {
  const parameters = new URLSearchParams({ id, html: true, start, end });
  const { title, text, metadata, html } = await getJson(indexPath(index, `documents?${parameters}`));
  byId("document-title").textContent = nameOf({ title, id }) || "Document";
  byId("document-place").textContent = title ? nameOf({ id }) : "";
  byId("document-fields").replaceChildren(fieldList(metadata) ?? "");
  const article = byId("document-text");
  article.classList.toggle("plain", html === null);
  if (html === null) article.replaceChildren(...marked(text, start, end));
  else article.innerHTML = html; // sanitised by the service
  byId("copy").onclick = () => navigator.clipboard.writeText(text);
  if (!byId("document").open) byId("document").showModal();
  article.scrollTop = 0;
  article.querySelector(".passage")?.scrollIntoView({ block: "center" });
}

function marked(text, start, end) {
  // Offsets count characters; JavaScript's strings count UTF-16 units.
  const characters = Array.from(joined(text));
  const part = (...bounds) => characters.slice(...bounds).join("");
  if (end - start >= characters.length) return [part()];
  const passage = element("span", { class: "passage" }, part(start, end));
  return [part(0, start), passage, part(end)];
}
