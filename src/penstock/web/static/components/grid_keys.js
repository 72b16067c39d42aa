// Keyboard and mouse in a window of rows: one cell is active, rows are selected one by one or by ranges.

/** Listen in a window. */
export function steer(rows) {
  rows.element.addEventListener("keydown", (event) => handleKey(rows, event));
  rows.element.addEventListener("mousedown", (event) => {
    // A range of rows is meant, not one of text.
    if (event.shiftKey && event.target.closest(".grid-row")) event.preventDefault();
  });
  rows.element.addEventListener("click", (event) => handleClick(rows, event));
}

function handleKey(rows, event) {
  if (event.altKey || rows.count === 0) return;
  const { index, column } = rows.active;
  const page = Math.max(Math.floor(rows.room() / rows.height) - 1, 1);
  const far = event.ctrlKey || event.metaKey;
  const end = rows.columns.length;
  const places = {
    ArrowDown: [index + 1, column],
    ArrowUp: [index - 1, column],
    ArrowRight: [index, Math.min(column + 1, end)],
    ArrowLeft: [index, Math.max(column - 1, 0)],
    PageDown: [index + page, column],
    PageUp: [index - page, column],
    Home: far ? [0, 0] : [index, 0],
    End: far ? [rows.count - 1, end] : [index, end],
  };
  if (event.key === " ") {
    if (event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    choose(rows, index, event.shiftKey);
  } else if (places[event.key]) {
    event.preventDefault();
    if (event.shiftKey && rows.selection.anchor === null) rows.selection.anchor = index;
    rows.activate(...places[event.key]);
    if (event.shiftKey && rows.active.index !== index) rows.selection.extend(rows.active.index, rows.row);
  }
}

function handleClick(rows, event) {
  const element = event.target.closest(".grid-row");
  const cell = event.target.closest("[role='gridcell']");
  if (!element || !cell) return;
  const index = Number(element.dataset.index);
  const column = Number(cell.getAttribute("aria-colindex")) - 1;
  if (event.target instanceof HTMLInputElement) {
    if (event.shiftKey) rows.selection.extend(index, rows.row);
    else rows.selection.set(rows.row(index), index, event.target.checked);
  } else if (event.shiftKey) {
    rows.selection.extend(index, rows.row);
  } else if (!event.target.closest("a, button")) {
    rows.selection.anchor = index;
  }
  rows.activate(index, column, !event.target.closest("a, button"));
}

function choose(rows, index, range) {
  if (range) rows.selection.extend(index, rows.row);
  else rows.selection.toggle(rows.row(index), index);
}
