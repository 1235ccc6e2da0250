// The page: searches, display and keyboard shortcuts.

import { EMPTY, MAX_HITS, fromAddress, toAddress } from "./address.js";
import { getJson, indexPath } from "./api.js";
import { download } from "./csv.js";
import { showDocument } from "./document.js";
import { byId, element, nameOf, plural } from "./dom.js";
import { isShown, offerFields, openFields } from "./fields.js";
import { chips, example, expression, facets, isFacet, oneOf } from "./filters.js";
import { hitElement, showExplanation } from "./hits.js";
import { MAX_SELECTED, PassageMap } from "./map.js";
import { showOverview } from "./overview.js";
import { redrawLines, showSystems } from "./systems.js";

/** The most time that a query being typed waits for the answer to the previous one. */
const PATIENCE_MS = 300;

/** The first hits are explained when no other search follows for this long. */
const REST_MS = 600;
const FIRST_HITS = 3;

/** The characters of a document that its similar documents are shown with. */
const EXCERPT = 300;

let state = fromAddress();
let indexes = [];
let fields = [];
let whole = { documents: 0, fields: [] }; // the fields in all documents
let counted = whole; // the fields under the present filter
let hits = [];
let selection = null; // the filter for the documents that are selected on the map
let shown = null; // the index whose map is shown, and the map once it is open
let running = null; // aborts the current search, and requests for explanations of its hits
let searching = null; // settles when the current search ends

// Searches.

function searchRequest() {
  const { query, k, mode, space } = state;
  return { query, k, where: filter(), mode, space, collapse_duplicates: true };
}

/** The expression of all filters; null for none. */
function filter() {
  const where = expression(fields, state.filters, state.where);
  return selection ? [where && `(${where})`, selection].filter(Boolean).join(" and ") : where;
}

/** Search, and show the results; a later search aborts this one. */
async function search() {
  running?.abort();
  const { signal } = (running = new AbortController());
  setBusy(true);
  try {
    if (state.like !== null) await similar(signal);
    else if (!state.query.trim()) showNothing();
    else if (state.view === "systems") await compare(signal);
    else await ask(signal);
    showError(null);
  } catch (error) {
    if (signal.aborted) return;
    showHits({ hits: [] });
    showStatus("");
    showError(error);
  }
  if (!signal.aborted) setBusy(false);
}

async function ask(signal) {
  const started = performance.now();
  const path = indexPath(state.index, "search");
  const body = searchRequest();
  const answer = await getJson(path, { body, signal });
  const explain = async (offset, k) => {
    if (signal.aborted || hits.slice(offset, offset + k).every((hit) => hit.explanation)) return;
    try {
      const request = { ...body, explain: true, offset, k };
      showExplanations((await getJson(path, { body: request, signal })).hits);
    } catch (error) {
      if (!signal.aborted) showError(error);
    }
  };
  showHits(answer, `${Math.round(performance.now() - started)} ms`, explain);
  setTimeout(explain, REST_MS, 0, FIRST_HITS);
}

async function similar(signal) {
  const { k, where, space } = searchRequest();
  const body = { id: state.like, k, where, space };
  const path = `documents?id=${encodeURIComponent(state.like)}`;
  const [answer, original] = await Promise.all([
    getJson(indexPath(state.index, "similar"), { body, signal }),
    getJson(indexPath(state.index, path), { signal }),
  ]);
  byId("like-title").textContent = nameOf(original);
  const isLong = original.text.length > EXCERPT;
  byId("query").value = original.text.slice(0, EXCERPT);
  byId("like-text").textContent = byId("query").value + (isLong ? "…" : "");
  showHits(answer, "similar documents");
}

async function compare(signal) {
  const path = indexPath(state.index, "compare");
  const { systems, warnings } = await getJson(path, { body: searchRequest(), signal });
  const { spaces } = openedIndex();
  const meaning = (name) => (spaces.length > 1 ? `by meaning: ${name}` : "by meaning");
  const label = (name) => ({ bm25: "by words", hybrid: "by both" })[name] ?? meaning(name);
  const named = Object.entries(systems).map(([name, found]) => [label(name), found]);
  keep(Object.values(systems)[0]);
  byId("systems").hidden = false;
  byId("overview").hidden = true;
  byId("hits").replaceChildren();
  showSystems(byId("systems"), Object.fromEntries(named));
  showStatus(`compared ${named.map(([name]) => name).join(", ")}`, warnings);
}

