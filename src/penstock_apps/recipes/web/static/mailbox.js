// The mailbox page: what waits, what is saved, what is on its way, and one of them opened.

import { Problem, send } from "../core/api.js";
import { comingRecipes } from "./coming_recipes.js";
import { all, fill, find, say } from "../core/dom.js";
import { number } from "../core/format.js";
import { tell, warn } from "../core/notices.js";
import { photoForm } from "./photo_form.js";
import { editor } from "./recipe_editor.js";
import { savedRecipes } from "./saved_recipes.js";
import { waitingRecipes } from "./waiting_recipes.js";

const tabs = all("[role=tab]");
const lists = find("#lists");
let savedIsOld = true;
let shown = null;

const waiting = waitingRecipes({ open: (id) => go({ open: id }), onCount: counted });
const saved = savedRecipes({ open: (id) => go({ recipe: id }) });
const opened = editor({ close: leave, changed: listsAreOld });

function asked(search = location.search) {
  const query = new URLSearchParams(search);
  return { open: query.get("open"), recipe: query.get("recipe"), view: query.get("view") };
}

function address(place) {
  const query = new URLSearchParams(Object.entries(place).filter(([, value]) => value));
  return query.size ? `?${query}` : location.pathname;
}

/** Go somewhere on this page; Back leads back here. */
function go(place, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address(place));
  else history.pushState({ inside: true }, "", address(place));
  show();
}

function show() {
  const place = asked();
  const before = shown;
  shown = { ...place, search: location.search };
  const isOpen = Boolean(place.open || place.recipe);
  lists.hidden = isOpen;
  find("#editor").hidden = !isOpen;
  if (isOpen) {
    scrollTo(0, 0);
    if (place.open) opened.openJob(place.open);
    else opened.openRecipe(place.recipe);
    return;
  }
  opened.clear();
  selectTab(place.view === "saved" ? "saved" : "waiting");
  if (before?.open) (waiting.opener(before.open) ?? find("#mailbox-title")).focus();
  if (before?.recipe) (saved.opener(before.recipe) ?? find("#mailbox-title")).focus();
}

/** Close what is open: to where one came from, once nothing is lost by it. */
async function leave({ done = false } = {}) {
  const list = shown.recipe ? { view: "saved" } : {};
  if (done) {
    go(list, { replace: true });
  } else if (await opened.mayClose()) {
    opened.clear();
    if (history.state?.inside) history.back();
    else go(list);
  }
}

addEventListener("popstate", async () => {
  if (!opened.isChanged()) {
    show();
    return;
  }
  // The address has changed already: put it back while the question stands.
  history.pushState({ inside: true }, "", address({ open: shown.open, recipe: shown.recipe }));
  if (await opened.mayClose()) {
    opened.clear();
    history.back();
  }
});

function listsAreOld() {
  savedIsOld = true;
  waiting.load();
}

function counted(count, hasMore) {
  const chip = find("[data-count]");
  say(chip, `${number(count)}${hasMore ? "+" : ""}`);
  chip.hidden = !count;
}

function selectTab(name) {
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    find(`#${tab.getAttribute("aria-controls")}`).hidden = !chosen;
  }
  if (name === "saved" && savedIsOld) {
    savedIsOld = false;
    saved.load();
  }
}

for (const tab of tabs) {
  tab.addEventListener("click", () => go(tab.id === "tab-saved" ? { view: "saved" } : {}, { replace: true }));
  tab.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const other = tabs[(tabs.indexOf(tab) + 1) % tabs.length];
    other.focus();
    other.click();
  });
}

const form = find("#add");
const field = find("#add-url");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  addProblem("");
  if (!field.value.trim()) {
    addProblem("Paste the address of a page first.");
    return;
  }
  const button = find("button", form);
  button.disabled = true;
  if (await added(field.value.trim(), addProblem)) form.reset();
  button.disabled = false;
});
field.addEventListener("input", () => addProblem(""));

async function added(url, complain) {
  try {
    await send("POST", "/recipes/parse-url/async", { url });
    tell("The page is being read.");
    return true;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status === 422) complain(`${problem.message.replace(/^url: /, "")}.`);
    else warn(problem);
    return false;
  }
}

function addProblem(text) {
  const line = find("#add-problem");
  fill(line, text);
  line.hidden = !text;
  if (text) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
  if (text) field.focus();
}

photoForm();
show();
waiting.load();
comingRecipes({ ended: () => waiting.load(), retry: (url) => added(url, warn) });
