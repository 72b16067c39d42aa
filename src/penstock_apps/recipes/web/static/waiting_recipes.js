// The mailbox itself: finished recipes as cards, the newest first, each with the time it has left.

import { get, Problem, send, withQuery } from "../core/api.js";
import { now } from "../core/clock.js";
import { ask } from "../components/dialogs.js";
import { all, fill, make, find, say } from "../core/dom.js";
import { duration, when } from "../core/format.js";
import { tell, warn } from "../core/notices.js";
import { jobLink } from "./recipe_editor.js";
import { webAddress } from "./recipe_values.js";
import { empty, failed, loading } from "../components/placeholders.js";
import { icon } from "../components/badges.js";

const PAGE = 200;
const URGENT_SECONDS = 6 * 3600;
const FRESH_MS = 1000;

/** The list of what waits; `open` is given a job's id. */
export function waitingRecipes({ open, onCount }) {
  const place = find("#waiting");
  const cards = new Map();
  const over = new Set();
  const more = make("button", { type: "button", class: "more", on: { click: showMore } }, "More recipes");
  let list = null;
  let pages = 1;
  let turnsPage = false;
  let running = null;
  let again = false;

  function load() {
    if (running) again = true; // what is asked now may be older than what the caller knows
    else running = lookAgain();
    return running;
  }

  async function lookAgain() {
    try {
      do {
        again = false;
        await looked();
      } while (again);
    } finally {
      running = null;
    }
  }

  async function looked() {
    if (!list) fill(place, loading("Looking into the mailbox…"));
    try {
      const jobs = [];
      let cursor = null;
      for (let page = 0; page === 0 || (cursor && page < pages); page++) {
        const answer = await get(withQuery("/recipes/parse-url/jobs", { limit: PAGE, cursor }));
        jobs.push(...answer.jobs);
        cursor = answer.next;
      }
      show(jobs, Boolean(cursor));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (list) warn(problem);
      else fill(place, failed(problem, load));
    }
  }

  async function showMore() {
    const count = list.children.length;
    pages += 1;
    more.disabled = turnsPage = true;
    await load();
    more.disabled = turnsPage = false;
    list.children[count]?.querySelector("a.button")?.focus();
  }

  function show(jobs, hasMore) {
    const first = list === null;
    const come = turnsPage ? [] : jobs.filter((job) => !cards.has(job.id));
    const held = document.activeElement?.closest?.("[data-job]");
    const gone = [...cards.keys()].filter((id) => !jobs.some((job) => job.id === id));
    for (const id of gone) cards.delete(id);
    for (const job of jobs) {
      const text = JSON.stringify(job);
      if (cards.get(job.id)?.text !== text) cards.set(job.id, { text, card: card(job) });
    }
    onCount(jobs.length, hasMore);
    if (!jobs.length) {
      list = make("ul", { class: "cards" });
      fill(place, nothing());
    } else {
      if (!list?.isConnected) list = make("ul", { class: "cards" });
      arrange(
        list,
        jobs.map((job) => cards.get(job.id).card),
      );
      more.hidden = !hasMore;
      if (!list.isConnected) fill(place, list, more);
    }
    fresh();
    // Who was in a card that has gone is led to the list, not to the top of the page.
    if (held && !held.isConnected) (place.querySelector("a.button, button") ?? find("#tab-waiting")).focus();
    if (!first) for (const job of come) tell(`“${titleOf(job)}” is in the mailbox.`);
  }

  function card(job) {
    const title = titleOf(job);
    const name = `card-${job.id}`;
    const opened = make(
      "a",
      {
        class: "button main-action",
        href: `?open=${job.id}`,
        "aria-describedby": name,
        on: { click: (event) => follow(event, job.id) },
      },
      "Open",
    );
    return make(
      "li",
      { class: "card recipe-card", dataset: { job: job.id } },
      make("h2", { id: name, class: "recipe-title" }, title),
      make("p", { class: "recipe-source" }, source(job)),
      job.warnings.length > 0 &&
        make(
          "ul",
          { class: "card-warnings", "aria-label": "Warnings" },
          job.warnings.map((text) => make("li", {}, text)),
        ),
      make("p", { class: "hint" }, "Read ", when(job.completed_at)),
      make("p", { class: "left", dataset: { expires: job.expires_at ?? "" } }),
      make(
        "div",
        { class: "row" },
        opened,
        make(
          "button",
          { type: "button", "aria-describedby": name, on: { click: () => dismiss(job, title) } },
          "Dismiss",
        ),
      ),
    );
  }

  function follow(event, id) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(id);
  }

  async function dismiss(job, title) {
    const answer = await ask({
      title: `Dismiss “${title}”?`,
      text: "It leaves the mailbox for good and is not saved. Its job stays in the history, with your name. To have it again, add its page or its photos again.",
      confirm: "Dismiss it",
      danger: true,
      reason: "optional",
    });
    if (!answer) return;
    try {
      await send("POST", `/api/jobs/${job.id}/abandon`, { reason: answer.reason });
      tell([`“${title}” is dismissed. `, jobLink(job.id)]);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      const meanwhile = [404, 409].includes(problem.status);
      warn(
        meanwhile
          ? `“${title}” was saved or dismissed meanwhile; nothing was done now. This is the mailbox as it is.`
          : problem,
      );
    }
    await load();
  }

  /** Say how long each has left; what has none is asked for once more. */
  function fresh() {
    let expired = false;
    for (const line of all(".left", place)) {
      const { expires } = line.dataset;
      const left = expires ? (new Date(expires) - now()) / 1000 : null;
      const id = line.closest("[data-job]").dataset.job;
      const urgent = left !== null && left < URGENT_SECONDS;
      line.classList.toggle("urgent", urgent);
      if (!line.firstChild) line.append(icon("hourglass"), make("span"));
      say(
        find("span", line),
        left === null
          ? "Kept until you save or dismiss it"
          : left > 0
            ? `${urgent ? "Only " : ""}${coarse(left)} left`
            : "Its time is over",
      );
      if (left !== null && left <= 0 && !over.has(id)) {
        over.add(id);
        expired = true;
      }
    }
    if (expired) load();
  }

  setInterval(fresh, FRESH_MS);
  return { load, opener: (id) => place.querySelector(`[data-job="${CSS.escape(id)}"] a.button`) };
}

function titleOf(job) {
  return job.preview.title || "Recipe without a title";
}

function source(job) {
  if (job.job_type === "ocr") return "From a photo";
  const host = job.preview.source_host ?? "somewhere";
  const address = job.url && webAddress(job.url);
  if (!address) return host;
  return make(
    "a",
    { href: address, rel: "noopener noreferrer", target: "_blank" },
    host,
    make("span", { class: "visually-hidden" }, " (opens a new tab)"),
  );
}

/** Seconds only at the very end: a time that moves each second is hard to look away from. */
function coarse(seconds) {
  return seconds > 120 ? duration(Math.floor(seconds / 60) * 60).replace(/ 0 s$/, "") : duration(Math.ceil(seconds));
}

function nothing() {
  return empty(
    "The mailbox is empty",
    "Add the address of a page with a recipe, or photos of one. When it has been read, it waits here until you save or dismiss it.",
    make(
      "button",
      { type: "button", class: "main-action", on: { click: () => find("#add-url").focus() } },
      "Add a page",
    ),
  );
}

function arrange(list, wanted) {
  for (const child of [...list.children]) if (!wanted.includes(child)) child.remove();
  wanted.forEach((node, place) => {
    if (list.children[place] !== node) list.insertBefore(node, list.children[place] ?? null);
  });
}