// Display.

/** Keep the hits of the view, for its buttons. */
function keep(found) {
  hits = found;
  byId("export").disabled = !hits.length;
  byId("more").hidden = hits.length < state.k || state.k === MAX_HITS;
}

/** Show hits; `explain` requests explanations of the `k` hits from an offset on. */
function showHits(answer, remark, explain = null) {
  keep(answer.hits);
  const actions = [
    ["Open", "o", openDocument],
    ["Similar", "s", (hit) => change({ like: hit.id }, true)],
  ];
  if (state.view === "map") actions.push(["Place on the map", "p", (hit) => shown?.map?.goTo(hit)]);
  byId("systems").hidden = true;
  byId("overview").hidden = true;
  const list = byId("hits");
  const hadFocus = list.contains(document.activeElement);
  const opened = (place) => explain && (() => explain(place, 1));
  list.replaceChildren(...hits.map((hit, place) => hitElement(hit, actions, opened(place), bestByWords(), isShown)));
  if (hadFocus) (list.firstChild ?? byId("query")).focus();
  showStatus(`${plural(hits.length, "hit")}, ${remark}`, answer.warnings);
  shown?.map?.highlight(hits);
}

const bestByWords = () => Math.max(...hits.map((hit) => hit.scores.bm25 ?? 0));

function showExplanations(explained) {
  for (const { id, explanation, scores } of explained) {
    const place = hits.findIndex((hit) => hit.id === id);
    if (place < 0) continue; // the index has changed
    Object.assign(hits[place], { explanation, scores });
    showExplanation(byId("hits").children[place], hits[place], bestByWords());
  }
}

function showNothing() {
  showHits({ hits: [] });
  const { documents, passages } = openedIndex();
  showStatus(`${plural(documents, "document")}, ${plural(passages, "passage")}`);
  byId("overview").hidden = false;
  const on = {
    query: (query) => change({ query }, true),
    similar: (like) => change({ like }, true),
    open: ({ id }) => openDocument({ id, start: 0, end: 0 }),
    choose: (name, value) => choose(name, [value]),
  };
  showOverview(state.index, filter(), fields, on).catch(showError);
}

function showStatus(text, warnings = []) {
  byId("status").textContent = [text, ...warnings].join("; ");
}

/** Whether what is shown still belongs to an earlier search. */
function setBusy(busy) {
  for (const id of ["hits", "systems"]) byId(id).setAttribute("aria-busy", busy);
}

function showError(error) {
  byId("error").hidden = error === null;
  byId("error").textContent = error?.message ?? "";
}

/** Update the controls from the state. */
function showControls() {
  for (const id of ["query", "where"]) {
    if (document.activeElement !== byId(id)) byId(id).value = state[id]; // it may be edited
  }
  byId("mode").value = state.mode;
  byId("space").value = state.space ?? "";
  byId("index").value = state.index;
  for (const view of ["systems", "map"]) {
    byId(`toggle-${view}`).setAttribute("aria-pressed", state.view === view);
  }
  byId("like").hidden = state.like === null;
  document.title = state.query ? `${state.query} – semsearch` : "semsearch";
  document.body.dataset.view = state.view;
}

function showFilters() {
  const typed = document.activeElement;
  const place = typed?.closest("[data-field]")?.dataset.field;
  byId("fields").replaceChildren(...facets(state.index, fields, counted.fields, state.filters, choose));
  if (place) refocus(place, typed);
  const expressions = state.where.trim() ? new Map([["filter", [state.where]]]) : new Map();
  byId("chips").replaceChildren(
    ...chips(state.filters, choose),
    ...chips(expressions, () => change({ where: "" })),
  );
  const { documents } = openedIndex();
  const isFiltered = counted.documents < documents;
  byId("matching").textContent = isFiltered
    ? `${counted.documents.toLocaleString("en")} of ${plural(documents, "document")} match`
    : "";
  byId("sampled").hidden = !counted.sampled;
  byId("nearest").hidden = !counted.nearest;
  byId("use-nearest").textContent = counted.nearest ?? "";
}

function chooseFields() {
  const load = (pictures) => {
    state = { ...state, pictures: pictures ? "1" : "" };
    toAddress(state, true);
    location.reload(); // the address decides what the page may load
  };
  offerFields(fields, hits, state.pictures !== "", search, load);
}

/** Choose the values of a field. */
function choose(name, values) {
  const filters = new Map(state.filters);
  if (values.length) filters.set(name, values);
  else filters.delete(name);
  change({ filters });
}

