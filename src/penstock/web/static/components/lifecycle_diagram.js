// The states a job can be in and the ways between them, drawn from the engine's own table, with the way this job took.

import { all, draw, fill, say } from "../core/dom.js";
import { STATES } from "../core/lifecycle_table.js";

const WIDTH = 640;
const HEIGHT = 232;
const HALF = { x: 43, y: 15 };
const PLACES = {
  created: [46, 112],
  queued: [176, 112],
  running: [326, 112],
  succeeded: [464, 112],
  committed: [592, 66],
  abandoned: [592, 158],
  paused: [176, 26],
  retrying: [326, 26],
  failed: [464, 204],
  canceled: [110, 204],
};
// How far the middle of a way lies off the straight line, so that no way runs through a state or on top of another.
const BENDS = {
  "created>queued": 0,
  "queued>running": 0,
  "running>succeeded": 0,
  "running>failed": 0,
  "succeeded>committed": 0,
  "succeeded>abandoned": 0,
  "succeeded>queued": -30,
  "paused>canceled": -38,
  "retrying>canceled": 20,
  "created>failed": -22,
  "failed>queued": 10,
  "queued>failed": 4,
  "running>canceled": 8,
};
const USUAL_BEND = 12;
const MAX_NAMED = 14;

/** The legal ways, as `from>to`, as the page's table has them; one that stays where it is is not drawn. */
export function waysOf(table) {
  return all("tbody tr", table).flatMap((row) =>
    row.dataset.sources
      .split(" ")
      .filter((source) => source !== row.dataset.target)
      .map((source) => `${source}>${row.dataset.target}`),
  );
}

/** The states a job went through, in order; a line that led nowhere, a worker's death, is none. */
export function pathOf(lines) {
  if (!lines.length) return [];
  const first = lines[0].from_state;
  const moves = lines.filter((line) => line.from_state !== line.to_state);
  return [...(first ? [first] : []), ...moves.map((line) => line.to_state)];
}

/** The drawing, and how to bring it up to date. */
export function lifecycle(place, caption, table) {
  const ways = new Map(waysOf(table).map((way) => [way, wayDrawn(way)]));
  const names = [...new Set([...ways.keys()].flatMap((way) => way.split(">")))];
  const nodes = new Map(names.map((name) => [name, stateDrawn(name)]));
  const picture = draw(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "The job's states so far" },
    draw("defs", {}, head("way-head"), head("taken-head")),
    [...ways.values()],
    [...nodes.values()],
  );
  fill(place, picture);
  let current = null;

  /** Where the drawing is wider than its place, the state the job is in comes into view. */
  function reveal(name) {
    if (name === current) return;
    current = name;
    place.scrollLeft = (placeOf(name)[0] / WIDTH) * place.scrollWidth - place.clientWidth / 2;
  }

  return {
    update(lines) {
      const path = pathOf(lines);
      const takenWays = new Set(
        lines.filter((line) => line.from_state).map((line) => `${line.from_state}>${line.to_state}`),
      );
      for (const [way, line] of ways) {
        line.setAttribute("class", takenWays.has(way) ? "way taken" : "way");
        line.setAttribute("marker-end", takenWays.has(way) ? "url(#taken-head)" : "url(#way-head)");
        // Drawn later is drawn above: a way that was taken is not crossed out by one that was not.
        if (takenWays.has(way)) picture.insertBefore(line, nodes.values().next().value);
      }
      for (const [name, node] of nodes) {
        node.setAttribute(
          "class",
          name === path.at(-1) ? "node current" : path.includes(name) ? "node visited" : "node",
        );
      }
      const states = path.length > MAX_NAMED ? ["…", ...path.slice(-MAX_NAMED)] : path;
      const words = states.join(" → ");
      picture.setAttribute("aria-label", `The job's states so far: ${words}`);
      say(caption, words);
      reveal(path.at(-1));
    },
  };
}

function placeOf(name) {
  // A state that is new in the table is drawn beside the known one it is shown as.
  const [x, y] = PLACES[STATES[name].shown_as];
  return name in PLACES ? [x, y] : [x + HALF.x, y + 2 * HALF.y];
}

function stateDrawn(name) {
  const [x, y] = placeOf(name);
  const box = { x: x - HALF.x, y: y - HALF.y, width: 2 * HALF.x, height: 2 * HALF.y, rx: 7 };
  return draw(
    "g",
    { class: "node" },
    draw("rect", box),
    draw("text", { x, y: y + 4.5, "text-anchor": "middle" }, name),
  );
}

function wayDrawn(way) {
  const [from, to] = way.split(">").map(placeOf);
  const bend = BENDS[way] ?? USUAL_BEND;
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
  const middle = [
    (from[0] + to[0]) / 2 + ((to[1] - from[1]) / length) * bend * 2,
    (from[1] + to[1]) / 2 - ((to[0] - from[0]) / length) * bend * 2,
  ];
  const [x1, y1] = edgeOf(from, middle, 1);
  const [x2, y2] = edgeOf(to, middle, 3);
  const curve = `M${x1} ${y1} Q${middle[0].toFixed(1)} ${middle[1].toFixed(1)} ${x2} ${y2}`;
  return draw("path", { class: "way", d: curve, "marker-end": "url(#way-head)", "data-way": way });
}

/** Where a line from a state's middle towards a point leaves its box. */
function edgeOf([x, y], [towardsX, towardsY], space) {
  const across = towardsX - x;
  const down = towardsY - y;
  const share = Math.min((HALF.x + space) / Math.abs(across || 0.001), (HALF.y + space) / Math.abs(down || 0.001));
  return [(x + across * share).toFixed(1), (y + down * share).toFixed(1)];
}

function head(id) {
  return draw(
    "marker",
    {
      id,
      class: id,
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerWidth: 7,
      markerHeight: 7,
      orient: "auto",
      markerUnits: "userSpaceOnUse",
    },
    draw("path", { d: "M0 0L8 4L0 8z" }),
  );
}
