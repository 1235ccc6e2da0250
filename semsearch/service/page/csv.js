// Export of hits.

import { stringify } from "./json.js";

/** Download hits as CSV: rank, score, id, title, text, then a column for each field. */
export function download(hits, name) {
  const taken = ["rank", "score", "id", "title", "text"];
  const fields = [...new Set(hits.flatMap((hit) => Object.keys(hit.metadata)))];
  const column = (field) => (taken.includes(field) ? `metadata.${field}` : field);
  const rows = [
    [...taken, ...fields.map(column)],
    ...hits.map((hit) => [
      ...taken.map((key) => hit[key]),
      ...fields.map((field) => (Object.hasOwn(hit.metadata, field) ? hit.metadata[field] : null)),
    ]),
  ];
  const lines = rows.map((row) => `${row.map(cell).join(",")}\r\n`);
  const link = document.createElement("a");
  // The byte order mark makes Excel read it as UTF-8.
  link.href = URL.createObjectURL(new Blob(["\ufeff", ...lines], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function cell(value) {
  if (value == null) return "";
  const text = typeof value === "object" ? stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
