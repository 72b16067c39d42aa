// A table of items: its window of rows, what is selected, the whole text of the active cell, and what is the matter
// when there are no rows. A job's grid and the page of all that waits are both made of it.

import { fill, make, say } from "../core/dom.js";
import { number, plural } from "../core/format.js";
import { RowWindow } from "./grid_rows.js";
import { MAX_SELECTED, Selection } from "./grid_selection.js";
import { failed, loading } from "./placeholders.js";

export class Table {
  /** `columns(answer)` names the columns to show, `none()` is the node for a list without rows. */
  constructor({ label, columns, none, rowName = positionOf, onChange = () => {}, onSelection = () => {} }) {
    Object.assign(this, { rowName, columns, none, onChange, onSelection, source: null, shown: "" });
    this.selection = new Selection(() => this.chosen());
    this.rows = new RowWindow({
      label,
      row: (index) => this.source?.row(index) ?? null,
      rowName,
      selection: this.selection,
      onRows: (first, last) => this.source?.want(first, last),
      onActive: () => this.detail(true),
    });
    this.state = make("div", { class: "grid-state" });
    this.detailName = make("span", { class: "grid-detail-name" });
    this.detailText = make("span", { class: "grid-detail-text any" });
    this.bar = make(
      "div",
      { class: "grid-detail", role: "region", "aria-label": "The active cell", tabindex: 0, hidden: true },
      this.detailName,
      this.detailText,
    );
    this.line = make("p", { class: "grid-line hint", role: "status" });
    this.trouble = make("p", { class: "grid-trouble", role: "alert", hidden: true });
    this.live = make("p", { class: "visually-hidden", role: "status" });
    this.element = make(
      "div",
      { class: "grid-table" },
      this.state,
      this.rows.element,
      this.bar,
      this.trouble,
      make("div", { class: "row apart" }, this.line),
      this.live,
    );
  }

  /** Show rows of another source, from its top. */
  setSource(build) {
    this.source?.stop();
    const source = build(() => {
      if (this.source === source) this.changed();
    });
    this.source = source;
    this.rows.top = 0;
    this.rows.active = { index: 0, column: this.rows.active.column };
    this.bar.hidden = true;
    source.ask();
    this.changed();
  }

  /** Other columns, the same rows. */
  setColumns(columns) {
    const layout = columns.map((column) => `${column.key} ${column.width}`).join("\n");
    if (layout === this.shown) return;
    this.shown = layout;
    this.rows.setColumns(columns);
    this.detail();
  }

  changed() {
    const { source } = this;
    const some = source.count > 0;
    this.rows.element.hidden = !some;
    this.state.hidden = some;
    if (some) {
      this.setColumns(this.columns(source.answer));
      for (const [, item] of this.selection.size > 0 ? source.loaded() : []) this.selection.renew(item);
      this.rows.setCount(source.count, source.ended);
      this.detail();
    } else {
      this.bar.hidden = true;
      this.without();
    }
    this.trouble.hidden = !(some && source.problem);
    if (some && source.problem) this.again(source.problem);
    say(this.line, some ? this.lineText() : "");
    this.onChange();
  }

  without() {
    const { source } = this;
    const kind = source.problem ? source.problem : source.answer === null ? "loading" : "none";
    if (kind === "loading" && this.state.dataset.kind === "loading") return;
    this.state.dataset.kind = source.problem ? "failed" : kind;
    if (source.problem)
      fill(
        this.state,
        failed(source.problem, () => source.reload()),
      );
    else fill(this.state, kind === "loading" ? loading("Loading rows…") : this.none());
  }

  again(problem) {
    const button = make("button", { type: "button", on: { click: () => this.source.reload() } }, "Try again");
    fill(this.trouble, `Some rows could not be loaded: ${problem.message}. `, button);
  }

  lineText() {
    const { source } = this;
    if (source.numbered) return "";
    if (!source.ended) return `${plural(source.count, "row", "rows")} so far; more come as you scroll.`;
    return `The end: ${plural(source.count, "row", "rows")}, those that changed longest ago first.`;
  }

  /** The whole text of the active cell, since a cell shows only its beginning. */
  detail(moved = false) {
    const { index, column } = this.rows.active;
    const item = this.source?.row(index);
    const activeColumn = this.rows.columns[column - 1];
    if (moved) this.detailed = true;
    this.bar.hidden = !(this.detailed && item && activeColumn && activeColumn.text(item) !== "");
    if (this.bar.hidden) return;
    say(this.detailName, `${this.rowName(item)} · ${activeColumn.name}`);
    say(this.detailText, activeColumn.text(item));
  }

  chosen() {
    this.rows.draw();
    const { size } = this.selection;
    const full = size >= MAX_SELECTED ? ", which is the most" : "";
    say(this.live, size === 0 ? "No row selected" : `${plural(size, "row", "rows")} selected${full}`);
    this.onSelection([...this.selection.items.keys()]);
  }

  selectLoaded() {
    this.selection.add([...this.source.loaded()].map(([, item]) => item));
  }

  countText() {
    const { source } = this;
    if (source.answer === null) return "";
    if (source.numbered) return plural(source.count, "row", "rows");
    return source.ended ? plural(source.count, "row", "rows") : `${number(source.count)}+ rows`;
  }

  destroy() {
    this.source?.stop();
    this.rows.destroy();
    this.element.remove();
  }
}

function positionOf(item) {
  return `row ${item.position}`;
}
