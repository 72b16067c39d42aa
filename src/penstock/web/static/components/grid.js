// A job's items as a grid: exactly what its export has, a million rows as easily as ten.
//
// Without a status filter any row is reached by its number. With one, and in the list of what waits, rows come in the
// order in which they last changed, page behind page.

import { make, say } from "../core/dom.js";
import { when } from "../core/format.js";
import { badgeOf, cellText, exportColumns } from "./grid_cells.js";
import { KeysetSource, NumberedSource } from "./grid_source.js";
import { Table } from "./grid_table.js";
import { columnChoices, goToRow, keepHidden, menu, readHidden, statusFilter, STATUSES } from "./grid_toolbar.js";
import { empty } from "./placeholders.js";

const REFRESH_MS = 1000;
const WAITING = ["PENDING", "PROCESSING"];
// What kinds say tells their items apart, beside a title.
const SUMMARY = (document.documentElement.dataset.summary ?? "").split(" ").filter(Boolean).map(capitalize);

/** The columns of items that wait. */
export const PENDING_COLUMNS = [
  { key: "id", name: "Item ID", text: (item) => item.id, pinned: true, width: 6, number: true },
  { key: "title", name: shortly(["Title", ...SUMMARY]).join(" / "), text: summaryText, width: 14 },
  { key: "status", name: "Status", text: (item) => item.status, node: badgeOf, width: 8.5 },
  { key: "attempts", name: "Attempts", text: (item) => String(item.attempts), number: true, width: 6 },
  { key: "deaths", name: "Deaths", text: (item) => String(item.deaths), number: true, width: 5 },
  { key: "lockedBy", name: "Locked by", text: (item) => cellText(item.lockedBy), width: 10.5 },
  { key: "updatedAt", name: "Updated", text: (item) => item.updatedAt, node: (item) => when(item.updatedAt), width: 8 },
];

export class Grid {
  constructor(element, { jobId, pending = false, onSelection = () => {} }) {
    Object.assign(this, { jobId, pending, onSelection, statuses: pending ? WAITING : [], all: [], hidden: new Set() });
    this.kind = pending ? "pending" : null;
    this.table = new Table({
      label: pending ? "Items that wait" : "Items",
      rowName: pending ? itemName : undefined,
      columns: (answer) => this.columns(answer),
      none: () => this.none(),
      onChange: () => this.changed(),
      onSelection: (ids) => this.selectionChanged(ids),
    });
    this.build();
    element.replaceChildren(this.element);
    this.open();
  }

  /** The job has changed: what is seen is read again, at most once a second. */
  refresh() {
    if (this.waits) return;
    const since = performance.now() - (this.refreshedAt ?? -REFRESH_MS);
    this.waits = setTimeout(
      () => {
        this.waits = null;
        this.refreshedAt = performance.now();
        this.table.source.refresh();
      },
      Math.max(REFRESH_MS - since, 0),
    );
  }

  selected() {
    return [...this.table.selection.items.keys()];
  }

  clearSelection() {
    this.table.selection.clear();
  }

  destroy() {
    clearTimeout(this.waits);
    this.table.destroy();
    this.element.remove();
  }

  build() {
    this.filter = statusFilter(this.statuses, (statuses) => this.choose(statuses));
    this.count = make("span", { class: "grid-count number" });
    this.choices = make("fieldset", { class: "grid-choices" }, make("legend", { class: "visually-hidden" }, "Columns"));
    this.go = goToRow((row) => this.table.rows.activate(row - 1, 1));
    this.go.hidden = true;
    this.changedList = button("List changed: reload", () => this.open(), { hidden: true });
    this.number = make("span", { class: "number" });
    this.clear = button("Clear", () => this.clearSelection(), { class: "quiet" });
    this.loaded = button("Select loaded", () => this.table.selectLoaded());
    this.element = make(
      "section",
      { class: "grid", "aria-label": this.pending ? "Pending items" : "Grid" },
      make(
        "div",
        { class: "grid-bar row apart" },
        this.filter,
        make("div", { class: "row" }, this.go, menu("Columns", this.choices)),
      ),
      make(
        "div",
        { class: "grid-bar row apart" },
        make("div", { class: "row" }, this.count, this.changedList),
        make("div", { class: "row" }, this.number, this.clear, this.loaded),
      ),
      this.table.element,
    );
    this.selectionChanged([]);
  }

  /** Read from the start, with the filter as it is. */
  open() {
    const path = `/api/jobs/${this.jobId}/items`;
    const parameters = { statuses: this.statuses.join(",") };
    this.table.setSource((onChange) =>
      this.statuses.length > 0 ? new KeysetSource(path, parameters, onChange) : new NumberedSource(path, onChange),
    );
  }

  choose(statuses) {
    const every = statuses.length === STATUSES.length && !this.pending;
    this.statuses = every ? [] : statuses.length === 0 && this.pending ? WAITING : statuses;
    this.filter.check(every ? [] : this.statuses);
    this.open();
  }

  columns(answer) {
    const kind = this.kind ?? answer.items[0]?.jobType ?? "";
    if (this.all.length === 0) {
      this.kind = kind;
      this.hidden = readHidden(kind);
      this.all = this.pending ? PENDING_COLUMNS : exportColumns(answer.columns, answer.items);
      this.choices.append(...columnChoices(this.all, this.hidden, (key, isShown) => this.showColumn(key, isShown)));
    }
    return this.all.filter((column, place) => place === 0 || !this.hidden.has(column.key));
  }

  showColumn(key, isShown) {
    if (isShown) this.hidden.delete(key);
    else this.hidden.add(key);
    keepHidden(this.kind, this.hidden);
    if (this.table.source.count > 0) this.table.setColumns(this.columns(this.table.source.answer));
  }

  changed() {
    const { source } = this.table;
    say(this.count, this.table.countText());
    this.changedList.hidden = !source.stale;
    this.go.hidden = !source.numbered || source.count === 0;
    this.go.most(source.count);
    this.loaded.hidden = source.count === 0;
  }

  selectionChanged(ids) {
    say(this.number, ids.length > 0 ? `${ids.length.toLocaleString("en")} selected` : "");
    this.clear.hidden = ids.length === 0;
    this.onSelection(ids);
  }

  none() {
    if (this.pending) return empty("Nothing waits", "All items of this job with these statuses have moved on.");
    if (this.statuses.length === 0) {
      return empty("No rows yet", "Rows are here as soon as the job has planned its items.");
    }
    const all = button("Show all statuses", () => this.choose([]));
    return empty("No rows of these statuses", "No row of this job has a status you chose.", all);
  }
}

function button(text, click, attributes = {}) {
  return make("button", { type: "button", ...attributes, on: { click } }, text);
}

export function itemName(item) {
  return `item ${item.id}`;
}

/** As much as a narrow column has room for. */
function shortly(texts) {
  return texts.filter(Boolean).slice(0, 2);
}

function capitalize(word) {
  return word[0].toUpperCase() + word.slice(1);
}

function summaryText(item) {
  const { title, ...more } = item.inputSummary;
  return shortly([title, ...Object.values(more)]).join(" · ");
}
