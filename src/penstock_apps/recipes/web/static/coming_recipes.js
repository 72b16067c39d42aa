// Pages that are being read, and those that could not be: followed live, over the one connection of the page.

import { isAdmin, Problem, root, send, user, withQuery } from "../core/api.js";
import { now } from "../core/clock.js";
import { ask } from "../components/dialogs.js";
import { fill, make, find } from "../core/dom.js";
import { when } from "../core/format.js";
import { follow } from "../core/live.js";
import { tell, warn } from "../core/notices.js";
import { badge } from "../components/badges.js";
import { webAddress } from "./recipe_values.js";

const MOST = 20;
const MOST_FAILED = 5;
const RECENT_MS = 3 * 86_400_000;
const OPEN = ["queued", "running"];

/** Show them; `ended` is called when one has come to its end, and `retry` is given the address of one to read again. */
export function comingRecipes({ ended, retry }) {
  const known = new Map();
  let before = null;

  // An administrator's list has everybody's jobs; the mailbox has one's own alone.
  const path = withQuery("/api/jobs/live", { job_type: "recipe", limit: MOST, q: isAdmin ? user : null });
  follow(path, {
    jobs: ({ order, jobs }) => {
      for (const job of jobs) known.set(job.job_id, job);
      for (const id of known.keys()) if (!order.includes(id)) known.delete(id);
      show(order.map((id) => known.get(id)).filter((job) => job && job.user_id === user));
    },
  });

  function show(jobs) {
    lay(
      "#way",
      jobs.filter((job) => OPEN.includes(job.status)),
      onItsWay,
    );
    const recent = (job) => now() - new Date(job.completed_at ?? job.updated_at) < RECENT_MS;
    lay("#failures", jobs.filter((job) => job.status === "failed" && recent(job)).slice(0, MOST_FAILED), failure);
    const over = jobs
      .filter((job) => !OPEN.includes(job.status))
      .map((job) => `${job.job_id} ${job.state}`)
      .join();
    if (over !== before) ended();
    before = over;
  }

  function onItsWay(job) {
    return [
      badge(job.status, job.state),
      make("span", { class: "any grows" }, job.title ?? "A page"),
      make("a", { href: `${root}/ui/jobs/${job.job_id}` }, "See its job"),
      make("button", { type: "button", class: "quiet", on: { click: () => cancel(job) } }, "Cancel"),
    ];
  }

  function failure(job) {
    const words = (job.progress.message ?? "").replace(/^Failed: /, "");
    return [
      badge(job.status, job.state),
      make(
        "div",
        { class: "grows" },
        make("p", { class: "any" }, job.title ?? "A page"),
        make(
          "p",
          { class: "hint" },
          words,
          " ",
          job.error_code && make("code", {}, job.error_code),
          " · ",
          when(job.completed_at),
        ),
      ),
      make("a", { href: `${root}/ui/jobs/${job.job_id}` }, "See its job"),
      // The title of a page is its address; that of photos is none, and they are sent again by who has them.
      job.title &&
        webAddress(job.title) &&
        make("button", { type: "button", on: { click: () => retry(job.title) } }, "Try again"),
    ];
  }

  async function cancel(job) {
    const answer = await ask({
      title: "Stop reading this?",
      text: `${job.title ?? "The page"} will not come to the mailbox. You can add it again at any time.`,
      confirm: "Stop reading it",
      danger: true,
    });
    if (!answer) return;
    try {
      await send("POST", `/recipes/parse-url/jobs/${job.job_id}/cancel`);
      tell("It is not read any further.");
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      warn(problem.status === 409 ? "It had come to its end already." : problem);
    }
  }
}

/** A line for each job, made anew only where the job has changed. */
function lay(section, jobs, line) {
  const list = find(`${section}-list`);
  const there = new Map([...list.children].map((item) => [item.dataset.job, item]));
  const items = jobs.map((job) => {
    const { status, state, error_code: code, title } = job;
    const mark = JSON.stringify([status, state, code, title, job.progress.message]);
    const item = there.get(job.job_id) ?? make("li", { dataset: { job: job.job_id } });
    if (item.dataset.mark !== mark) fill(item, line(job));
    item.dataset.mark = mark;
    return item;
  });
  const same = items.length === list.children.length && items.every((item, place) => list.children[place] === item);
  if (!same) list.replaceChildren(...items);
  find(section).hidden = !jobs.length;
}
