// A small chart of one figure over time, with the same in words.

import { draw, make } from "../core/dom.js";
import { ago, decimal } from "../core/format.js";

const WIDTH = 320;

/** Points are `{at, value}`, the oldest first. */
export function lineChart({ title, unit = "", points, height = 72 }) {
  const shownPoints = points
    .filter((point) => Number.isFinite(point.value))
    .map(({ at, value }) => ({ at: +new Date(at), value }));
  const caption = make("figcaption", {}, make("span", { class: "chart-title" }, title));
  const figure = make("figure", { class: "chart" }, caption);
  if (!shownPoints.length) {
    figure.append(make("p", { class: "hint" }, "No samples yet"));
    return figure;
  }
  const values = shownPoints.map((point) => point.value);
  const low = Math.min(0, ...values);
  const high = Math.max(...values);
  const [first, last] = [shownPoints[0].at, shownPoints.at(-1).at];
  // A single sample is a level line over the whole width.
  const x = (at) => (last === first ? (at < first ? 0 : WIDTH) : ((at - first) / (last - first)) * WIDTH);
  const y = (value) => (high === low ? height - 2 : height - 2 - ((value - low) / (high - low)) * (height - 6));
  const drawn = shownPoints.length === 1 ? [{ at: first - 1, value: shownPoints[0].value }, ...shownPoints] : shownPoints;
  const line = drawn.map((point) => `${x(point.at).toFixed(1)},${y(point.value).toFixed(1)}`).join(" ");
  const latest = shownPoints.at(-1).value;
  const words = `${title}: ${decimal(latest)} ${unit} now, between ${decimal(Math.min(...values))} and ${decimal(high)} since ${ago(new Date(first))}`;
  caption.append(make("span", { class: "chart-latest" }, `${decimal(latest)}${unit && ` ${unit}`}`));
  figure.append(
    draw(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": words, preserveAspectRatio: "none" },
      draw("polygon", { class: "chart-area", points: `0,${height} ${line} ${WIDTH},${height}` }),
      draw("polyline", { class: "chart-line", points: line, "vector-effect": "non-scaling-stroke" }),
    ),
    make("p", { class: "hint chart-range" }, `${decimal(Math.min(...values))} – ${decimal(high)}${unit && ` ${unit}`}`),
  );
  return figure;
}
