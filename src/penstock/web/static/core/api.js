// Asking the API. Every failure is a Problem, with the server's own code and words where it had any.

const dataset = document.documentElement.dataset;
export const root = dataset.root;
export const user = dataset.user;
export const isAdmin = dataset.admin === "true";

export class Problem extends Error {
  constructor({ status = 0, code = "UNKNOWN", message = "that did not work", field = null, retryAfter = null }) {
    super(message);
    this.name = "Problem";
    Object.assign(this, { status, code, field, retryAfter });
  }
}

export const OFFLINE = { code: "OFFLINE", message: "the server cannot be reached; are you offline, or is it down?" };

/** What an address answers. */
export async function get(path, { signal } = {}) {
  return (await ask("GET", path, { signal })).body;
}

/** Send something; the body becomes JSON. */
export async function send(method, path, body, { signal, headers } = {}) {
  return (await ask(method, path, { body, signal, headers })).body;
}

/** A page of a list, and the path of the one behind it. */
export async function page(path, { signal } = {}) {
  const { body, answer } = await ask("GET", path, { signal });
  return { body, next: nextOf(answer.headers.get("Link")) };
}

/** A path with those parameters that have a value. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.append(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Read what went wrong from an answer that is not good; a session that is over leads to the sign-in page. */
export function problemOf(status, text, retryAfter = null) {
  let body = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch {
    body = {};
  }
  if (status === 401) {
    const here = location.pathname + location.search;
    location.assign(`${root}/ui/sign-in?next=${encodeURIComponent(here)}`);
  }
  return new Problem({
    status,
    code: body.code ?? `HTTP_${status}`,
    message: body.message ?? `the server answered with status ${status}`,
    field: body.field ?? null,
    retryAfter: retryAfter === null ? null : Number(retryAfter),
  });
}

async function ask(method, path, { body, signal, headers }) {
  const options = { method, signal, credentials: "same-origin", headers: { Accept: "application/json", ...headers } };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer, text;
  try {
    answer = await fetch(root + path, options);
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(OFFLINE);
  }
  if (!answer.ok) throw problemOf(answer.status, text, answer.headers.get("Retry-After"));
  return { body: text ? JSON.parse(text) : null, answer };
}

function nextOf(link) {
  const match = /<([^>]+)>;\s*rel="next"/.exec(link ?? "");
  if (!match) return null;
  const address = new URL(match[1], location.href);
  return address.pathname.slice(root.length) + address.search;
}
