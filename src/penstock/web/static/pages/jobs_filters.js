// Which jobs are wanted: the controls above the list and the page's address say the same, whichever changes.

import { withQuery } from "../core/api.js";
import { find } from "../core/dom.js";

const NAMES = ["q", "status", "job_type", "from", "to"];
const TYPING_MS = 250;

/** What the address asks for; what it does not name is an empty text. */
export function filtersInAddress() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries([...NAMES, "cursor"].map((name) => [name, query.get(name) ?? ""]));
}

export function isFiltered(filters) {
  return NAMES.some((name) => filters[name] !== "");
}

/** The query of the API for it. */
export function apiPath(path, filters, more = {}) {
  const paused = filters.status === "paused";
  return withQuery(path, {
    q: filters.q,
    status: paused ? "" : filters.status,
    state: paused ? "paused" : "",
    job_type: filters.job_type,
    from: dayBegins(filters.from, 0),
    // People mean the whole of the last day; the API ends before the moment it is given.
    to: dayBegins(filters.to, 1),
    cursor: filters.cursor,
    ...more,
  });
}

/** Write it into the address: as a step that Back undoes, or, while somebody types, in place of the one before. */
export function remember(filters, { asStep = true } = {}) {
  const address = withQuery(location.pathname, filters);
  if (address === location.pathname + location.search) return;
  if (asStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/** Show it in the controls. */
export function show(filters) {
  for (const name of NAMES) {
    const control = find(`#${name}`);
    const isKnown = control.tagName !== "SELECT" || [...control.options].some((each) => each.value === filters[name]);
    if (!isKnown) control.add(new Option(filters[name], filters[name])); // a kind that is no longer isKnown here
    if (control.value !== filters[name]) control.value = filters[name];
  }
  find("#clear").hidden = !isFiltered(filters);
}

/** Call `changed` with what is wanted, and whether it is a step of its own, whenever somebody changes a control. */
export function listen(onChange) {
  const form = find("#filters");
  const search = find("#q");
  let timer = 0;
  let last = null; // what is typed into one control, letter by letter, is one step

  function tell(control) {
    clearTimeout(timer);
    const filters = { cursor: "" };
    for (const name of NAMES) filters[name] = find(`#${name}`).value.trim();
    onChange(filters, { asStep: control !== last });
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
