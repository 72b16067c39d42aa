// What stands where there is nothing to show: not yet, not any, or not possible.

import { make } from "../core/dom.js";

export function loading(text = "Loading…") {
  return make("div", { class: "state", role: "status" }, make("p", { class: "hint" }, text));
}

export function empty(title, text, action = null) {
  return make("div", { class: "state" }, make("h2", {}, title), make("p", {}, text), action);
}

export function failed(problem, again) {
  return make(
    "div",
    { class: "state", role: "alert" },
    make("h2", {}, problem.code === "OFFLINE" ? "No connection" : "This could not be loaded"),
    make("p", {}, `${problem.message}.`),
    problem.code && make("p", { class: "hint" }, "Code: ", make("code", {}, problem.code)),
    again && make("button", { type: "button", on: { click: again } }, "Try again"),
  );
}
