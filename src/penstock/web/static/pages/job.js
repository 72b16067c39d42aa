// The page of one job: follows it, and hands what comes to the parts of the page.

import { get } from "../core/api.js";
import { fill, find, say } from "../core/dom.js";
import { isBefore, plural } from "../core/format.js";
import { Grid } from "../components/grid.js";
import { timeline } from "../components/history.js";
import { actions } from "./job_actions.js";
import { charts } from "./job_charts.js";
import { errorGroups } from "./job_errors.js";
import { header } from "./job_header.js";
import { copyText } from "../core/copying.js";
import { lifecycle } from "../components/lifecycle_diagram.js";
import { follow } from "../core/live.js";
import { tell, warn } from "../core/notices.js";
import { chosenItems, reprocess } from "../components/reprocess.js";
import { failed } from "../components/placeholders.js";
import { tabs } from "../components/tabs.js";

const section = find("#job");
const jobId = section.dataset.job;
const grids = {};
let job = null;
let several = false;
let askedColumns = false;
let live = null;
let drawing = 0;

const head = header(section);
const buttons = actions(find("#actions"), { results: section.dataset.resultsPage, resultsName: section.dataset.resultsName, onChange });
const errors = errorGroups(find("#errors"), { jobId, onChange });
const history = timeline(find("#history"));
const way = lifecycle(find("#lifecycle"), find("#path"), find("#transitions"));
const parts = tabs(find("[role=tablist]"), { onShow: () => job && shownTab() });
const figures = charts({
  throughput: find("#throughput"),
  steered: find("#steered"),
  steering: find("#steering"),
  jobId,
  isShown: () => parts.current() === "overview",
});

/** The job as it stands: from the stream, or as an action answered it. */
function update(latest) {
  // What an action answers may be overtaken by the stream, or the other way round: the newer one counts.
  if (job && isBefore(latest.updated_at, job.updated_at)) return;
  job = latest;
  several ||= job.total_items > 1;
  if (!several && job.total_items === 1) lookForColumns();
  for (const name of ["items", "pending", "errors"]) parts.offer(name, several);
  head.update(job, { several, history: history.lines() });
  buttons.update(job, { several });
  figures.update(job, { several });
  showResult();
  selection();
  shownTab();
}

/** A job of one item is a single step, with nothing for a grid, unless its kind has columns: then it is a table's row. */
async function lookForColumns() {
  if (askedColumns) return;
  askedColumns = true;
  const { columns } = await get(`/api/jobs/${jobId}/items?pageSize=1`).catch(() => ({ columns: [] }));
  if (columns.length < 2) return;
  several = true;
  update(job);
}

/** Only what somebody sees is kept up to date; the rest is when they come to it. */
function shownTab() {
  const tab = parts.current();
  if (tab === "items" || tab === "pending") showGrid(tab);
  if (tab === "errors") errors.update(job);
  if (tab === "record") say(find("#record"), JSON.stringify(job, null, 2));
}

function showGrid(tab) {
  const now = [job.run, job.state, job.total_items, job.processed_items, job.updated_at].join();
  if (!grids[tab]) {
    const options = tab === "pending" ? { jobId, pending: true } : { jobId, onSelection: selection };
    grids[tab] = { grid: new Grid(find(`#${tab}-grid`), options), counted: now };
  } else if (grids[tab].counted !== now) {
    grids[tab].counted = now;
    grids[tab].grid.refresh();
  }
}

function selection() {
  const ids = grids.items?.grid.selected() ?? [];
  const button = find("#reprocess-selected");
  button.hidden = !job.actions.includes("reprocess");
  button.disabled = !ids.length;
  say(find("#selected-count"), ids.length ? `${plural(ids.length, "item", "items")} chosen` : "");
}

function showResult() {
  // Before that, what the API has in its place is shown above.
  const there = job.status === "completed" && job.result !== null && job.result !== undefined;
  find("#result").hidden = !there;
  if (there) say(find("#result pre"), JSON.stringify(job.result, null, 2));
}

/** What an action left. A job that was over is followed again: it goes on, or has at least one more line of history. */
function onChange(after) {
  update(after);
  begin();
}

function begin() {
  if (live) return;
  live = follow(`/api/jobs/${jobId}/events`, { history: addLine, progress: update }, { onState: connection });
}

function addLine(line) {
  if (!history.add(line)) return;
  // Thousands of lines may come at once: what is drawn from all of them is drawn once.
  drawing ||= requestAnimationFrame(() => {
    drawing = 0;
    way.update(history.lines());
    if (job) head.update(job, { several, history: history.lines() });
  });
}

function connection(state) {
  if (state === "ended") live = null;
  if (state === "lost") lookWhy();
}

/** A stream does not say why it broke: a session that is over, or a job that is gone, is told by an ordinary question. */
async function lookWhy() {
  try {
    await get(`/api/jobs/${jobId}`);
  } catch (problem) {
    if (problem.status !== 404 && problem.status !== 410) return;
    live?.close();
    fill(find("#main"), failed(problem, null));
  }
}

find("#reprocess-selected").addEventListener("click", async () => {
  try {
    const after = await reprocess(job, chosenItems(grids.items.grid.selected()));
    if (!after) return;
    grids.items.grid.clearSelection();
    onChange(after);
    tell("The chosen items run again.");
  } catch (problem) {
    warn(problem);
  }
});
find("#copy-record").addEventListener("click", async () => {
  if (await copyText(find("#record"))) tell("Copied.");
  else warn("The browser does not let this page copy; the text is selected, so copy it with the keyboard.");
});
document.addEventListener("visibilitychange", () => {
  // Somebody else may have brought a finished job back while nobody looked here.
  if (!document.hidden) begin();
});

parts.begin();
begin();
