// What can be done with a job: the buttons that its state offers, and what each asks before.

import { send, withQuery } from "../core/api.js";
import { ask } from "../components/dialogs.js";
import { make, find } from "../core/dom.js";
import { saveExport } from "../components/export.js";
import { number } from "../core/format.js";
import { ACTIONS } from "../core/lifecycle_table.js";
import { tell, warn } from "../core/notices.js";
import { allFailed, reprocess } from "../components/reprocess.js";

const KICKOFF_MS = 5000;

/** The row of buttons; `changed` hears the job as each of them left it. */
export function actions(place, { results, resultsName, onChange }) {
  let job = null;
  const path = (action) => `/api/jobs/${job.job_id}/${action}`;
  const offers = (name) => job.actions.includes(name);

  async function pause() {
    const answer = await ask({
      title: "Pause this job?",
      text: "Running items finish, and no new ones start until somebody resumes it.",
      confirm: ACTIONS.pause,
      reason: "optional",
    });
    return answer && (await send("POST", path("pause"), answer));
  }

  async function cancel() {
    const openItems = job.total_items - job.processed_items;
    const answer = await ask({
      title: "Cancel this job?",
      text:
        "Running items are stopped; what is done stays. " +
        (openItems > 1 ? `${number(openItems)} items are openItems as they are. ` : "") +
        "A canceled job cannot be resumed.",
      confirm: "Cancel the job",
      danger: true,
      reason: "required",
    });
    return answer && (await send("DELETE", withQuery(`/api/jobs/${job.job_id}`, answer)));
  }

  async function commit() {
    const answer = await ask({
      title: "Commit the result?",
      text: "The result is marked as used. It waits no longer, and is not abandoned when its time is over.",
      confirm: ACTIONS.commit,
      reason: "optional",
    });
    return answer && (await send("POST", path("commit"), answer));
  }

  async function abandon() {
    const answer = await ask({
      title: "Abandon the result?",
      text: "The result is given up: it can no longer be committed. To have it again, a new job has to be started.",
      confirm: ACTIONS.abandon,
      danger: true,
      reason: "optional",
    });
    return answer && (await send("POST", path("abandon"), answer));
  }

  const kickoff = () => send("POST", withQuery(path("kickoff"), { durationMs: KICKOFF_MS }));
  const failedOnes = () => job.failed_items + job.not_found_items > 0 || job.state === "failed";
  let several = false;
  const offersResult = (name) => job.has_mailbox && offers(name);
  const save = (format) => async () => {
    await saveExport(job, format);
    return null;
  };

  const every = [
    {
      name: "resume",
      text: ACTIONS.resume,
      look: "main-action",
      when: () => offers("resume"),
      act: () => send("POST", path("resume"), {}),
      told: "The job is resumed.",
    },
    {
      name: "commit",
      text: ACTIONS.commit,
      look: "main-action",
      when: () => offersResult("commit"),
      act: commit,
      told: "The result is committed.",
    },
    {
      name: "pause",
      text: ACTIONS.pause,
      when: () => offers("pause"),
      act: pause,
      told: "The job is paused.",
    },
    {
      name: "kickoff",
      text: "Run for 5 s",
      busy: "Running…",
      when: () => ["queued", "running"].includes(job.state),
      act: kickoff,
      told: "It ran for some seconds.",
    },
    {
      name: "reprocess",
      text: "Reprocess all failed",
      when: () => offers("reprocess") && failedOnes(),
      act: () => reprocess(job, allFailed(job)),
      told: "The failed items run again.",
    },
    {
      name: "csv",
      text: "Export CSV",
      busy: "Exporting…",
      when: () => several,
      act: save("csv"),
    },
    {
      name: "xlsx",
      text: "Export XLSX",
      busy: "Exporting…",
      when: () => several,
      act: save("xlsx"),
    },
    {
      name: "abandon",
      text: ACTIONS.abandon,
      look: "danger",
      when: () => offersResult("abandon"),
      act: abandon,
      told: "The result is abandoned.",
    },
    {
      name: "cancel",
      text: ACTIONS.cancel,
      look: "danger",
      when: () => offers("cancel"),
      act: cancel,
      told: "The job is canceled.",
    },
  ];
  for (const action of every) action.button = button(action);
  const toResults = make("a", { class: "button", href: results ?? "#", hidden: true }, `To the ${resultsName?.toLowerCase()}`);
  place.append(toResults, ...every.map(({ button: made }) => made));

  function button(action) {
    return make(
      "button",
      {
        type: "button",
        class: action.look,
        hidden: true,
        dataset: { action: action.name },
        on: { click: () => run(action) },
      },
      action.text,
    );
  }

  async function run(action) {
    const { button: pressedButton } = action;
    if (pressedButton.getAttribute("aria-busy") === "true") return;
    // Not disabled while it works: a disabled button would lose the focus.
    pressedButton.setAttribute("aria-busy", "true");
    if (action.busy) pressedButton.textContent = action.busy;
    try {
      const after = await action.act();
      if (after) {
        onChange(after);
        tell(action.told);
      }
    } catch (problem) {
      warn(problem);
    } finally {
      pressedButton.removeAttribute("aria-busy");
      pressedButton.textContent = action.text;
      const isFocused = [document.body, pressedButton].includes(document.activeElement);
      show();
      if (pressedButton.hidden && isFocused) find("#job-title").focus();
    }
  }

  function show() {
    for (const { button: made, when } of every) made.hidden = !when() && made.getAttribute("aria-busy") !== "true";
    toResults.hidden = !(results && job.has_mailbox && job.state === "succeeded");
    place.hidden = [...place.children].every((child) => child.hidden);
  }

  return {
    update(latest, { several: isSeveral }) {
      job = latest;
      several = isSeveral;
      show();
    },
  };
}
