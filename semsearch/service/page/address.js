// The state of the page as its URL, so that it can be shared.

export const EMPTY = {
  index: null,
  query: "",
  mode: "semantic",
  space: null,
  filters: new Map(), // the chosen values by field
  where: "",
  like: null,
  open: null, // the document that is shown whole
  at: "", // the characters of its passage, as "start-end"
  k: 10,
  view: "", // "", "systems" or "map"
  pictures: "", // "1" if hits show pictures of other sites
};

/** The most hits that the service returns. */
export const MAX_HITS = 1000;

const FILTER = "filter.";

export function fromAddress() {
  const state = { ...EMPTY, filters: new Map() };
  for (const [key, value] of new URLSearchParams(location.search)) {
    if (key.startsWith(FILTER)) {
      const field = key.slice(FILTER.length);
      state.filters.set(field, [...(state.filters.get(field) ?? []), value]);
    } else if (key === "k") state.k = Math.min(Math.max(Number.parseInt(value, 10) || 10, 1), MAX_HITS);
    else if (Object.hasOwn(EMPTY, key) && key !== "filters") state[key] = value;
  }
  return state;
}

/** Update the URL; `pushed` adds an entry to the browser's history. */
export function toAddress({ filters, ...state }, pushed) {
  const changed = Object.entries(state).filter(([key, value]) => value != null && value !== EMPTY[key]);
  const filtered = [...filters].flatMap(([field, values]) => values.map((value) => [FILTER + field, value]));
  const parameters = new URLSearchParams([...changed, ...filtered]);
  const address = parameters.size ? `?${parameters}` : location.pathname;
  history[pushed ? "pushState" : "replaceState"](null, "", address);
}
