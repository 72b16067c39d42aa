// Asking before something is done that cannot be taken back.

import { make } from "../core/dom.js";

/** Ask; the answer is null for no, and for yes an object with the reason that was given. */
export function ask({ title, text, confirm, danger = false, reason, extra = null }) {
  return new Promise((resolve) => {
    const why =
      reason && make("textarea", { id: "dialog-reason", rows: 2, maxlength: 2000, required: reason === "required" });
    const form = make(
      "form",
      { method: "dialog", class: "stack" },
      make("h2", { id: "dialog-title" }, title),
      make("p", { id: "dialog-text" }, text),
      extra,
      why && make("label", { for: "dialog-reason" }, reason === "required" ? "Why?" : "Why? (kept with the events)"),
      why,
      make(
        "div",
        { class: "row end" },
        make("button", { type: "button", class: "quiet", on: { click: () => dialog.close("no") } }, "Keep as it is"),
        make("button", { type: "submit", value: "yes", class: danger ? "danger" : "main-action" }, confirm),
      ),
    );
    const dialog = make("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" }, form);
    const before = document.activeElement;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (reason === "required" && !why.value.trim()) {
        why.value = "";
        why.reportValidity(); // blanks are no reason
        return;
      }
      dialog.close("yes");
    });
    dialog.addEventListener("close", () => {
      const answer = dialog.returnValue === "yes" ? { reason: why ? why.value.trim() || null : null } : null;
      dialog.remove();
      before?.focus?.();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    if (why) why.focus();
  });
}
