// A window onto many rows: only those that can be seen are in the page, however many there are.
//
// Every row is as high as every other, so that where a row stands is arithmetic. Browsers bound how high an element
// may be. A list that would be higher is pressed together: `top` says exactly which part is seen, and where the
// scrollbar stands follows from it. Close to both ends one pixel is one pixel; in between the scrollbar leaps. A small
// step, by wheel, finger or key, is exact everywhere, and the scrollbar is set right when it rests.

import { make } from "../core/dom.js";
import { fillCell } from "./grid_cells.js";
import { steer } from "./grid_keys.js";

const HIGHEST = 8_000_000;
const EXACT_ENDS = 1_000_000;
const BEYOND = 8;
const RESTS_MS = 200;
const ROW_REM = 2.25;
const CHECKBOX_REM = 2.75;

export class RowWindow {
  constructor({ label, row, rowName, selection, onRows, onActive }) {
    Object.assign(this, { row, rowName, selection, onRows, onActive });
    Object.assign(this, { columns: [], count: 0, top: 0, y: 0, rows: new Map(), spare: [], rests: null });
    this.active = { index: 0, column: 0 };
    this.height = Math.round(ROW_REM * parseFloat(getComputedStyle(document.documentElement).fontSize));
    this.head = make("div", { role: "row", class: "grid-head", "aria-rowindex": 1 });
    this.slice = make("div", { role: "rowgroup", class: "grid-slice" });
    this.body = make("div", { role: "presentation", class: "grid-body" }, this.slice);
    const top = make("div", { role: "rowgroup", class: "grid-top" }, this.head);
    this.element = make(
      "div",
      { role: "grid", class: "grid-view", "aria-label": label, "aria-multiselectable": "true", tabindex: 0 },
      top,
      this.body,
    );
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    steer(this);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  /** Show these columns, after one with checkboxes. */
  setColumns(columns) {
    this.columns = columns;
    const widths = [CHECKBOX_REM, ...columns.map((column) => column.width)];
    const tracks = widths.map((width, place) =>
      place === widths.length - 1 && !columns.at(-1).pinned ? `minmax(${width}rem, 1fr)` : `${width}rem`,
    );
    this.element.style.setProperty("--columns", tracks.join(" "));
    this.element.style.setProperty("--wide", `${widths.reduce((sum, width) => sum + width, 0)}rem`);
    this.element.setAttribute("aria-colcount", widths.length);
    this.head.replaceChildren(
      newCell("columnheader", null, 0, make("span", { class: "visually-hidden" }, "Selected")),
      ...columns.map((column, place) => newCell("columnheader", column, place + 1, column.name)),
    );
    this.active.column = Math.min(this.active.column, columns.length);
    for (const row of this.rows.values()) row.element.remove();
    this.rows.clear();
    this.spare = [];
    this.draw();
  }

  /** There are so many rows; nobody knows how many when the list has not ended. */
  setCount(count, isComplete = true) {
    this.count = count;
    this.element.setAttribute("aria-rowcount", isComplete ? count + 1 : -1);
    this.body.style.height = `${Math.min(count * this.height, HIGHEST)}px`;
    this.active.index = Math.min(this.active.index, Math.max(count - 1, 0));
    this.top = Math.min(this.top, this.farthest());
    this.y = this.element.scrollTop;
    if (Math.abs(this.physical(this.top) - this.y) > 1) this.anchor();
    this.draw();
  }

  /** How many pixels of rows can be seen. */
  room() {
    return Math.max(this.element.clientHeight - this.head.offsetHeight, this.height);
  }

  farthest() {
    return Math.max(this.count * this.height - this.room(), 0);
  }

  pressed() {
    return this.count * this.height > HIGHEST;
  }

  virtual(y) {
    if (!this.pressed()) return y;
    const [end, real] = [HIGHEST - this.room(), this.farthest()];
    if (y <= EXACT_ENDS) return Math.max(y, 0);
    if (end - y <= EXACT_ENDS) return real - Math.max(end - y, 0);
    return EXACT_ENDS + ((y - EXACT_ENDS) * (real - 2 * EXACT_ENDS)) / (end - 2 * EXACT_ENDS);
  }

  physical(top) {
    if (!this.pressed()) return top;
    const [end, real] = [HIGHEST - this.room(), this.farthest()];
    if (top <= EXACT_ENDS) return top;
    if (real - top <= EXACT_ENDS) return end - (real - top);
    return EXACT_ENDS + ((top - EXACT_ENDS) * (end - 2 * EXACT_ENDS)) / (real - 2 * EXACT_ENDS);
  }

  scrolled() {
    const y = this.element.scrollTop;
    const step = y - this.y;
    if (step === 0) return;
    this.y = y;
    if (!this.pressed()) {
      this.top = y;
    } else if (Math.abs(step) > 3 * this.room()) {
      this.top = this.virtual(y);
    } else {
      this.top = Math.min(Math.max(this.top + step, 0), this.farthest());
      clearTimeout(this.rests);
      this.rests = setTimeout(() => this.anchor(), RESTS_MS);
      if (y <= 0 || y >= HIGHEST - this.room()) this.anchor();
    }
    this.draw();
  }

  /** Put the scrollbar where it belongs; what is seen stays as it is. */
  anchor() {
    this.scrolled(); // what the browser has not told us of yet would be undone
    const y = this.physical(this.top);
    if (Math.abs(y - this.element.scrollTop) <= 1) return;
    this.element.scrollTop = y;
    this.y = this.element.scrollTop;
    this.draw();
  }

  moveTo(top) {
    this.top = Math.min(Math.max(top, 0), this.farthest());
    this.element.scrollTop = this.physical(this.top);
    this.y = this.element.scrollTop;
    if (!this.pressed()) this.top = this.y;
    this.draw();
  }

  /** Scroll no further than needed to see a row. */
  show(index) {
    const [from, to] = [index * this.height, (index + 1) * this.height];
    if (from < this.top) this.moveTo(from);
    else if (to > this.top + this.room()) this.moveTo(to - this.room());
  }

  /** Bring the rows in the page in line with what is seen. */
  draw() {
    if (this.columns.length === 0 || !this.element.isConnected) return;
    const first = Math.max(Math.floor(this.top / this.height) - BEYOND, 0);
    const last = Math.min(Math.ceil((this.top + this.room()) / this.height) + BEYOND, this.count - 1);
    for (const [index, row] of this.rows) {
      if (index < first || index > last) this.take(index, row);
    }
    let place = this.slice.firstChild;
    for (let index = first; index <= last; index += 1) {
      let row = this.rows.get(index);
      if (row) {
        place = row.element.nextSibling;
      } else {
        row = this.spare.pop() ?? this.newRow();
        this.rows.set(index, row);
        this.slice.insertBefore(row.element, place);
      }
      this.fillRow(row, index);
    }
    this.slice.style.top = `${this.y + first * this.height - this.top}px`;
    this.rove();
    if (last >= 0) this.onRows(first, last);
  }

  take(index, row) {
    if (row.element.contains(document.activeElement)) this.element.focus({ preventScroll: true });
    row.element.remove();
    this.rows.delete(index);
    if (this.spare.length < 3 * BEYOND) this.spare.push(row);
  }

  newRow() {
    const checkbox = make("input", { type: "checkbox", tabindex: -1 });
    const cells = this.columns.map((column, place) => newCell("gridcell", column, place + 1));
    const element = make("div", { role: "row", class: "grid-row" }, newCell("gridcell", null, 0, checkbox), cells);
    element.style.height = `${this.height}px`;
    return { element, checkbox, cells, index: -1 };
  }

  fillRow(row, index) {
    const item = this.row(index);
    const { element, checkbox } = row;
    if (row.index !== index) {
      row.index = index;
      element.dataset.index = index;
      element.setAttribute("aria-rowindex", index + 2);
    }
    const isSelected = this.selection.has(item);
    element.classList.toggle("waiting", item === null);
    element.setAttribute("aria-selected", String(isSelected));
    checkbox.disabled = item === null;
    checkbox.checked = isSelected;
    checkbox.setAttribute("aria-label", item ? `Select ${this.rowName(item)}` : "Not loaded yet");
    for (const [place, column] of this.columns.entries()) {
      const cell = row.cells[place];
      if (item) {
        fillCell(cell, column, item);
      } else {
        delete cell.dataset.shown;
        cell.removeAttribute("title");
        cell.replaceChildren();
      }
    }
  }

  /** What the keyboard stands on in a row: a control where its cell has one, else the cell. */
  target(index, column) {
    const row = this.rows.get(index);
    if (!row) return null;
    if (column === 0) return row.checkbox.disabled ? row.checkbox.parentElement : row.checkbox;
    const cell = row.cells[column - 1];
    return cell.querySelector("a, button") ?? cell;
  }

  /** One place in the grid is reached by Tab; the grid itself, while that one is out of sight. */
  rove() {
    const target = this.target(this.active.index, this.active.column);
    if (this.reached && this.reached !== target) this.reached.tabIndex = -1;
    this.reached = target;
    this.element.tabIndex = target ? -1 : 0;
    if (!target) return;
    target.tabIndex = 0;
    if (document.activeElement === this.element) target.focus({ preventScroll: true });
  }

  activate(index, column, focus = true) {
    this.active = { index: Math.min(Math.max(index, 0), Math.max(this.count - 1, 0)), column };
    this.show(this.active.index);
    this.rove();
    const target = this.target(this.active.index, column);
    if (focus) target?.focus({ preventScroll: true });
    this.reveal(column);
    this.onActive(this.active);
  }

  /** Scroll sideways until a cell can be seen beside those that stay. */
  reveal(column) {
    const cell = this.rows.get(this.active.index)?.cells[column - 1];
    if (!cell || getComputedStyle(cell).position === "sticky") return;
    const pinnedCells = [...cell.parentElement.children].filter((sibling) => getComputedStyle(sibling).position === "sticky");
    const room = pinnedCells.reduce((sum, sibling) => sum + sibling.offsetWidth, 0);
    const [from, to] = [cell.offsetLeft - room, cell.offsetLeft + cell.offsetWidth];
    if (from < this.element.scrollLeft) this.element.scrollLeft = from;
    else if (to > this.element.scrollLeft + this.element.clientWidth) {
      this.element.scrollLeft = Math.min(to - this.element.clientWidth, from);
    }
  }

  destroy() {
    clearTimeout(this.rests);
    this.observer.disconnect();
    this.element.remove();
  }
}

/** A cell of a column; the one with checkboxes is none of those that were asked for. */
function newCell(role, column, place, ...children) {
  const pinned = column ? column.pinned && `pinned ${column.key}` : "pinned";
  const attributes = {
    role,
    class: ["grid-cell", pinned, column?.number && "number"].filter(Boolean).join(" "),
    "aria-colindex": place + 1,
    tabindex: role === "gridcell" && -1,
    dataset: column ? { column: column.key } : {},
  };
  return make("div", attributes, ...children);
}
