// The server's clock. Every moment on a page comes from the server: how long ago it was is counted by its clock, for a
// computer's own may be hours off.

const shown = Number(document.documentElement.dataset.now);
const [loading] = performance.getEntriesByType("navigation");
// What has passed since the server wrote the page; a slow network is no clock that is off.
const since = loading ? Math.max(performance.now() - loading.responseStart, 0) : 0;
const ahead = shown ? shown + since - Date.now() : 0;

/** The server's time now, in milliseconds since 1970. */
export function now() {
  return Date.now() + ahead;
}
