// The coordinator, as this page sees it. Addresses are relative: the page works behind a prefix.

const KEY = "guardband-token";

/** The answer was no: `status` and, where the coordinator gave them, `code` and a sentence. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `the coordinator answered ${status}`);
    this.status = status;
    this.code = problem.code;
  }
}

/** Take token and space out of the address (#token=...&space=...), so that no copy shows them. */
export function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("token")) {
    sessionStorage.setItem(KEY, given.get("token"));
    given.delete("token");
    history.replaceState(null, "", given.size ? `#${given}` : location.pathname + location.search);
  }
  return given.get("space");
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
export const keepToken = (token) => sessionStorage.setItem(KEY, token.trim());
export const forgetToken = () => sessionStorage.removeItem(KEY);

async function ask(path, options = {}) {
  const headers = { Accept: "application/json" };
  if (hasToken()) headers.Authorization = `Bearer ${sessionStorage.getItem(KEY)}`;
  if (options.body) headers["Content-Type"] = "application/json";
  const signal = AbortSignal.timeout(10_000);
  const answer = await fetch(path, { ...options, headers, signal, cache: "no-store" });
  const text = await answer.text();
  let data = {};
  try {
    data = text ? JSON.parse(text) : {};
  } catch {
    data = { detail: text.slice(0, 200) };
  }
  if (!answer.ok) throw new Refused(answer.status, data);
  return data;
}

const inSpace = (space, rest) => `v1/spaces/${encodeURIComponent(space)}/${rest}`;

export const me = () => ask("v1/me");
export const spaces = () => ask("v1/spaces");
export const summary = (space) => ask(inSpace(space, "summary"));
export const past = (space, hours) => ask(inSpace(space, `history?hours=${hours}`));
export const resume = (space) => ask(inSpace(space, "resume"), { method: "POST" });
export const acknowledge = (space, { id, task }, reason) =>
  ask(inSpace(space, `alerts/${encodeURIComponent(id)}/acknowledge`),
    { method: "POST", body: JSON.stringify({ task, reason }) });
export const pause = (space, reason) =>
  ask(inSpace(space, "pause"), { method: "POST", body: JSON.stringify({ reason }) });
