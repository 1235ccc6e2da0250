// Requests to the service of this page.

import { byId } from "./dom.js";
import { parse } from "./json.js";

const TOKEN = "semsearch-token";

/** Send a request; if a token is required, ask the user for it. */
export async function request(path, { body, signal } = {}) {
  const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  for (;;) {
    const headers = { "Content-Type": "application/json" };
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers.Authorization = `Bearer ${bytes(token)}`;
    const response = await fetch(path, { ...sent, headers, signal }).catch(unreachable);
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
  const { status, statusText } = response;
  const { detail } = await response.json().catch(() => ({ detail: `${status} ${statusText}` }));
  return Object.assign(new Error(detail), { status });
}

let asking = null;

/** Show one dialog, even if several requests wait for the token. */
function askForToken() {
  asking ??= new Promise((resolve) => {
    const done = () => {
      asking = null;
      resolve(byId("token").value);
      byId("token").value = "";
    };
    byId("sign-in").addEventListener("close", done, { once: true });
    byId("sign-in").showModal();
  });
  return asking;
}
