// Creates elements. Texts become text nodes and are never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Create an element with attributes, event listeners ("on…") and children. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Create an element of a drawing in SVG. */
export function drawing(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(created, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) created.setAttribute(key, value);
  }
  created.append(...children.filter((child) => child != null));
  return created;
}

export const byId = (id) => document.getElementById(id);

/** A text without the line breaks that only wrap it, those after long lines; its length stays. */
export function joined(text) {
  return text.replace(/(?<=[^\n]{60})(?<![.:!?|])\n(?=[\p{L}\p{N}"'(])/gu, " ");
}

/** The title of a document or its id, unless that is a hash of its text, which tells people nothing. */
export function nameOf({ title, id }) {
  return title || (/^[0-9a-f]{16}(-\d+)?$/.test(id) ? "" : id);
}

/** A count with its noun: 1 hit, 2 hits, 1,000 hits. */
export function plural(count, thing) {
  return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
}