let countedFor = null; // the index and filter that were counted last

function countIfChanged() {
  const now = JSON.stringify([state.index, filter()]);
  if (now !== countedFor) count();
  countedFor = now;
}

let counting = null; // aborts the count of another filter

/** Count the values of fields under the present filter, and show them. */
async function count() {
  const { name } = openedIndex();
  counting?.abort();
  counting = new AbortController();
  const { signal } = counting;
  const where = filter();
  try {
    const parameters = new URLSearchParams({ where });
    counted = where === null ? whole : await getJson(indexPath(name, `fields?${parameters}`), { signal });
    showFilters();
  } catch {
    // The search shows errors of the filter; a later count aborts this one.
  }
}

/** Focus the control that replaces one of a facet. */
function refocus(field, { type, value, ariaLabel }) {
  const facet = document.querySelector(`[data-field="${CSS.escape(field)}"]`);
  const controls = [...(facet?.querySelectorAll("input") ?? [])];
  const same = controls.find((one) => (type === "checkbox" ? one.value === value : one.ariaLabel === ariaLabel));
  same?.closest("details")?.setAttribute("open", "");
  same?.focus();
}

function toggleFilters(_, open = byId("filters").hidden) {
  byId("filters").hidden = !open;
  byId("toggle-filters").setAttribute("aria-expanded", open);
}

// A whole document.

function openDocument(hit) {
  state = { ...state, open: hit.id, at: `${hit.start}-${hit.end}` };
  toAddress(state, true);
  showOpened();
}

function showOpened() {
  if (state.open === null) byId("document").close();
  else showDocument(state.index, state.open, state.at.split("-").map(Number)).catch(showError);
}

function closeDocument() {
  state = { ...state, open: null, at: "" };
  toAddress(state, false);
}

// The map.

async function showMap() {
  const section = byId("map");
  section.hidden = state.view !== "map";
  if (section.hidden || shown?.index === state.index) return;
  closeMap();
  section.replaceChildren(element("p", {}, "loading the map"));
  const opening = (shown = { index: state.index, map: null });
  try {
    opening.map = await PassageMap.open(section, opening.index, () => shown === opening, select);
    opening.map?.offerFields(facetNames());
    opening.map?.highlight(hits);
  } catch (error) {
    if (shown !== opening) return;
    shown = null;
    section.replaceChildren(element("p", {}, error.message));
  }
}

const facetNames = () => fields.filter(isFacet).map(({ name }) => name);

function closeMap() {
  shown?.map?.close();
  shown = null;
  showSelection(null);
}

/** Search among the documents selected on the map; null for all. */
function select(ids) {
  showSelection(ids);
  countIfChanged();
  search();
}

function showSelection(ids) {
  const tooMany = ids?.length > MAX_SELECTED;
  selection = ids && !tooMany ? oneOf(ids) : null;
  byId("selection").hidden = ids === null;
  byId("selection-size").textContent = tooMany
    ? `More than ${MAX_SELECTED.toLocaleString("en")} documents selected: searching everywhere`
    : `Searching ${plural(ids?.length ?? 0, "selected document")}`;
}

// Changes of the state.

/** Change the state, and search. */
function change(changes, pushed = false) {
  state = { ...state, k: EMPTY.k, ...changes };
  toAddress(state, pushed);
  showControls();
  if (changes.filters || changes.where !== undefined || changes.index) showFilters();
  showMap();
  showOpened();
  countIfChanged();
  return (searching = search());
}

const openedIndex = () => indexes.find(({ name }) => name === state.index);

/** Show the controls of the index; the values of its fields follow. */
function openIndex() {
  const opened = openedIndex();
  const spaces = opened.spaces.map(({ name }) => element("option", { value: name }, name));
  spaces[0]?.setAttribute("value", "");
  byId("space").replaceChildren(...spaces);
  byId("space-choice").hidden = spaces.length < 2;
  fields = Object.entries(opened.fields).map(([name, kinds]) => ({ name, kinds, values: [], histogram: [] }));
  counted = whole = { documents: opened.documents, fields: [] };
  openFields(state.index);
  showFilters();
  toggleFilters(null, fields.length > 0 && matchMedia("(min-width: 64rem)").matches);
  showValues(opened).catch(showError);
}

