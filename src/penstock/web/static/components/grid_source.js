// Where rows come from: by number, anywhere in constant time, or one page behind the other.
//
// Both have the same face: count, row(index), ask(), want(first, last), refresh(), reload(), stop(), and tell their
// owner by changed(). `total` is null and `ended` false while nobody knows how many there are. A refresh that comes while
// an answer is under way is remembered: that answer may have been written before what the refresh is about.

import { OFFLINE, Problem, problemOf, root, withQuery } from "../core/api.js";
import { readExactly } from "./grid_cells.js";

const PAGE = 100;
const PAGES_KEPT = 50;
const SETTLED_MS = 80;
const READ_AGAIN_MOST = 500;

/** Like get of api.js, but no digit of a number is lost. */
async function read(path, signal) {
  let answer, text;
  try {
    answer = await fetch(root + path, { signal, headers: { Accept: "application/json" } });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(OFFLINE);
  }
  if (!answer.ok) throw problemOf(answer.status, text, answer.headers.get("Retry-After"));
  return readExactly(text);
}

/** All rows, by page number; the pages seen last are kept. */
export class NumberedSource {
  constructor(path, onChange) {
    Object.assign(this, { path, onChange, count: 0, total: null, ended: true, numbered: true, stale: false });
    Object.assign(this, { answer: null, problem: null, pages: new Map(), asked: new Map(), wanted: [1], timer: null });
    this.failed = new Set();
    this.again = new Set();
  }

  get loading() {
    return this.answer === null && this.problem === null;
  }

  row(index) {
    return this.pages.get(Math.floor(index / PAGE) + 1)?.items[index % PAGE] ?? null;
  }

  /** The rows that are kept, in order. */
  *loaded() {
    for (const [number, page] of [...this.pages].sort(([first], [second]) => first - second)) {
      for (const [place, item] of page.items.entries()) yield [(number - 1) * PAGE + place, item];
    }
  }

  /** These rows are looked at. Questions about others are given up; new ones wait until the scrollbar rests. */
  want(first, last) {
    const before = this.wanted;
    this.wanted = [];
    for (let page = Math.floor(first / PAGE); page * PAGE <= last; page += 1) this.wanted.push(page + 1);
    for (const [page, controller] of this.asked) {
      if (!this.wanted.includes(page)) {
        controller.abort();
        this.asked.delete(page);
      }
    }
    for (const page of this.failed) if (!this.wanted.includes(page)) this.failed.delete(page);
    for (const page of this.wanted) this.touch(page);
    if (!this.wanted.some((page) => this.missing(page))) return;
    const near = before.some((page) => this.wanted.includes(page));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), near ? 0 : SETTLED_MS);
  }

  refresh() {
    this.failed.clear();
    for (const page of this.pages.values()) page.old = true;
    for (const page of this.asked.keys()) this.again.add(page);
    this.ask();
  }

  reload() {
    this.stop();
    this.problem = null;
    this.refresh();
    this.onChange();
  }

  stop() {
    clearTimeout(this.timer);
    for (const controller of this.asked.values()) controller.abort();
    this.asked.clear();
    this.again.clear();
  }

  missing(page) {
    const cachedPage = this.pages.get(page);
    // What failed is asked for again when somebody says so, or comes back to it: never in a circle.
    return !this.asked.has(page) && !this.failed.has(page) && (!cachedPage || cachedPage.old);
  }

  touch(page) {
    const cachedPage = this.pages.get(page);
    if (!cachedPage) return;
    this.pages.delete(page);
    this.pages.set(page, cachedPage);
  }

  ask() {
    for (const page of this.wanted) if (this.missing(page)) this.load(page);
  }

  async load(page) {
    const controller = new AbortController();
    this.asked.set(page, controller);
    this.again.delete(page);
    try {
      const answer = await read(withQuery(this.path, { page, pageSize: PAGE }), controller.signal);
      this.problem = null;
      this.answer = answer;
      this.total = this.count = answer.total;
      this.pages.delete(page);
      this.pages.set(page, { items: answer.items, old: this.again.has(page) });
      while (this.pages.size > PAGES_KEPT) this.pages.delete(this.pages.keys().next().value);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.failed.add(page);
      this.problem = error;
    } finally {
      if (this.asked.get(page) === controller) this.asked.delete(page);
    }
    if (this.again.delete(page)) {
      this.failed.delete(page);
      this.ask();
    }
    this.onChange();
  }
}

/** Rows of a list that has no page numbers: each page leads to the next one. */
export class KeysetSource {
  constructor(path, parameters, onChange) {
    Object.assign(this, { path, parameters, onChange, total: null, numbered: false, stale: false });
    Object.assign(this, { answer: null, problem: null, items: [], places: new Map(), next: null, asked: null });
    this.again = false;
  }

  get count() {
    return this.items.length;
  }

  get ended() {
    return this.answer !== null && this.next === null;
  }

  get loading() {
    return this.answer === null && this.problem === null;
  }

  row(index) {
    return this.items[index] ?? null;
  }

  *loaded() {
    yield* this.items.entries();
  }

  ask() {
    this.load(null, PAGE);
  }

  want(first, last) {
    if (this.next !== null && this.asked === null && this.problem === null && last > this.items.length - PAGE / 2) {
      this.load(this.next, PAGE);
    }
  }

  /** A short list is read again from its start; a long one is marked, and somebody decides. */
  refresh() {
    if (this.asked !== null) {
      this.again = true;
      return;
    }
    if (this.items.length > READ_AGAIN_MOST) {
      this.stale = true;
      this.onChange();
    } else {
      this.load(null, Math.max(this.items.length, PAGE));
    }
  }

  /** Again: what failed last, or else all from the start. */
  reload() {
    this.stop();
    const after = this.problem !== null && this.items.length > 0 ? this.next : null;
    this.problem = null;
    this.load(after, PAGE);
    this.onChange();
  }

  stop() {
    this.asked?.abort();
    this.asked = null;
    this.again = false;
  }

  async load(after, pageSize) {
    const controller = new AbortController();
    this.asked = controller;
    try {
      const parameters = { ...this.parameters, pageSize, after };
      const answer = await read(withQuery(this.path, parameters), controller.signal);
      if (after === null) {
        this.items = [];
        this.places.clear();
        this.stale = false;
      }
      this.problem = null;
      this.answer = answer;
      this.next = answer.next;
      for (const item of answer.items) this.put(item);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.problem = error;
    } finally {
      if (this.asked === controller) this.asked = null;
    }
    this.onChange();
    if (this.again && this.asked === null) {
      this.again = false;
      this.refresh();
    }
  }

  // One that changed while somebody scrolled comes again at the end: it is shown once, as it is now.
  put(item) {
    const place = this.places.get(item.id);
    if (place === undefined) this.places.set(item.id, this.items.push(item) - 1);
    else this.items[place] = item;
  }
}
