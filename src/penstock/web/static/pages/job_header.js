// The head of the job page: how the job stands. Each event changes only what is different.

import { isAdmin, root } from "../core/api.js";
import { all, fill, make, find, say } from "../core/dom.js";
import { duration, number, shortId, when } from "../core/format.js";
import { lookOf } from "../core/lifecycle_table.js";
import { whoOf } from "../components/history.js";
import { badge, icon } from "../components/badges.js";

const LOOKS = { failed: "broken", killed: "stopped" };
const NOTES = { done: " (done)", broken: " (failed here)", stopped: " (stopped here)" };

/** Bring the head up to date, again and again. */
export function header(section) {
  const parts = Object.fromEntries(all("[data-part]", section).map((part) => [part.dataset.part, part]));
  const shownKeys = new Map();
  const title = find("#job-title", section);
  let job = null;
  let heardAt = 0;
  let lines = [];

  /** Make something anew only when what it shows has changed. */
  function once(name, key, build) {
    if (shownKeys.get(name) === key) return;
    shownKeys.set(name, key);
    fill(parts[name], build());
  }

  function figure(name, text, there = true) {
    say(parts[name], text);
    parts[name].parentElement.hidden = !there;
  }

  function count(name, value, several) {
    const isLinked = value > 0 && several;
    once(name, `${value} ${isLinked}`, () => (isLinked ? make("a", { href: "#errors" }, number(value)) : number(value)));
  }

  function times() {
    for (const [name, iso] of [
      ["created", job.created_at],
      ["started", job.started_at],
      ["ended", endedAt(job)],
    ]) {
      once(name, iso, () => when(iso));
    }
    parts.ended.parentElement.hidden = !endedAt(job);
    const { eta_seconds: seconds } = job.progress;
    figure("eta", seconds === null ? "–" : duration(seconds < 10 ? seconds : Math.round(seconds)), seconds !== null);
    figure("deaths", number(job.deaths), job.deaths > 0);
    elapsed();
  }

  /** How long it has taken: as the server said, and what has passed here since. */
  function elapsed() {
    const since = endedAt(job) ? 0 : (performance.now() - heardAt) / 1000;
    const { total_seconds: total, active_seconds: active, paused_seconds: paused } = job.times;
    time("elapsed", total + since);
    time("active", active + (job.state === "running" ? since : 0), job.started_at !== null);
    time("paused", paused + (job.state === "paused" ? since : 0), paused > 0 || job.state === "paused");
  }

  function time(name, seconds, there = true) {
    figure(name, duration(endedAt(job) && seconds < 10 ? seconds : Math.round(seconds)), there);
  }

  function counters(several) {
    const waiting = job.total_items - job.processed_items;
    const notDone = job.failed_items + job.not_found_items + job.skipped_items;
    say(parts.done, number(job.processed_items - notDone));
    count("failed", job.failed_items, several);
    count("not-found", job.not_found_items, several);
    say(parts.skipped, number(job.skipped_items));
    say(parts.waiting, number(waiting));
    say(parts.total, number(job.total_items));
    parts.failed.classList.toggle("bad", job.failed_items > 0);
    const { batches_completed: done, batches_total: total } = job.progress;
    figure("batches", `${number(done)} of ${number(total)}`, total !== null);
  }

  function phases() {
    const over = job.status === "completed";
    const steps = all("[data-phase]", section);
    const at = steps.findIndex((item) => item.dataset.phase === (job.failed_phase ?? job.progress.phase));
    for (const [place, item] of steps.entries()) {
      const look = over || place < at ? "done" : place === at ? (LOOKS[job.status] ?? "now") : "";
      item.className = look;
      if (look && look !== "done") item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
      say(find("[data-note]", item), NOTES[look] ?? "");
    }
  }

  function bar() {
    const { percent, total } = job.progress;
    if (total || job.status === "completed") parts.bar.value = percent;
    else if (job.status === "running") parts.bar.removeAttribute("value");
    else parts.bar.value = 0;
  }

  function links() {
    const key = `${job.continues} ${job.continued_by}`;
    once("links", key, () => [
      job.continues && ["Goes on with what ", jobLink(job.continues), " left. "],
      job.continued_by && ["What is left is done by ", jobLink(job.continued_by), "."],
    ]);
    parts.links.hidden = !job.continues && !job.continued_by;
  }

  function trouble() {
    const bad = job.status === "failed" || job.status === "killed";
    parts.trouble.hidden = !bad;
    parts.message.hidden = bad;
    if (!bad) return shownKeys.delete("trouble");
    const ending = lines.findLast((line) => line.to_state === job.state);
    parts.trouble.classList.toggle("red", job.status === "failed");
    parts.trouble.classList.toggle("orange", job.status === "killed");
    const key = `${job.run} ${job.state} ${job.updated_at} ${ending?.sequence}`;
    return once("trouble", key, () => (job.status === "failed" ? failure(job) : stopNotice(job, ending)));
  }

  /** The tasks of a job that Celery moves have no rows in the grid. */
  function tasks() {
    const failed = job.failed_tasks ?? [];
    parts.tasks.hidden = !failed.length;
    once("tasks", `${job.run} ${job.state} ${failed.length}`, () => [
      make("summary", {}, "Failed tasks", failed.length < job.failed_items ? `, the first ${number(failed.length)}` : ""),
      make("ul", {}, failed.map(failedTask)),
    ]);
  }

  setInterval(() => {
    if (job && !endedAt(job) && !document.hidden) elapsed();
  }, 1000);

  return {
    update(latest, { several, history }) {
      if (job !== latest) heardAt = performance.now();
      job = latest;
      lines = history;
      section.dataset.status = job.status;
      find(".counters", section).hidden = !several;
      const name = job.title || job.job_type;
      say(title, name);
      once("badge", `${job.status} ${job.state}`, () => badge(job.status, job.state));
      say(parts.run, `run ${number(job.run)}`);
      say(parts.owner, `owner: ${job.user_id ?? "nobody"}`);
      say(parts.message, job.progress.message);
      document.title = `${lookOf(job.status, job.state).word}: ${name} · Penstock`;
      bar();
      times();
      counters(several);
      phases();
      links();
      trouble();
      tasks();
    },
  };
}

