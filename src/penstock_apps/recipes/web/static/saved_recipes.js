// The recipes somebody keeps: a page at a time, to be opened or removed.

import { page, Problem, send, withQuery } from "../core/api.js";
import { ask } from "../components/dialogs.js";
import { fill, make, find } from "../core/dom.js";
import { plural, when } from "../core/format.js";
import { tell, warn } from "../core/notices.js";
import { hostOf, webAddress } from "./recipe_values.js";
import { empty, failed, loading } from "../components/placeholders.js";

const PAGE = 24;

/** The list of what is saved; `open` is given a recipe's id. */
export function savedRecipes({ open }) {
  const place = find("#saved");
  let turn = 0;

  async function load() {
    const mine = ++turn;
    if (!place.firstChild) fill(place, loading("Looking for your recipes…"));
    try {
      const { body, next } = await page(withQuery("/recipes", { limit: PAGE }));
      if (mine === turn) show(body, next);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (mine === turn) fill(place, failed(problem, load));
    }
  }

  function show(recipes, next) {
    if (!recipes.length) {
      fill(place, empty("No saved recipes yet", "What you save from the mailbox is kept here."));
      return;
    }
    const list = make("ul", { class: "cards" }, recipes.map(card));
    fill(place, list, more(list, next));
  }

  function more(list, next) {
    if (!next) return null;
    const button = make("button", { type: "button", class: "more" }, "More recipes");
    button.addEventListener("click", async () => {
      const mine = turn;
      button.disabled = true;
      try {
        const answer = await page(next);
        if (mine !== turn) return;
        const cards = answer.body.map(card);
        list.append(...cards);
        const behind = more(list, answer.next);
        if (behind) button.replaceWith(behind);
        else button.remove();
        cards[0]?.querySelector("a.button")?.focus();
      } catch (problem) {
        button.disabled = false;
        warn(problem);
      }
    });
    return button;
  }

  function card(recipe) {
    const name = `saved-${recipe.id}`;
    const address = recipe.source_url && webAddress(recipe.source_url);
    const item = make(
      "li",
      { class: "card recipe-card", dataset: { recipe: recipe.id } },
      make("h2", { id: name, class: "recipe-title" }, recipe.title),
      address &&
        make(
          "p",
          { class: "recipe-source" },
          make(
            "a",
            { href: address, rel: "noopener noreferrer", target: "_blank" },
            hostOf(address),
            make("span", { class: "visually-hidden" }, " (opens a new tab)"),
          ),
        ),
      make(
        "p",
        { class: "hint" },
        `${plural(recipe.ingredients.length, "ingredient", "ingredients")}, ${plural(recipe.steps.length, "step", "steps")} · saved `,
        when(recipe.created_at),
      ),
      recipe.tags.length > 0 &&
        make(
          "p",
          { class: "row tags" },
          recipe.tags.map(({ name: tag }) => make("span", { class: "chip tag" }, tag)),
        ),
      make(
        "div",
        { class: "row" },
        make(
          "a",
          {
            class: "button",
            href: `?recipe=${recipe.id}`,
            "aria-describedby": name,
            on: { click: (event) => follow(event, recipe.id) },
          },
          "Open",
        ),
        make(
          "button",
          { type: "button", class: "quiet", "aria-describedby": name, on: { click: () => remove(recipe) } },
          "Remove",
        ),
      ),
    );
    return item;
  }

  function follow(event, id) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(id);
  }

  async function remove(recipe) {
    const answer = await ask({
      title: `Remove “${recipe.title}”?`,
      text: "The recipe is gone for good. The job it came from stays in the history.",
      confirm: "Remove it",
      danger: true,
    });
    if (!answer) return;
    try {
      await send("DELETE", `/recipes/${recipe.id}`);
      tell(`“${recipe.title}” is removed.`);
    } catch (problem) {
      warn(problem.status === 404 ? `“${recipe.title}” was removed already.` : problem);
    }
    await load();
    (place.querySelector("a.button") ?? find("#tab-saved")).focus();
  }

  return { load, opener: (id) => place.querySelector(`[data-recipe="${CSS.escape(id)}"] a.button`) };
}
