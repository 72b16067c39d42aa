// Running items again: what is asked before, and what is sent.

import { send } from "../core/api.js";
import { ask } from "./dialogs.js";
import { make, find } from "../core/dom.js";
import { number, plural } from "../core/format.js";

const FAILED = ["ERROR", "NOT_FOUND"];

/** All items that failed or were not found. */
export function allFailed(job) {
  const count = job.failed_items + job.not_found_items;
  const which = count === 1 ? "the one item that failed" : `all ${number(count)} items that failed or were not found`;
  return { title: `Run ${which} again?`, count, body: { scope: "job", statuses: FAILED } };
}

/** Those that ended with one code. */
export function ofGroup({ status, errorCode, count }) {
  return {
    title: `Run ${plural(count, "item", "items")} with ${errorCode ?? "no code"} again?`,
    count,
    body: { scope: "job", statuses: [status], errorCodes: [errorCode] },
  };
}

/** Those that somebody chose. */
export function chosenItems(ids) {
  return {
    title: `Run ${plural(ids.length, "chosen item", "chosen items")} again?`,
    count: ids.length,
    body: { scope: "items", itemIds: ids, statuses: FAILED },
    mayBeDone: true,
  };
}

/** Ask, and do it: the job as it stands then, or null when the answer was no. */
export async function reprocess(job, { title, count, body, mayBeDone = false }) {
  const options = make(
    "fieldset",
    { class: "options" },
    make("legend", { class: "visually-hidden" }, "Which, and how"),
    option("permanent", "Also those that failed for good", true),
    option("reset", "Give each its full number of tries again", true),
    mayBeDone && option("done", "Also those that are done or were skipped", false),
  );
  const next = number(job.run + 1);
  const answer = await ask({
    title,
    text:
      `${count === 1 ? "It waits" : "They wait"} again and the job goes on as run ${next}. ` +
      "All other items stay as they are; the events keep who asked, and why.",
    confirm: "Run again",
    reason: "optional",
    extra: options,
  });
  if (!answer) return null;
  const isTicked = (name) => find(`[name=${name}]`, options).checked;
  const statuses = mayBeDone && isTicked("done") ? [...body.statuses, "DONE", "SKIPPED"] : body.statuses;
  return send("POST", `/api/jobs/${job.job_id}/reprocess`, {
    ...body,
    statuses,
    permanent: isTicked("permanent"),
    resetAttempts: isTicked("reset"),
    reason: answer.reason,
  });
}

function option(name, text, checked) {
  return make("label", { class: "row" }, make("input", { type: "checkbox", name, checked }), text);
}
