// Which jobs are wanted: the controls above the list and the page's address say the same, whichever changes.

import { withQuery } from "../core/api.js";
import { one } from "../core/dom.js";

const NAMES = ["q", "status", "job_type", "from", "to"];
const TYPING_MS = 250;

/** What the address asks for; what it does not name is an empty text. */
export function asked() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries([...NAMES, "cursor"].map((name) => [name, query.get(name) ?? ""]));
}

export function isFiltered(wanted) {
  return NAMES.some((name) => wanted[name] !== "");
}

/** The query of the API for it. */
export function apiPath(path, wanted, more = {}) {
  const paused = wanted.status === "paused";
  return withQuery(path, {
    q: wanted.q,
    status: paused ? "" : wanted.status,
    state: paused ? "paused" : "",
    job_type: wanted.job_type,
    from: dayBegins(wanted.from, 0),
    // People mean the whole of the last day; the API ends before the moment it is given.
    to: dayBegins(wanted.to, 1),
    cursor: wanted.cursor,
    ...more,
  });
}

/** Write it into the address: as a step that Back undoes, or, while somebody types, in place of the one before. */
export function remember(wanted, { asStep = true } = {}) {
  const address = withQuery(location.pathname, wanted);
  if (address === location.pathname + location.search) return;
  if (asStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/** Show it in the controls. */
export function show(wanted) {
  for (const name of NAMES) {
    const control = one(`#${name}`);
    const known = control.tagName !== "SELECT" || [...control.options].some((each) => each.value === wanted[name]);
    if (!known) control.add(new Option(wanted[name], wanted[name])); // a kind that is no longer known here
    if (control.value !== wanted[name]) control.value = wanted[name];
  }
  one("#clear").hidden = !isFiltered(wanted);
}

/** Call `changed` with what is wanted, and whether it is a step of its own, whenever somebody changes a control. */
export function listen(changed) {
  const form = one("#filters");
  const search = one("#q");
  let timer = 0;
  let last = null; // what is typed into one control, letter by letter, is one step

  function tell(control) {
    clearTimeout(timer);
    const wanted = { cursor: "" };
    for (const name of NAMES) wanted[name] = one(`#${name}`).value.trim();
    changed(wanted, { asStep: control !== last });
    last = control;
  }

  form.addEventListener("focusin", () => (last = null));
  form.addEventListener("input", ({ target }) => {
    clearTimeout(timer);
    if (target === search) timer = setTimeout(tell, TYPING_MS, search);
    else tell(target);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tell(search);
  });
  document.addEventListener("keydown", (event) => {
    const busy = event.target.closest?.("input, textarea, select, dialog, [contenteditable]");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || busy) return;
    event.preventDefault();
    search.focus();
    search.select();
  });
}

function dayBegins(date, later) {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return date;
  const [year, month, day] = date.split("-").map(Number);
  const moment = new Date(year, month - 1, day + later);
  return Number.isNaN(moment.getTime()) ? date : moment.toISOString();
}
