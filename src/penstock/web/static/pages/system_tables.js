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
    const wanted = values.map((value) => row(keyOf(value), value));
    const keys = new Set(values.map(keyOf));
    for (const [key, one] of rows) {
      if (keys.has(key)) continue;
      one.remove();
      rows.delete(key);
    }
    wanted.forEach((one, index) => {
      if (body.children[index] !== one) body.insertBefore(one, body.children[index] ?? null);
    });
    const shown = values.length ? table : (place.querySelector(".hint") ?? make("p", { class: "hint" }, none));
    if (place.firstChild !== shown) fill(place, shown);
  }

  function row(key, value) {
    let one = rows.get(key);
    if (!one) {
      one = make(
        "tr",
        {},
        columns.map((column, index) =>
          make(index ? "td" : "th", { scope: index ? null : "row", class: column.number && "number" }),
        ),
      );
      rows.set(key, one);
    }
    columns.forEach((column, index) => put(one.children[index], column.cell(value)));
    return one;
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
