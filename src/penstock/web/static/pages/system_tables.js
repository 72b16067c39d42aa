// Tables whose rows are known by a key, and change in place: a selection, or the place one has scrolled to, stays.

import { fill, make } from "../core/dom.js";

/** A table in a place; columns are `{name, number?, cell(row)}`, where a cell is a text or a node. */
export function keyedTable(place, { caption, columns, keyOf, none }) {
  const rows = new Map();
  const body = make("tbody");
  const table = make(
    "table",
    {},
    make("caption", { class: "visually-hidden" }, caption),
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        columns.map((column) => make("th", { scope: "col", class: column.number && "number" }, column.name)),
      ),
    ),
    body,
  );

  function show(values) {
    const tableRows = values.map((value) => row(keyOf(value), value));
    const keys = new Set(values.map(keyOf));
    for (const [key, tableRow] of rows) {
      if (keys.has(key)) continue;
      tableRow.remove();
      rows.delete(key);
    }
    tableRows.forEach((tableRow, index) => {
      if (body.children[index] !== tableRow) body.insertBefore(tableRow, body.children[index] ?? null);
    });
    const content = values.length ? table : (place.querySelector(".hint") ?? make("p", { class: "hint" }, none));
    if (place.firstChild !== content) fill(place, content);
  }

  function row(key, value) {
    let tableRow = rows.get(key);
    if (!tableRow) {
      tableRow = make(
        "tr",
        {},
        columns.map((column, index) =>
          make(index ? "td" : "th", { scope: index ? null : "row", class: column.number && "number" }),
        ),
      );
      rows.set(key, tableRow);
    }
    columns.forEach((column, index) => put(tableRow.children[index], column.cell(value)));
    return tableRow;
  }

  return { show };
}

/** Figures with their names, changed in place: pairs of a name and a text or node. */
export function keyedFigures(list) {
  const places = new Map();
  return {
    show(pairs) {
      for (const [name, value, hint] of pairs) {
        let place = places.get(name);
        if (!place) {
          place = make("dd");
          const note = make("dd", { class: "hint figure-note" });
          places.set(name, place);
          list.append(make("div", {}, make("dt", {}, name), place, hint === undefined ? null : note));
        }
        put(place, value);
        if (hint !== undefined) put(place.nextElementSibling, hint);
      }
    },
  };
}

/** Put something into a cell unless the same is there. */
function put(cell, content) {
  const next = content instanceof Node ? content : document.createTextNode(String(content));
  const now = cell.firstChild;
  if (now && cell.childNodes.length === 1 && now.isEqualNode(next)) return;
  fill(cell, next);
}
