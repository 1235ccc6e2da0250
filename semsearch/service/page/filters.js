// Facets: controls for the fields of an index, and the filter expression of what is chosen.

import { getJson, indexPath } from "./api.js";
import { drawing, element } from "./dom.js";

const RANGE = "..";

/** Values shown of a facet before the rest is asked for; with more of them, a box completes. */
const FEW = 8;
const MANY = 50;

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
/** A metadata field in expressions: `id` and `title`, even in quotes, are those of the document. */
function named(field) {
  if (["id", "title"].includes(field)) return `metadata.${field}`;
  return /^[a-z]\w{4,}$/i.test(field) ? field : `"${field.replaceAll('"', '""')}"`; // keywords are shorter
}

/**
 * The facets of fields. `chosen` has the chosen values by field, and `counts` the fields under the
 * present filter. `onChange` is called with a field and its new values.
 */
export function facets(index, fields, counts, chosen, onChange) {
  const now = new Map(counts.map((field) => [field.name, field]));
  const place = ({ values }) => (values.length ? (values.length < MANY ? 0 : 2) : 1);
  const listed = fields.filter((field) => isFacet(field) || chosen.has(field.name));
  return listed.toSorted((a, b) => place(a) - place(b)).flatMap((field) => {
    const draw = CONTROLS[kindOf(field)];
    if (!draw) return [];
    const change = (values) => onChange(field.name, values);
    const body = draw(field, chosen.get(field.name) ?? [], now.get(field.name), change, index);
    return [facet(field.name, body)];
  });
}

/** Whether a field has values that several documents share, or a range; the service decides. */
export function isFacet({ values, histogram }) {
  return values.length > 0 || histogram.length > 0;
}

/** An expression with values of these fields, as an example. */
export function example(fields) {
  const known = fields.filter(isFacet);
  const number = known.find((field) => kindOf(field) === "number");
  const text = known.find((field) => kindOf(field) === "text");
  const half = number && Math.round((Number(number.least) + Number(number.greatest)) / 2);
  const parts = [
    number && `${named(number.name)} >= ${half}`,
    text && `${number ? "not " : ""}${named(text.name)} = ${quoted(text.values[0][0])}`,
  ];
  return parts.filter(Boolean).join(" and ");
}

/** What is chosen, as buttons that remove it. */
export function chips(chosen, onChange) {
  return [...chosen].flatMap(([name, values]) =>
    values.map((value) =>
      element(
        "button",
        {
          type: "button",
          class: "chip",
          dir: "auto",
          "aria-label": `Remove ${name}: ${value}`,
          onclick: () => onChange(name, values.filter((other) => other !== value)),
        },
        `${name}: ${value} ×`,
      ),
    ),
  );
}

/** The expression for the chosen values and the expression field; null if empty. */
export function expression(fields, chosen, where) {
  const parts = fields
    .filter((field) => chosen.get(field.name)?.length)
    .map((field) => condition(field, chosen.get(field.name)));
  if (!where.trim()) return parts.join(" and ") || null;
  // Alone or first, since errors name columns.
  return parts.length ? [`(${where})`, ...parts].join(" and ") : where;
}

/** The expression for documents with these ids. */
export function oneOf(ids) {
  return `id in (${ids.map(quoted).join(", ")})`;
}

function kindOf(field) {
  const kinds = new Set(field.kinds.map((kind) => kind.replace("list of ", "")));
  for (const empty of ["null", "list"]) kinds.delete(empty);
  return kinds.size === 1 ? [...kinds][0] : "text";
}

function condition(field, values) {
  const name = named(field.name);
  const kind = kindOf(field);
  if (kind === "boolean") return `${name} in (${values.join(", ")})`;
  if (CONTROLS[kind] !== range) return `${name} in (${values.map(quoted).join(", ")})`;
  const [low, high] = values[0].split(RANGE);
  const literal = kind === "date" ? quoted : (text) => text;
  const bounds = [];
  if (low) bounds.push(`${name} >= ${literal(low)}`);
  if (high && kind === "date") bounds.push(`${name} < ${quoted(dayAfter(high))}`);
  else if (high) bounds.push(`${name} <= ${high}`);
  return bounds.join(" and ");
}

function dayAfter(day) {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + 1);
  return date.toISOString().slice(0, 10);
}

