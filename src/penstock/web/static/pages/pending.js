// The page of all that waits: filters that are in the address, one list over all jobs, and what can be done with it.

import { isAdmin, root, withQuery } from "../core/api.js";
import { all, fill, make, find, say } from "../core/dom.js";
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

const form = find("#filters");
const fields = form.elements;
const jobs = jobsSeen(() => table.rows.draw());
const table = new Table({
  label: "Items that wait",
  columns: () => COLUMNS,
  none: () => empty("Nothing waits", "There are no such items now. New ones appear here by themselves."),
  rowName: itemName,
  onChange: showState,
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
  const query = new URLSearchParams(location.search);
  const statuses = (query.get("statuses") ?? "").split(",").filter(Boolean);
  for (const box of all("[name=statuses]", form)) box.checked = statuses.includes(box.value);
  fields.jobId.value = query.get("jobId") ?? "";
  fields.jobType.value = query.get("jobType") ?? "";
  if (fields.jobType.selectedIndex < 0) fields.jobType.value = "";
  for (const name of ["from", "to"]) fields[name].value = localTime(query.get(name));
  if (isAdmin) fields.userId.value = query.get("userId") === "all" ? "all" : "me";
}

/** The filters as the API and the address have them; the form is put right where they exclude each other. */
function filters() {
  const jobId = fields.jobId.value.trim();
  fields.jobType.disabled = jobId !== "";
  for (const box of all("[data-ended]", form)) {
    box.disabled = jobId === "";
    if (box.disabled) box.checked = false;
  }
  find("#ended-hint").hidden = jobId !== "";
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
  const values = filters();
  const wrong = values.jobId !== "" && !ID.test(values.jobId);
  fields.jobId.setAttribute("aria-invalid", String(wrong));
  const problem = find("#job-id-problem");
  problem.hidden = !wrong;
  say(problem, wrong ? "That is not a whole job id; copy it from the job's page." : "");
  if (wrong) return;
  // What has ended is not in the list of what waits, but in its job's own.
  const hasEnded = values.jobId !== "" && values.statuses.split(",").some((status) => !WAITING.includes(status));
  const { jobId, ...rest } = values;
  const path = hasEnded ? `/api/jobs/${jobId}/items` : "/api/pending";
  const parameters = hasEnded ? { statuses: rest.statuses, from: rest.from, to: rest.to } : values;
  table.setSource((onChange) => new KeysetSource(path, parameters, onChange));
}

/** The form has changed: the address follows. */
function applyFilters() {
  const values = filters();
  const usual = values.statuses === WAITING.join(",");
  const address = withQuery(location.pathname, { ...values, statuses: usual ? "" : values.statuses });
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
  show();
}

function showState() {
  const { source } = table;
  say(find("#count"), table.countText());
  find("#select-loaded").hidden = source.count === 0;
  // Selected ones may have moved on meanwhile.
  selectionChanged();
  if (source.answer?.pendingCount) showCounts(source.answer);
}

function showCounts({ pendingCount, countedAt }) {
  const counts = Object.entries(pendingCount).sort(([, first], [, second]) => second - first);
  const key = JSON.stringify([counts, fields.jobType.value]);
  const box = find("#counts");
  if (box.dataset.shown !== key) {
    box.dataset.shown = key;
    fill(
      box,
      counts.map(([kind, count]) => kindButton(kind, count)),
    );
  }
  fill(find("#counted"), counts.length > 0 ? "counted " : "nothing is open, counted ", when(countedAt));
}

function kindButton(kind, count) {
  const isPressed = fields.jobType.value === kind;
  const choose = () => {
    fields.jobId.value = "";
    fields.jobType.disabled = false;
    fields.jobType.value = isPressed ? "" : kind;
    applyFilters();
  };
  const attributes = { type: "button", class: "pending-kind", "aria-pressed": String(isPressed), on: { click: choose } };
  return make("button", attributes, kind, make("span", { class: "number" }, number(count)));
}

function selectionChanged() {
  const items = [...table.selection.items.values()];
  const hint = hintFor(items);
  say(find("#selected"), items.length > 0 ? `${number(items.length)} selected` : "");
  find("#clear-selection").hidden = items.length === 0;
  find("#reprocess").disabled = runnable(items).length === 0;
  find("#reprocess-hint").hidden = hint === "";
  say(find("#reprocess-hint"), hint);
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
  const quiet = !document.hidden && table.rows.top === 0 && !find("body").querySelector("dialog[open]");
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

find("#list").append(table.element);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  applyFilters();
});
form.addEventListener("change", applyFilters);
find("#clear").addEventListener("click", () => {
  history.pushState(null, "", location.pathname);
  readAddress();
  show();
});
find("#refresh").addEventListener("click", refresh);
find("#select-loaded").addEventListener("click", () => table.selectLoaded());
find("#clear-selection").addEventListener("click", () => table.selection.clear());
find("#reprocess").addEventListener("click", () => again().catch(warn));
addEventListener("popstate", () => {
  readAddress();
  show();
});
setInterval(gently, REFRESH_MS);
readAddress();
show();
