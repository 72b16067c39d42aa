// A recipe to be edited: its fields, what they say, and what is wrong with them.

import { make, find } from "../core/dom.js";
import { stepList } from "./recipe_steps.js";
import {
  ingredientsOf,
  linesOf,
  nameOf,
  sectionedLines,
  sectionedSteps,
  stepsOf,
  tagsOf,
  webAddress,
} from "./recipe_values.js";

const NUMBERS = [
  ["servings", "Servings"],
  ["prep_time_minutes", "Preparing (min)"],
  ["cook_time_minutes", "Cooking (min)"],
  ["total_time_minutes", "Total (min)"],
];

/** The form of a recipe as the API knows it. */
export function recipeForm(recipe, { saveLabel, onSave, onLeave }) {
  const before = recipe.ingredients ?? [];
  const fields = new Map();

  function field(name, label, control, hint = null) {
    const id = `recipe-${name}`;
    control.id = id;
    control.name = name;
    control.setAttribute("aria-describedby", hint ? `${id}-hint ${id}-problem` : `${id}-problem`);
    control.addEventListener("input", () => clear(name));
    fields.set(name, control);
    return make(
      "div",
      { class: `field field-${name}` },
      make("label", { for: id }, label),
      hint && make("p", { class: "hint", id: `${id}-hint` }, hint),
      control,
      make("p", {
        class: "field-problem",
        id: `${id}-problem`,
        role: "alert",
        hidden: true,
        dataset: { problemOf: name },
      }),
    );
  }

  function line(name, label, attributes = {}, hint = null) {
    const control = make("input", { type: "text", autocomplete: "off", ...attributes });
    control.value = recipe[name] ?? "";
    return field(name, label, control, hint);
  }

  function text(name, label, value, rows, hint = null) {
    const control = make("textarea", { rows });
    control.value = value;
    return field(name, label, control, hint);
  }

  function address(name, label) {
    const control = make("input", { type: "text", inputmode: "url", autocomplete: "off", maxlength: 2048 });
    control.value = recipe[name] ?? "";
    const link = make("a", { class: "button", rel: "noopener noreferrer", target: "_blank" }, "Visit");
    const shown = () => {
      const href = webAddress(control.value);
      link.hidden = href === null;
      if (href) link.href = href;
      link.setAttribute("aria-label", `Visit ${control.value} (opens a new tab)`);
    };
    control.addEventListener("input", shown);
    shown();
    const whole = field(name, label, control);
    const row = make("div", { class: "row address" });
    control.replaceWith(row);
    row.append(control, link);
    return whole;
  }

  const stepsBefore = sectionedSteps(recipe);
  const steps = stepList(
    stepsBefore.map((step) => step.text),
    () => clear("steps"),
  );
  const general = make("div", { class: "form-problem", role: "alert", hidden: true });
  const saveButton = make("button", { class: "main-action" }, saveLabel);
  const form = make(
    "form",
    { class: "card recipe-form", novalidate: true, "aria-labelledby": "editor-title", on: { submit: submitted } },
    line("title", "Title", { required: true, maxlength: 500 }),
    text("description", "Description", recipe.description ?? "", 3),
    make(
      "div",
      { class: "numbers" },
      NUMBERS.map(([name, label]) => line(name, label, { inputmode: "numeric", maxlength: 12 })),
      line("yields", "Makes", { maxlength: 500 }),
    ),
    text(
      "ingredients",
      "Ingredients",
      sectionedLines(before).join("\n"),
      Math.min(Math.max(before.length + 1, 4), 16),
      "One on each line. A line that ends with a colon begins a section.",
    ),
    steps.element,
    line("tags", "Tags", {}, "Separated by commas."),
    text("notes", "Notes", [recipe.notes ?? ""].flat().join("\n"), 3),
    line("author", "Author", { maxlength: 500 }),
    address("source_url", "Address of the page"),
    address("image_url", "Address of a picture"),
    general,
    make(
      "div",
      { class: "row form-actions" },
      saveButton,
      make("button", { type: "button", on: { click: onLeave } }, "Close"),
    ),
  );
  fields.get("tags").value = (recipe.tags ?? []).map(nameOf).join(", ");

  function submitted(event) {
    event.preventDefault();
    if (!saveButton.disabled && checked()) onSave();
  }

  function checked() {
    clearAll();
    for (const [name, label] of NUMBERS) {
      if (!/^\d*$/.test(fields.get(name).value.trim()))
        showAt(name, `${label.replace(/ \(.*/, "")}: a whole number, please.`);
    }
    if (!fields.get("title").value.trim()) showAt("title", "A recipe needs a title.");
    const first = [...fields.values()].find((control) => control.getAttribute("aria-invalid"));
    first?.focus();
    return !first;
  }

  function values() {
    const said = (name) => fields.get(name).value.trim() || null;
    return {
      title: said("title"),
      description: said("description"),
      ingredients: ingredientsOf(linesOf(fields.get("ingredients").value), before),
      steps: stepsOf(steps.values(), stepsBefore),
      ...Object.fromEntries(NUMBERS.map(([name]) => [name, said(name) && Number(said(name))])),
      yields: said("yields"),
      tags: tagsOf(fields.get("tags").value),
      notes: said("notes"),
      author: said("author"),
      source_url: said("source_url"),
      image_url: said("image_url"),
    };
  }

  function problemLine(name) {
    return form.querySelector(`[data-problem-of="${name}"]`);
  }

  function clear(name) {
    const line = problemLine(name);
    if (line) line.hidden = true;
    fields.get(name)?.removeAttribute("aria-invalid");
  }

  function clearAll() {
    for (const name of [...fields.keys(), "steps"]) clear(name);
    general.hidden = true;
  }

  function showAt(name, text) {
    const line = problemLine(name);
    line.textContent = text;
    line.hidden = false;
    fields.get(name)?.setAttribute("aria-invalid", "true");
  }

  /** Say at its field what the server found wrong; false where the problem is not of a field. */
  function showProblem(problem) {
    const [name, place] = (problem.field ?? "").split(".");
    if (!name || !problemLine(name)) return false;
    const words = problem.message.startsWith(`${problem.field}: `)
      ? problem.message.slice(problem.field.length + 2)
      : problem.message;
    const where =
      place === undefined ? "" : name === "steps" ? `Step ${Number(place) + 1}: ` : `Number ${Number(place) + 1}: `;
    showAt(name, `${where}${words}.`);
    (name === "steps" ? steps.area(Number(place)) : fields.get(name))?.focus();
    return true;
  }

  const original = values();
  const isOther = (name, value) => JSON.stringify(value) !== JSON.stringify(original[name]);
  return {
    element: form,
    values,
    isChanged: () => Object.entries(values()).some(([name, value]) => isOther(name, value)),
    /** What was changed, and nothing else: another window may have changed the rest. */
    changes: () => Object.fromEntries(Object.entries(values()).filter(([name, value]) => isOther(name, value))),
    showProblem,
    /** Say what is wrong with all of it. */
    showGeneral(...children) {
      general.replaceChildren(...children);
      general.hidden = false;
      general.scrollIntoView({ block: "nearest" });
    },
    hideGeneral: () => (general.hidden = true),
    busy(is) {
      saveButton.disabled = is;
      saveButton.textContent = is ? "Saving…" : saveLabel;
    },
    focus: () => find("input", form).focus(),
  };
}
