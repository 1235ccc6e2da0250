// Requests to the service this page came from.

const TOKEN = "semsearch-token";

/** What the service says is wrong. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Ask for a path; where a token is needed, ask for that first. */
export async function request(path, { body, signal } = {}) {
  for (;;) {
    const headers = {};
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    if (answer.ok) return answer;
    if (answer.status !== 401) throw await problem(answer);
    sessionStorage.setItem(TOKEN, await askForToken());
  }
}

export async function getJson(path, options) {
  return (await request(path, options)).json();
}

/** The path of an index, and of what is below it. */
export function indexPath(name, rest) {
  return `v1/indexes/${encodeURIComponent(name)}/${rest}`;
}

async function problem(answer) {
  try {
    return new Problem(answer.status, (await answer.json()).detail);
  } catch {
    return new Problem(answer.status, `${answer.status} ${answer.statusText}`);
  }
}

let asking = null;

/** One question, however many requests wait for its answer. */
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
