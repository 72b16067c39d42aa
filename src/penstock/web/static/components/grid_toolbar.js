// The controls above a grid: which statuses, which columns, which row.

import { all, make } from "../core/dom.js";
import { ITEMS } from "../core/lifecycle_table.js";

export const STATUSES = ["PENDING", "PROCESSING", "DONE", "ERROR", "NOT_FOUND", "SKIPPED"];

/** A menu that opens below its button: closed by Escape, by a click elsewhere and when the focus leaves it. */
export function menu(name, ...children) {
  const summary = make("summary", { class: "button" }, name);
  const body = make("div", { class: "grid-menu-body card" }, children);
  const element = make("details", { class: "grid-menu" }, summary, body);
  const elsewhere = (event) => {
    if (!element.contains(event.target)) element.open = false;
  };
  element.addEventListener("toggle", () => {
    if (element.open) document.addEventListener("pointerdown", elsewhere);
    else document.removeEventListener("pointerdown", elsewhere);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !element.open) return;
    event.stopPropagation();
    element.open = false;
    summary.focus();
  });
  element.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !element.contains(event.relatedTarget)) element.open = false;
  });
  return element;
}

/** Chips with a checkbox for each status; `changed` gets those that are checked. */
export function statusFilter(statuses, onChange) {
  const element = make(
    "fieldset",
    { class: "grid-statuses" },
    make("legend", { class: "visually-hidden" }, "Status"),
    STATUSES.map((status) =>
      make(
        "label",
        { class: "grid-status" },
        make("input", { type: "checkbox", name: "grid-status", value: status, checked: statuses.includes(status) }),
        ITEMS[status].word,
      ),
    ),
  );
  element.addEventListener("change", () => {
    onChange(all("input:checked", element).map((input) => input.value));
  });
  element.check = (statuses) => {
    for (const input of all("input", element)) input.checked = statuses.includes(input.value);
  };
  return element;
}

/** A checkbox for each column; the first one stays, or rows could not be told apart. */
export function columnChoices(columns, hidden, onChange) {
  return columns.map((column, place) =>
    make(
      "label",
      { class: "grid-choice" },
      make("input", {
        type: "checkbox",
        value: column.key,
        checked: !hidden.has(column.key),
        disabled: place === 0,
        on: { change: (event) => onChange(column.key, event.target.checked) },
      }),
      make("span", { class: "any" }, column.name),
    ),
  );
}

/** A field for the number of a row. */
export function goToRow(go) {
  const field = make("input", { type: "number", min: 1, step: 1, required: true, class: "grid-number" });
  const form = make(
    "form",
    { class: "row grid-go" },
    make("label", {}, make("span", { class: "grid-go-name" }, "Go to row"), field),
    make("button", { type: "submit" }, "Go"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(Number(field.value));
  });
  form.most = (count) => field.setAttribute("max", Math.max(count, 1));
  return form;
}

/** The columns somebody does not want to see, kept by this browser. */
export function readHidden(kind) {
  try {
    const keys = JSON.parse(localStorage.getItem(keyOf(kind)) ?? "[]");
    return new Set(Array.isArray(keys) ? keys.filter((key) => typeof key === "string").slice(0, 1000) : []);
  } catch {
    return new Set();
  }
}

export function keepHidden(kind, hidden) {
  try {
    if (hidden.size > 0) localStorage.setItem(keyOf(kind), JSON.stringify([...hidden]));
    else localStorage.removeItem(keyOf(kind));
  } catch {
    // A browser that keeps nothing shows all columns next time.
  }
}

function keyOf(kind) {
  return `penstock.grid.hidden.${kind}`;
}
