// A job's history as a timeline: from where to where, by whom, why and when.

import { make } from "../core/dom.js";
import { number, when } from "../core/format.js";
import { STATES } from "../core/lifecycle_table.js";

/** Who made a change: "ada (owner)", "worker", "system". */
export function whoOf(line) {
  const person = line.actor === "owner" || line.actor === "admin";
  if (person && line.actor_id) return `${line.actor_id} (${line.actor})`;
  return line.actor;
}

/** A worker died: the job goes on as it was, and no try is used up. */
function isDeath(line) {
  return line.from_state === line.to_state;
}

function changeOf(line) {
  if (isDeath(line)) return "a worker died";
  return line.from_state ? `${line.from_state} → ${line.to_state}` : line.to_state;
}

/** A list that takes lines as they come; one that comes twice is shown once. */
export function timeline(list) {
  const linesBySequence = new Map();

  function entryOf(line) {
    const machine = line.actor_id && whoOf(line) === line.actor && line.actor !== line.actor_id;
    return make(
      "li",
      { class: isDeath(line) ? "orange" : STATES[line.to_state].look.colour, dataset: { sequence: line.sequence } },
      make(
        "p",
        { class: "row change" },
        make("strong", {}, changeOf(line)),
        line.run > 1 && make("span", { class: "chip" }, `run ${number(line.run)}`),
        farOf(line.data),
        make("span", { class: "hint" }, when(line.at)),
      ),
      make(
        "p",
        { class: "who any" },
        "by ",
        make("span", {}, whoOf(line)),
        machine && make("code", { class: "hint any" }, ` ${line.actor_id}`),
      ),
      line.reason && make("p", { class: "reason any" }, line.reason),
    );
  }

  return {
    /** Is it new? */
    add(line) {
      if (linesBySequence.has(line.sequence)) return false;
      linesBySequence.set(line.sequence, line);
      const isLater = (entry) => entry !== null && Number(entry.dataset.sequence) > line.sequence;
      // They come in their order, and there may be thousands: nearly always the last place is the right one.
      const later = isLater(list.lastElementChild) ? [...list.children].find(isLater) : null;
      list.insertBefore(entryOf(line), later);
      return true;
    },
    lines: () => [...linesBySequence.values()].sort((line, other) => line.sequence - other.sequence),
  };
}

function farOf(data) {
  if (!data || typeof data.total !== "number" || data.total < 2) return null;
  return make("span", { class: "hint number" }, `at ${number(data.processed)} of ${number(data.total)} items`);
}
