// Requests to the service of this page.

import { parse } from "./json.js";

const TOKEN = "semsearch-token";

/** An error reported by the service. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Send a request; if a token is required, ask the user for it. */
export async function request(path, { body, signal } = {}) {
  for (;;) {
    const headers = {};
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers.Authorization = `Bearer ${bytes(token)}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    }).catch(unreachable);
    if (response.ok) return response;
    if (response.status !== 401) throw await problem(response);
    sessionStorage.setItem(TOKEN, await askForToken());
  }
}

export async function getJson(path, options) {
  return parse(await (await request(path, options)).text());
}

/** The path of a resource of an index. */
export function indexPath(name, rest) {
  return `v1/indexes/${encodeURIComponent(name)}/${rest}`;
}

/** A text in UTF-8, as a header takes it: one character for each byte. */
function bytes(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

function unreachable(error) {
  throw error instanceof TypeError ? new Error("the service cannot be reached") : error;
}

async function problem(response) {
  try {
    return new Problem(response.status, (await response.json()).detail);
  } catch {
    return new Problem(response.status, `${response.status} ${response.statusText}`);
  }
}

let asking = null;

/** Show one dialog, even if several requests wait for the token. */
function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("sign-in");
    const field = document.getElementById("token");
    const done = () => {
      if (!field.value) return dialog.showModal();
      dialog.removeEventListener("close", done);
      asking = null;
      resolve(field.value);
      field.value = "";
    };
    dialog.addEventListener("close", done);
    dialog.showModal();
  });
  return asking;
}
