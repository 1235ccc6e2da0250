// Controls for the fields of an index, and the filter expression of their values.

import { element } from "./dom.js";

const RANGE = "..";

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const named = (field) => `metadata."${field.replaceAll('"', '""')}"`;

/**
 * The controls of fields, except those of objects. `onChange` is called with a map of their values.
 */
export function filterControls(fields, initial, onChange) {
  const values = new Map(initial);
  return fields.flatMap((field) => {
    const set = (value) => {
      values.set(field.name, value);
      onChange(new Map([...values].filter(([, kept]) => kept)));
    };
    return CONTROLS[kindOf(field)]?.(field, values.get(field.name) ?? "", set) ?? [];
  });
}

/** The expression for the values of the controls and the expression field; null if empty. */
export function expression(fields, values, where) {
  const parts = fields
    .filter((field) => values.get(field.name))
    .map((field) => condition(field, values.get(field.name)));
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

function condition(field, value) {
  const name = named(field.name);
  const kind = kindOf(field);
  if (kind === "boolean") return `${name} = ${value}`;
  if (CONTROLS[kind] !== range) return `${name} = ${quoted(value)}`;
  const [low, high] = value.split(RANGE);
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

const CONTROLS = { text, number: range, date: range, boolean };

function text(field, value, onChange) {
  const list = `values-of-${field.name}`;
  const input = element("input", {
    type: "text",
    dir: "auto",
    list,
    value,
    onchange: () => onChange(input.value),
  });
  const values = field.values.map(([option, count]) =>
    element("option", { value: option, label: `${option} (${count})` }),
  );
  return element(
    "label",
    {},
    element("span", { dir: "auto" }, field.name),
    input,
    element("datalist", { id: list }, ...values),
  );
}

function range(field, value, onChange) {
  const [low = "", high = ""] = value.split(RANGE);
  const type = kindOf(field);
  const bound = (label, limit, placeholder) =>
    element("input", { type, step: "any", value: limit, placeholder, "aria-label": label, onchange: changed });
  const from = bound(`${field.name} from`, low, field.least ?? "");
  const to = bound(`${field.name} to`, high, field.greatest ?? "");
  function changed() {
    onChange(from.value || to.value ? `${from.value}${RANGE}${to.value}` : "");
  }
  return element(
    "div",
    { class: "range", role: "group", "aria-label": field.name },
    element("span", { dir: "auto" }, field.name),
    from,
    "to",
    to,
  );
}

function boolean(field, value, onChange) {
  const select = element(
    "select",
    { onchange: () => onChange(select.value) },
    ...["", "true", "false"].map((option) =>
      element("option", { value: option, selected: option === value }, option || "any"),
    ),
  );
  return element("label", {}, element("span", { dir: "auto" }, field.name), select);
}
