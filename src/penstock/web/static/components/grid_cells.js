// What stands in a cell: a value of any kind as the text that an export has of it.

import { say } from "../core/dom.js";
import { itemBadge } from "./badges.js";

const LONGEST_SHOWN = 300;
const LONGEST_HINT = 1000;
const WHOLE = /^-?\d+$/;
const BEFORE = ["row", "status"];
const AFTER = ["attempts", "error_code", "error"];

/** Read JSON without losing digits: 1.0 stays 1.0, and a number beyond 2**53 is the one that was sent. */
export function readExactly(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && context?.source !== undefined && context.source !== String(value)
      ? JSON.rawJSON(context.source)
      : value,
  );
}

/** A value as text, in the words of the export. */
export function cellText(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "TRUE" : "FALSE";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : fraction(value);
  if (JSON.isRawJSON?.(value)) return WHOLE.test(value.rawJSON) ? value.rawJSON : fraction(Number(value.rawJSON));
  return JSON.stringify(value);
}

/** A number with a fraction as the server's own language writes it: very large and small ones with an exponent. */
function fraction(value) {
  const [digits, exponent] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) {
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  const text = Object.is(value, -0) ? "-0" : String(value);
  return text.includes(".") ? text : `${text}.0`;
}

/** The columns of a job's grid: those of its export, with widths (in rem) that fit the rows given. */
export function exportColumns(names, items) {
  const own = names.map((name) => ({
    key: `cell:${name}`,
    name,
    text: (item) => cellText(item.cells[name]),
  }));
  const columnsByName = {
    row: { key: "row", name: "row", text: (item) => String(item.position), pinned: true, number: true, width: 5.5 },
    status: { key: "status", name: "status", text: (item) => item.status, node: badgeOf, pinned: true, width: 8.5 },
    attempts: { key: "attempts", name: "attempts", text: (item) => cellText(item.attempts), number: true, width: 6 },
    error_code: { key: "error_code", name: "error_code", text: (item) => cellText(item.errorCode), width: 12 },
    error: { key: "error", name: "error", text: (item) => cellText(item.lastError), width: 24 },
  };
  const all = [...BEFORE.map((name) => columnsByName[name]), ...own, ...AFTER.map((name) => columnsByName[name])];
  return all.map((column) => ({ ...column, width: column.width ?? widthFor(column, items) }));
}

export function badgeOf(item) {
  return itemBadge(item.status);
}

/** Put an item's value into its cell. What is there already is left in peace: a node stays as long as its mark. */
export function fillCell(cell, column, item) {
  if (column.node) {
    const key = (column.mark ?? column.text)(item);
    if (cell.dataset.shown === key) return;
    cell.dataset.shown = key;
    cell.replaceChildren(column.node(item));
    return;
  }
  const text = column.text(item);
  say(cell, text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text);
  if (text.length > 12) cell.title = text.slice(0, LONGEST_HINT);
  else cell.removeAttribute("title");
}

function widthFor(column, items) {
  const longest = items.reduce((length, item) => Math.max(length, column.text(item).length), column.name.length);
  return Math.min(Math.max(longest, 7), 32) * 0.5 + 1.75;
}
