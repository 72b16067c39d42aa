// The steps of a recipe as a list that can be added to, shortened and put in another order, with the keyboard alone.

import { all, fill, make, find } from "../core/dom.js";

const LONGEST = 10_000;

/** The list; `changed` is called whenever it may say something else. */
export function stepList(steps, changed) {
  const list = make("ol", { class: "steps" });
  const element = make(
    "fieldset",
    { class: "field steps-field" },
    make("legend", {}, "Steps"),
    list,
    make("p", { class: "field-problem", role: "alert", hidden: true, dataset: { problemOf: "steps" } }),
    make("button", { type: "button", on: { click: () => added(null) } }, "Add a step"),
  );

  function row(text) {
    const item = make("li");
    const area = make("textarea", { rows: 2, maxlength: LONGEST, on: { input: changed } });
    area.value = text;
    const act = (word, listener) =>
      make("button", { type: "button", class: "quiet", dataset: { word }, on: { click: listener } }, word);
    return fill(
      item,
      area,
      make(
        "div",
        { class: "row step-actions" },
        act("Up", () => move(item, -1)),
        act("Down", () => move(item, 1)),
        act("Remove", () => removed(item)),
      ),
    );
  }

  function added(after) {
    const item = row("");
    if (after) after.after(item);
    else list.append(item);
    numbered();
    changed();
    find("textarea", item).focus();
  }

  function removed(item) {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    numbered();
    changed();
    (next ? find("textarea", next) : find(":scope > button", element)).focus();
  }

  function move(item, by) {
    const pressed = document.activeElement;
    if (by < 0) item.previousElementSibling?.before(item);
    else item.nextElementSibling?.after(item);
    numbered();
    changed();
    if (pressed.disabled) find("textarea", item).focus();
    else pressed.focus();
  }

  function numbered() {
    const items = [...list.children];
    items.forEach((item, index) => {
      find("textarea", item).setAttribute("aria-label", `Step ${index + 1}`);
      find("[data-word=Up]", item).disabled = index === 0;
      find("[data-word=Down]", item).disabled = index === items.length - 1;
      for (const button of all("button", item)) {
        const { word } = button.dataset;
        button.setAttribute(
          "aria-label",
          word === "Remove" ? `Remove step ${index + 1}` : `${word}: step ${index + 1}`,
        );
      }
    });
  }

  fill(list, ...(steps.length ? steps : [""]).map(row));
  numbered();
  return {
    element,
    values: () =>
      all("textarea", list)
        .map((area) => area.value.trim())
        .filter(Boolean),
    /** The text that the step at a place of the values came from. */
    area: (place) => all("textarea", list).filter((area) => area.value.trim())[place] ?? null,
  };
}
