// The system page: how all of it is doing, asked every two seconds while somebody looks.

import { get, Problem } from "../core/api.js";
import { lineChart } from "../components/chart.js";
import { fill, make, find } from "../core/dom.js";
import { decimal, duration, number, percent, plural, when } from "../core/format.js";
import { STATES } from "../core/lifecycle_table.js";
import { showConnection } from "../core/live.js";
import { failed, loading } from "../components/placeholders.js";
import { icon } from "../components/badges.js";
import { schedulesTable } from "./system_schedules.js";
import { keyedFigures, keyedTable } from "./system_tables.js";

const EVERY_MS = 2000;
const KEPT_MS = 5 * 60_000;
const BUSY_RATE = 0.01;
const CHARTS = [
  { title: "Queue depth", unit: "items", value: depthOf },
  { title: "Speed", unit: "items/s", value: (system) => system.totals.items_sec },
  { title: "Error rate", unit: "%", value: (system) => share(system.totals.error_rate) },
  { title: "Database latency", unit: "ms", value: (system) => system.database.latency_ms },
];

const samples = [];
let timer = 0;
let asking = null;
let last = null;

const figures = keyedFigures(find("#figures"));
const outbox = keyedFigures(find("#outbox"));
const workers = keyedTable(find("#workers"), {
  caption: "Workers",
  none: "No worker has been seen within the last hour.",
  keyOf: (worker) => worker.name,
  columns: [
    { name: "Worker", cell: (worker) => make("span", { class: "mono" }, worker.name) },
    { name: "State", cell: (worker) => alive(worker.alive) },
    { name: "Holds", cell: heldItems },
    { name: "Started", cell: (worker) => when(worker.started_at) },
    { name: "Seen", cell: (worker) => when(worker.seen_at) },
    { name: "Kinds", cell: (worker) => make("span", { class: "kinds" }, worker.kinds.join(", ") || "–") },
  ],
});
const lanes = keyedTable(find("#lanes"), {
  caption: "Worker queues",
  none: "No worker has reported within the last minute.",
  keyOf: (lane) => `${lane.kind} ${lane.worker}`,
  columns: [
    { name: "Kind", cell: (lane) => lane.kind },
    { name: "Worker", cell: (lane) => make("span", { class: "mono" }, lane.worker) },
    { name: "Holds", number: true, cell: (lane) => number(lane.held) },
    { name: "Items/s", number: true, cell: (lane) => decimal(lane.items_sec) },
    { name: "Errors", number: true, cell: (lane) => percent(lane.error_rate) },
    { name: "Not found", number: true, cell: (lane) => percent(lane.not_found_rate) },
    { name: "Retried", number: true, cell: (lane) => percent(lane.retry_rate) },
    { name: "At once", number: true, cell: (lane) => number(lane.concurrency) },
    { name: "Claims", number: true, cell: (lane) => number(lane.claim_size) },
    { name: "Batch rows", number: true, cell: (lane) => number(lane.ingest_rows) },
    { name: "Rows/s", number: true, cell: (lane) => decimal(lane.rows_sec) },
    { name: "Lease", number: true, cell: (lane) => duration(lane.lease_seconds) },
    { name: "Database", number: true, cell: (lane) => milliseconds(lane.db_latency_ewma) },
    { name: "Said", cell: (lane) => when(lane.at) },
  ],
});
const kinds = keyedTable(find("#kinds"), {
  caption: "Queue",
  none: "Nothing waits.",
  keyOf: ([kind]) => kind,
  columns: [
    { name: "Kind", cell: ([kind]) => kind },
    { name: "Items", number: true, cell: ([, count]) => number(count) },
  ],
});
const jobs = keyedTable(find("#jobs"), {
  caption: "Jobs",
  none: "There are no jobs.",
  keyOf: ([state]) => state,
  columns: [
    { name: "State", cell: ([state]) => stateWord(state) },
    { name: "Jobs", number: true, cell: ([, count]) => number(count) },
  ],
});
const providers = keyedTable(find("#providers"), {
  caption: "Providers",
  none: "No application uses a provider now.",
  keyOf: (provider) => `${provider.name} ${provider.kind} ${provider.worker}`,
  columns: [
    { name: "Provider", cell: (provider) => provider.name },
    { name: "State", cell: throttle },
    { name: "Refusals", number: true, cell: (provider) => percent(provider.throttle_rate) },
    { name: "Between calls", number: true, cell: (provider) => duration(delayOf(provider.figures)) },
    { name: "Kind", cell: (provider) => provider.kind },
    { name: "Worker", cell: (provider) => make("span", { class: "mono" }, provider.worker) },
  ],
});

const schedules = schedulesTable(find("#schedules"));

async function look() {
  clearTimeout(timer);
  if (document.hidden || asking) return;
  asking = new AbortController();
  try {
    const { signal } = asking;
    const [system] = await Promise.all([get("/api/system", { signal }), schedules.look({ signal })]);
    show(system);
  } catch (problem) {
    if (problem instanceof Problem) trouble(problem);
    else if (problem.name !== "AbortError") throw problem;
  } finally {
    asking = null;
    timer = setTimeout(look, EVERY_MS);
  }
}

