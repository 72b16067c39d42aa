// Sending files, with how far it is: fetch() does not say that, XMLHttpRequest does.

import { OFFLINE, Problem, problemOf, root } from "../core/api.js";

/** Post a form; `progress` is told of the bytes that are on their way. */
export function upload(path, form, { progress, signal, headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", root + path);
    request.setRequestHeader("Accept", "application/json");
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) progress?.(event.loaded, event.total);
    });
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) {
        resolve(request.responseText ? JSON.parse(request.responseText) : null);
      } else {
        reject(problemOf(request.status, request.responseText, request.getResponseHeader("Retry-After")));
      }
    });
    request.addEventListener("error", () => reject(new Problem(OFFLINE)));
    request.addEventListener("abort", () => reject(new DOMException("the upload was stopped", "AbortError")));
    signal?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
