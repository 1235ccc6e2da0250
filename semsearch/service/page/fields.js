// The fields that hits show.

import { byId, element } from "./dom.js";
import { isDetail } from "./hits.js";

let chosen = {}; // whether they are shown, by name; of others, those that are no details are
let key = null; // of what is chosen, in the browser

export function openFields(index) {
  key = `semsearch-fields-${index}`;
  chosen = JSON.parse(localStorage.getItem(key) ?? "{}");
}

export const isShown = (name, value) => (Object.hasOwn(chosen, name) ? chosen[name] : !isDetail(name, value));

/** Offer fields, and pictures; `hits` tell which fields are details. The functions are called after a change. */
export function offerFields(fields, hits, hasPictures, onFields, onPictures) {
  const choice = (name, checked, change) => {
    const box = element("input", { type: "checkbox", checked, onchange: ({ target }) => change(target.checked) });
    return element("label", { class: "choice" }, box, element("span", { dir: "auto" }, name));
  };
  const field = ({ name }) => {
    const value = hits.map((hit) => hit.metadata[name]).find((one) => one != null);
    return choice(name, isShown(name, value), (shown) => {
      chosen[name] = shown;
      localStorage.setItem(key, JSON.stringify(chosen));
      onFields();
    });
  };
  const pictures = choice("load pictures from other sites", hasPictures, onPictures);
  byId("shown-fields").replaceChildren(...fields.map(field), pictures);
}
