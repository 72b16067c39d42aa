// The page of all that waits: filters that are in the address, one list over all jobs, and what can be done with it.

import { isAdmin, root, withQuery } from "../core/api.js";
import { all, fill, make, one, say } from "../core/dom.js";
import { number, shortId, when } from "../core/format.js";
import { itemName, PENDING_COLUMNS } from "../components/grid.js";
import { KeysetSource } from "../components/grid_source.js";
import { Table } from "../components/grid_table.js";
import { warn } from "../core/notices.js";
import { jobsSeen } from "./pending_jobs.js";
import { hintFor, reprocess, runnable } from "./pending_reprocess.js";
import { empty } from "../components/placeholders.js";

const REFRESH_MS = 10_000;
const READ_AGAIN_MOST = 500;
const WAITING = ["PENDING", "PROCESSING"];
const ID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

const form = one("#filters");
const fields = form.elements;
const jobs = jobsSeen(() => table.rows.draw());
const table = new Table({
  label: "Items that wait",
  columns: () => COLUMNS,
  none: () => empty("Nothing waits", "There are no such items now. New ones appear here by themselves."),
  rowName: itemName,
  onChange: changed,
  onSelection: selectionChanged,
});
const [ID_COLUMN, ...OTHERS] = PENDING_COLUMNS;
const COLUMNS = [
  ID_COLUMN,
  { key: "jobId", name: "Job ID", text: (item) => item.jobId, node: jobLink, width: 6.5 },
  ...OTHERS,
  { key: "jobType", name: "Job type", text: (item) => item.jobType, node: kindChip, width: 7 },
  { key: "progress", name: "Job's progress", text: jobs.text, mark: jobs.mark, node: jobs.pill, width: 8 },
];

function jobLink(item) {
  const short = shortId(item.jobId);
  const address = `${root}/ui/jobs/${item.jobId}`;
  return make("a", { href: address, tabindex: -1, class: "mono", "aria-label": `Go to job ${short}` }, short);
}

function kindChip(item) {
  return make("span", { class: "chip" }, item.jobType);
}

/** The filters of the address into the form. */
function readAddress() {
  const given = new URLSearchParams(location.search);
  const statuses = (given.get("statuses") ?? "").split(",").filter(Boolean);
  for (const box of all("[name=statuses]", form)) box.checked = statuses.includes(box.value);
  fields.jobId.value = given.get("jobId") ?? "";
  fields.jobType.value = given.get("jobType") ?? "";
  if (fields.jobType.selectedIndex < 0) fields.jobType.value = "";
  for (const name of ["from", "to"]) fields[name].value = localTime(given.get(name));
  if (isAdmin) fields.userId.value = given.get("userId") === "all" ? "all" : "me";
}

/** The filters as the API and the address have them; the form is put right where they exclude each other. */
function filters() {
  const jobId = fields.jobId.value.trim();
  fields.jobType.disabled = jobId !== "";
  for (const box of all("[data-ended]", form)) {
    box.disabled = jobId === "";
    if (box.disabled) box.checked = false;
  }
  one("#ended-hint").hidden = jobId !== "";
  if (all("[name=statuses]:checked", form).length === 0) {
    for (const box of all("[name=statuses]", form)) box.checked = WAITING.includes(box.value);
  }
  return {
    statuses: all("[name=statuses]:checked", form)
      .map((box) => box.value)
      .join(","),
    jobType: jobId === "" ? fields.jobType.value : "",
    jobId,
    from: universalTime(fields.from.value),
    to: universalTime(fields.to.value),
    userId: isAdmin && fields.userId.value === "all" ? "all" : "",
  };
}

