// A catalog's name and folders, in a dialog that stays open until they are saved.

import { fill, make } from "../core/dom.js";

/** Ask for a name and folders; the answer is what `save` made of them, or null. */
export function editCatalog({ title, catalog, confirm, save }) {
  return new Promise((resolve) => {
    const name = make("input", { id: "catalog-name", name: "name", type: "text", maxlength: 255, required: true, autocomplete: "off", value: catalog.name, "aria-describedby": "name-problem" });
    const folders = make("textarea", { id: "catalog-folders", name: "source_directories", rows: 4, required: true, spellcheck: "false", "aria-describedby": "folders-hint source_directories-problem" });
    folders.value = catalog.source_directories.join("\n");
    const general = make("p", { class: "notice bad", role: "alert", hidden: true });
    const submit = make("button", { type: "submit", class: "main-action" }, confirm);
    const form = make(
      "form",
      { class: "stack" },
      make("h2", { id: "catalog-dialog-title" }, title),
      general,
      field("Name", name),
      field("Folders", folders, make("p", { class: "hint", id: "folders-hint" }, "Whole paths on the server, one on each line, below the folders that PENSTOCK_CATALOG_ROOTS names.")),
      make(
        "div",
        { class: "row end" },
        make("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Keep as it is"),
        submit,
      ),
    );
    const dialog = make("dialog", { "aria-labelledby": "catalog-dialog-title" }, form);
    const before = document.activeElement;
    let saved = null;

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      submit.disabled = true;
      showProblem(null);
      try {
        saved = await save({ name: name.value.trim(), source_directories: lines(folders.value) });
        dialog.close();
      } catch (problem) {
        showProblem(problem);
      } finally {
        submit.disabled = false;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      before?.focus?.();
      resolve(saved);
    });

    function showProblem(problem) {
      const at = [name, folders].find((input) => problem?.field?.split(".").includes(input.name));
      for (const input of [name, folders]) {
        const line = form.querySelector(`#${input.name}-problem`);
        line.hidden = input !== at;
        fill(line, input === at ? `${problem.message}.` : "");
        if (input === at) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
      general.hidden = !problem || Boolean(at);
      fill(general, general.hidden ? "" : `${problem.message}.`);
      at?.focus();
    }

    document.body.append(dialog);
    dialog.showModal();
    name.focus();
  });
}

function field(label, input, hint = null) {
  return make(
    "div",
    { class: "field" },
    make("label", { for: input.id }, label),
    input,
    hint,
    make("p", { class: "field-problem", id: `${input.name}-problem`, role: "alert", hidden: true }),
  );
}

function lines(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}
