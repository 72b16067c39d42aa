// Short news at the edge of the page: what was done, and what went wrong.

import { make, find } from "./dom.js";

const STAYS_MS = 6000;

/** Something went well; the line goes away by itself. */
export function tell(text) {
  const line = show("good", "status", text);
  setTimeout(() => line.remove(), STAYS_MS);
}

/** Something went wrong: a text, or a Problem. It stays until somebody has read it. */
export function warn(problem) {
  if (problem?.name === "AbortError") return;
  const text = problem instanceof Error ? `Something went wrong: ${problem.message}.` : problem;
  show("bad", "alert", text, problem?.code);
  if (problem instanceof Error && problem.code === undefined) console.error(problem);
}

function show(kind, role, text, code = null) {
  const line = make(
    "div",
    { class: `notice ${kind}`, role },
    make("p", {}, text, code && make("code", {}, ` ${code}`)),
    make("button", { type: "button", class: "quiet", on: { click: () => line.remove() } }, "Close"),
  );
  find("#notices").append(line);
  return line;
}
