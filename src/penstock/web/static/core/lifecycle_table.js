// The engine's table of states, as the server wrote it into the page: nothing of it is repeated in a module.

const table = JSON.parse(document.getElementById("lifecycle-table").textContent);

/** By state: its look (word, icon, colour), the status and the known state it is shown as, and whether it is an end. */
export const STATES = table.states;

/** The looks of the five statuses, and those of items' statuses. */
export const STATUSES = table.statuses;
export const ITEMS = table.items;

/** The words on the buttons of what may be asked of a job. */
export const ACTIONS = table.actions;

/** How a job looks; its state says more where the five statuses say less, unless something killed it. */
export function lookOf(status, state = null) {
  return STATES[state]?.status === status ? STATES[state].look : STATUSES[status];
}
