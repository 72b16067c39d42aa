// How far the jobs of the listed items are: each job is asked for once, and again after a while.

import { get } from "../core/api.js";
import { make } from "../core/dom.js";

const KEPT_MS = 10_000;
const MAX_KEPT = 500;

/** Jobs by id; `changed` is called when one of them is known better. */
export function jobsSeen(onChange) {
  const entries = new Map();

  async function ask(id, before) {
    const entry = { at: performance.now(), job: before };
    entries.delete(id);
    entries.set(id, entry);
    while (entries.size > MAX_KEPT) entries.delete(entries.keys().next().value);
    try {
      entry.job = await get(`/api/jobs/${id}`);
    } catch {
      // A job that is gone has no progress; its items leave the list with the next reading.
      entry.job = null;
    }
    onChange();
  }

  function of(id) {
    const entry = entries.get(id);
    if (!entry || performance.now() - entry.at > KEPT_MS) ask(id, entry?.job);
    return entries.get(id).job ?? null;
  }

  return {
    text: (item) => progressText(of(item.jobId)),
    mark: (item) => `${item.jobId} ${progressText(of(item.jobId))}`,
    pill: (item) => pill(of(item.jobId)),
  };
}

function progressText(job) {
  if (!job) return "";
  const share = `${Math.round(job.progress.percent ?? 0)} %`;
  return job.state === "paused" ? `${share}, paused` : share;
}

function pill(job) {
  if (!job) return make("span", { class: "pill" }, "–");
  return make(
    "span",
    { class: "pill number" },
    make("progress", { max: 100, value: job.progress.percent ?? 0, "aria-label": "How far the job is" }),
    progressText(job),
  );
}
