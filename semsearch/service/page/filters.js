// Controls for the fields of an index, and the expression that they stand for.

import { element } from "./dom.js";

const RANGE = "..";

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const named = (field) => `metadata."${field.replaceAll('"', '""')}"`;

/** The controls of some fields; `onChange` is called with what they say: { field: value }. */
export function filterControls(fields, said, onChange) {
  const now = { ...said };
  const say = (name, value) => {
    if (value) now[name] = value;
    else delete now[name];
    onChange({ ...now });
  };
  return fields.map((field) => {
    const control = CONTROLS[kindOf(field)];
    return control(field, now[field.name] ?? "", (value) => say(field.name, value));
  });
}

/** An expression for what the controls and the expert's own line say; null for nothing. */
export function expression(fields, said, where) {
  const parts = fields
    .filter((field) => said[field.name])
    .map((field) => condition(field, said[field.name]));
  if (where.trim()) parts.push(`(${where})`);
  return parts.length ? parts.join(" and ") : null;
}

function kindOf(field) {
  const kinds = field.kinds.filter((kind) => kind !== "null" && kind !== "list");
  const only = kinds.length === 1 ? kinds[0].replace("list of ", "") : "text";
  return only in CONTROLS ? only : "text";
}

function condition(field, said) {
  const name = named(field.name);
  const kind = kindOf(field);
  if (kind === "boolean") return `${name} = ${said}`;
  if (kind === "text") return `${name} = ${quoted(said)}`;
  const [low, high] = said.split(RANGE);
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

function text(field, said, say) {
  const list = `values-of-${field.name}`;
  const input = element("input", {
    type: "text",
    dir: "auto",
    list,
    value: said,
    onchange: () => say(input.value),
  });
  const values = field.values.map(([value, count]) =>
    element("option", { value, label: `${value} (${count})` }),
  );
  return element(
    "label",
    {},
    element("span", { dir: "auto" }, field.name),
    input,
    element("datalist", { id: list }, ...values),
  );
}

function range(field, said, say) {
  const [low = "", high = ""] = said.split(RANGE);
  const type = kindOf(field);
  const bound = (label, value, placeholder) =>
    element("input", { type, step: "any", value, placeholder, "aria-label": label, onchange: told });
  const from = bound(`${field.name} from`, low, field.least ?? "");
  const to = bound(`${field.name} to`, high, field.greatest ?? "");
  function told() {
    say(from.value || to.value ? `${from.value}${RANGE}${to.value}` : "");
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

function boolean(field, said, say) {
  const select = element(
    "select",
    { onchange: () => say(select.value) },
    ...["", "true", "false"].map((value) =>
      element("option", { value, selected: value === said }, value || "any"),
    ),
  );
  return element("label", {}, element("span", { dir: "auto" }, field.name), select);
}