function show() {
  const chosen = filters();
  const wrong = chosen.jobId !== "" && !ID.test(chosen.jobId);
  fields.jobId.setAttribute("aria-invalid", String(wrong));
  const problem = one("#job-id-problem");
  problem.hidden = !wrong;
  say(problem, wrong ? "That is not a whole job id; copy it from the job's page." : "");
  if (wrong) return;
  // What has ended is not in the list of what waits, but in its job's own.
  const ended = chosen.jobId !== "" && chosen.statuses.split(",").some((status) => !WAITING.includes(status));
  const { jobId, ...rest } = chosen;
  const path = ended ? `/api/jobs/${jobId}/items` : "/api/pending";
  const asked = ended ? { statuses: rest.statuses, from: rest.from, to: rest.to } : chosen;
  table.setSource((told) => new KeysetSource(path, asked, told));
}

/** The form has changed: the address follows. */
function applied() {
  const chosen = filters();
  const usual = chosen.statuses === WAITING.join(",");
  const address = withQuery(location.pathname, { ...chosen, statuses: usual ? "" : chosen.statuses });
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
  show();
}

function changed() {
  const { source } = table;
  say(one("#count"), table.countText());
  one("#select-loaded").hidden = source.count === 0;
  // Selected ones may have moved on meanwhile.
  selectionChanged();
  if (source.answer?.pendingCount) showCounts(source.answer);
}

function showCounts({ pendingCount, countedAt }) {
  const counts = Object.entries(pendingCount).sort(([, one], [, other]) => other - one);
  const shown = JSON.stringify([counts, fields.jobType.value]);
  const box = one("#counts");
  if (box.dataset.shown !== shown) {
    box.dataset.shown = shown;
    fill(
      box,
      counts.map(([kind, count]) => kindButton(kind, count)),
    );
  }
  fill(one("#counted"), counts.length > 0 ? "counted " : "nothing is open, counted ", when(countedAt));
}

function kindButton(kind, count) {
  const pressed = fields.jobType.value === kind;
  const choose = () => {
    fields.jobId.value = "";
    fields.jobType.disabled = false;
    fields.jobType.value = pressed ? "" : kind;
    applied();
  };
  const attributes = { type: "button", class: "pending-kind", "aria-pressed": String(pressed), on: { click: choose } };
  return make("button", attributes, kind, make("span", { class: "number" }, number(count)));
}

function selectionChanged() {
  const items = [...table.selection.items.values()];
  const hint = hintFor(items);
  say(one("#selected"), items.length > 0 ? `${number(items.length)} selected` : "");
  one("#clear-selection").hidden = items.length === 0;
  one("#reprocess").disabled = runnable(items).length === 0;
  one("#reprocess-hint").hidden = hint === "";
  say(one("#reprocess-hint"), hint);
}

async function again() {
  if (!(await reprocess([...table.selection.items.values()]))) return;
  table.selection.clear();
  refresh();
}

function refresh() {
  if (table.source.count > READ_AGAIN_MOST) show();
  else table.source.refresh();
}

function gently() {
  const quiet = !document.hidden && table.rows.top === 0 && !one("body").querySelector("dialog[open]");
  const { source } = table;
  if (quiet && source && source.count <= READ_AGAIN_MOST && source.problem === null) source.refresh();
}

/** What a field for a local time shows of a moment. */
function localTime(iso) {
  const moment = iso ? new Date(iso) : null;
  if (!moment || Number.isNaN(moment.getTime())) return "";
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function universalTime(local) {
  return local ? new Date(local).toISOString() : "";
}

one("#list").append(table.element);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  applied();
});
form.addEventListener("change", applied);
one("#clear").addEventListener("click", () => {
  history.pushState(null, "", location.pathname);
  readAddress();
  show();
});
one("#refresh").addEventListener("click", refresh);
one("#select-loaded").addEventListener("click", () => table.selectLoaded());
one("#clear-selection").addEventListener("click", () => table.selection.clear());
one("#reprocess").addEventListener("click", () => again().catch(warn));
addEventListener("popstate", () => {
  readAddress();
  show();
});
setInterval(gently, REFRESH_MS);
readAddress();
show();
