// The rows of the list. A job's row is made once and changed in place, so that focus and selection stay where they are.

import { isAdmin, root } from "../core/api.js";
import { make, say } from "../core/dom.js";
import { number, shortId, when } from "../core/format.js";
import { STATES } from "../core/lifecycle_table.js";
import { badge } from "../components/badges.js";

export class Rows {
  constructor(body) {
    this.body = body;
    this.rows = new Map();
  }

  get count() {
    return this.rows.size;
  }

  /** Show these jobs in this order; `jobs` has those that are new or have changed. */
  update(order, jobs) {
    for (const job of jobs) {
      const row = this.rows.get(job.job_id);
      if (row) row.show(job);
      else this.rows.set(job.job_id, rowOf(job));
    }
    const shownIds = new Set(order);
    for (const [id, row] of this.rows) {
      if (shownIds.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    let place = this.body.firstElementChild;
    for (const id of order) {
      const { element } = this.rows.get(id);
      if (element === place) place = place.nextElementSibling;
      else this.body.insertBefore(element, place);
    }
  }
}

function rowOf(first) {
  const id = first.job_id;
  const status = make("td", { role: "cell", class: "job-status" });
  const link = make("a", { class: "cut job-title", id: `job-${id}`, href: `${root}/ui/jobs/${id}` });
  const kind = make("span", { class: "chip cut" });
  const bar = make("progress", { max: 100, "aria-labelledby": `job-${id}` });
  const message = make("span", { class: "job-message" });
  const counts = make("span", { class: "number job-counts" });
  const failed = make("span", { class: "number job-failed" });
  const owner = isAdmin && make("td", { role: "cell", class: "job-owner cut" });
  const element = make(
    "tr",
    { role: "row", dataset: { job: id } },
    status,
    make("td", { role: "cell", class: "job-name" }, link, kind),
    make("td", { role: "cell", class: "job-progress" }, bar, make("p", {}, message, counts, failed)),
    owner,
    make("td", { role: "cell", class: "job-created" }, when(first.created_at)),
  );
  let look = "";

  function show(job) {
    const { progress } = job;
    if (look !== `${job.status} ${job.state}`) {
      look = `${job.status} ${job.state}`;
      status.replaceChildren(badge(job.status, job.state));
      element.dataset.status = job.status;
    }
    const title = job.title || `${job.job_type} ${shortId(id)}`;
    say(link, title);
    link.title = title;
    say(kind, job.job_type);
    kind.title = job.job_type;
    showBar(bar, job);
    say(message, progress.message);
    message.title = message.textContent;
    say(counts, progress.total ? `${number(progress.current)} of ${number(progress.total)}` : "");
    // What a completed job failed at is in its message already.
    say(failed, job.failed_items && job.status !== "completed" ? `${number(job.failed_items)} failed` : "");
    if (owner) {
      say(owner, job.user_id ?? "–");
      owner.title = job.user_id ?? "";
    }
  }

  show(first);
  return { element, show };
}

function showBar(bar, job) {
  const { progress } = job;
  bar.hidden = STATES[job.state].is_over || (job.status === "queued" && !progress.percent);
  if (bar.hidden) return;
  if (job.status === "running" && !progress.total && !progress.percent) bar.removeAttribute("value");
  else if (bar.value !== progress.percent || !bar.hasAttribute("value")) bar.value = progress.percent;
}
