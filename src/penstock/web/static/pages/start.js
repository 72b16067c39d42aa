// The forms that start jobs. What they ask for and where they send it is in the page; a route of the server said so.

import { get, root, send } from "../core/api.js";
import { all, fill, make, find, say } from "../core/dom.js";
import { percent, plural } from "../core/format.js";
import { readyToMap } from "./jobs_columns.js";
import { readyToDrop, showChosen } from "./jobs_files.js";
import { tell, warn } from "../core/notices.js";
import { upload } from "../components/upload.js";

/** Make one form work. */
export function readyToStart(form) {
  // Each request of an attempt has its key: sent again, by a second click or after a lost answer, it is the same job.
  let attempt = null;
  let sending = null;

  form.addEventListener("input", () => (attempt = null));
  form.addEventListener("change", () => (attempt = null));
  all("[data-drop]", form).forEach(readyToDrop);
  all("[data-columns]", form).forEach(readyToMap);
  find("[data-stop]", form).addEventListener("click", () => sending?.abort());
  form.closest("details").addEventListener("toggle", (event) => {
    if (event.target.open) all("[data-choices]", form).forEach(loadChoices);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (sending) return;
    attempt ??= { keys: [newKey(), newKey()], first: null };
    sending = new AbortController();
    showProblem(form, null);
    showSending(form, true);
    try {
      lead(form, await startJob(form, attempt, sending.signal));
      attempt = null;
    } catch (problem) {
      if (problem.name === "AbortError") tell("The upload was stopped.");
      else showProblem(form, problem);
    } finally {
      sending = null;
      showSending(form, false);
    }
  });
}

/** Post the form and, where there is a second address, what starts the thing that was made. */
async function startJob(form, attempt, signal) {
  const { address, then, answer } = form.dataset;
  const values = valuesOf(form);
  const [headers, headersThen] = attempt.keys.map((key) => ({ "Idempotency-Key": key }));
  // Made already by this attempt, and only not started: not made a second time.
  if (!attempt.first) {
    const { path, rest } = fillAddress(address, values);
    const options = { headers, signal, progress: (sentBytes, total) => showSent(form, sentBytes, total) };
    attempt.first = form.dataset.files
      ? await upload(path, formDataOf(rest), options)
      : await send("POST", path, Object.keys(rest).length ? rest : undefined, { headers, signal });
  }
  const { first } = attempt;
  if (!then) return first;
  try {
    return await send("POST", fillAddress(then, first).path, undefined, { headers: headersThen, signal });
  } catch (problem) {
    // It was started the last time, and only the answer was lost.
    if (problem.status === 409 && first[answer]) return first;
    throw problem;
  }
}

function lead(form, answer) {
  const name = form.dataset.answer;
  const several = answer[`${name}s`];
  if (Array.isArray(several) && several.length > 1) {
    tell(`${plural(several.length, "job was", "jobs were")} startJob`);
    clear(form);
  } else {
    location.assign(`${root}/ui/jobs/${encodeURIComponent(answer[name])}`);
  }
}

function clear(form) {
  form.reset();
  all("[type=file]", form).forEach(showChosen);
}

/** What was filled in, by name: a text, a list of lines, or a list of files. */
function valuesOf(form) {
  const values = {};
  for (const field of fieldsOf(form)) {
    if (field.type === "file") values[field.name] = [...field.files];
    else if (field.dataset.lines) values[field.name] = linesOf(field.value);
    else if (field.value.trim()) values[field.name] = field.value.trim();
  }
  return values;
}

/** What has no name is a part of a field, and is not sent by itself. */
function fieldsOf(form) {
  return all("input, select, textarea", form).filter((field) => field.name);
}

function linesOf(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** An address with its places filled, and the values that none of them took. */
function fillAddress(address, values) {
  const rest = { ...values };
  const path = address.replace(/\{(\w+)\}/g, (_, name) => {
    delete rest[name];
    return encodeURIComponent(values[name] ?? "");
  });
  return { path, rest };
}

function formDataOf(values) {
  const data = new FormData();
  for (const [name, value] of Object.entries(values)) {
    for (const each of [value].flat()) data.append(name, each);
  }
  return data;
}

async function loadChoices(select) {
  const selected = select.value;
  try {
    const choices = await get(select.dataset.choices);
    const first = new Option(choices.length ? "Choose one" : "There is none yet", "");
    fill(
      select,
      first,
      choices.map((each) => new Option(each.name, each.id)),
    );
    select.value = choices.some((each) => each.id === selected) ? selected : "";
  } catch (problem) {
    fill(select, new Option("Not loaded; close and open this to try again", ""));
    warn(problem);
  }
}

function showSending(form, on) {
  find("[data-send]", form).disabled = on;
  form.setAttribute("aria-busy", String(on));
  if (form.dataset.files) {
    find("[data-sending]", form).hidden = !on;
    if (on) showSent(form, 0, 1);
  }
}

function showSent(form, sentBytes, total) {
  find("[data-sending] progress", form).value = total ? sentBytes / total : 0;
  const share = percent(Math.floor((sentBytes / total) * 100) / 100);
  say(find("[data-sent]", form), sentBytes < total ? share : `${share} – the server looks at it…`);
}

/** At the field at fault, where there is one on the form; above the form otherwise. */
function showProblem(form, problem) {
  const fields = fieldsOf(form);
  const at = problem?.field ? fields.find((field) => problem.field.split(".").includes(field.name)) : null;
  for (const field of fields) {
    const line = document.getElementById(`${field.id}-problem`);
    line.hidden = field !== at;
    if (field === at) {
      field.setAttribute("aria-invalid", "true");
      fill(line, sentence(problem));
    } else {
      field.removeAttribute("aria-invalid");
    }
  }
  const above = find("[data-problem]", form);
  above.hidden = !problem || Boolean(at);
  if (!above.hidden) fill(above, make("span", {}, "Something went wrong: ", sentence(problem)));
  at?.focus();
  if (problem && problem.name !== "Problem") console.error(problem);
}

function sentence(problem) {
  const text = problem.message.endsWith(".") ? problem.message : `${problem.message}.`;
  return [text[0].toUpperCase() + text.slice(1)];
}

// randomUUID is there only where the page came over TLS, or from this machine.
function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
