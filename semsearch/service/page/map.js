// The map of all passages, drawn by Embedding Atlas, which queries the service.

import { getJson, indexPath, request } from "./api.js";
import { drawing } from "./dom.js";

/** The most selected documents that a search can be restricted to. */
export const MAX_SELECTED = 2000;

/** The most characters of their filter; the service allows 100,000, with the other filters. */
export const MAX_FILTER = 90_000;

/** The width in pixels of Embedding Atlas's controls, and the height of its canvas. */
const BESIDE = 460;
const HEIGHT = 600;

/** A map in a section of the page. */
export class AtlasMap {
  /**
   * Load and show the map of an index; null if `isWanted()` no longer holds once it is loaded.
   * `on.select` is called with the ids of the selected documents; null for all. `on.error` is called
   * with errors of later queries, and `on.change` if the service has another version of the map.
   */
  static async open(section, index, isWanted, on) {
    const about = await getJson(indexPath(index, "map"));
    const { default: widget } = await import("../atlas/index.js");
    return isWanted() ? new AtlasMap(section, index, about, widget, on) : null;
  }

  constructor(section, index, about, widget, on) {
    Object.assign(this, { section, index, about, widget, on });
    this.closed = false; // responses can arrive later
    this.marks = new Marks(section);
    this.first = firstViewport(section, about.shown);
    this.render({ chartStates: { 1: { viewport: this.first } } });
  }

  render(state) {
    this.stop();
    const { data } = this.about;
    const props = {
      data,
      defaultChartsConfig: {
        embedding: { data: { ...data.projection, text: data.text, category: "group" } },
        table: false,
        exclude: ["text", "title", "id"],
      },
    };
    this.model = new Model((query) => this.ask(query), props, JSON.stringify(state), {
      _predicate: (predicate) => this.select(predicate),
      _state: () => this.marks.moveTo(this.viewport),
    });
    this.remove = this.widget.render({ model: this.model, el: this.section });
    this.marks.moveTo(this.viewport);
  }

  get viewport() {
    return JSON.parse(this.model.get("_state")).chartStates?.[1]?.viewport;
  }

  close() {
    this.closed = true;
    this.stop();
    this.marks.close();
  }

  stop() {
    if (this.model) this.model.listeners = {}; // ignore late changes
    this.predicate = null;
    this.remove?.();
  }

  async ask({ type, sql }) {
    const body = { type, sql, version: this.about.version };
    const answer = await request(indexPath(this.index, "map/query"), { body }).catch((error) => {
      if (error.status === 409 && !this.closed) this.on.change();
      throw error;
    });
    return type === "arrow" ? answer.arrayBuffer() : answer.json();
  }

  /** The rows of a query; none if it fails, which is shown. */
  rows(sql) {
    return this.ask({ type: "json", sql }).catch((error) => {
      if (!this.closed) this.on.error(error);
      return [];
    });
  }

  /** Mark the passages of hits. */
  async highlight(hits) {
    this.hits = hits;
    const places = await this.placesOf(hits);
    // Responses can arrive out of order.
    if (this.hits === hits && !this.closed) this.marks.show(places);
  }

  /** Move the viewport to a hit. */
  async goTo(hit) {
    const [place] = await this.placesOf([hit]);
    if (!place || this.closed) return;
    const state = JSON.parse(this.model.get("_state"));
    const scale = Math.max(this.viewport.scale, this.first.scale * 4);
    const viewport = { x: place.x, y: place.y, scale };
    state.chartStates = { ...state.chartStates, 1: { ...state.chartStates[1], viewport } };
    this.render(state);
  }

  /** Rank and coordinates of the hits that are on the map. */
  async placesOf(hits) {
    if (!hits.length) return [];
    const keys = hits.map((hit) => `(${literal(hit.id)}, ${hit.start})`).join(", ");
    const { table, projection } = this.about.data;
    const found = await this.rows(
      `SELECT id, __start AS "start", ${projection.x} AS x, ${projection.y} AS y ` +
        `FROM ${table} WHERE (id, __start) IN (${keys})`,
    );
    return hits.flatMap(({ id, start, rank }) => {
      const place = found.find((one) => one.id === id && one.start === start);
      return place ? [{ ...place, rank }] : [];
    });
  }

