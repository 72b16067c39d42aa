// What is submitted again and again: its next tick, and buttons to pause it, to go on, and to run it now.

import { get, root, send } from "../core/api.js";
import { make } from "../core/dom.js";
import { when } from "../core/format.js";
import { tell, warn } from "../core/notices.js";
import { keyedTable } from "./system_tables.js";

/** The table of schedules in a place; `look` asks for them anew. */
export function schedulesTable(place) {
  const table = keyedTable(place, {
    caption: "Schedules",
    none: "No program has declared a schedule.",
    keyOf: (schedule) => schedule.name,
    columns: [
      { name: "Name", cell: (schedule) => schedule.name },
      { name: "Kind", cell: (schedule) => schedule.kind },
      { name: "When", cell: (schedule) => make("span", { class: "mono" }, `${schedule.cron} ${schedule.zone}`) },
      { name: "Next", cell: (schedule) => (schedule.paused ? "Paused" : when(schedule.next_at)) },
      { name: "Last", cell: last },
      { name: "Actions", cell: actions },
    ],
  });

  function actions(schedule) {
    const verb = schedule.paused ? "resume" : "pause";
    return make("span", { class: "row" }, button(schedule, verb), button(schedule, "run"));
  }

  function button(schedule, verb) {
    const words = { pause: "Pause", resume: "Resume", run: "Run now" };
    const label = `${words[verb]}: ${schedule.name}`;
    return make(
      "button",
      { type: "button", class: "quiet", "aria-label": label, on: { click: () => change(schedule, verb) } },
      words[verb],
    );
  }

  async function change(schedule, verb) {
    try {
      await send("POST", `/api/schedules/${encodeURIComponent(schedule.name)}/${verb}`);
      if (verb === "run") tell(`A job of ${schedule.name} was submitted.`);
      await look();
    } catch (problem) {
      warn(problem);
    }
  }

  async function look(options = {}) {
    table.show(await get("/api/schedules", options));
  }

  return { look };
}

function last(schedule) {
  if (schedule.last_error) return make("span", { class: "bad" }, schedule.last_error);
  if (!schedule.last_job_id) return "–";
  return make("a", { href: `${root}/ui/jobs/${schedule.last_job_id}` }, when(schedule.last_at));
}
