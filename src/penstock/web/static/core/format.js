// Numbers, sizes and times as people read them.

import { now } from "./clock.js";
import { make } from "./dom.js";

const groupedNumber = new Intl.NumberFormat("en");
const oneDigit = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
const UNITS = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];
const SIZES = ["B", "kB", "MB", "GB", "TB"];

export function number(value) {
  return value === null || value === undefined ? "–" : groupedNumber.format(value);
}

/** A number that may have a fraction: with one digit below ten, none above. */
export function decimal(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 100 ? groupedNumber.format(Math.round(value)) : oneDigit.format(value);
}

/** A share between 0 and 1. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${oneDigit.format(share * 100)} %`;
}

export function bytes(value) {
  let unit = 0;
  while (value >= 1000 && unit < SIZES.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${oneDigit.format(value)} ${SIZES[unit]}`;
}

/** So many seconds, in the two largest units that say something. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${oneDigit.format(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

export function plural(count, single, several) {
  return `${number(count)} ${count === 1 ? single : several}`;
}

/** The end of an id: its beginning is the time, and much the same in all that are new. */
export function shortId(id) {
  return id.slice(-8);
}

/** A moment: how long ago, with the exact time on hover; it stays right while the page is open. */
export function when(iso) {
  if (!iso) return make("span", {}, "–");
  const moment = new Date(iso);
  return make("time", { datetime: iso, title: exact.format(moment), "data-relative": true }, ago(moment));
}

/** Whether one of the server's moments is before another. A whole second has no fraction, and "Z" is after ".". */
export function isBefore(moment, other) {
  return moment.replace("Z", "") < other.replace("Z", "");
}

export function ago(moment) {
  const seconds = (moment - now()) / 1000;
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return seconds > 1 ? `in ${Math.round(seconds)} s` : seconds > -5 ? "just now" : `${Math.round(-seconds)} s ago`;
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-relative]")) {
    const text = ago(new Date(element.dateTime));
    if (element.textContent !== text) element.textContent = text;
  }
}, 5000);