const CONTROLS = { text: choices, number: range, date: range, boolean: yesOrNo };

function facet(name, body) {
  const label = element("span", { dir: "auto" }, name);
  return element("fieldset", { class: "facet", "data-field": name }, element("legend", {}, label), ...body);
}

/** Checkboxes for the most frequent values; a box that completes if there are many. */
function choices(field, chosen, now, onChange, index) {
  const counts = now && new Map(now.values);
  const isComplete = field.values.length < MANY; // else, a value that is not counted may be rare
  const all = new Map(field.values);
  const shown = new Set([...chosen, ...all.keys()]);
  const boxes = [...shown].map((value) => {
    const count = (counts ?? all).get(value) ?? (isComplete ? 0 : null);
    return checkbox(value, count, chosen, onChange);
  });
  const first = Math.max(FEW, chosen.length);
  const rest = boxes.slice(first);
  const more = rest.length && element("details", {}, element("summary", {}, `${rest.length} more`), ...rest);
  const box = isComplete ? null : completing(index, field, chosen, onChange);
  return [...boxes.slice(0, first), more || null, box].filter(Boolean);
}

function yesOrNo(field, chosen, now, onChange) {
  const counts = new Map((now ?? field).values);
  return ["true", "false"].map((value) => checkbox(value, counts.get(value) ?? 0, chosen, onChange));
}

function checkbox(value, count, chosen, onChange) {
  const change = ({ target }) =>
    onChange(target.checked ? [...chosen, value] : chosen.filter((other) => other !== value));
  return element(
    "label",
    { class: count === 0 ? "choice none" : "choice" },
    element("input", { type: "checkbox", value, checked: chosen.includes(value), onchange: change }),
    element("span", { dir: "auto" }, value),
    count === null ? null : element("span", { class: "count" }, count.toLocaleString("en")),
  );
}

/** A box with the values that contain what is typed, from the service. */
function completing(index, field, chosen, onChange) {
  const list = `values-of-${field.name}`;
  const options = element("datalist", { id: list });
  const complete = async () => {
    const typed = input.value;
    const parameters = new URLSearchParams({ field: field.name, typed });
    const found = await getJson(indexPath(index, `fields/values?${parameters}`)).catch(() => []);
    if (input.value !== typed) return; // the answer to what was typed since may be here already
    options.replaceChildren(
      ...found.map(([value, count]) => element("option", { value }, count.toLocaleString("en"))),
    );
  };
  const input = element("input", {
    type: "text",
    dir: "auto",
    list,
    placeholder: "another value",
    "aria-label": `${field.name}: another value`,
    oninput: complete,
    onfocus: complete,
    onchange: () => input.value && onChange([...new Set([...chosen, input.value])]),
  });
  return element("div", {}, input, options);
}

function range(field, chosen, now, onChange) {
  const [low = "", high = ""] = (chosen[0] ?? "").split(RANGE);
  const type = kindOf(field);
  const bound = (label, limit, placeholder) =>
    element("input", { type, step: "any", value: limit, placeholder, "aria-label": label, onchange: changed });
  const day = (value) => String(value ?? "").slice(0, 10);
  const [least, greatest] = type === "date" ? [day(field.least), day(field.greatest)] : [field.least, field.greatest];
  const from = bound(`${field.name} from`, low, least);
  const to = bound(`${field.name} to`, high, greatest);
  function changed() {
    onChange(from.value || to.value ? [`${from.value}${RANGE}${to.value}`] : []);
  }
  const known = type === "date" && least ? element("span", { class: "count" }, `${least} to ${greatest}`) : null;
  const bars = histogram(field.histogram, now?.histogram);
  return [bars, element("div", { class: "range" }, from, "to", to), known].filter(Boolean);
}

/** Bars of all documents and, before them, of those under the present filter. */
function histogram(all, now) {
  const most = Math.max(...all);
  const bar = (name) => (count, place) => {
    const height = count && Math.max(2, (30 * count) / most);
    return drawing("rect", { class: name, x: place * 10, y: 30 - height, width: 9, height });
  };
  return drawing(
    "svg",
    { class: "histogram", viewBox: `0 0 ${all.length * 10} 30`, preserveAspectRatio: "none", "aria-hidden": true },
    ...all.map(bar("all")),
    ...(now ?? []).map(bar("now")),
  );
}