  async select(predicate) {
    this.predicate = predicate;
    if (!predicate) return this.on.select(null);
    const { table } = this.about.data;
    const sql = `SELECT DISTINCT id FROM ${table} WHERE ${predicate} LIMIT ${MAX_SELECTED + 1}`;
    const found = await this.rows(sql);
    if (this.predicate === predicate) this.on.select(found.map(({ id }) => id));
  }
}

const literal = (text) => `'${text.replaceAll("'", "''")}'`;

/** A viewport of a part of the map, for the approximate size of Embedding Atlas's canvas. */
function firstViewport(section, { x, y, width, height }) {
  const across = Math.max(section.clientWidth - BESIDE, 200);
  const unit = 0.9 * Math.min(across / width, HEIGHT / height);
  return { x, y, scale: (2 * unit) / Math.max(across, HEIGHT) };
}

/** Numbered marks over the points of hits. */
class Marks {
  constructor(section) {
    this.section = section;
    this.places = [];
    this.viewport = null;
    this.drawing = drawing("svg", { "aria-hidden": true });
    Object.assign(this.drawing.style, { position: "absolute", inset: 0, pointerEvents: "none" });
    this.listening = new AbortController();
    for (const event of ["wheel", "pointermove"]) {
      const { signal } = this.listening;
      section.addEventListener(event, (moved) => this.pause(moved), { passive: true, signal });
    }
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(section);
  }

  close() {
    clearTimeout(this.waiting);
    this.listening.abort();
    this.observer.disconnect();
  }

  show(places) {
    this.places = places;
    this.draw();
  }

  moveTo(viewport) {
    this.viewport = viewport ?? this.viewport;
    this.draw();
  }

  /** Hide the marks while the map moves, since changes of its state arrive late. */
  pause(moved) {
    if (moved.type === "wheel" || moved.buttons) {
      this.drawing.replaceChildren();
      this.drawLater(400);
    }
  }

  drawLater(ms) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.draw(), ms);
  }

  draw() {
    const root = this.section.querySelector(".embedding-atlas-widget-container > div")?.shadowRoot;
    const canvas = root?.querySelector("canvas");
    if (!canvas?.clientWidth) return this.drawLater(200);
    if (canvas !== this.canvas) this.observer.observe((this.canvas = canvas));
    canvas.after(this.drawing);
    const { clientWidth: width, clientHeight: height } = canvas;
    this.drawing.setAttribute("width", width);
    this.drawing.setAttribute("height", height);
    // Embedding Atlas scales coordinates to the longer side of its canvas.
    const unit = (this.viewport.scale * Math.max(width, height)) / 2;
    const marks = this.places.map(({ rank, x, y }) =>
      mark(rank, (x - this.viewport.x) * unit + width / 2, (this.viewport.y - y) * unit + height / 2),
    );
    this.drawing.replaceChildren(...marks);
  }
}

function mark(rank, x, y) {
  const text = { "text-anchor": "middle", "font-size": 11, "font-weight": "bold", fill: "#fff" };
  return drawing(
    "g",
    {},
    drawing("circle", { cx: x, cy: y, r: 9, fill: "#d61f1f", stroke: "#fff" }),
    drawing("text", { ...text, x, y: y + 4 }, String(rank)),
  );
}

/** The model of an anywidget; `listeners` are called with the values it sets. */
class Model {
  constructor(ask, props, state, listeners) {
    this.ask = ask;
    this.listeners = listeners;
    this.values = { _props: props, _state: state, _predicate: null };
    this.handlers = [];
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (value === this.values[name]) return;
    this.values[name] = value;
    this.listeners[name]?.(value);
  }

  save_changes() {}

  on(event, handler) {
    if (event === "msg:custom") this.handlers.push(handler);
  }

  /** Answer a query of the widget. */
  async send({ uuid, type, sql }) {
    let message;
    const buffers = [];
    try {
      const answer = await this.ask({ type, sql });
      if (type === "arrow") buffers.push(new DataView(answer));
      message = type === "arrow" ? { type, uuid } : { type, uuid, result: answer };
    } catch (error) {
      message = { uuid, error: error.message };
    }
    for (const handler of this.handlers) handler(message, buffers);
  }
}
