// The columns of a table that was chosen, beside what they are taken for, so that it can be put right before it is sent.

import { all, fill, find, make } from "../core/dom.js";
import { upload } from "../components/upload.js";

// A little more than the server looks at: so it knows that there is more, and that the last line is cut.
const BEGINNING = 300 * 1024;
const NOT_USED = "not used";

/** Let a field of columns follow the file that is chosen in its form. */
export function readyToMap(zone) {
  const form = zone.closest("form");
  const files = find("[type=file]", form);
  let looking = null;

  async function look() {
    looking?.abort();
    clear(zone);
    const [file, ...others] = files.files;
    if (!file || others.length || isPicture(file)) return;
    looking = new AbortController();
    const { signal } = looking;
    try {
      const data = new FormData();
      data.append("file", await beginningOf(file), file.name);
      const seen = await upload(zone.dataset.columns, data, { signal });
      if (!signal.aborted) show(zone, seen);
    } catch (problem) {
      // What is wrong with a file is said when it is sent. Until then it may be another one, or pictures.
      if (problem.name !== "AbortError" && problem.name !== "Problem") console.error(problem);
    }
  }

  files.addEventListener("change", look);
  form.addEventListener("reset", () => {
    looking?.abort();
    clear(zone);
  });
}

function isPicture(file) {
  return file.type.startsWith("image/") || /\.zip$/i.test(file.name);
}

/** A workbook is looked at whole, for its directory is at its end; of any other table the first lines are enough. */
async function beginningOf(file) {
  const isPacked = (await file.slice(0, 2).text()) === "PK";
  return isPacked ? file : file.slice(0, BEGINNING);
}

function clear(zone) {
  zone.closest(".field").hidden = true;
  find("input", zone).value = "";
  fill(zone, find("input", zone));
}

function show(zone, { columns, choices, note }) {
  const selects = columns.map((column) => selectOf(column, choices));
  for (const select of selects) select.addEventListener("change", () => choose(zone, selects, select));
  const head = ["Column of the file", "Holds", "Taken for"].map((text) => make("th", { scope: "col" }, text));
  const rows = columns.map((column, at) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", class: "any" }, column.name),
      make("td", { class: "any hint" }, column.examples.join(" · ")),
      make("td", {}, selects[at]),
    ),
  );
  const table = make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
  const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Columns of the chosen file" };
  fill(zone, find("input", zone), make("p", { class: "hint" }, note), make("div", region, table));
  zone.closest(".field").hidden = false;
}

function selectOf(column, choices) {
  const options = [new Option(NOT_USED, ""), ...choices.map(({ id, name }) => new Option(name, id))];
  const found = column.choice ?? "";
  const label = `What ${column.name} is taken for`;
  const select = make("select", { "aria-label": label, dataset: { column: column.name, found } }, options);
  select.value = found;
  return select;
}

/** A field is in one column: where another one had it, that one is not used any more. What differs is sent. */
function choose(zone, selects, chosen) {
  for (const select of selects) {
    if (select !== chosen && chosen.value && select.value === chosen.value) select.value = "";
  }
  const changed = all("select", zone).filter((select) => select.value !== select.dataset.found);
  const mapping = changed.map((select) => [select.dataset.column, select.value || null]);
  find("input", zone).value = changed.length ? JSON.stringify(Object.fromEntries(mapping)) : "";
}
