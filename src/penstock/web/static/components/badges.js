// What each status looks like: an icon, a colour and a word, always together.

import { draw, make } from "../core/dom.js";
import { ITEMS, lookOf } from "../core/lifecycle_table.js";

// Drawn, not typed: not every machine has the pictures of the character set, and these follow the text's colour.
const PATHS = {
  hourglass: "M6 3h12M6 21h12M7 3c0 5 4 6 5 9-1 3-5 4-5 9M17 3c0 5-4 6-5 9 1 3 5 4 5 9",
  turning: "M20 12a8 8 0 1 1-2.3-5.7M20 3v5h-5",
  check: "M4 12l6 6L20 6",
  cross: "M6 6l12 12M18 6L6 18",
  stop: "M8 3h8l5 5v8l-5 5H8l-5-5V8zM9 12h6",
  pause: "M9 5v14M15 5v14",
  question: "M8 9a4 4 0 1 1 5 4c-1 .5-1 1-1 2M12 19v.5",
  skip: "M5 5l8 7-8 7zM18 5v14",
};

export function icon(name) {
  return draw(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    draw("path", { d: PATHS[name] }),
  );
}

/** A job's status; its state says more where the five statuses say less. */
export function badge(status, state = null) {
  return badgeOf(lookOf(status, state), state ?? status);
}

export function itemBadge(status) {
  return badgeOf(ITEMS[status], status);
}

function badgeOf(look, status) {
  return make("span", { class: `badge ${look.colour}`, dataset: { status } }, icon(look.icon), look.word);
}
