// One recipe, opened: from the mailbox, to be saved for the first time, or a saved one, to be changed.

import { get, Problem, root, send } from "../core/api.js";
import { ask } from "../components/dialogs.js";
import { fill, make, find } from "../core/dom.js";
import { tell } from "../core/notices.js";
import { recipeForm } from "./recipe_form.js";
import { recipePhotos } from "./recipe_photos.js";
import { empty, failed, loading } from "../components/placeholders.js";

const NOT_HERE = {
  PENDING: ["Not there yet", "It waits to be read. It comes to the mailbox by itself."],
  RUNNING: ["Not there yet", "It is being read. It comes to the mailbox by itself."],
  ERROR: ["This could not be read", null],
  CANCELED: ["This was cancelled", "It was not read to its end."],
  COMMITTED: ["Saved already", "You saved this recipe, perhaps in another window. It is among your saved recipes."],
  ABANDONED: [
    "No longer in the mailbox",
    "It was dismissed, or nobody saved it in time. Add its page or its photos again to read it anew.",
  ],
};
const MEANWHILE =
  "It was saved or dismissed meanwhile, perhaps in another window, or its time was over. Nothing has been saved now.";

/** Where recipes are opened; `close` leads back to the list, `changed` says that the lists are old. */
export function editor({ close, changed }) {
  const place = find("#editor");
  let form = null;
  let turn = 0;

  const isChanged = () => form !== null && form.isChanged();
  addEventListener("beforeunload", (event) => {
    if (isChanged()) event.preventDefault();
  });

  /** May what is open be closed? Asks when something would be lost. */
  async function mayClose() {
    if (!isChanged()) return true;
    const answer = await ask({
      title: "Leave without saving?",
      text: "You have changed this recipe. What you changed is lost if you leave now.",
      confirm: "Leave without saving",
      danger: true,
    });
    return answer !== null;
  }

  async function openJob(id) {
    await opened(`/recipes/parse-url/status/${encodeURIComponent(id)}`, (job) => {
      const recipe = job.result?.recipe;
      if (job.status !== "COMPLETE" || !recipe) return notHere(job);
      const warnings = job.result.warnings ?? [];
      return edited(recipe, {
        label: "Save the recipe",
        warnings,
        jobId: id,
        photos: job.result.photos,
        save: (values, withJob) => send("POST", "/recipes", withJob ? { ...values, parse_job_id: id } : values),
      });
    });
  }

  async function openRecipe(id) {
    const path = `/recipes/${encodeURIComponent(id)}`;
    const show = (recipe, photos) =>
      edited(recipe, {
        label: "Save the changes",
        warnings: [],
        jobId: recipe.parse_job_id,
        photos,
        save: () => send("PATCH", path, form.changes()),
      });
    await opened(path, show, photosOf);
  }

  async function opened(path, show, moreOf = async () => null) {
    const mine = ++turn;
    form = null;
    fill(place, head("Recipe"), loading("Opening the recipe…"));
    find("#editor-title").focus();
    try {
      const found = await get(path);
      const more = await moreOf(found);
      if (mine === turn) fill(place, show(found, more));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      const gone = [404, 422].includes(problem.status);
      const state = gone
        ? empty(
            "There is no such recipe",
            "It may have been removed, or it is somebody else's.",
            back("To the mailbox"),
          )
        : failed(problem, () => opened(path, show, moreOf));
      if (mine === turn) fill(place, head("Recipe"), state);
      return;
    }
    find("#editor-title").focus();
  }

  /** The photos of a saved recipe, as long as its job has them. */
  async function photosOf({ source_type: source, parse_job_id: jobId }) {
    if (source !== "image" || !jobId) return [];
    try {
      return (await get(`/recipes/jobs/${encodeURIComponent(jobId)}`)).result?.photos;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      return [];
    }
  }

  function edited(recipe, { label, warnings, jobId, photos, save }) {
    let withJob = true;
    form = recipeForm(recipe, { saveLabel: label, onSave: () => saved(), onLeave: close });
    const mine = form;

    async function saved() {
      mine.busy(true);
      mine.hideGeneral();
      try {
        const kept = await save(mine.values(), withJob);
        if (form === mine) form = null;
        tell([`“${kept.title}” is saved. `, kept.parse_job_id && jobLink(kept.parse_job_id)]);
        changed();
        close({ done: true });
      } catch (problem) {
        mine.busy(false);
        if (!(problem instanceof Problem)) throw problem;
        if ([404, 409].includes(problem.status)) conflict();
        else if (problem.status !== 422 || !mine.showProblem(problem)) mine.showGeneral(...said(problem));
      }
    }

    function conflict() {
      changed();
      const again = () => {
        withJob = false;
        saved();
      };
      mine.showGeneral(
        make("p", {}, make("strong", {}, "This recipe is no longer here. "), MEANWHILE),
        jobId && withJob
          ? make("button", { type: "button", on: { click: again } }, "Save it as a new recipe")
          : make("p", {}, "Copy what you want to keep, and close it."),
      );
    }

    const pictures = recipePhotos(jobId, photos);
    place.classList.toggle("with-photos", pictures !== null);
    return [
      head(recipe.title || "Recipe without a title", jobId && jobLink(jobId)),
      warnings.length > 0 && warningBox(warnings),
      pictures === null ? mine.element : make("div", { class: "beside-photos" }, pictures, mine.element),
    ];
  }

  function head(title, extra = null) {
    return make(
      "div",
      { class: "editor-head" },
      back("← Mailbox", "quiet"),
      make("h1", { id: "editor-title", tabindex: "-1" }, title),
      extra && make("p", { class: "hint" }, extra),
    );
  }

  function notHere(job) {
    const [title, text] = NOT_HERE[job.status] ?? ["No longer here", null];
    const words = text ?? [job.error_message ?? "Its job says no more.", job.error_code].filter(Boolean).join(" – ");
    changed();
    return [
      head("Recipe"),
      empty(title, words, make("p", { class: "row centred" }, back("To the mailbox"), jobLink(job.id))),
    ];
  }

  function back(text, kind = "") {
    return make("button", { type: "button", class: `back ${kind}`, on: { click: () => close() } }, text);
  }

  function clear() {
    turn += 1;
    form = null;
    fill(place);
  }

  return { openJob, openRecipe, mayClose, isChanged, clear };
}

export function jobLink(id) {
  return make("a", { href: `${root}/ui/jobs/${encodeURIComponent(id)}` }, "See its job");
}

export function warningBox(warnings) {
  return make(
    "div",
    { class: "warnings" },
    make("p", {}, make("strong", {}, "Please check")),
    make(
      "ul",
      {},
      warnings.map((text) => make("li", {}, text)),
    ),
  );
}

function said(problem) {
  const again = problem.retryAfter ? ` Try again in ${problem.retryAfter} s.` : "";
  return [make("p", {}, `That did not work: ${problem.message}.${again} `, make("code", {}, problem.code))];
}
