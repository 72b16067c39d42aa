// Photos of a recipe, sent to be read.

import { upload } from "../components/upload.js";
import { Problem } from "../core/api.js";
import { fill, find } from "../core/dom.js";
import { tell, warn } from "../core/notices.js";

const MOST = 8;

/** Make the form for photos work. */
export function photoForm() {
  const form = find("#add-photos");
  const field = find("#photo-files");
  const line = find("#photo-problem");

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const files = [...field.files];
    complain("");
    if (!files.length) return complain("Choose a photo first.");
    if (files.length > MOST) return complain(`These are ${files.length} photos: up to ${MOST} are read together.`);
    const button = find("button", form);
    button.disabled = true;
    form.setAttribute("aria-busy", "true");
    try {
      const data = new FormData();
      for (const file of files) data.append("images", file);
      await upload("/recipes/from-image/jobs", data);
      tell(files.length > 1 ? "The photos are being read." : "The photo is being read.");
      form.reset();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if ([413, 422].includes(problem.status)) complain(`${problem.message.replace(/^images: /, "")}.`);
      else warn(problem);
    } finally {
      button.disabled = false;
      form.removeAttribute("aria-busy");
    }
  });
  field.addEventListener("change", () => complain(""));

  function complain(text) {
    fill(line, text);
    line.hidden = !text;
    if (text) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
    if (text) field.focus();
  }
}