/** Show the values of fields in all documents. */
async function showValues(opened) {
  const answer = await getJson(indexPath(opened.name, "fields"));
  if (opened !== openedIndex()) return;
  whole = answer;
  fields = answer.fields;
  if (filter() === null) counted = whole;
  showFilters();
  const expressionOfFields = example(fields);
  byId("where").placeholder = expressionOfFields;
  byId("where-example").textContent = expressionOfFields && `for example ${expressionOfFields}`;
  shown?.map?.offerFields(facetNames());
  if (!byId("overview").hidden) showNothing();
}

function toggleView(view) {
  const like = view === "systems" ? null : state.like;
  change({ view: state.view === view ? "" : view, like }, true);
}

function listen() {
  const on = (id, event, act) => byId(id).addEventListener(event, act);
  let latest; // the event that decides what is searched next
  let entered = false; // by Enter: the history keeps that query when another one is typed
  on("query", "input", async (event) => {
    latest = event;
    await Promise.race([searching, new Promise((end) => setTimeout(end, PATIENCE_MS))]);
    if (latest !== event) return;
    change({ query: event.target.value, like: null }, entered);
    entered = false;
  });
  on("search", "submit", (event) => {
    event.preventDefault();
    latest = event;
    change({ query: byId("query").value, where: byId("where").value, like: null }, entered);
    entered = true;
  });
  on("where", "change", (event) => change({ where: event.target.value }));
  on("mode", "change", (event) => change({ mode: event.target.value }));
  on("space", "change", (event) => change({ space: event.target.value || null }));
  on("index", "change", (event) => {
    state = { ...EMPTY, index: event.target.value, query: state.query, view: state.view };
    closeMap();
    openIndex();
    change({}, true);
  });
  on("use-nearest", "click", () => {
    byId("where").value = counted.nearest;
    change({ filters: new Map(), where: counted.nearest });
  });
  on("clear-filters", "click", () => {
    byId("where").value = "";
    change({ filters: new Map(), where: "" });
  });
  on("choose-fields", "toggle", chooseFields);
  on("toggle-filters", "click", toggleFilters);
  on("toggle-systems", "click", KEYS.c);
  on("toggle-map", "click", KEYS.m);
  on("toggle-help", "click", KEYS["?"]);
  on("leave-like", "click", () => {
    change({ like: null }, true);
    byId("query").focus();
  });
  on("document", "close", closeDocument);
  on("more-like", "click", () => change({ like: state.open, open: null, at: "" }, true));
  on("leave-selection", "click", () => shown?.map?.select(null));
  on("more", "click", () => change({ k: Math.min(state.k + 10, MAX_HITS) }));
  on("export", "click", () => download(hits, `${state.index}.csv`));
  addEventListener("popstate", (event) => {
    latest = event;
    begin(state.index);
  });
  addEventListener("resize", () => redrawLines(byId("systems")));
  addEventListener("keydown", press);
}

// Keys.

const KEYS = {
  "/": () => byId("query").select(),
  "?": () => byId("help").showModal(),
  m: () => toggleView("map"),
  c: () => toggleView("systems"),
  f: toggleFilters,
};

function press(event) {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const typing = target.matches("input, select, textarea");
  const hit = target.closest(".hit");
  const shortcut = key === "Enter" && target === hit ? "o" : key;
  const control = hit?.querySelector(`[aria-keyshortcuts="${CSS.escape(shortcut)}"]`);
  if (key in steps && (target === byId("query") || hit)) step(hit, steps[key]);
  else if (typing || target.closest("#map")) return;
  else if (control) control.click();
  else if (key in KEYS) KEYS[key]();
  else return;
  event.preventDefault();
}

/** From the query to the first hit, from hit to hit, and back. */
function step(hit, by) {
  const items = [...byId("hits").children];
  const next = items[items.indexOf(hit) + by];
  if (next) next.focus();
  else if (by < 0) byId("query").focus();
}

/** Show what the URL says; `before` is the index that is shown. */
function begin(before) {
  state = fromAddress();
  if (!openedIndex()) state.index = indexes[0].name;
  for (const id of ["query", "where"]) byId(id).value = state[id];
  if (state.index !== before) {
    closeMap();
    openIndex();
  }
  showFilters();
  change({ k: state.k });
}

try {
  indexes = await getJson("v1/indexes");
  byId("index").replaceChildren(...indexes.map(({ name }) => element("option", {}, name)));
  byId("index-choice").hidden = indexes.length < 2;
  listen();
  begin(null);
} catch (error) {
  showError(error);
}
