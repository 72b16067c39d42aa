// The catalogs: what is known of each, what can be done to it, and what its last scan asks.

import { get, Problem, root, send, withQuery } from "../core/api.js";
import { ask } from "../components/dialogs.js";
import { fill, find, make } from "../core/dom.js";
import { number, plural, when } from "../core/format.js";
import { tell, warn } from "../core/notices.js";
import { empty, failed, loading } from "../components/placeholders.js";
import { editCatalog } from "./catalog_form.js";

const PAGE = 100;
const WORKS = [
  ["scan", "Scan"],
  ["thumbnails", "Make thumbnails"],
  ["detect-duplicates", "Find copies"],
  ["tag", "Tag photos"],
];

const place = find("#catalogs");
let turn = 0;

async function load() {
  const mine = ++turn;
  if (!place.firstChild) fill(place, loading("Looking for your catalogs…"));
  try {
    const catalogs = await get(withQuery("/api/catalogs", { limit: PAGE }));
    if (mine !== turn) return;
    if (catalogs.length) fill(place, list(catalogs), more(catalogs));
    else fill(place, empty("No catalogs yet", "A catalog is a name for some folders of photos."));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (mine === turn) fill(place, failed(problem, load));
  }
}

function list(catalogs) {
  return make("ul", { class: "catalogs" }, catalogs.map(card));
}

function more(catalogs) {
  if (catalogs.length < PAGE) return null;
  const button = make("button", { type: "button" }, "More catalogs");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const following = await get(withQuery("/api/catalogs", { limit: PAGE, after: catalogs.at(-1).id }));
      const cards = following.map(card);
      find("ul", place).append(...cards);
      button.replaceWith(...[more(following)].filter(Boolean));
      cards[0]?.querySelector("button")?.focus();
    } catch (problem) {
      button.disabled = false;
      warn(problem);
    }
  });
  return button;
}

function card(catalog) {
  const title = `catalog-${catalog.id}`;
  const button = (text, act, look = "") =>
    make("button", { type: "button", class: look, "aria-describedby": title, on: { click: act } }, text);
  return make(
    "li",
    { class: "card catalog", dataset: { catalog: catalog.id } },
    make("h2", { id: title, class: "any" }, catalog.name),
    make("ul", { class: "folders", "aria-label": "Folders" }, catalog.source_directories.map((folder) => make("li", { class: "any" }, folder))),
    lastScan(catalog),
    question(catalog, button),
    make(
      "div",
      { class: "row" },
      WORKS.map(([action, text]) => button(text, () => start(catalog, action))),
      button("Change", () => change(catalog), "quiet"),
      button("Delete", () => remove(catalog), "danger"),
    ),
  );
}

function lastScan(catalog) {
  const scan = catalog.last_scan;
  if (!scan) return make("p", { class: "hint" }, "Not scanned yet, or not since its folders changed.");
  return make(
    "p",
    { class: "hint any" },
    plural(scan.photos, "photo", "photos"),
    scan.unreadable > 0 && [", ", jobLink(`${scan.job_id}#errors`, `${number(scan.unreadable)} could not be read`)],
    scan.out_of_sight > 0 && `, ${number(scan.out_of_sight)} in folders that could not be read: ${scan.unreadable_folders.join(", ")}`,
    " · ",
    jobLink(scan.job_id, "scanned"),
    " ",
    when(scan.ended_at),
  );
}

/** What the last scan wants to know before it forgets photos. */
function question(catalog, button) {
  const missing = catalog.last_scan?.missing;
  if (!missing) return null;
  const many = plural(missing, "photo is", "photos are");
  return make(
    "div",
    { class: "notice question", role: "group", "aria-label": "A question" },
    make(
      "p",
      {},
      make("strong", {}, `${many} not there any more, and nothing was forgotten. Is a disk missing?`),
      " If so, bring it back and scan again. If they were deleted or moved, let the catalog forget them.",
    ),
    make("div", { class: "row" }, button(`Forget ${plural(missing, "photo", "photos")}`, () => forget(catalog, missing), "danger")),
  );
}

async function start(catalog, action, body) {
  try {
    const job = await send("POST", `/api/catalogs/${catalog.id}/${action}`, body);
    location.assign(`${root}/ui/jobs/${encodeURIComponent(job.job_id)}`);
  } catch (problem) {
    warn(problem);
    if (problem.status === 404) await load();
  }
}

async function forget(catalog, missing) {
  const answer = await ask({
    title: `Forget ${plural(missing, "photo", "photos")} of “${catalog.name}”?`,
    text: "The catalog is scanned once more, and forgets the photos that are still not there, with their tags. Files are not touched.",
    confirm: "Scan and forget them",
    danger: true,
  });
  if (answer) await start(catalog, "scan", { max_removed: missing });
}

async function change(catalog) {
  const changed = await editCatalog({
    title: `Change “${catalog.name}”`,
    catalog,
    confirm: "Change it",
    save: (body) => send("PATCH", `/api/catalogs/${catalog.id}`, body),
  });
  if (!changed) return;
  tell(`“${changed.name}” is changed.`);
  await load();
  place.querySelector(`[data-catalog="${CSS.escape(catalog.id)}"] button`)?.focus();
}

async function remove(catalog) {
  const answer = await ask({
    title: `Delete “${catalog.name}”?`,
    text: "What is known of its photos is forgotten: tags, copies, the last scan. Jobs that work on it are canceled. The photos themselves stay where they are.",
    confirm: "Delete it",
    danger: true,
  });
  if (!answer) return;
  try {
    await send("DELETE", `/api/catalogs/${catalog.id}`);
    tell(`“${catalog.name}” is deleted.`);
  } catch (problem) {
    warn(problem.status === 404 ? `“${catalog.name}” was deleted already.` : problem);
  }
  await load();
  find("#catalogs-title").focus();
}

function jobLink(place, text) {
  return make("a", { href: `${root}/ui/jobs/${place}` }, text);
}

find("#new").addEventListener("click", async () => {
  const made = await editCatalog({
    title: "New catalog",
    catalog: { name: "", source_directories: [] },
    confirm: "Make it and scan it",
    save: (body) => send("POST", "/api/catalogs", body),
  });
  if (made) await start(made, "scan");
});

// The same page is shown again when somebody comes back from a job: a scan may have ended meanwhile.
addEventListener("pageshow", (event) => event.persisted && load());
load();