function show(system) {
  const now = Date.now();
  last = now;
  samples.push({ at: now, values: CHARTS.map((chart) => chart.value(system)) });
  while (now - samples[0].at > KEPT_MS) samples.shift();
  fill(find("#first-look"));
  find("#stale").hidden = true;
  showConnection(true);
  find("#system").hidden = false;
  find("#system").classList.remove("old");
  fill(find("#about"), `Version ${system.version}, ${system.database.dialect}, started `, when(system.started_at));
  figures.show(figuresOf(system));
  fill(
    find("#charts"),
    CHARTS.map(({ title, unit }, index) =>
      lineChart({ title, unit, points: samples.map(({ at, values }) => ({ at, value: values[index] })) }),
    ),
  );
  workers.show(sortBy(system.workers, (worker) => `${worker.alive ? 0 : 1} ${worker.name}`));
  lanes.show(sortBy(system.lanes, (lane) => `${lane.kind} ${lane.worker}`));
  kinds.show(Object.entries(system.queue_depth).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)));
  jobs.show(sortBy(Object.entries(system.jobs), ([state]) => state));
  providers.show(sortBy(system.providers, (provider) => `${provider.name} ${provider.kind} ${provider.worker}`));
  showMessages(system.outbox, system.transport);
}

function figuresOf({ workers: all, totals, database, outbox: out, ...system }) {
  const living = all.filter((worker) => worker.alive);
  const inHand = living.reduce((sum, worker) => sum + heldBy(worker), 0);
  return [
    ["Queue depth", number(depthOf(system)), plural(Object.keys(system.queue_depth).length, "kind", "kinds")],
    ["Speed", `${decimal(totals.items_sec)} items/s`, "all worker queues"],
    ["Error rate", percent(totals.error_rate), totals.error_rate === null ? "nothing is done" : "of items"],
    ["Not found", percent(totals.not_found_rate), totals.not_found_rate === null ? "nothing is done" : "of items"],
    ["Workers alive", `${number(living.length)} of ${number(all.length)}`, `hold ${plural(inHand, "item", "items")}`],
    ["Database latency", milliseconds(database.latency_ms), `${milliseconds(database.pool_wait_ms)} for a connection`],
    [
      "Outbox",
      `${number(out.waiting)} waiting`,
      lagOf(out),
    ],
  ];
}

function lagOf({ oldest_seconds: oldest, unsubscribed }) {
  if (oldest !== null) return `lag ${duration(oldest)}`;
  return unsubscribed ? `${number(unsubscribed)} without a subscriber` : "no lag";
}

function showMessages(out, transport) {
  const { waiting, oldest_seconds: oldest, failing, unsubscribed } = out;
  const error = out.last_error ?? transport.last_error;
  outbox.show([
    ["Waiting", number(waiting)],
    ["Oldest waits for", oldest === null ? "–" : duration(oldest)],
    ["Failing", failing ? sign("cross", "red", number(failing)) : "0"],
    [
      "Without a subscriber",
      unsubscribed ? sign("stop", "orange", number(unsubscribed)) : "0",
      unsubscribed ? `the oldest for ${duration(out.unsubscribed_seconds)}` : "",
    ],
    ...brokerFigures(transport),
  ]);
  const place = find("#outbox-error");
  place.hidden = !error;
  if (place.dataset.error === (error ?? "")) return;
  place.dataset.error = error ?? "";
  fill(
    place,
    error && [
      make("p", { class: "hint" }, "Last error"),
      make("pre", { tabindex: "0", "aria-label": "Last error" }, error),
    ],
  );
}

/** Of a transport that workers read from; in-process there is none. */
function brokerFigures({ name, reachable, lag }) {
  if (reachable === null) return [];
  const topics = Object.entries(lag).filter(([, count]) => count > 0);
  return [
    ["Broker", reachable ? sign("check", "green", "Reachable") : sign("cross", "red", "Not reachable"), name],
    [
      "To be read",
      number(topics.reduce((sum, [, count]) => sum + count, 0)),
      topics.map(([topic, count]) => `${number(count)} of ${topic}`).join(", "),
    ],
  ];
}

function trouble(problem) {
  if (problem.status === 401) return; // the sign-in page comes
  if (last === null) {
    fill(find("#first-look"), failed(problem, look));
    return;
  }
  const line = find("#stale");
  const why =
    problem.status === 403
      ? "You are no longer an administrator here"
      : `The figures cannot be read: ${problem.message}`;
  const text = `${why}. These are of ${new Date(last).toLocaleTimeString("en-GB")}.`;
  if (line.textContent !== text) line.textContent = text;
  line.hidden = false;
  find("#system").classList.add("old");
}

function depthOf(system) {
  return Object.values(system.queue_depth).reduce((sum, count) => sum + count, 0);
}

function heldBy(worker) {
  return Object.values(worker.held).reduce((sum, count) => sum + count, 0);
}

function heldItems(worker) {
  const some = Object.entries(worker.held).filter(([, count]) => count > 0);
  if (!some.length) return make("span", { class: "hint" }, "nothing");
  return make(
    "ul",
    { class: "held" },
    some.map(([kind, count]) => make("li", {}, `${plural(count, "item", "items")} of ${kind}`)),
  );
}

function alive(is) {
  return is ? sign("check", "green", "Alive") : sign("cross", "red", "Gone");
}

function throttle(provider) {
  const rate = provider.throttle_rate ?? 0;
  if (rate <= 0) return sign("check", "green", "Answers");
  return rate < BUSY_RATE ? sign("hourglass", "gray", "Recovers") : sign("stop", "orange", "Throttled");
}

function delayOf({ delay_seconds: seconds, delay_ms: ms }) {
  return seconds ?? (ms === undefined ? null : ms / 1000);
}

function sign(picture, colour, word) {
  return make("span", { class: `badge ${colour}` }, icon(picture), word);
}

function stateWord(state) {
  return STATES[state].look.word;
}

function share(rate) {
  return rate === null ? NaN : rate * 100;
}

function milliseconds(value) {
  return value === null || value === undefined ? "–" : `${decimal(value)} ms`;
}

function sortBy(values, keyOf) {
  return [...values].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else look();
});
fill(find("#first-look"), loading("Loading the figures…"));
look();
