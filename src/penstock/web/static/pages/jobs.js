// The jobs as they stand, in one live list, and the forms that start new ones.

import { page } from "../core/api.js";
import { all, fill, make, find, say } from "../core/dom.js";
import { plural } from "../core/format.js";
import { apiPath, filtersInAddress, isFiltered, listen, remember, show } from "./jobs_filters.js";
import { Rows } from "./jobs_rows.js";
import { follow, showConnection } from "../core/live.js";
import { readyToStart } from "./start.js";
import { empty, failed } from "../components/placeholders.js";

const AT_ONCE = 50;
const LOOKED_THROUGH = "20,000";

const list = find("#list");
const table = find("#jobs");
const rows = new Rows(find("tbody", table));
let filters = filtersInAddress();
let next = null;
let live = null;
let fresh = true;

/** Follow what is wanted now; the jobs of before stay, greyed, until the first answer. */
function open() {
  live?.close();
  fresh = true;
  list.setAttribute("aria-busy", "true");
  show(filters);
  const path = apiPath("/api/jobs/live", filters, { limit: AT_ONCE });
  const mine = follow(
    path,
    { jobs: (news) => mine === live && take(news) },
    { onState: (state) => mine === live && look(state) },
  );
  live = mine;
}

function take({ order, jobs, next: behind }) {
  rows.update(order, jobs);
  next = behind;
  list.setAttribute("aria-busy", "false");
  table.hidden = rows.count === 0;
  showNothing();
  showPaging();
  if (fresh) say(find("#told"), `${plural(rows.count, "job", "jobs")} shown`);
  fresh = false;
}

// A stream does not say why it failed: the list itself does. A session that is over leads to the sign-in page.
async function look(state) {
  if (state !== "lost") return;
  const mine = live;
  try {
    await page(apiPath("/api/jobs", filters, { limit: 1 }));
  } catch (problem) {
    if (mine !== live) return;
    const hopeless = problem.status >= 400 && problem.status < 500;
    if (hopeless) live.close();
    if (hopeless || rows.count === 0) showProblem(problem);
  }
}

function showProblem(problem) {
  rows.update([], []);
  table.hidden = true;
  list.setAttribute("aria-busy", "false");
  showConnection(true); // it is said in the list's place
  next = null;
  showPaging();
  find("#newest").hidden = true;
  const message = failed(problem, open);
  if (isFiltered(filters) || filters.cursor) message.append(" ", button("Show all jobs", clear));
  fill(find("#nothing"), message);
}

function showNothing() {
  const place = find("#nothing");
  if (rows.count) return fill(place);
  if (next) {
    const further = button("Look further", older);
    const text = `None of the ${LOOKED_THROUGH} jobs that were searched matches. There are older ones.`;
    return fill(place, empty("No match among those", text, further));
  }
  if (filters.cursor) {
    return fill(place, empty("That was all", "There is nothing older.", button("To the newest", newest)));
  }
  if (isFiltered(filters)) {
    const text = "No job matches. Change a filter, or clear them all.";
    return fill(place, empty("Nothing matches", text, button("Clear filters", clear)));
  }
  const start = document.getElementById("start");
  if (start && fresh) start.open = true;
  const text = start
    ? "Penstock does the work that people wait for: it keeps each job, shows how far it is, and lets you stop it, " +
      "pause it, and do again what failed. Start one above; you will see it here at once."
    : "Jobs that your application submits are shown here, and how far they are.";
  return fill(place, empty("No jobs yet", text));
}

function showPaging() {
  find("#newest").hidden = !filters.cursor;
  find("#older").hidden = !next || !rows.count;
  const short = Boolean(next && filters.q && rows.count && rows.count < AT_ONCE);
  find("#further").hidden = !short;
  if (short) say(find("#further"), `No more matches among the ${LOOKED_THROUGH} jobs that were searched.`);
  say(find("#older"), short ? "Look further" : "Older");
}

function go(to, options) {
  filters = to;
  remember(filters, options);
  open();
}

function turn(cursor) {
  go({ ...filters, cursor });
  list.focus({ preventScroll: true });
  find("h1").scrollIntoView();
}

function older() {
  turn(next);
}

function newest() {
  turn("");
}

function clear() {
  go(Object.fromEntries(Object.keys(filters).map((name) => [name, ""])));
  find("#q").focus();
}

function button(text, click) {
  return make("button", { type: "button", on: { click } }, text);
}

find("#newest").addEventListener("click", newest);
find("#older").addEventListener("click", older);
find("#clear").addEventListener("click", clear);
listen(go);
addEventListener("popstate", () => {
  filters = filtersInAddress();
  open();
});
all(".start-form").forEach(readyToStart);
open();
