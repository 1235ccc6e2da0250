// What is shown, as the address of the page, so that it can be shared.

export const EMPTY = {
  index: null,
  query: "",
  mode: "semantic",
  space: null,
  filters: {}, // field: what its controls say
  where: "",
  like: null,
  k: 10,
  view: "", // "", "systems" or "map"
};

const FILTER = "filter.";

export function fromAddress() {
  const given = new URLSearchParams(location.search);
  const state = { ...EMPTY, filters: {} };
  for (const [key, value] of given) {
    if (key.startsWith(FILTER)) state.filters[key.slice(FILTER.length)] = value;
    else if (key === "k") state.k = Math.min(Math.max(Number.parseInt(value, 10) || 10, 1), 1000);
    else if (key in EMPTY) state[key] = value;
  }
  return state;
}

/** Keep the address in step; `pushed` makes an entry of the browser's history. */
export function toAddress(state, pushed = false) {
  const told = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (key === "filters") {
      for (const [field, wanted] of Object.entries(value)) told.append(FILTER + field, wanted);
    } else if (value != null && value !== EMPTY[key]) {
      told.append(key, value);
    }
  }
  const address = told.size ? `?${told}` : location.pathname;
  if (pushed) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
