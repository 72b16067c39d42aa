// Which items are selected. It outlives scrolling and new readings of the list.

export const MAX_SELECTED = 10_000;

export class Selection {
  constructor(onChange) {
    this.onChange = onChange;
    this.items = new Map();
    this.anchor = null;
  }

  has(item) {
    return item !== null && this.items.has(item.id);
  }

  get size() {
    return this.items.size;
  }

  /** Select an item, or not; the next range begins here. */
  set(item, index, isSelected) {
    this.anchor = index;
    if (!item) return;
    if (!isSelected) this.items.delete(item.id);
    else if (this.items.size < MAX_SELECTED) this.items.set(item.id, item);
    this.onChange();
  }

  toggle(item, index) {
    this.set(item, index, !this.has(item));
  }

  /** From the anchor to here: those rows that are loaded. */
  extend(index, row) {
    const from = this.anchor ?? index;
    this.anchor = from;
    const some = [];
    for (let place = Math.min(from, index); place <= Math.max(from, index) && some.length < MAX_SELECTED; place += 1) {
      const item = row(place);
      if (item) some.push(item);
    }
    this.add(some);
  }

  add(items) {
    for (const item of items) {
      if (this.items.size >= MAX_SELECTED) break;
      this.items.set(item.id, item);
    }
    this.onChange();
  }

  /** Items as they are now, where they are selected. */
  renew(item) {
    if (item && this.items.has(item.id)) this.items.set(item.id, item);
  }

  clear() {
    this.items.clear();
    this.anchor = null;
    this.onChange();
  }
}
