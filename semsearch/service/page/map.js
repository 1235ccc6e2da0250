// The map of all passages: a point for each on a canvas, with the names of their groups.

import { getJson, indexPath, request } from "./api.js";
import { element, plural } from "./dom.js";

/** The most selected documents that a search can be restricted to. */
export const MAX_SELECTED = 2000;

const STEP = 1.4; // of a zoom
const NEAR = 12; // pixels between the pointer and a point that it touches
const REST_MS = 150; // the pointer rests before a text is requested
const SHOWN_CHARACTERS = 300;

/** A map in a section of the page. */
export class PassageMap {
  /**
   * Load and show the map of an index; null if `isWanted()` no longer holds once it is loaded.
   * `onSelect` is called with the ids of the selected documents; null for all.
   */
  static async open(section, index, isWanted, onSelect) {
    const about = await getJson(indexPath(index, "map"));
    return isWanted() ? new PassageMap(section, index, about, onSelect) : null;
  }

  constructor(section, index, { points, groups, of }, onSelect) {
    Object.assign(this, { section, index, points, groups, onSelect });
    this.rows = [...points.id.keys()];
    this.rowsOfGroups = groups.map(() => []);
    for (const row of this.rows) this.rowsOfGroups[points.group[row]].push(row);
    this.colours = this.rowsOfGroups; // the rows of each colour
    this.isRange = false;
    this.legend = element("ul", { "aria-label": "Colours" });
    this.field = element("select", { onchange: ({ target }) => this.colourBy(target.value) });
    this.hits = [];
    this.selected = null; // rows; null for all
    this.pointers = new Map(); // the last place of each that is pressed
    this.canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": section.ariaLabel });
    this.tip = element("p", { class: "tip", hidden: true, dir: "auto" });
    this.lasso = element("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggleLasso() }, "Lasso");
    const button = (name, act) => element("button", { type: "button", onclick: act }, name);
    const outdated = of - this.rows.length;
    section.replaceChildren(
      this.canvas,
      this.tip,
      element(
        "div",
        { class: "options" },
        button("Zoom in", () => this.zoom(STEP)),
        button("Zoom out", () => this.zoom(1 / STEP)),
        button("Whole map", () => this.reset()),
        this.lasso,
        element("label", {}, element("span", {}, "Colour "), this.field),
        button("Open in Embedding Atlas", () => this.save()),
      ),
      outdated ? element("p", {}, `${plural(outdated, "passage")} not on the map: run semsearch map again`) : "",
      (this.note = element("p", { role: "status", class: "faint" })),
      this.legend,
    );
    this.showLegend(groups);
    this.offerFields([]);
    this.listen();
    this.reset();
  }

  /** Offer fields to colour the points by. */
  offerFields(names) {
    this.field.replaceChildren(
      element("option", { value: "" }, "topics"),
      ...names.map((name) => element("option", { value: name }, name)),
    );
  }

  /** Colour the points by the values of a field; by their groups without one. */
  async colourBy(field) {
    const parameters = new URLSearchParams({ field });
    const found = field && (await getJson(indexPath(this.index, `map/colours?${parameters}`)));
    if (this.field.value !== field) return;
    const places = found ? found.places : this.points.group;
    const names = found ? found.names : this.groups;
    this.isRange = Boolean(found?.ranges);
    this.isField = Boolean(found);
    this.colours = names.map(() => []);
    for (const row of this.rows) this.colours[places[row]]?.push(row);
    this.showLegend(names);
    this.draw();
  }

  showLegend(names) {
    this.legend.replaceChildren(...names.flatMap((name, number) => (this.colours[number].length ? this.item(name, number) : [])));
  }

  item(name, number) {
    const rows = this.colours[number];
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = this.colour(number);
    const label = `${name} (${rows.length.toLocaleString("en")})`;
    return element("li", {}, element("button", { type: "button", onclick: () => this.select(rows) }, swatch, label));
  }

  /** The colour of a group or value; of a field, the last one stands for all other values. */
  colour(number) {
    const last = this.colours.length - 1;
    if (this.isField && number === last) return "hsl(0 0% 55%)";
    if (this.isRange) return `hsl(${Math.round(250 - (220 * number) / (last || 1))} 65% 52%)`;
    return `hsl(${Math.round(number * 137.5) % 360} 60% 52%)`; // neighbouring numbers differ
  }

  /** Download the map as Embedding Atlas reads it. */
  async save() {
    const answer = await request(indexPath(this.index, "map.parquet"));
    const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: "map.parquet" });
    link.click();
    URL.revokeObjectURL(link.href);
    this.note.textContent = "Open the file with: embedding-atlas map.parquet --text text --x x --y y";
  }

  listen() {
    const { canvas } = this;
    const on = (event, act) => canvas.addEventListener(event, act);
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => (this.pointers.size ? this.drag(event) : this.hover(event)));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId));
    on("pointerleave", () => this.showTip(null));
    on("wheel", (event) => {
      event.preventDefault();
      this.zoom(STEP ** (-event.deltaY / 100), event.offsetX, event.offsetY);
    });
    const keys = {
      ArrowLeft: () => this.move(60, 0),
      ArrowRight: () => this.move(-60, 0),
      ArrowUp: () => this.move(0, 60),
      ArrowDown: () => this.move(0, -60),
      "+": () => this.zoom(STEP),
      "-": () => this.zoom(1 / STEP),
      0: () => this.reset(),
    };
    on("keydown", (event) => {
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(canvas);
  }

  close() {
    this.observer.disconnect();
    this.showTip(null);
  }

  // The viewport: the point in the middle of the canvas, and pixels per unit.

  /** Show all but the outermost points. */
  reset() {
    const extent = (values) => {
      const sorted = Float64Array.from(values).sort();
      const at = (share) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
      return [at(0.005), at(0.995)];
    };
    const [left, right] = extent(this.points.x);
    const [bottom, top] = extent(this.points.y);
    const { clientWidth, clientHeight } = this.canvas;
    const scale = 0.9 * Math.min(clientWidth / (right - left || 1), clientHeight / (top - bottom || 1));
    this.viewport = { x: (left + right) / 2, y: (bottom + top) / 2, scale };
    this.draw();
  }

  move(right, down) {
    const { x, y, scale } = this.viewport;
    this.viewport = { x: x - right / scale, y: y + down / scale, scale };
    this.draw();
  }

  /** Zoom by a factor; the given place, or the middle, stays where it is. */
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const [right, down] = [x - this.canvas.clientWidth / 2, y - this.canvas.clientHeight / 2];
    this.move(-right, -down);
    this.viewport.scale *= factor;
    this.move(right, down);
  }

  place(row) {
    const { x, y, scale } = this.viewport;
    return [
      (this.points.x[row] - x) * scale + this.canvas.clientWidth / 2,
      (y - this.points.y[row]) * scale + this.canvas.clientHeight / 2,
    ];
  }

  // Pointers: one moves the map or draws a lasso, two zoom.

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    this.isClick = this.pointers.size === 1;
    this.outline = this.isClick && (event.shiftKey || this.isLasso) ? [[event.offsetX, event.offsetY]] : null;
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.offsetX, event.offsetY];
    const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
    if (this.isClick && distance(before, now) < 4) return;
    this.isClick = false;
    this.pointers.set(event.pointerId, now);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (this.outline) this.outline.push(now);
    else if (other) this.zoom(distance(now, other) / distance(before, other), ...other);
    else this.move(now[0] - before[0], now[1] - before[1]);
    this.draw();
  }

  release(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    const row = this.isClick ? this.nearest(event) : null;
    if (this.outline && !this.isClick) this.select(this.rowsWithin(this.outline));
    else if (row !== null) this.select([row]);
    this.outline = null;
    this.draw();
  }

  toggleLasso() {
    this.isLasso = !this.isLasso;
    this.lasso.setAttribute("aria-pressed", this.isLasso);
  }

  nearest({ offsetX, offsetY }) {
    let [found, least] = [null, NEAR];
    for (const row of this.rows) {
      const [x, y] = this.place(row);
      const distance = Math.hypot(x - offsetX, y - offsetY);
      if (distance < least) [found, least] = [row, distance];
    }
    return found;
  }

  rowsWithin(outline) {
    const path = outlinePath(outline);
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    return this.rows.filter((row) => context.isPointInPath(path, ...this.place(row)));
  }

  /** Search among the documents of some rows; null for all. */
  select(rows) {
    this.selected = rows?.length ? new Set(rows) : null;
    this.draw();
    this.onSelect(this.selected && [...new Set(rows.map((row) => this.points.id[row]))]);
  }

  // What is shown beside the points.

  hover(event) {
    const row = this.nearest(event);
    if (row === this.hovered) return;
    this.showTip(row);
  }

  async showTip(row) {
    this.hovered = row;
    clearTimeout(this.resting);
    this.tip.hidden = row === null;
    if (row === null) return;
    const [x, y] = this.place(row);
    const { id, start, label, group } = this.points;
    this.tip.textContent = `${label[row]} — ${this.groups[group[row]]}`;
    this.tip.style.translate = `${Math.min(x, this.canvas.clientWidth - 260)}px ${y + 12}px`;
    this.resting = setTimeout(async () => {
      const path = `documents?id=${encodeURIComponent(id[row])}`;
      const { text } = await getJson(indexPath(this.index, path)).catch(() => ({ text: "" }));
      // Offsets count characters; JavaScript's strings count UTF-16 units.
      const passage = Array.from(text).slice(start[row], start[row] + SHOWN_CHARACTERS).join("");
      if (this.hovered === row && passage) this.tip.textContent = `${label[row]} — ${passage}`;
    }, REST_MS);
  }

  /** Mark the passages of hits. */
  highlight(hits) {
    const ranks = new Map(hits.map((hit) => [`${hit.start} ${hit.id}`, hit.rank]));
    const { id, start } = this.points;
    this.hits = this.rows.flatMap((row) => {
      const rank = ranks.get(`${start[row]} ${id[row]}`);
      return rank ? [{ row, rank }] : [];
    });
    this.draw();
  }

  /** Move the viewport to a hit. */
  goTo(hit) {
    const marked = this.hits.find(({ rank }) => rank === hit.rank);
    if (!marked) return;
    const [x, y] = [this.points.x[marked.row], this.points.y[marked.row]];
    this.viewport = { ...this.viewport, x, y };
    this.draw();
  }

  // Drawing.

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.drawNow();
    });
  }

  drawNow() {
    const { canvas } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    const context = canvas.getContext("2d");
    [canvas.width, canvas.height] = [width * devicePixelRatio, height * devicePixelRatio];
    context.scale(devicePixelRatio, devicePixelRatio);
    const style = getComputedStyle(canvas);
    for (const [number, rows] of this.colours.entries()) {
      context.fillStyle = this.colour(number);
      const { selected } = this;
      if (selected) this.drawPoints(context, rows.filter((row) => !selected.has(row)), 0.12);
      this.drawPoints(context, selected ? rows.filter((row) => selected.has(row)) : rows, 0.75);
    }
    context.globalAlpha = 1;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.drawNames(context, style);
    context.font = `bold 11px ${style.fontFamily}`;
    for (const { row, rank } of this.hits) drawMark(context, rank, ...this.place(row), style);
    if (!this.outline) return;
    context.strokeStyle = style.color;
    context.stroke(outlinePath(this.outline));
  }

  drawPoints(context, rows, alpha) {
    context.globalAlpha = alpha;
    const { x, y } = this.points;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const size = Math.min(6, Math.max(2, 120 / Math.sqrt(this.rows.length)));
    const { scale } = this.viewport;
    const left = width / 2 - this.viewport.x * scale - size / 2;
    const top = height / 2 + this.viewport.y * scale - size / 2;
    for (const row of rows) {
      const right = left + x[row] * scale;
      const down = top - y[row] * scale;
      if (right > -size && down > -size && right < width && down < height) {
        context.fillRect(right, down, size, size);
      }
    }
  }

  /** The names of groups at their middles, the largest first, where they fit. */
  drawNames(context, style) {
    context.font = `600 13px ${style.fontFamily}`;
    context.lineWidth = 4;
    context.strokeStyle = style.backgroundColor;
    context.fillStyle = style.color;
    const taken = [];
    this.middles ??= this.rowsOfGroups.map((rows) => middle(rows, this.points));
    for (const [group, row] of this.middles.entries()) {
      if (row === null) continue;
      const half = context.measureText(this.groups[group]).width / 2;
      const [centre, y] = this.place(row);
      const isVisible = centre >= 0 && centre <= this.canvas.clientWidth;
      const x = isVisible ? Math.max(half, Math.min(centre, this.canvas.clientWidth - half)) : centre;
      const isFree = taken.every((other) => Math.abs(other.y - y) > 18 || Math.abs(other.x - x) > other.half + half + 8);
      if (!isFree) continue;
      taken.push({ x, y, half });
      context.strokeText(this.groups[group], x, y);
      context.fillText(this.groups[group], x, y);
    }
  }
}

function outlinePath(outline) {
  const path = new Path2D();
  for (const place of outline) path.lineTo(...place);
  path.closePath();
  return path;
}

/** The row in the middle of some; null if there are none. */
function middle(rows, { x, y }) {
  const median = (values) => rows.map((row) => values[row]).sort((a, b) => a - b)[rows.length >> 1];
  const [right, up] = [median(x), median(y)];
  const distance = (row) => Math.hypot(x[row] - right, y[row] - up);
  return rows.length ? rows.reduce((best, row) => (distance(row) < distance(best) ? row : best)) : null;
}

function drawMark(context, rank, x, y, style) {
  context.beginPath();
  context.arc(x, y, 9, 0, 2 * Math.PI);
  context.fillStyle = "#c81e1e";
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = style.backgroundColor;
  context.stroke();
  context.fillStyle = "#fff";
  context.fillText(String(rank), x, y);
}
