// Running selected items again. Only those that ended can: what waits or is in hand runs anyway.

import { send } from "../core/api.js";
import { ask } from "../components/dialogs.js";
import { make } from "../core/dom.js";
import { plural, shortId } from "../core/format.js";
import { tell, warn } from "../core/notices.js";

const ENDED_BADLY = new Set(["ERROR", "NOT_FOUND"]);

/** Those of the items that can run again. */
export function runnable(items) {
  return items.filter((item) => ENDED_BADLY.has(item.status));
}

/** What becomes of a selection, in words; nothing where there is nothing to say. */
export function hintFor(items) {
  const open = items.length - runnable(items).length;
  if (open === 0) return "";
  if (open === items.length) {
    return (
      "What you selected waits or runs already. " +
      "Only items that ended with an error or were not found can be reprocessed."
    );
  }
  const which = plural(open, "selected item waits or is in hand", "selected items wait or are in hand");
  return `${which}: only the others run again.`;
}

/** Ask how, then ask each job to run its items again; the answer says whether any does. */
export async function reprocess(items) {
  const some = runnable(items);
  const jobs = Map.groupBy(some, (item) => item.jobId);
  const tries = choice("Give each its full number of tries again");
  const final = choice("Also those that failed for good");
  const answer = await ask({
    title: `Run ${plural(some.length, "item", "items")} again?`,
    text: `${plural(jobs.size, "job opens", "jobs open")} a new run for them. What they had before is replaced.`,
    confirm: "Reprocess",
    reason: "optional",
    extra: make("div", { class: "pending-again" }, tries.label, final.label),
  });
  if (answer === null) return false;
  const [resetAttempts, permanent] = [tries.box.checked, final.box.checked];
  const body = { scope: "items", resetAttempts, permanent, reason: answer.reason };
  let again = 0;
  for (const [jobId, own] of jobs) {
    try {
      await send("POST", `/api/jobs/${jobId}/reprocess`, { ...body, itemIds: own.map((item) => item.id) });
      again += own.length;
    } catch (problem) {
      problem.message = `job ${shortId(jobId)}: ${problem.message}`;
      warn(problem);
    }
  }
  if (again > 0) tell(`${plural(again, "item runs", "items run")} again.`);
  return again > 0;
}

function choice(text) {
  const box = make("input", { type: "checkbox", checked: true });
  return { box, label: make("label", {}, box, text) };
}
