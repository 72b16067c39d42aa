// The photos that a recipe was read from, to look from one to the other.

import { root } from "../core/api.js";
import { make } from "../core/dom.js";

/** A column with the photos of a job; null where there are none. */
export function recipePhotos(jobId, photos) {
  if (!photos?.length) return null;
  const items = photos.map(({ width, height }, place) => {
    const address = `${root}/recipes/jobs/${encodeURIComponent(jobId)}/photos/${place + 1}`;
    const words = photos.length > 1 ? `Photo ${place + 1} of ${photos.length}` : "The photo";
    return make(
      "a",
      { href: address, target: "_blank", rel: "noopener" },
      make("img", { src: address, width, height, loading: "lazy", alt: `${words} that this recipe was read from` }),
      make("span", { class: "visually-hidden" }, " (opens a new tab)"),
    );
  });
  return make("section", { class: "recipe-photos", "aria-label": "Photos" }, items);
}
