// The errors of a job by code: how many, what one of them said, and a button to run them again.

import { get } from "../core/api.js";
import { fill, make } from "../core/dom.js";
import { plural } from "../core/format.js";
import { tell, warn } from "../core/notices.js";
import { ofGroup, reprocess } from "../components/reprocess.js";
import { empty, failed, loading } from "../components/placeholders.js";
import { itemBadge } from "../components/badges.js";

/** The list of groups; `changed` hears the job after a reprocessing. */
export function errorGroups(place, { jobId, onChange }) {
  let job = null;
  let loadedKey = null;
  let shownKey = null;
  let groups = null;
  let asking = false;

  async function again(group) {
    try {
      const after = await reprocess(job, ofGroup(group));
      if (!after) return;
      onChange(after);
      tell(`${plural(group.count, "item runs", "items run")} again.`);
    } catch (problem) {
      warn(problem);
    }
  }

  function row(group, isOffered) {
    return make(
      "li",
      {},
      make("strong", { class: "any code" }, group.errorCode ? make("code", {}, group.errorCode) : "no code"),
      make("span", { class: "row" }, itemBadge(group.status), plural(group.count, "item", "items")),
      make("span", { class: "any example" }, group.example ?? "–"),
      isOffered &&
        make(
          "button",
          {
            type: "button",
            "aria-label": `Reprocess these: ${group.errorCode ?? "no code"}`,
            on: { click: () => again(group) },
          },
          "Reprocess these",
        ),
    );
  }

  function list(isOffered) {
    return make(
      "ul",
      { class: "card errors", "aria-label": "Errors by code" },
      groups.map((group) => row(group, isOffered)),
    );
  }

  function show() {
    const isOffered = job.actions.includes("reprocess");
    const key = JSON.stringify([groups, isOffered]);
    if (key === shownKey) return;
    shownKey = key;
    if (groups.length) fill(place, list(isOffered));
    else fill(place, empty("No errors", "No item of this job has failed, and each was found."));
  }

  async function look() {
    if (asking) return;
    asking = true;
    const key = keyOf(job);
    if (!groups) fill(place, loading("Looking for errors…"));
    try {
      groups = await get(`/api/jobs/${jobId}/errors`);
      loadedKey = key;
      show();
    } catch (problem) {
      shownKey = null;
      loadedKey = key;
      fill(place, failed(problem, look));
    } finally {
      asking = false;
    }
    // What changed meanwhile is not in that answer.
    if (keyOf(job) !== loadedKey) await look();
  }

  return {
    /** The job has changed, or the tab is shown; it is asked again only when the counts are others. */
    async update(latest) {
      job = latest;
      if (asking) return;
      if (keyOf(job) === loadedKey && groups) show();
      else await look();
    },
  };
}

function keyOf(job) {
  return `${job.run} ${job.failed_items} ${job.not_found_items} ${job.state}`;
}
