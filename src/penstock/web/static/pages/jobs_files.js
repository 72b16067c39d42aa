// Files for a form: chosen, or dropped onto its field, and shown before they are sent.

import { fill, make, find } from "../core/dom.js";
import { bytes, number } from "../core/format.js";

const MAX_SHOWN = 5;

/** Let files be dropped onto a field; those that are chosen in the usual way are shown the same. */
export function readyToDrop(zone) {
  const input = find("[type=file]", zone);
  let depth = 0; // entering a child comes before leaving its parent

  function over(by) {
    depth = by === 0 ? 0 : depth + by;
    zone.classList.toggle("over", depth > 0);
  }

  zone.addEventListener("dragenter", (event) => hasFiles(event) && over(1));
  zone.addEventListener("dragleave", (event) => hasFiles(event) && over(-1));
  zone.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    over(0);
    input.files = filesOf(event.dataTransfer, input.multiple);
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  input.addEventListener("change", () => showChosen(input));
}

export function showChosen(input) {
  const list = find(".chosen", input.closest("[data-drop]"));
  const files = [...input.files];
  const all = files.reduce((sum, file) => sum + file.size, 0);
  const lines = files.slice(0, MAX_SHOWN).map(lineOf);
  const more = files.length - MAX_SHOWN;
  if (more > 0) lines.push(make("li", { class: "hint" }, `and ${number(more)} more, ${bytes(all)} in all`));
  fill(list, lines);
  list.hidden = !files.length;
}

function lineOf(file) {
  const size = make("span", { class: "hint" }, bytes(file.size));
  return make("li", {}, make("span", { class: "any" }, file.name), " ", size);
}

function filesOf(transfer, multiple) {
  if (multiple || transfer.files.length < 2) return transfer.files;
  const first = new DataTransfer();
  first.items.add(transfer.files[0]);
  return first.files;
}

function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

// A file that misses the field must not take the place of the page.
for (const name of ["dragover", "drop"]) {
  document.addEventListener(name, (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
}