function endedAt(job) {
  return job.completed_at ?? job.killed_at ?? job.failed_at;
}

function jobLink(id) {
  return make("a", { href: `${root}/ui/jobs/${encodeURIComponent(id)}` }, `job ${shortId(id)}`);
}

function failure(job) {
  return [
    make("p", { class: "trouble-title" }, icon("cross"), make("strong", { class: "any" }, job.progress.message)),
    facts([
      ["Code", job.error_code && make("code", {}, job.error_code)],
      [
        "Kind of failure",
        { RETRYABLE: "may work another time", TERMINAL: "will not work again as it is" }[job.failure_type],
      ],
      ["Error", job.error_type && make("code", {}, job.error_type)],
      [
        "While",
        job.failed_phase && `${job.failed_phase}${job.failed_batch ? `, batch ${number(job.failed_batch)}` : ""}`,
      ],
      ["When", when(job.failed_at)],
      ["How far", far(job.progress_at_failure)],
    ]),
    isAdmin && job.stack_trace
      ? make("details", {}, make("summary", {}, "Stack trace"), make("pre", { tabindex: 0 }, job.stack_trace))
      : null,
  ];
}

function failedTask(task) {
  const place = task.worker && `, ${task.worker}`;
  return make(
    "li",
    { class: "any" },
    make("strong", {}, task.name ?? task.task_id),
    `: ${task.error ?? task.error_code ?? "failed"} `,
    make("span", { class: "hint" }, `${task.task_id}${place ?? ""}`),
  );
}

function stopNotice(job, ending) {
  return [
    make("p", { class: "trouble-title" }, icon("stop"), make("strong", { class: "any" }, job.progress.message)),
    facts([
      ["Who", ending && whoOf(ending)],
      ["Why", job.killed_reason ?? ending?.reason ?? job.error],
      ["Code", job.error_code && make("code", {}, job.error_code)],
      ["When", when(job.killed_at)],
      ["How far", far(job.progress_at_kill)],
    ]),
  ];
}

function facts(pairs) {
  return make(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => value && make("div", {}, make("dt", {}, name), make("dd", { class: "any" }, value))),
  );
}

function far(counts) {
  if (!counts || counts.total < 2) return null;
  return `${number(counts.processed)} of ${number(counts.total)} items`;
}
