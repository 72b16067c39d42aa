// One live connection of a page. It rests while nobody looks, and comes back by itself when server or network do.

import { root } from "./api.js";
import { find, say } from "./dom.js";

const WAITS_MS = [500, 1000, 2000, 5000, 10000];

/** Follow a stream of events; `onEvent` has a listener for each name, which is given the event's data. */
export function follow(path, onEvent, { onState = () => {} } = {}) {
  let source = null;
  let timer = 0;
  let failures = 0;
  let over = false;

  function tell(state) {
    showConnection(state !== "lost");
    onState(state);
  }

  function open() {
    clearTimeout(timer);
    if (over || source || document.hidden) return;
    // A new stream begins anew: whoever counts what comes must know what they have seen.
    source = new EventSource(root + path);
    source.addEventListener("open", () => {
      failures = 0;
      tell("live");
    });
    source.addEventListener("error", () => {
      rest();
      tell("lost");
      timer = setTimeout(open, WAITS_MS[Math.min(failures, WAITS_MS.length - 1)]);
      failures += 1;
    });
    source.addEventListener("end", () => {
      close();
      tell("ended");
    });
    for (const [name, listener] of Object.entries(onEvent)) {
      source.addEventListener(name, (event) => listener(JSON.parse(event.data)));
    }
  }

  function rest() {
    source?.close();
    source = null;
  }

  function look() {
    if (document.hidden) rest();
    else open();
  }

  function close() {
    over = true;
    clearTimeout(timer);
    rest();
    document.removeEventListener("visibilitychange", look);
    removeEventListener("online", open);
  }

  document.addEventListener("visibilitychange", look);
  addEventListener("online", open);
  addEventListener("pagehide", rest);
  open();
  return { close };
}

/** The line under the page's head that says when there is no connection. */
export function showConnection(there) {
  const line = find("#connection");
  if (!there) say(line, "No connection to the server. What you see may be old; this page reconnects by itself.");
  line.hidden = there;
}
