// Saving a job's grid as a file.
//
// A form would let the browser write the file as it comes, but an answer that is a problem (too many exports at once,
// the database is away) would take the page's place. So files of usual size are fetched, and saved from memory when
// they are whole: every problem is then a notice. Those of big jobs go through a form into a tab of their own, which
// browsers close again once the download has begun; there, too, the page stays.

import { OFFLINE, Problem, problemOf, root } from "../core/api.js";
import { make } from "../core/dom.js";

const MAX_HELD = 50_000;

/** Save the items of a job; resolves when the file is there, or on its way. */
export async function saveExport(job, format) {
  const address = `${root}/api/jobs/${job.job_id}/export?format=${format}`;
  if (job.total_items > MAX_HELD) return submitForm(address);
  let answer, file;
  try {
    answer = await fetch(address, { method: "POST", credentials: "same-origin" });
    file = await answer.blob();
  } catch {
    throw new Problem(OFFLINE);
  }
  if (!answer.ok) throw problemOf(answer.status, await file.text(), answer.headers.get("Retry-After"));
  return saveFile(file, `job-${job.job_id}.${format}`);
}

function saveFile(file, name) {
  const address = URL.createObjectURL(file);
  const link = make("a", { href: address, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function submitForm(address) {
  const form = make("form", { method: "post", action: address, target: "_blank", hidden: true });
  document.body.append(form);
  form.submit();
  form.remove();
}
