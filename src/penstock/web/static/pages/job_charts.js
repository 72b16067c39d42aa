// How fast a job went, and what the workers chose beside what they saw.

import { get } from "../core/api.js";
import { lineChart } from "../components/chart.js";
import { fill, make } from "../core/dom.js";

const EVERY_MS = 5000;
const MAX_POINTS = 80;
const STEERED = [
  [
    "Items claimed at a time",
    { title: "Claim size", of: setting("claim_size") },
    { title: "Time for an item", unit: "ms", of: signal("average_item_ms") },
  ],
  [
    "Items that run at once",
    { title: "Concurrency", of: setting("concurrency") },
    { title: "Tried again", unit: "%", of: share("retry_rate") },
    { title: "Failed", unit: "%", of: share("error_rate") },
  ],
  [
    "Rows written at a time",
    { title: "Batch size", unit: "rows", of: setting("ingest_rows") },
    { title: "Time to write a batch", unit: "ms", of: signal("ingest_ms") },
    { title: "Database latency", unit: "ms", of: signal("db_latency_ewma") },
  ],
  ["Lease length", { title: "Lease", unit: "s", of: setting("lease_seconds") }],
];

/** The charts; asked for again while the job runs and somebody looks. */
export function charts({ throughput, steered, steering, jobId, isShown }) {
  let running = false;
  let hasBegun = false;
  let several = false;
  let timer = 0;

  async function look() {
    clearTimeout(timer);
    try {
      show((await get(`/api/jobs/${jobId}/samples`)).samples);
    } catch {
      // Charts are no reason to interrupt anybody: the page's connection line says when the server is away.
    }
    if (running) timer = setTimeout(lookWhenSeen, EVERY_MS);
  }

  function lookWhenSeen() {
    if (document.hidden || !isShown()) timer = setTimeout(lookWhenSeen, EVERY_MS);
    else look();
  }

  function show(samples) {
    const moments = bucketsOf(samples);
    if (!moments.length) {
      const text = running
        ? "The first figures come within seconds."
        : "There are no figures: samples are kept for a day.";
      fill(throughput, make("p", { class: "hint" }, text));
      fill(steered);
      return;
    }
    const rows = chart(moments, { title: "Rows read", unit: "rows/s", of: signal("rows_sec"), together: sum });
    const planned = several && samples.some((sample) => sample.signals.rows_sec > 0);
    const items = chart(moments, { title: "Items", unit: "items/s", of: signal("items_sec"), together: sum });
    fill(throughput, items, planned && rows);
    fill(
      steered,
      STEERED.map(([name, ...figures]) =>
        make(
          "section",
          { class: "steer" },
          make("h3", {}, name),
          make(
            "div",
            { class: "charts" },
            figures.map((figure) => chart(moments, figure)),
          ),
        ),
      ),
    );
  }

  return {
    update(job, { several: isSeveral }) {
      several = isSeveral;
      const now = job.state === "running";
      const hasChanged = !hasBegun || now !== running;
      running = now;
      if (!hasBegun && running) steering.open = true;
      hasBegun = true;
      if (hasChanged) look();
    },
  };
}

/** Samples of the same moment together, and for each of its workers apart: `{at, workers: [[sample…]…]}`. */
export function bucketsOf(samples) {
  if (!samples.length) return [];
  const first = Date.parse(samples[0].at);
  const span = Date.parse(samples.at(-1).at) - first;
  const width = Math.max(EVERY_MS, span / MAX_POINTS);
  const buckets = new Map();
  for (const sample of samples) {
    const number = Math.floor((Date.parse(sample.at) - first) / width);
    if (!buckets.has(number)) buckets.set(number, new Map());
    const workers = buckets.get(number);
    workers.set(sample.worker, [...(workers.get(sample.worker) ?? []), sample]);
  }
  return [...buckets]
    .sort(([first], [second]) => first - second)
    .map(([number, workers]) => ({ at: first + number * width, workers: [...workers.values()] }));
}

function chart(moments, { title, unit, of, together = average }) {
  const points = moments.map(({ at, workers }) => ({
    at,
    value: together(workers.map((samples) => average(samples.map(of).filter(Number.isFinite))).filter(Number.isFinite)),
  }));
  return lineChart({ title, unit, points });
}

function setting(name) {
  return (sample) => sample[name];
}

function signal(name) {
  return (sample) => sample.signals[name];
}

function share(name) {
  return (sample) => (Number.isFinite(sample.signals[name]) ? sample.signals[name] * 100 : NaN);
}

function sum(values) {
  return values.length ? values.reduce((total, value) => total + value, 0) : NaN;
}

function average(values) {
  return sum(values) / values.length;
}
